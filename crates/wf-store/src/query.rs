//! Reads of committed data for lists and details. Tenants see their own rows only: every query names one.
//! Pages are cut by the sort key of the last item, which the API wraps into an opaque cursor.

use std::str::FromStr;
use std::sync::Arc;

use wf_core::rows::{Element, Incident, Job, JobState, Scope, Subscription, Text, Timer, Variable};
use wf_core::{Key, Millis};

use crate::batch::{Suppressed, SuppressedKind};
use crate::outbox::{OutboxId, OutboxState};

/// `next`: where the following page begins (exclusive), as an opaque text; `None` on the last page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

/// `after` is a `Page::next` of the same query; a malformed one is an empty page, never a panic.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    pub after: Option<String>,
    pub limit: usize,
}

#[derive(Clone, Debug)]
pub struct DefinitionQuery {
    pub tenant: Text,
    pub process_id: Option<String>,
    pub slice: Slice,
}

/// A definition without its XML. Ordered by key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionInfo {
    pub key: Key,
    pub process_id: Text,
    pub version: u32,
    pub resource: Text,
    pub deployed_at: Millis,
}

/// The newest first: by the start, then by key. Within one partition that is the order of the keys alone.
#[derive(Clone, Debug)]
pub struct InstanceQuery {
    pub tenant: Text,
    pub state: Option<InstanceState>,
    pub process_id: Option<String>,
    /// Exclusive.
    pub started_after: Option<Millis>,
    /// Scalar variables of the root scope whose text must be equal: name and text (see `codec::scalar_text`).
    pub variables: Vec<(String, String)>,
    pub slice: Slice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// TERMINATING as well: it has not ended yet.
    Active,
    Completed,
    Canceled,
}

/// Everything about one instance that its page shows.
#[derive(Clone, Debug)]
pub struct InstanceDetail {
    pub root: Arc<Scope>,
    /// The root among them. Every list here is ordered by key, or by name.
    pub scopes: Vec<Arc<Scope>>,
    pub elements: Vec<Arc<Element>>,
    /// Of the root scope.
    pub variables: Vec<Arc<Variable>>,
    pub jobs: Vec<Arc<Job>>,
    pub timers: Vec<Arc<Timer>>,
    pub subscriptions: Vec<Arc<Subscription>>,
    pub incidents: Vec<Arc<Incident>>,
}

/// Ordered by key.
#[derive(Clone, Debug)]
pub struct JobQuery {
    pub tenant: Text,
    pub job_type: Option<String>,
    pub state: Option<JobState>,
    pub instance: Option<Key>,
    pub slice: Slice,
}

/// Ordered by key.
#[derive(Clone, Debug)]
pub struct IncidentQuery {
    pub tenant: Text,
    pub instance: Option<Key>,
    pub slice: Slice,
}

/// Ordered by partition, position, number, sink.
#[derive(Clone, Debug)]
pub struct OutboxQuery {
    pub tenant: Text,
    pub state: Option<OutboxState>,
    pub id: Option<OutboxId>,
    pub slice: Slice,
}

/// Ordered by partition and position. `from`: the first position wanted, inclusive.
#[derive(Clone, Debug)]
pub struct AuditQuery {
    pub tenant: Text,
    /// The first partition wanted: `from` is a position of it, later partitions begin at their begin.
    pub partition: u16,
    /// Nothing of later partitions.
    pub is_alone: bool,
    pub from: Option<u64>,
    /// Only commands between these positions, inclusive (an instance's life): nothing of later partitions.
    pub until: Option<u64>,
    pub slice: Slice,
}

/// All events of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    pub partition: u16,
    pub position: u64,
    pub time: Millis,
    pub actor: Text,
    /// A JSON array, see `codec.rs`.
    pub events: String,
}

/// Keys whose record was made, or whose repeats were last seen, at `since` or later. Ordered by tenant and key hash.
#[derive(Clone, Debug)]
pub struct IdempotencyQuery {
    /// All tenants where absent (an administrator's view).
    pub tenant: Option<Text>,
    pub since: Millis,
    /// Tells a record that still answers from an expired one that was not swept yet.
    pub now: Millis,
    pub slice: Slice,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyUses {
    pub items: Vec<KeyUse>,
    pub next: Option<String>,
    // Over all that the query finds, not only this page.
    pub keys: u64,
    pub hits: u64,
    pub conflicts: u64,
    pub in_progress: u64,
}

/// One key over the asked time: counts are of repeats only. `hits` are replays and repeats known from state
/// (a message id, a holder's completion).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUse {
    pub tenant: Text,
    pub key_hash: [u8; 16],
    pub route: Text,
    /// `COMPLETED`, `IN_PROGRESS` (its answer comes later), `EXPIRED` or `NONE` (only conflicts or repeats were seen,
    /// the record is gone).
    pub state: &'static str,
    pub first_seen: Millis,
    pub last_seen: Millis,
    pub hits: u64,
    pub conflicts: u64,
}

/// A key by its tenant and hash.
pub type KeyId = (Text, [u8; 16]);

impl KeyUse {
    /// Nothing but its time is known yet.
    pub fn first_seen((tenant, key_hash): &KeyId, at: Millis) -> KeyUse {
        KeyUse {
            tenant: tenant.clone(),
            key_hash: *key_hash,
            route: "".into(),
            state: "NONE",
            first_seen: at,
            last_seen: at,
            hits: 0,
            conflicts: 0,
        }
    }

    /// Rows come by their last time: the latest names the route.
    pub fn add(&mut self, row: &Suppressed) {
        self.see(row.route.clone(), row.first);
        self.last_seen = self.last_seen.max(row.last);
        match row.kind {
            SuppressedKind::Replay | SuppressedKind::Message | SuppressedKind::Job => self.hits += row.count,
            SuppressedKind::Conflict => self.conflicts += row.count,
            SuppressedKind::InProgress => (),
        }
    }

    pub fn see(&mut self, route: Text, at: Millis) {
        self.route = route;
        self.first_seen = self.first_seen.min(at);
        self.last_seen = self.last_seen.max(at);
    }

    /// Where the page behind it begins.
    pub fn cursor(&self) -> String {
        format!("{:032x}-{}", u128::from_be_bytes(self.key_hash), self.tenant)
    }
}

/// What [`KeyUse::cursor`] gave.
#[derive(Debug)]
pub struct KeyCursor(pub KeyId);

impl FromStr for KeyCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<KeyCursor, ()> {
        let (hash, tenant) = text.split_once('-').ok_or(())?;
        let hash = u128::from_str_radix(hash, 16).map_err(drop)?;
        Ok(KeyCursor((tenant.into(), hash.to_be_bytes())))
    }
}

#[derive(Clone, Debug, Default)]
pub struct Gauges {
    pub jobs: Vec<(Text, JobState, u64)>,
    pub incidents: u64,
    pub records: u64,
}
