//! What the engine could not execute is put aside with an incident, so that it is not tried for ever and not lost:
//! an operator resolves it, and the same is tried again. Next: `incidents.rs`.

use crate::command::{Command, Quarantined};
use crate::crossing::{close_copy, put_back, settle_at_home};
use crate::draft::Run;
use crate::event::What;
use crate::expressions::Halt;
use crate::ids::{self, Key, Millis};
use crate::rows::{
    Element, FollowUp, Handover, IncidentKind, Phase, RowId, Scope, Subscription, Text, Timer, Variables, Work,
};
use crate::walk::Walk;
use wf_model::{ElementIdx, FlowIdx, ROOT};

/// 9999-12-31T23:59:59.999Z: when a timer that was put aside is due.
pub(crate) const NEVER: Millis = 253_402_300_799_999;

pub(crate) fn quarantine(walk: &mut Walk<'_, '_>, what: Quarantined, reason: &Text) -> Run<bool> {
    match what {
        Quarantined::Timer(key) => put_timer_aside(walk, key, reason),
        Quarantined::FollowUp(key) => put_follow_up_aside(walk, key, reason),
        Quarantined::Handover { subscription, message } if ids::partition_of(message) == walk.context.partition => {
            put_settlement_aside(walk, subscription, message, reason)
        }
        Quarantined::Handover { subscription, message } => put_handover_aside(walk, subscription, message, reason),
        Quarantined::Subscription(key) => put_subscription_aside(walk, key, reason),
        Quarantined::Copy(key) => {
            walk.draft.emit(0, key, What::Quarantined { reason: reason.clone() });
            let what = Quarantined::Subscription(key);
            walk.send(ids::partition_of(key), Command::Quarantine { what, reason: reason.clone() });
            Ok(true)
        }
        // It changed nothing and comes no more: the log of this partition is where it is told.
        Quarantined::Sent(..) => {
            walk.draft.emit(0, 0, What::Quarantined { reason: reason.clone() });
            Ok(true)
        }
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

/// The message goes to the next who waits. When the incident is resolved the subscription is announced again, and meets the
/// message again if that is still buffered.
fn put_handover_aside(walk: &mut Walk<'_, '_>, subscription: Key, message: Key, reason: &Text) -> Run<bool> {
    if !put_subscription_aside(walk, subscription, reason)? {
        walk.draft.emit(0, subscription, What::Quarantined { reason: reason.clone() });
    }
    settle_at_home(walk, subscription, message, false);
    Ok(true)
}

/// Nobody could be given the message; where it is buffered, the next who comes looks for it again.
fn put_settlement_aside(walk: &mut Walk<'_, '_>, subscription: Key, message: Key, reason: &Text) -> Run<bool> {
    let id = RowId::Handover { subscription, message };
    let handover = walk.draft.get::<Handover>(&id)?;
    let root = handover.as_ref().map_or(0, |handover| handover.root);
    walk.draft.emit(root, message, What::Quarantined { reason: reason.clone() });
    if let Some(handover) = handover {
        walk.draft.delete(id)?;
        close_copy(walk, subscription)?;
        put_back(walk, &handover)?;
    }
    Ok(true)
}

fn put_subscription_aside(walk: &mut Walk<'_, '_>, key: Key, reason: &Text) -> Run<bool> {
    let Some(open) = walk.draft.get::<Subscription>(&RowId::Subscription(key))? else { return Ok(false) };
    walk.draft.emit(open.root, key, What::Quarantined { reason: reason.clone() });
    raise_on(walk, open.scope, open.host, reason)?;
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
