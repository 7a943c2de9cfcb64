//! What the engine could not execute is put aside with an incident, so that it is not tried for ever and not lost:
//! an operator resolves it, and the same is tried again. Next: `incidents.rs`.

use crate::command::Quarantined;
use crate::draft::Run;
use crate::event::What;
use crate::expressions::Halt;
use crate::ids::{Key, Millis};
use crate::rows::{Element, FollowUp, IncidentKind, Phase, RowId, Scope, Text, Timer, Variables, Work};
use crate::walk::Walk;
use wf_model::{ElementIdx, FlowIdx, ROOT};

/// 9999-12-31T23:59:59.999Z: when a timer that was put aside is due.
pub(crate) const NEVER: Millis = 253_402_300_799_999;

pub(crate) fn quarantine(walk: &mut Walk<'_, '_>, what: Quarantined, reason: &Text) -> Run<bool> {
    match what {
        Quarantined::Timer(key) => put_timer_aside(walk, key, reason),
        Quarantined::FollowUp(key) => put_follow_up_aside(walk, key, reason),
    }
}

/// It stays attached to its element.
fn put_timer_aside(walk: &mut Walk<'_, '_>, key: Key, reason: &Text) -> Run<bool> {
    let Some(timer) = walk.draft.get::<Timer>(&RowId::Timer(key))? else { return Ok(false) };
    walk.draft.emit(timer.root, key, What::Quarantined { reason: reason.clone() });
    walk.draft.put(Timer { due: NEVER, ..(*timer).clone() })?;
    raise_on(walk, timer.scope, timer.host, reason)?;
    Ok(true)
}

fn raise_on(walk: &mut Walk<'_, '_>, scope: Key, key: Key, reason: &Text) -> Run<()> {
    if let Some(element) = walk.draft.get::<Element>(&RowId::Element { scope, key })? {
        // An incident that has a job is resolved with the job; the timer is tried again with it.
        if element.incident == 0 {
            walk.raise_on(&element, 0, IncidentKind::Internal, reason)?;
        }
    }
    Ok(())
}

fn put_follow_up_aside(walk: &mut Walk<'_, '_>, key: Key, reason: &Text) -> Run<bool> {
    let Some(follow_up) = walk.draft.get::<FollowUp>(&RowId::FollowUp(key))? else { return Ok(false) };
    walk.draft.emit(follow_up.root, key, What::Quarantined { reason: reason.clone() });
    walk.draft.delete(follow_up.id())?;
    match follow_up.work {
        Work::Arrive { element, flow } => park_token(walk, follow_up.scope, element, flow, reason)?,
        Work::Terminate => raise_on_scope(walk, follow_up.scope, reason)?,
        // The message stays buffered: the next end of an instance, the next subscription looks for it again.
        Work::StartNext { .. } | Work::MatchBuffered { .. } => (),
    }
    Ok(true)
}

/// Before its element, or behind a join: parked before it the token would forget its flow.
fn park_token(
    walk: &mut Walk<'_, '_>,
    scope: Key,
    element: ElementIdx,
    flow: Option<FlowIdx>,
    reason: &Text,
) -> Run<()> {
    let Some(here) = walk.here(scope)? else { return Ok(()) };
    if !walk.is_live(scope)? {
        return Ok(());
    }
    let phase = match (here.node(element), flow) {
        (Some(node), Some(flow)) if here.is_join(element) => {
            if !walk.add_to_join(&here, node, flow)? {
                return Ok(());
            }
            Phase::Leaving
        }
        _ => Phase::Entering,
    };
    let halt = Halt::Incident(IncidentKind::Internal, reason.to_string());
    walk.park(&here, element, phase, &Variables::new(), halt)
}

/// The next slice of a scope that is being terminated: an incident of the sub-process, or of the instance.
fn raise_on_scope(walk: &mut Walk<'_, '_>, scope: Key, reason: &Text) -> Run<()> {
    match walk.draft.get::<Scope>(&RowId::Scope(scope))?.map(|row| row.parent) {
        Some(0) => {
            let Some(here) = walk.here(scope)? else { return Ok(()) };
            walk.raise(&here, ROOT, 0, 0, IncidentKind::Internal, reason)?;
            Ok(())
        }
        Some(parent) => raise_on(walk, parent, scope, reason),
        None => Ok(()),
    }
}
