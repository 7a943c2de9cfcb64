//! A token goes on: output mappings, outgoing flows, the end of a path, the end of a scope.

use wf_model::{Element as Node, FlowIdx, ROOT};

use super::{Here, Task, Walk};
use crate::draft::Run;
use crate::event::What;
use crate::expressions::{Halt, Step};
use crate::ids::Key;
use crate::instances::find_definition;
use crate::messages::StartNext;
use crate::planted::{self, Bug};
use crate::rows::{After, Element, IncidentKind, Instance, Phase, RowId, Scope, ScopeState, Text, Unique, Variables};

impl Walk<'_, '_> {
    /// An element that does not wait: completed as it is entered.
    pub(super) fn pass(&mut self, here: &Here, node: &Node, results: &Variables) -> Step<()> {
        self.pass_with(here, node, Variables::new(), results)
    }

    /// `locals` are its input mappings' results, `results` what it made.
    pub(super) fn pass_with(&mut self, here: &Here, node: &Node, locals: Variables, results: &Variables) -> Step<()> {
        self.write_results(here, node, locals, results)?;
        self.tell_completed(here, node);
        Ok(self.follow(here, &node.outgoing)?)
    }

    /// With output mappings only what they map goes up. Without, all results do, but for those whose name is a local
    /// variable: they end with the element.
    fn write_results(&mut self, here: &Here, node: &Node, locals: Variables, results: &Variables) -> Step<()> {
        let up = if node.outputs.is_empty() {
            let is_local = |name: &Text| locals.binary_search_by(|(local, _)| local.cmp(name)).is_ok();
            results.iter().filter(|(name, _)| !is_local(name)).cloned().collect()
        } else {
            self.map_outputs(here, node, &merged(locals, results))?
        };
        Ok(self.merge_variables(here.scope.key, here.scope.root, &up)?)
    }

    /// A waiting element is done, with the variables that came with it. An output mapping that fails leaves it
    /// waiting on its way out, its variables kept.
    pub(crate) fn complete_element(&mut self, element: &Element, results: &Variables) -> Run<()> {
        let Some(here) = self.here(element.scope)? else { return Ok(()) };
        let Some(node) = here.node(element.element) else { return Ok(()) };
        let locals = match element.has_locals {
            true => self.visible_variables(&[element.key], None)?,
            false => Variables::new(),
        };
        match self.write_results(&here, node, locals.clone(), results) {
            Ok(()) => {
                self.remove_element(element)?;
                if element.job == 0 {
                    let completed = What::ElementCompleted { element_id: node.id.clone() };
                    self.draft.emit(element.root, element.key, completed);
                }
                self.follow(&here, &node.outgoing)
            }
            Err(Halt::Stop(stop)) => Err(stop),
            Err(Halt::Incident(kind, message)) => {
                let kept = merged(locals, results);
                self.stop_leaving(element, kind, &message, &kept)
            }
        }
    }

    /// Its work is done and what it waited for itself is over; its boundary events can still end it.
    fn stop_leaving(&mut self, element: &Element, kind: IncidentKind, message: &str, kept: &Variables) -> Run<()> {
        let (own, around): (Vec<_>, Vec<_>) =
            element.attached.iter().partition(|attached| attached.target == element.element);
        self.detach(element.root, &own)?;
        self.keep_variables(element.key, kept)?;
        let stopped = Element { phase: Phase::Leaving, job: 0, has_locals: true, attached: around, ..element.clone() };
        self.raise_on(&stopped, 0, kind, message)?;
        Ok(())
    }

    /// The element's row with what hangs on it, but not its job and not its token.
    pub(super) fn remove_element(&mut self, element: &Element) -> Run<()> {
        self.detach(element.root, &element.attached)?;
        if element.has_locals {
            self.delete_variables(element.key)?;
        }
        if element.incident != 0 {
            self.draft.delete(RowId::Incident(element.incident))?;
        }
        self.draft.delete(RowId::Element { scope: element.scope, key: element.key })
    }

    /// One token becomes as many as there are flows; without a flow its path ends.
    pub(super) fn follow(&mut self, here: &Here, flows: &[FlowIdx]) -> Run<()> {
        let scope = here.scope.key;
        if flows.is_empty() {
            return self.end_path(scope);
        }
        if flows.len() > 1 {
            let more = flows.len() as u32 - 1;
            self.change_scope(scope, |scope| scope.active = scope.active.saturating_add(more))?;
        }
        if planted::is(Bug::MapOrder) && flows.len() > 1 {
            return planted::in_map_order(flows).iter().try_for_each(|flow| self.follow(here, &[*flow]));
        }
        for flow in flows {
            if let Some(target) = here.process.flow(*flow).map(|flow| flow.target) {
                self.push(Task::Arrive { scope, element: target, flow: Some(*flow) });
            }
        }
        Ok(())
    }

    pub(super) fn end(&mut self, here: &Here, node: &Node) -> Run<()> {
        self.tell_completed(here, node);
        self.end_path(here.scope.key)
    }

    /// A token is gone; with the last one the scope completes.
    pub(super) fn end_path(&mut self, scope: Key) -> Run<()> {
        self.change_scope(scope, |scope| scope.active = scope.active.saturating_sub(1))?;
        match self.draft.get::<Scope>(&RowId::Scope(scope))? {
            Some(scope) if scope.active == 0 && scope.state == ScopeState::Active => self.complete_scope(&scope),
            _ => Ok(()),
        }
    }

    pub(crate) fn complete_scope(&mut self, scope: &Scope) -> Run<()> {
        if scope.element == ROOT {
            return self.end_instance(scope, ScopeState::Completed);
        }
        let Some(element) = self.draft.get::<Element>(&RowId::Element { scope: scope.parent, key: scope.key })? else {
            return Ok(());
        };
        // Its variables are the locals that output mappings read; then scope and variables go.
        let mut leaving = (*element).clone();
        leaving.has_locals = true;
        self.draft.put(leaving.clone())?;
        self.complete_element(&leaving, &Variables::new())?;
        let is_gone = self.draft.get::<Element>(&element.id())?.is_none();
        if is_gone {
            self.draft.delete(RowId::Scope(scope.key))?;
        }
        Ok(())
    }

    pub(super) fn end_instance(&mut self, root: &Scope, state: ScopeState) -> Run<()> {
        let Some(instance) = root.instance.clone() else { return Ok(()) };
        let now = self.context.now;
        let position = self.context.position;
        self.change_scope(root.key, |scope| {
            scope.state = state;
            scope.active = 0;
            scope.joins.clear();
            scope.after = After::Nothing;
        })?;
        self.change_instance(root.key, |instance| {
            instance.ended_at = now;
            instance.ended_position = position;
        })?;
        let (process_id, version) = (instance.process_id.clone(), instance.version);
        self.draft.emit(
            root.key,
            root.key,
            match state {
                ScopeState::Canceled => What::InstanceCanceled { process_id, version },
                _ => What::InstanceCompleted { process_id, version },
            },
        );
        self.release(root.key, &instance)
    }

    /// What a live instance kept from others: its unique value, its start message's key.
    fn release(&mut self, root: Key, instance: &Instance) -> Run<()> {
        if let Some((variable, value)) = &instance.unique {
            let id = RowId::Unique {
                tenant: instance.tenant.clone(),
                process_id: instance.process_id.clone(),
                variable: variable.clone(),
                value: *value,
            };
            // An instance that was being canceled in slices has lost it to a later one already.
            if self.draft.get::<Unique>(&id)?.is_some_and(|unique| unique.root == root) {
                self.draft.delete(id)?;
            }
        }
        match &instance.start_correlation {
            Some(correlation_key) => self.release_start(instance, correlation_key),
            None => Ok(()),
        }
    }

    /// A buffered message may start the next instance, at any start event of the latest version.
    fn release_start(&mut self, instance: &Instance, correlation_key: &Text) -> Run<()> {
        let (tenant, process_id) = (&instance.tenant, &instance.process_id);
        self.draft.delete(RowId::StartLock {
            tenant: tenant.clone(),
            process_id: process_id.clone(),
            correlation_key: correlation_key.clone(),
        })?;
        let latest = find_definition(self, tenant, process_id, None)?;
        let process = self.draft.process(latest.key)?;
        for (_, message) in process.message_starts() {
            if let wf_model::Text::Literal(name) = &message.name {
                self.push(Task::StartNext(StartNext {
                    tenant: tenant.clone(),
                    process_id: process_id.clone(),
                    message: name.clone(),
                    correlation_key: correlation_key.clone(),
                }));
            }
        }
        Ok(())
    }
}

fn merged(mut locals: Variables, results: &Variables) -> Variables {
    for (name, value) in results {
        crate::variables::insert_sorted(&mut locals, name.clone(), value.clone());
    }
    locals
}
