//! The engine around the pure core: mailbox, turns, commits, timers. It names no store and no wire.
//! Follow a request: `request.rs` → `engine.rs::submit` → `actor.rs` → `partition.rs::execute` → the store's commit.

pub mod request;

mod engine;
mod shared;
pub mod options;

mod envelope;
mod actor;
mod intake;
mod partition;
mod decided;
mod outbox_retry;
mod elsewhere;
mod advance;
mod chain;
mod publish;
mod turn;

mod cache;
mod heads;
mod generations;
mod loader;
#[cfg(test)]
mod cache_tests;

mod own_work;
mod hub;
mod inbox;
mod due;
mod chores;
mod recovery;
mod polls;

pub mod proof;

mod inflight;
mod replays;
mod suppressed;
mod clock;
mod stats;

pub use actor::Running;
pub use decided::keyed_id;
pub use engine::{Engine, EngineError};
pub use hub::Hub;
pub use options::{Chance, ClockMode, Limits, OnReady, Options, SinkRule, Time};
pub use request::*;
pub use stats::type_label;
pub use suppressed::{job_subject, message_subject};
