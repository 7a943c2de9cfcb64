//! Something that an element waited for has happened: a message, a timer, an error.

use std::sync::Arc;

use wf_model::{Boundary, Element as Node, ElementIdx, Kind, Trigger};

use super::attach::ENDLESS;
use super::{Here, Task, Walk};
use crate::draft::Run;
use crate::event::What;
use crate::expressions::{Halt, Step};
use crate::ids::Key;
use crate::ranges::{RangeId, SortKey};
use crate::rows::{
    After, Element, IncidentKind, Message, Phase, RowId, Scope, ScopeState, Subscription, Text, Timer, Variables,
};

impl Walk<'_, '_> {
    /// A message reaches a subscription; `false`: its scope takes no messages any more.
    pub(crate) fn correlate(&mut self, subscription: &Subscription, message: &Message) -> Run<bool> {
        if !self.is_live(subscription.scope)? {
            return Ok(false);
        }
        let id = RowId::Element { scope: subscription.scope, key: subscription.host };
        let Some(host) = self.draft.get::<Element>(&id)? else { return Ok(false) };
        let Some(here) = self.here(subscription.scope)? else { return Ok(false) };
        let element_id = here.id_of(subscription.target);
        let correlated = What::MessageCorrelated { name: subscription.message.clone(), element_id };
        self.draft.emit(subscription.root, subscription.key, correlated);
        self.note_reached(message.key, subscription.root);
        self.close_taken(&here, subscription)?;
        self.trigger(&here, &host, subscription.target, &message.variables)?;
        Ok(true)
    }

    /// A subscription that is open takes the oldest buffered message that its process has not had; one that is open
    /// still (of a boundary event beside its activity) takes the next one too.
    pub(super) fn match_buffered(&mut self, key: Key, after: Option<SortKey>) -> Run<()> {
        let Some(subscription) = self.draft.get::<Subscription>(&RowId::Subscription(key))? else { return Ok(()) };
        let range = RangeId::Buffered {
            tenant: subscription.tenant.clone(),
            message: subscription.message.clone(),
            correlation_key: subscription.correlation_key.clone(),
        };
        let found = self.next_buffered(&range, &subscription.process_id, after)?;
        let Some((sort, message)) = found else { return Ok(()) };
        if self.reach(&subscription, &message)? {
            self.note_correlated(&message, &subscription.process_id)?;
            self.push(Task::MatchBuffered { subscription: key, after: Some(sort) });
        }
        Ok(())
    }

    /// The oldest after `after` that the process may still have. Looking from the begin for each would be quadratic.
    pub(crate) fn next_buffered(
        &self,
        range: &RangeId,
        process_id: &Text,
        mut after: Option<SortKey>,
    ) -> Run<Option<(SortKey, Arc<Message>)>> {
        while let Some(sort) = self.draft.next_in(range, after.as_ref())? {
            let message = self.draft.get::<Message>(&RowId::Message(sort.key))?;
            let fits = |message: &Arc<Message>| {
                message.expires_at > self.context.now && message.correlated.binary_search(process_id).is_err()
            };
            if let Some(message) = message.filter(fits) {
                return Ok(Some((sort, message)));
            }
            after = Some(sort);
        }
        Ok(None)
    }

    pub(crate) fn note_correlated(&mut self, message: &Message, process_id: &Text) -> Run<()> {
        let mut noted = message.clone();
        if let Err(place) = noted.correlated.binary_search(process_id) {
            noted.correlated.insert(place, process_id.clone());
            self.draft.put(noted)?;
        }
        Ok(())
    }

    /// A timer is due. A cycle's next date counts from the one before: no drift.
    pub(crate) fn fire(&mut self, timer: &Timer) -> Run<bool> {
        let id = RowId::Element { scope: timer.scope, key: timer.host };
        let (Some(here), Some(host)) = (self.here(timer.scope)?, self.draft.get::<Element>(&id)?) else {
            // Nobody waits for it: it goes, so that it is not tried for ever.
            self.draft.delete(timer.id())?;
            return Ok(true);
        };
        if !self.is_live(timer.scope)? {
            return Ok(false);
        }
        self.draft.emit(timer.root, timer.key, What::TimerFired { element_id: here.id_of(timer.target) });
        let host = self.rearm(&here, timer, &host)?;
        self.trigger(&here, &host, timer.target, &Variables::new())?;
        Ok(true)
    }

    fn rearm(&mut self, here: &Here, timer: &Timer, host: &Arc<Element>) -> Run<Arc<Element>> {
        let next = match timer.repeats {
            0 => None,
            _ => wf_feel::add_duration_ms(timer.due, &timer.interval).filter(|due| *due > timer.due),
        };
        if let Some(due) = next {
            let repeats = if timer.repeats == ENDLESS { ENDLESS } else { timer.repeats - 1 };
            let next = Timer { due, repeats, ..timer.clone() };
            self.tell_scheduled(here, &next);
            self.draft.put(next)?;
            return Ok(host.clone());
        }
        self.draft.delete(timer.id())?;
        let mut without = (**host).clone();
        without.attached.retain(|attached| attached.key != timer.key);
        self.draft.put(without)
    }

    fn trigger(&mut self, here: &Here, host: &Arc<Element>, target: ElementIdx, variables: &Variables) -> Run<()> {
        if host.element == target {
            return self.complete_element(host, variables);
        }
        let Some(node) = here.node(target) else { return Ok(()) };
        match &node.kind {
            Kind::Boundary(Boundary { interrupting: false, .. }) => {
                self.change_scope(here.scope.key, |scope| scope.active = scope.active.saturating_add(1))?;
                self.leave_event(here, target, variables)
            }
            Kind::Boundary(_) => self.interrupt(here, host, target, variables),
            // A branch of an event-based gateway: the first trigger wins.
            _ => {
                self.remove_element(host)?;
                if let Some(gateway) = here.node(host.element) {
                    self.tell_completed(here, gateway);
                }
                self.leave_event(here, target, variables)
            }
        }
    }

    /// The token leaves an event that had no row of its own.
    pub(super) fn leave_event(&mut self, here: &Here, target: ElementIdx, variables: &Variables) -> Run<()> {
        let Some(here) = self.here(here.scope.key)? else { return Ok(()) };
        let Some(node) = here.node(target) else { return Ok(()) };
        match self.pass(&here, node, variables) {
            Ok(()) => Ok(()),
            Err(halt) => self.park(&here, target, Phase::Leaving, variables, halt),
        }
    }

    /// The activity ends by force; then the boundary event's path starts.
    fn interrupt(&mut self, here: &Here, host: &Arc<Element>, target: ElementIdx, variables: &Variables) -> Run<()> {
        if !here.is_scope(host.element) {
            self.terminate_element(here, host)?;
            return self.leave_event(here, target, variables);
        }
        self.detach(host.root, &host.attached)?;
        // The path may start in a later command. Until then what the event brought waits where the sub-process had its
        // own variables: nothing in it is evaluated any more.
        self.delete_variables(host.key)?;
        self.keep_variables(host.key, variables)?;
        self.draft.put(Element { attached: Vec::new(), has_locals: true, ..(**host).clone() })?;
        self.stop_scope(host.key, After::Continue(target))
    }

    pub(super) fn stop_scope(&mut self, scope: Key, after: After) -> Run<()> {
        self.change_scope(scope, |scope| {
            scope.state = ScopeState::Terminating;
            scope.after = after;
            scope.joins.clear();
        })?;
        self.push(Task::Terminate { scope });
        Ok(())
    }

    /// An error end event: looks for who catches it, from its scope outwards.
    pub(super) fn throw_from(&mut self, here: &Here, node: &Node, code: &Text) -> Step<()> {
        match self.find_catch(here.scope.key, code)? {
            Some((host, target)) => {
                self.tell_completed(here, node);
                Ok(self.catch_error(host, target, &Variables::new())?)
            }
            None => Err(Halt::Incident(
                IncidentKind::UnhandledError,
                format!("error '{code}' is thrown here and nothing catches it"),
            )),
        }
    }

    /// The boundary event of the nearest enclosing sub-process that catches the code.
    pub(crate) fn find_catch(&self, scope: Key, code: &str) -> Run<Option<(Arc<Element>, ElementIdx)>> {
        let mut at = scope;
        while let Some(inner) = self.draft.get::<Scope>(&RowId::Scope(at))?.filter(|scope| scope.parent != 0) {
            let id = RowId::Element { scope: inner.parent, key: inner.key };
            if let Some(host) = self.draft.get::<Element>(&id)?
                && let Some(target) = self.catches(&host, code)?
            {
                return Ok(Some((host, target)));
            }
            at = inner.parent;
        }
        Ok(None)
    }

    /// The element's own boundary event for the code: an exact code before a catch-all.
    pub(crate) fn catches(&self, host: &Element, code: &str) -> Run<Option<ElementIdx>> {
        let Some(here) = self.here(host.scope)? else { return Ok(None) };
        let Some(node) = here.node(host.element) else { return Ok(None) };
        let caught = |index: &&ElementIdx, wanted: Option<&str>| {
            matches!(here.node(**index).map(|node| &node.kind),
                Some(Kind::Boundary(Boundary { trigger: Trigger::Error(code), .. })) if code.as_deref() == wanted)
        };
        let exact = node.boundaries.iter().find(|index| caught(index, Some(code)));
        Ok(exact.or_else(|| node.boundaries.iter().find(|index| caught(index, None))).copied())
    }

    pub(crate) fn catch_error(&mut self, host: Arc<Element>, target: ElementIdx, variables: &Variables) -> Run<()> {
        let Some(here) = self.here(host.scope)? else { return Ok(()) };
        self.interrupt(&here, &host, target, variables)
    }
}
