//! What a sink is: somebody who takes envelopes and says for each whether the other side has it.
//! It knows no store, no attempts and no back-off: those are the shipper's. Next: `sinks/`, and `conformance.rs`.

use std::sync::Arc;

use bytes::Bytes;
use wf_core::Key;
use wf_core::rows::Text;
pub use wf_store::Later;

use crate::config::{Kind, SinkConfig};
use crate::sinks::{nats, stdout, webhook};

/// One event on its way. Everything but the attempt is the same however often it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shipment {
    /// The dedup id.
    pub event_id: Text,
    pub tenant: Text,
    /// `wf.instance.started`, …
    pub topic: Text,
    pub order_key: Key,
    /// CloudEvents JSON, sent byte for byte.
    pub envelope: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShipResult {
    /// The other side said that it has it. `duplicate`: it had it before.
    Shipped { duplicate: bool },
    /// It may have it or not: the same again later. `retry_after_ms`: it asked for that pause, for everything.
    Retry { error: String, retry_after_ms: Option<i64> },
    /// It will never take this one.
    Refused { error: String },
    /// It wants nothing any more: the sink stops.
    Disabled { error: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkInfo {
    /// How long the other side remembers dedup ids; `None`: it is the receiver's business.
    pub window_ms: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// All problems, separated by `; `.
    #[error("configure the sink: {0}")]
    Config(String),
    #[error("reach the sink: {0}")]
    Unreachable(String),
    /// It answers, but cannot take our messages as it is set up.
    #[error("use the sink: {0}")]
    Unfit(String),
}

pub trait Sink: Send + Sync {
    fn name(&self) -> &str;

    /// Whether messages can be sent now. Asked at the start and after each failure, while nothing is claimed.
    fn check(&self) -> Later<'_, Result<SinkInfo, SinkError>>;

    /// Sends all, answers for all, in the order of `batch`; an answer that is missing counts as `Retry`.
    /// No two of a batch share an order key (a claim sees to it), so they may be under way at once. Waits are bounded:
    /// the shipper gives up after [`crate::shipper::SHIP_MAX`].
    fn ship<'a>(&'a self, batch: &'a [Shipment]) -> Later<'a, Vec<ShipResult>>;

    /// The most that it takes at once.
    fn batch_max(&self) -> usize {
        crate::shipper::BATCH_MAX
    }
}

/// Opens no connection yet: `check` does.
pub fn build(config: &SinkConfig) -> Result<Arc<dyn Sink>, SinkError> {
    let problems = config.problems();
    if !problems.is_empty() {
        return Err(SinkError::Config(problems.join("; ")));
    }
    Ok(match config.kind {
        Kind::Nats => Arc::new(nats::NatsSink::new(config)?),
        Kind::Webhook => Arc::new(webhook::WebhookSink::new(config)?),
        Kind::Stdout => Arc::new(stdout::StdoutSink::new(&config.name)),
    })
}
