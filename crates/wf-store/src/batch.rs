//! Everything that one turn writes, in one transaction or not at all. Rows are absolute values.
//! `commit` of a store takes it: the fence first. Next: `store.rs`.

use std::sync::Arc;

use bytes::Bytes;
use wf_core::rows::Text;
use wf_core::{Millis, Row, RowId};
use wf_idempotency::record::Record;

use crate::outbox::{OutboxEntry, OutboxId};

#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub fence: Fence,
    pub head: Head,
    pub log: Vec<LogEntry>,
    pub rows: Vec<Change>,
    pub audit: Vec<AuditEntry>,
    pub outbox: Vec<OutboxEntry>,
    /// Rows that an operator asked to ship again: pending, attempts 0, the same dedup key.
    pub outbox_retries: Vec<OutboxId>,
    pub records: Vec<RecordEntry>,
    pub suppressed: Vec<Suppressed>,
    /// Commands for other partitions: rows of their inboxes.
    pub sent: Vec<Sent>,
    /// Rows of this partition's own inbox that its commands have dealt with: deleted. One that is gone voids the turn.
    pub taken: Vec<InboxId>,
}

/// A command on its way to another partition: it is executed there exactly once, as it is deleted by the turn that
/// executes it. Rows of one source arrive in the order of their positions and numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub target: u16,
    pub id: InboxId,
    /// The sending command's time.
    pub time: Millis,
    /// The command in its stored form, see `codec.rs`.
    pub payload: String,
}

/// Where a row of an inbox comes from: the command that sent it, and its number among those (from 1, over all targets).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InboxId {
    pub source: u16,
    pub position: u64,
    pub n: u32,
}

/// The transaction's first statement: exactly one partition row with this epoch and position, else the turn is void.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    pub partition: u16,
    pub epoch: u64,
    pub old_position: u64,
    pub new_position: u64,
}

/// What the partition's row holds besides the fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The key counter.
    pub next_counter: u64,
    /// Sum over all logical rows; see `wf_core::canonical`.
    pub digest: u128,
    /// Head of the audit's hash chain.
    pub chain: [u8; 32],
    /// Time of the last command.
    pub last_time: Millis,
    /// The test clock: `Some` where the store was used with one. Frozen: time stands until it is set.
    pub clock: Option<TestClock>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestClock {
    pub now: Millis,
    pub frozen: bool,
}

/// One executed command. Append-only.
#[derive(Clone, Debug)]
pub struct LogEntry {
    pub position: u64,
    /// Unique over the log: a second insert of it voids the turn.
    pub id: [u8; 16],
    pub time: Millis,
    pub tenant: Text,
    pub verb: &'static str,
    /// The command in its stored form, see `codec.rs`.
    pub payload: String,
    /// The digest after this command.
    pub digest: u128,
}

/// One changed row: its last value of this turn.
#[derive(Clone, Debug)]
pub struct Change {
    pub id: RowId,
    /// It stood in the store before this turn.
    pub existed: bool,
    /// `None`: deleted. A row that neither existed nor stays is not listed.
    pub new: Option<Row>,
}

/// All audit events of one command: `ev-{partition}-{position}` and, from the second on, `-{n}`. Append-only.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    pub position: u64,
    pub time: Millis,
    pub tenant: Text,
    /// Who asked: a worker's or credential's name, or `engine`.
    pub actor: Text,
    /// A JSON array of `{type, resource, root?, payload}`, see `codec.rs`.
    pub events: String,
    pub count: u32,
    /// The chain's head after the last of these events.
    pub chain: [u8; 32],
}

/// Scope of an idempotency record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    pub tenant: Text,
    pub key: Text,
}

#[derive(Clone, Debug)]
pub struct RecordEntry {
    pub id: RecordId,
    pub key_hash: [u8; 16],
    /// The route's template, never the concrete path.
    pub route: &'static str,
    pub record: Arc<Record>,
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It stands now, unfinished.
    Fresh,
    /// This one stood already, and stands.
    Standing(Arc<Record>),
}

/// Repeats and conflicts under a key, counted per minute; they take no position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppressed {
    pub tenant: Text,
    pub key_hash: [u8; 16],
    pub kind: SuppressedKind,
    pub route: Text,
    /// Minutes since 1970.
    pub minute: i64,
    pub count: u64,
    pub first: Millis,
    pub last: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SuppressedKind {
    Replay,
    Conflict,
    InProgress,
    /// A repeat of a message id.
    Message,
    /// A holder's repeated completion.
    Job,
}

impl SuppressedKind {
    pub const ALL: [SuppressedKind; 5] = [
        SuppressedKind::Replay,
        SuppressedKind::Conflict,
        SuppressedKind::InProgress,
        SuppressedKind::Message,
        SuppressedKind::Job,
    ];

    /// The stable name, as stores and the API spell it.
    pub fn name(self) -> &'static str {
        match self {
            SuppressedKind::Replay => "REPLAY",
            SuppressedKind::Conflict => "CONFLICT",
            SuppressedKind::InProgress => "IN_PROGRESS",
            SuppressedKind::Message => "MESSAGE",
            SuppressedKind::Job => "JOB",
        }
    }
}

/// `ev-{partition}-{position}`, with `-{n}` from the second event of a command on (`n` counts from 1).
pub fn event_id(partition: u16, position: u64, n: u32) -> String {
    match n {
        0 | 1 => format!("ev-{partition}-{position}"),
        n => format!("ev-{partition}-{position}-{n}"),
    }
}

/// The inverse of [`event_id`].
pub fn parse_event_id(text: &str) -> Option<(u16, u64, u32)> {
    let mut parts = text.strip_prefix("ev-")?.split('-');
    let partition = parts.next()?.parse().ok()?;
    let position = parts.next()?.parse().ok()?;
    let n = parts.next().map_or(Some(1), |n| n.parse().ok())?;
    parts.next().is_none().then_some((partition, position, n))
}

/// A frozen envelope and where it goes.
pub type Envelope = Bytes;
