//! Where tokens part and meet. A join counts per sequence flow, never arrivals.

use wf_feel::Value;
use wf_model::{Element as Node, ElementIdx, FlowIdx, Kind};

use super::{Here, Walk};
use crate::draft::Run;
use crate::event::What;
use crate::expressions::{Halt, Step};
use crate::rows::IncidentKind;

impl Walk<'_, '_> {
    /// Conditions in the order of the file; the default flow only when none holds.
    pub(super) fn choose(&mut self, here: &Here, node: &Node, default: Option<FlowIdx>) -> Step<()> {
        for flow in node.outgoing.iter().filter(|flow| Some(**flow) != default) {
            if self.holds(here, *flow)? {
                return Ok(self.take(here, node, *flow)?);
            }
        }
        match default {
            Some(flow) => Ok(self.take(here, node, flow)?),
            None if node.outgoing.is_empty() => Ok(self.end(here, node)?),
            None => Err(Halt::Incident(
                IncidentKind::Condition,
                format!("no condition of gateway '{}' holds and it has no default flow", node.id),
            )),
        }
    }

    fn holds(&mut self, here: &Here, flow: FlowIdx) -> Step<bool> {
        let Some(flow) = here.process.flow(flow) else { return Ok(false) };
        let Some(condition) = &flow.condition else { return Ok(true) };
        let value = match self.evaluate(condition, here.place()) {
            Ok(value) => value,
            Err(Halt::Incident(_, message)) => return Err(Halt::Incident(IncidentKind::Condition, message)),
            Err(stop) => return Err(stop),
        };
        match value {
            Value::Bool(holds) => Ok(holds),
            other => Err(Halt::Incident(
                IncidentKind::Condition,
                format!(
                    "condition '{}' of flow '{}' gives {}, a boolean is wanted",
                    condition.source(),
                    flow.id,
                    other.type_name()
                ),
            )),
        }
    }

    fn take(&mut self, here: &Here, node: &Node, flow: FlowIdx) -> Run<()> {
        self.tell_completed(here, node);
        self.follow(here, &[flow])
    }

    /// Fires when every distinct incoming flow has a token; a second token on one flow waits for the next round.
    pub(super) fn join(&mut self, here: &Here, node: &Node, flow: Option<FlowIdx>) -> Run<()> {
        let fires = match flow.filter(|_| node.incoming.len() > 1) {
            Some(flow) => self.add_to_join(here, node, flow)?,
            None => true,
        };
        if fires { self.pass_on(here, node) } else { Ok(()) }
    }

    /// Whether the token was the last one wanting: all of them are one token then.
    pub(crate) fn add_to_join(&mut self, here: &Here, node: &Node, flow: FlowIdx) -> Run<bool> {
        let mut joins = here.scope.joins.clone();
        add_token(&mut joins, flow);
        let waits_for = |incoming: &FlowIdx| joins.binary_search_by_key(incoming, |(flow, _)| *flow).is_err();
        let fires = !node.incoming.iter().any(waits_for);
        let mut merged = 0;
        if fires {
            node.incoming.iter().for_each(|incoming| remove_token(&mut joins, *incoming));
            merged = node.incoming.len() as u32 - 1;
        }
        self.change_scope(here.scope.key, |scope| {
            scope.joins = joins;
            scope.active = scope.active.saturating_sub(merged);
        })?;
        Ok(fires)
    }

    fn pass_on(&mut self, here: &Here, node: &Node) -> Run<()> {
        self.tell_completed(here, node);
        self.follow(here, &node.outgoing)
    }

    pub(super) fn tell_completed(&mut self, here: &Here, node: &Node) {
        let completed = What::ElementCompleted { element_id: node.id.clone() };
        self.draft.emit(here.scope.root, here.scope.key, completed);
    }
}

impl Here {
    /// A parallel gateway that waits for more than one flow.
    pub(crate) fn is_join(&self, index: ElementIdx) -> bool {
        self.node(index).is_some_and(|node| matches!(node.kind, Kind::Parallel) && node.incoming.len() > 1)
    }
}

fn add_token(joins: &mut Vec<(FlowIdx, u32)>, flow: FlowIdx) {
    match joins.binary_search_by_key(&flow, |(flow, _)| *flow) {
        Ok(found) => {
            if let Some((_, count)) = joins.get_mut(found) {
                *count = count.saturating_add(1);
            }
        }
        Err(place) => joins.insert(place, (flow, 1)),
    }
}

fn remove_token(joins: &mut Vec<(FlowIdx, u32)>, flow: FlowIdx) {
    if let Some((_, count)) = joins.iter_mut().find(|(waiting, _)| *waiting == flow) {
        *count = count.saturating_sub(1);
    }
    joins.retain(|(_, count)| *count > 0);
}
