//! What the engine is told at its start. Durations are milliseconds; limits are named here and checked once.

use std::fmt;
use std::sync::Arc;

use wf_core::rows::Text;
use wf_core::{Command, Millis, RangeId};

pub use crate::cache::Limits;
use crate::hub::Hub;

#[derive(Clone, Debug)]
pub struct Options {
    pub partition: u16,
    pub clock: ClockMode,
    /// Where ids come from that nothing else gives: of requests without a key, of errors.
    pub chance: Chance,
    /// Envelopes that may wait; one more is answered `overloaded`.
    pub mailbox_max: usize,
    /// Envelopes of one turn.
    pub turn_max: usize,
    /// How long a repeat waits for the first request with its key.
    pub wait_ms: u64,
    /// How long finished jobs and ended instances stay.
    pub finished_ms: i64,
    /// Between two sweeps of expired records.
    pub sweep_ms: u64,
    /// After a failed commit the engine's own work and the next attempt to take the partition wait this long:
    /// a full disk must not be hammered.
    pub pause_ms: u64,
    pub sinks: Vec<SinkRule>,
    /// `source` of published events.
    pub source: Text,
    /// What the cache keeps; a row costs some hundred bytes.
    pub cache: Limits,
    /// What the engines of one node share.
    pub hub: Hub,
    /// How long an answer waits at most until what its command sent to other partitions was taken there.
    pub delivered_wait_ms: u64,
    /// Hears of queues that got a ready job; without, only this engine's own polls do.
    pub ready: Option<OnReady>,
    /// For tests: sees each command before it is decided. Where it panics, that command is the poisoned one.
    pub inspect: Option<fn(&Command)>,
}

#[derive(Clone, Debug)]
pub enum ClockMode {
    System,
    /// Time as somebody else tells it: it may jump, and differ from node to node.
    Given(Time),
    /// Frozen from the start, moves only when it is set. `start`: the time of a fresh store.
    Test {
        start: Millis,
    },
}

/// Told after the commit, before the answers leave: which queue got a ready job. `None`: any may have got one, as the
/// partition was taken. Called on the actor's thread: it must not block.
#[derive(Clone)]
pub struct OnReady(pub Arc<Hears>);

type Hears = dyn Fn(Option<&RangeId>) + Send + Sync;

impl fmt::Debug for OnReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnReady(…)")
    }
}

/// Tells the time.
#[derive(Clone)]
pub struct Time(pub Arc<dyn Fn() -> Millis + Send + Sync>);

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Time(…)")
    }
}

/// 16 bytes that nobody else has. Only doors ask for them: rooms 4 and 5 know no chance.
#[derive(Clone)]
pub struct Chance(pub Arc<dyn Fn() -> [u8; 16] + Send + Sync>);

impl Chance {
    pub(crate) fn nonce(&self) -> [u8; 16] {
        (self.0)()
    }

    /// Stands in the answer and in the log.
    pub(crate) fn error_id(&self) -> String {
        wf_core::ids::hex(&(self.0)()).to_string()
    }
}

impl Default for Chance {
    fn default() -> Chance {
        Chance(Arc::new(|| uuid::Uuid::new_v4().into_bytes()))
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chance(…)")
    }
}

/// Which events a sink gets.
#[derive(Clone, Debug)]
pub struct SinkRule {
    pub name: Text,
    /// Event names (`instance.started`), or `*`.
    pub events: Vec<String>,
    /// How long the broker remembers dedup ids.
    pub window_ms: i64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            partition: 1,
            clock: ClockMode::System,
            chance: Chance::default(),
            mailbox_max: 10_000,
            turn_max: 512,
            wait_ms: 5_000,
            finished_ms: 7 * 24 * 3_600_000,
            sweep_ms: 60_000,
            sinks: Vec::new(),
            source: Text::from("onceflow"),
            pause_ms: 1_000,
            cache: Limits { rows_max: 100_000, heads_max: 40_000, head_entries_max: 4_096 },
            hub: Hub::default(),
            delivered_wait_ms: 2_000,
            ready: None,
            inspect: None,
        }
    }
}
