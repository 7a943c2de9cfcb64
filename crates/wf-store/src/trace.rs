//! The reads by which one request is followed through all layers (`wf debug explain`). Each finds its rows by an index
//! and is bounded, however much is stored; none of them is for a turn. They judge nothing: `wf_api::explain` tells the story.
//! Next: `query.rs`, the lists; `conformance/trace.rs`, what every store must answer.

use std::sync::Arc;

use wf_core::rows::Text;
use wf_core::{Key, Millis};
use wf_idempotency::record::Record;

use crate::batch::{RecordId, Suppressed};
use crate::outbox::OutboxRow;
use crate::query::AuditRow;
use crate::store::{Later, StoreError};

pub trait Trace: Send + Sync {
    /// The record under a key with what was filed beside it; an expired one too, until it is swept.
    fn filed(&self, id: RecordId) -> Later<'_, Result<Option<Filed>, StoreError>>;
    /// Ordered by key.
    fn filed_at(&self, query: FiledQuery) -> Later<'_, Result<Vec<Filed>, StoreError>>;
    /// Ordered by position.
    fn logged(&self, query: LoggedQuery) -> Later<'_, Result<Vec<Logged>, StoreError>>;
    /// Ordered by position.
    fn trail(&self, query: TrailQuery) -> Later<'_, Result<Trail, StoreError>>;
    /// The messages of commands of one partition, ordered by position, number, sink.
    fn outbox_of(
        &self,
        tenant: Text,
        partition: u16,
        positions: Vec<u64>,
    ) -> Later<'_, Result<Vec<OutboxRow>, StoreError>>;
    /// Ordered by minute, subject, kind, route.
    fn repeats(&self, query: RepeatsQuery) -> Later<'_, Result<Repeats, StoreError>>;
}

/// A record as its turn filed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filed {
    pub key: Text,
    pub key_hash: [u8; 16],
    pub route: Text,
    pub record: Arc<Record>,
}

/// Records by their times: the way back from a command to the key that it came under.
#[derive(Clone, Debug)]
pub struct FiledQuery {
    pub tenant: Text,
    pub created_at: Millis,
    pub expires_at: Millis,
    pub limit: usize,
}

#[derive(Clone, Debug)]
pub struct LoggedQuery {
    pub tenant: Text,
    pub which: Which,
}

#[derive(Clone, Copy, Debug)]
pub enum Which {
    Id([u8; 16]),
    Position {
        partition: u16,
        position: u64,
    },
    /// Ids begin with their command's time.
    At {
        time: Millis,
        verb: &'static str,
        limit: usize,
    },
}

/// A command as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    pub partition: u16,
    pub position: u64,
    pub id: [u8; 16],
    pub time: Millis,
    pub verb: Text,
    /// See `codec::logged_from_json`.
    pub payload: String,
}

/// The part of the audit that names an instance as its events' root.
#[derive(Clone, Debug)]
pub struct TrailQuery {
    pub tenant: Text,
    pub partition: u16,
    pub instance: Key,
    /// Positions, inclusive.
    pub from: u64,
    pub until: u64,
    pub limit: usize,
    /// Rows of any instance that may be passed on the way.
    pub passed_max: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    /// Other rows may be among them: those whose payloads look as if they named the instance.
    pub rows: Vec<AuditRow>,
    /// From where it was not looked any more; `None` where everything was seen.
    pub next: Option<u64>,
}

/// How an event's text names its instance, see `codec::events_to_json`. What merely looks like it does no harm.
pub fn root_member(instance: Key) -> String {
    format!("\"root\":\"{instance}\"")
}

/// Repeats of some subjects: a key's hash, or the hash of what was repeated without a key.
#[derive(Clone, Debug)]
pub struct RepeatsQuery {
    pub tenant: Text,
    pub subjects: Vec<[u8; 16]>,
    /// Counts of the minute of this time and later.
    pub since: Millis,
    pub limit: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeats {
    pub rows: Vec<Suppressed>,
    /// There are more, or it was given up to look.
    pub is_cut: bool,
}
