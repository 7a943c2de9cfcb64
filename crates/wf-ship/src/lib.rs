//! Ships what the turns left in the outbox: claim, send, wait for the broker's own ack, mark. At least once, one dedup id.
//! It knows no process and writes no envelope: both were frozen when the turn committed.
//! Read `shipper.rs` (who runs), `lane.rs` (one sink's loop), `settle.rs` (what comes of a row), then `sink.rs` and `sinks/`.

pub mod shipper;

mod gauges;
mod lane;
pub mod settle;

pub mod config;
pub mod sink;
pub mod sinks;

pub mod conformance;

pub use config::{Kind, OnDead, SinkConfig, problems};
pub use settle::{backoff_ms, span_ms};
pub use shipper::{Clock, Shipper, SinkState, SinkStatus};
pub use sink::{Later, ShipResult, Shipment, Sink, SinkError, SinkInfo, build};
