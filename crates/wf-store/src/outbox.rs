//! Messages to the outside: rows of the turn's transaction, shipped afterwards, at least once, with one dedup key.
//! Marks are not part of the logical state: they stand beside the turns. Next: `wf_ship`.

use bytes::Bytes;
use wf_core::rows::Text;
use wf_core::{Key, Millis};

/// One event for one sink.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutboxId {
    pub partition: u16,
    pub position: u64,
    /// The event's number in its command, from 1.
    pub n: u32,
    pub sink: Text,
}

/// As the turn writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    pub id: OutboxId,
    pub tenant: Text,
    /// The root instance: order is kept per sink and order key.
    pub order_key: Key,
    /// `wf.instance.started`, …
    pub topic: Text,
    /// `ev-…`: the dedup key, whoever ships and however often.
    pub event_id: Text,
    /// CloudEvents JSON, frozen.
    pub envelope: Bytes,
    pub created_at: Millis,
}

/// As it stands in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    pub entry: OutboxEntry,
    pub state: OutboxState,
    /// Finished ones: each mark but `Release` counts.
    pub attempts: u32,
    pub last_error: Option<Text>,
    /// Not before this time; 0 at first, as `created_at` is of the partition's clock, which may run ahead.
    pub retry_at: Millis,
    /// 0 until then.
    pub shipped_at: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboxState {
    Pending,
    Shipped,
    Dead,
}

/// A short lease on pending rows. A row may be claimed only if no earlier row of its sink and order key is unsent
/// (claimed rows count as unsent; dead ones too, unless the sink lets them pass).
#[derive(Clone, Debug)]
pub struct Claim {
    pub sink: Text,
    pub owner: [u8; 16],
    pub now: Millis,
    pub lease_ms: i64,
    pub limit: usize,
    /// Dead letters let later rows of their order key pass.
    pub dead_pass: bool,
}

/// What came of a claimed row. Applied only while `owner` still holds the claim.
#[derive(Clone, Debug)]
pub struct Mark {
    pub id: OutboxId,
    pub owner: [u8; 16],
    pub result: MarkResult,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkResult {
    Shipped {
        at: Millis,
    },
    Retry {
        at: Millis,
        error: Text,
    },
    Dead {
        error: Text,
    },
    /// Given back untouched (a clean stop).
    Release,
}

/// Gauges of one sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxStats {
    pub sink: Text,
    pub pending: u64,
    pub dead: u64,
    pub oldest_pending: Option<Millis>,
}
