//! What the engine does unasked: timers, leases, back-offs, expiries, follow-ups, retention. In bounded slices.

use std::collections::BTreeSet;
use std::time::Duration;

use wf_core::draft::Base;
use wf_core::planted::{self, Bug};
use wf_core::ranges::{Due, due_at};
use wf_core::{Command, Key, Millis, Need, RangeId, Row, RowId, SortKey, ids};

use crate::cache::Cache;
use crate::envelope::Own;
use crate::heads::RETAINED;

/// Commands of one kind in one turn; what is left comes with the next.
pub const SLICE_MAX: usize = 128;
/// A slice ends early after this long, once it has begun: a follow-up may be a thousand steps, or none at all. Requests wait
/// meanwhile.
pub const SLICE_TIME: Duration = Duration::from_millis(20);
/// Rows of each kind that one purge drops.
pub const PURGE_ROWS_MAX: u32 = 100;

/// An entry of a queue, as it is remembered to be left alone.
pub type Place = (RangeId, SortKey);

/// The first entry of a queue; `Err`: it must be loaded first.
pub fn first(cache: &Cache, range: &RangeId) -> Result<Option<SortKey>, Need> {
    let Some(view) = cache.range(range) else { return Err(Need::Range(range.clone(), None)) };
    match (view.entries.first(), view.frontier) {
        (Some(first), _) => Ok(Some(first.clone())),
        (None, Some(_)) if planted::is(Bug::NoFrontier) => Ok(None),
        (None, Some(frontier)) => Err(Need::Range(range.clone(), Some(frontier.clone()))),
        (None, None) => Ok(None),
    }
}

/// When the next entry falls due that is not to be left alone. Follow-ups are due at once: their rank is 0.
pub fn next_due(cache: &Cache, range: &RangeId, skipped: &BTreeSet<Place>) -> Option<Millis> {
    let view = cache.range(range)?;
    view.entries.iter().find(|sort| !is_skipped(skipped, range, sort)).map(due_at)
}

/// Up to a slice of entries that are due, in order; stops where memory ends.
pub fn due_entries(cache: &Cache, range: &RangeId, now: Millis, skipped: &BTreeSet<Place>) -> Vec<SortKey> {
    let Some(view) = cache.range(range) else { return Vec::new() };
    let due = view.entries.iter().take_while(|sort| due_at(sort) <= now);
    due.filter(|sort| !is_skipped(skipped, range, sort)).take(SLICE_MAX).cloned().collect()
}

fn is_skipped(skipped: &BTreeSet<Place>, range: &RangeId, sort: &SortKey) -> bool {
    !skipped.is_empty() && skipped.contains(&(range.clone(), sort.clone()))
}

/// The command for a due entry. Its id is derived from what it is about: a repeat is known.
pub fn command_for(cache: &Cache, range: &RangeId, sort: &SortKey) -> Result<Option<Own>, Need> {
    let due = due_at(sort);
    let key = sort.key;
    let own = match range {
        RangeId::Due(Due::Timers) => own(due, b"timer", &[key, due as u64], Command::FireTimer { timer: key, due }),
        RangeId::Due(Due::Leases) => match cache.row(&RowId::Job(key)) {
            None => return Err(Need::Row(RowId::Job(key))),
            Some(Some(Row::Job(job))) => {
                // An extended lease ends at another time: a new expiry.
                let command = Command::ExpireLease { job: key, lease: job.lease };
                own(due, b"lease", &[key, job.lease, due as u64], command)
            }
            Some(_) => return Ok(None),
        },
        RangeId::Due(Due::Backoffs) => own(due, b"backoff", &[key, due as u64], Command::EndBackoff { job: key, due }),
        RangeId::Due(Due::Messages) => own(due, b"message", &[key], Command::ExpireMessage { message: key }),
        RangeId::FollowUps if planted::is(Bug::FollowUpId) => {
            own(0, b"follow-up", &[], Command::Continue { follow_up: key })
        }
        RangeId::FollowUps => own(0, b"follow-up", &[key], Command::Continue { follow_up: key }),
        _ => return Ok(None),
    };
    Ok(Some(own))
}

/// A purge, if something has been over for longer than it must be kept.
pub fn purge(cache: &Cache, now: Millis, finished_ms: i64, (partition, position): (u16, u64)) -> Option<Own> {
    let before = now.saturating_sub(finished_ms);
    let is_over = |range: &RangeId| {
        let limit = if *range == RangeId::Due(Due::MessageIds) { now } else { before };
        first(cache, range).ok().flatten().is_some_and(|sort| due_at(&sort) <= limit)
    };
    let command = Command::Purge { before, rows_max: PURGE_ROWS_MAX };
    RETAINED.iter().any(is_over).then(|| own(now, b"purge", &[u64::from(partition), position], command))
}

fn own(time: Millis, kind: &[u8], keys: &[Key], command: Command) -> Own {
    let keys: Vec<[u8; 8]> = keys.iter().map(|key| key.to_be_bytes()).collect();
    let mut parts: Vec<&[u8]> = vec![b"engine", kind];
    parts.extend(keys.iter().map(|key| &key[..]));
    Own { command, id: ids::command_id(time, &parts), may_be_known: true, from: None }
}

/// A command of the engine's own that no earlier run can have logged. Partitions may stand at one position, and do where a
/// test clock stands still: the ids of all of them are unique in one log.
pub fn fresh(time: Millis, kind: &[u8], (partition, position): (u16, u64), command: Command) -> Own {
    Own { may_be_known: false, ..own(time, kind, &[u64::from(partition), position], command) }
}
