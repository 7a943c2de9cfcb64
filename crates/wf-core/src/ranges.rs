//! The orders in which rows are found: each row names the ranges that it stands in.
//! A store answers a range from an index; the engine keeps the heads of some in memory. Next: `draft.rs`.

use std::sync::Arc;

use crate::ids::{Key, Millis};
use crate::rows::{Job, JobState, Row, RowId, ScopeState, Text};

/// An ordered set of rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RangeId {
    /// Definitions of a process, the newest version first.
    Versions { tenant: Text, process_id: Text },
    /// Message start events that wait for a message name, by process id.
    MessageStarts { tenant: Text, message: Text },
    /// Jobs ready for activation: priority descending, key ascending.
    Ready { tenant: Text, job_type: Text },
    /// What falls due, by time and key.
    Due(Due),
    /// Live elements of a scope, by key.
    Elements(Key),
    /// Variables of a scope, by name.
    Variables(Key),
    /// Steps of a job, by name.
    Steps(Key),
    /// Open subscriptions for a message, the oldest first.
    Subscriptions { tenant: Text, message: Text, correlation_key: Text },
    /// Buffered messages, the oldest first.
    Buffered { tenant: Text, message: Text, correlation_key: Text },
    /// Work over a command's budget, the oldest first.
    FollowUps,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Due {
    Timers,
    Leases,
    Backoffs,
    Messages,
    /// Received message ids whose time is over.
    MessageIds,
    /// Ended instances, by their end.
    Ended,
    /// Finished jobs, by their end; they answer their holder's repeats until retention drops them.
    FinishedJobs,
}

/// Where a row stands in a range. Parts that a range does not use are 0 or empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SortKey {
    /// A time, a negated priority, a negated version.
    pub rank: i64,
    pub key: Key,
    pub name: Text,
}

impl SortKey {
    pub fn by_key(key: Key) -> SortKey {
        SortKey { rank: 0, key, name: empty() }
    }

    pub fn by_rank(rank: i64, key: Key) -> SortKey {
        SortKey { rank, key, name: empty() }
    }

    pub fn by_name(name: &Text) -> SortKey {
        SortKey { rank: 0, key: 0, name: name.clone() }
    }
}

fn empty() -> Text {
    static EMPTY: std::sync::OnceLock<Text> = std::sync::OnceLock::new();
    EMPTY.get_or_init(|| Arc::from("")).clone()
}

/// Joins the parts of a message id into one name: the parts hold no control character (checked at the door).
const SEPARATOR: char = '\u{1f}';

/// Calls `visit` with each range that the row stands in.
pub fn entries(row: &Row, mut visit: impl FnMut(RangeId, SortKey)) {
    match row {
        Row::Definition(row) => visit(
            RangeId::Versions { tenant: row.tenant.clone(), process_id: row.process_id.clone() },
            SortKey::by_rank(-i64::from(row.version), row.key),
        ),
        Row::StartSubscription(row) => visit(
            RangeId::MessageStarts { tenant: row.tenant.clone(), message: row.message.clone() },
            SortKey::by_name(&row.process_id),
        ),
        Row::Scope(row) => {
            let ended = matches!(row.state, ScopeState::Completed | ScopeState::Canceled);
            if let Some(instance) = row.instance.as_ref().filter(|_| ended) {
                visit(RangeId::Due(Due::Ended), SortKey::by_rank(instance.ended_at, row.key));
            }
        }
        Row::Element(row) => visit(RangeId::Elements(row.scope), SortKey::by_key(row.key)),
        Row::Variable(row) => visit(RangeId::Variables(row.scope), SortKey::by_name(&row.name)),
        Row::Job(row) => {
            let (range, sort) = match row.state {
                JobState::Ready => (ready(row), SortKey::by_rank(-i64::from(row.priority), row.key)),
                JobState::Activated => (RangeId::Due(Due::Leases), SortKey::by_rank(row.due, row.key)),
                JobState::Backoff => (RangeId::Due(Due::Backoffs), SortKey::by_rank(row.due, row.key)),
                JobState::Completed | JobState::Canceled => {
                    (RangeId::Due(Due::FinishedJobs), SortKey::by_rank(row.due, row.key))
                }
                JobState::Failed | JobState::ErrorThrown => return,
            };
            visit(range, sort);
        }
        Row::Step(row) => visit(RangeId::Steps(row.job), SortKey::by_name(&row.name)),
        Row::Timer(row) => visit(RangeId::Due(Due::Timers), SortKey::by_rank(row.due, row.key)),
        Row::Subscription(row) => {
            let (tenant, message, correlation_key) = by_key(&row.tenant, &row.message, &row.correlation_key);
            visit(RangeId::Subscriptions { tenant, message, correlation_key }, SortKey::by_key(row.key));
        }
        Row::Message(row) => {
            let (tenant, message, correlation_key) = by_key(&row.tenant, &row.name, &row.correlation_key);
            visit(RangeId::Buffered { tenant, message, correlation_key }, SortKey::by_key(row.key));
            visit(RangeId::Due(Due::Messages), SortKey::by_rank(row.expires_at, row.key));
        }
        Row::MessageId(row) => {
            let name = format!("{}{SEPARATOR}{}{SEPARATOR}{}", row.tenant, row.name, row.message_id);
            visit(RangeId::Due(Due::MessageIds), SortKey { rank: row.expires_at, key: row.key, name: name.into() });
        }
        Row::FollowUp(row) => visit(RangeId::FollowUps, SortKey::by_key(row.key)),
        Row::StartLock(_) | Row::Unique(_) | Row::Incident(_) | Row::Handover(_) => (),
    }
}

fn ready(job: &Job) -> RangeId {
    RangeId::Ready { tenant: job.tenant.clone(), job_type: job.job_type.clone() }
}

fn by_key(tenant: &Text, message: &Text, correlation_key: &Text) -> (Text, Text, Text) {
    (tenant.clone(), message.clone(), correlation_key.clone())
}

/// The row that stands at `sort` in `range`; `None` only for a malformed name.
pub fn row_at(range: &RangeId, sort: &SortKey) -> Option<RowId> {
    Some(match range {
        RangeId::Versions { .. } => RowId::Definition(sort.key),
        RangeId::MessageStarts { tenant, message } => {
            RowId::StartSubscription { tenant: tenant.clone(), message: message.clone(), process_id: sort.name.clone() }
        }
        RangeId::Ready { .. } => RowId::Job(sort.key),
        RangeId::Due(Due::Timers) => RowId::Timer(sort.key),
        RangeId::Due(Due::Leases | Due::Backoffs | Due::FinishedJobs) => RowId::Job(sort.key),
        RangeId::Due(Due::Messages) => RowId::Message(sort.key),
        RangeId::Due(Due::MessageIds) => {
            let mut parts = sort.name.split(SEPARATOR);
            let (tenant, name, message_id) = (parts.next()?, parts.next()?, parts.next()?);
            RowId::MessageId { tenant: tenant.into(), name: name.into(), message_id: message_id.into() }
        }
        RangeId::Due(Due::Ended) => RowId::Scope(sort.key),
        RangeId::Elements(scope) => RowId::Element { scope: *scope, key: sort.key },
        RangeId::Variables(scope) => RowId::Variable { scope: *scope, name: sort.name.clone() },
        RangeId::Steps(job) => RowId::Step { job: *job, name: sort.name.clone() },
        RangeId::Subscriptions { .. } => RowId::Subscription(sort.key),
        RangeId::Buffered { .. } => RowId::Message(sort.key),
        RangeId::FollowUps => RowId::FollowUp(sort.key),
    })
}

/// The due time of an entry of a [`RangeId::Due`] range.
pub fn due_at(sort: &SortKey) -> Millis {
    sort.rank
}
