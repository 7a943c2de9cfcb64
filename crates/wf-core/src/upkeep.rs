//! Commands that the engine makes itself. Each looks again whether what it is about is still there:
//! a late timer, a swept lease or a repeated follow-up changes nothing.

use crate::command::Command;
use crate::crossing::crossing;
use crate::draft::{Run, gather};
use crate::event::What;
use crate::ids::{self, Key, Millis};
use crate::messages;
use crate::outcome::Outcome;
use crate::planted;
use crate::quarantine::quarantine;
use crate::ranges::{Due, RangeId, due_at, row_at};
use crate::rows::{FollowUp, Job, JobState, RowId, Timer, Work};
use crate::walk::{Task, Walk};

pub(crate) fn own(walk: &mut Walk<'_, '_>, command: &Command) -> Run<Outcome> {
    let applied = match command {
        Command::FireTimer { timer, due } => fire_timer(walk, *timer, *due)?,
        Command::ExpireLease { job, lease } => expire_lease(walk, *job, *lease)?,
        Command::EndBackoff { job, due } => end_backoff(walk, *job, *due)?,
        Command::ExpireMessage { message } => messages::expire(walk, *message)?,
        Command::Continue { follow_up } => go_on(walk, *follow_up)?,
        Command::Quarantine { what, reason } => quarantine(walk, *what, reason)?,
        Command::Purge { before, rows_max } => purge(walk, *before, *rows_max)?,
        Command::OpenEpoch { epoch, previous_position, semantics, .. } => {
            walk.draft.lift_counter(ids::epoch_floor(walk.context.now, *semantics));
            planted::note(ids::epoch_floor(walk.context.now, *semantics));
            let opened = What::EpochOpened { epoch: *epoch, previous_position: *previous_position };
            walk.draft.emit(0, 0, opened);
            true
        }
        Command::SetClock { now, .. } => {
            walk.draft.emit(0, 0, What::ClockSet { now: *now });
            return Ok(Outcome::ClockSet { now: *now });
        }
        sent if sent.is_crossing() => crossing(walk, sent)?,
        // A client's verb never comes here: `dispatch` has taken it.
        _ => false,
    };
    Ok(Outcome::Done { applied })
}

fn fire_timer(walk: &mut Walk<'_, '_>, key: Key, due: Millis) -> Run<bool> {
    match walk.draft.get::<Timer>(&RowId::Timer(key))? {
        Some(timer) if timer.due == due && due <= walk.context.now => walk.fire(&timer),
        _ => Ok(false),
    }
}

fn expire_lease(walk: &mut Walk<'_, '_>, key: Key, lease: u64) -> Run<bool> {
    let job = walk.draft.get::<Job>(&RowId::Job(key))?;
    let is_over = |job: &Job| job.state == JobState::Activated && job.lease == lease && job.due <= walk.context.now;
    let Some(job) = job.filter(|job| is_over(job)) else { return Ok(false) };
    walk.draft.emit(job.root, key, What::JobLeaseExpired { worker: job.worker.clone() });
    make_ready(walk, &job)
}

fn end_backoff(walk: &mut Walk<'_, '_>, key: Key, due: Millis) -> Run<bool> {
    let job = walk.draft.get::<Job>(&RowId::Job(key))?;
    let is_over = |job: &Job| job.state == JobState::Backoff && job.due == due && due <= walk.context.now;
    let Some(job) = job.filter(|job| is_over(job)) else { return Ok(false) };
    make_ready(walk, &job)
}

/// Worker and lease stay: the late holder is told that its lease has expired.
fn make_ready(walk: &mut Walk<'_, '_>, job: &Job) -> Run<bool> {
    let mut ready = job.clone();
    ready.state = JobState::Ready;
    ready.due = 0;
    walk.draft.put(ready)?;
    walk.draft.emit(job.root, job.key, What::JobReady);
    Ok(true)
}

fn go_on(walk: &mut Walk<'_, '_>, key: Key) -> Run<bool> {
    let Some(follow_up) = walk.draft.get::<FollowUp>(&RowId::FollowUp(key))? else { return Ok(false) };
    walk.draft.delete(follow_up.id())?;
    // Also where nothing is left to be done: no command is without an event (L6.1).
    walk.draft.emit(follow_up.root, key, What::FollowUpDone);
    let scope = follow_up.scope;
    match follow_up.work.clone() {
        Work::Arrive { element, flow } if walk.is_live(scope)? => {
            walk.push(Task::Arrive { scope, element, flow });
        }
        Work::Arrive { .. } => (),
        Work::Terminate => walk.push(Task::Terminate { scope }),
        Work::StartNext { process_id, message, correlation_key, tenant } => {
            walk.push(Task::StartNext(messages::StartNext { tenant, process_id, message, correlation_key }));
        }
        Work::MatchBuffered { subscription } => walk.push(Task::MatchBuffered { subscription, after: None }),
    }
    Ok(true)
}

/// Drops what ended before a time, the oldest first; at most `rows_max` rows of each kind.
fn purge(walk: &mut Walk<'_, '_>, before: Millis, rows_max: u32) -> Run<bool> {
    let mut dropped = 0;
    for kind in [Due::FinishedJobs, Due::Ended, Due::MessageIds] {
        // A received message id carries its own end; the rest ends with retention.
        let limit = if kind == Due::MessageIds { walk.context.now } else { before };
        let range = RangeId::Due(kind);
        let oldest = walk.draft.first_in(&range, rows_max as usize)?;
        let over = oldest.iter().take_while(|sort| due_at(sort) <= limit);
        let ids: Vec<RowId> = over.filter_map(|sort| row_at(&range, sort)).collect();
        dropped += ids.len() as u32;
        gather(ids, |id| drop_row(walk, id))?;
    }
    if dropped > 0 {
        walk.draft.emit(0, 0, What::Purged { rows: dropped });
    }
    Ok(dropped > 0)
}

fn drop_row(walk: &mut Walk<'_, '_>, id: RowId) -> Run<()> {
    match &id {
        RowId::Scope(key) => walk.delete_variables(*key)?,
        RowId::Job(key) => {
            let range = RangeId::Steps(*key);
            let mut after = None;
            while let Some(sort) = walk.draft.next_in(&range, after.as_ref())? {
                walk.draft.delete(RowId::Step { job: *key, name: sort.name.clone() })?;
                after = Some(sort);
            }
        }
        _ => (),
    }
    walk.draft.delete(id)
}
