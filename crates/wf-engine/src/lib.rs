//! The engine around the pure core: mailbox, turns, commits, timers. It names no store and no wire.
//! Follow a request: `request.rs` → `engine.rs::submit` → `actor.rs` → `partition.rs::execute` → the store's commit.

mod engine;
pub mod options;
pub mod request;

mod actor;
mod envelope;
mod intake;
mod partition;
mod publish;
mod suppressed;
mod turn;

mod cache;
#[cfg(test)]
mod cache_tests;
mod generations;
mod heads;
mod loader;

mod clock;
mod decided;
mod due;
mod inflight;
mod own_work;
mod polls;
mod recovery;
mod replays;
mod stats;

pub use engine::{Engine, EngineError};
pub use options::{ClockMode, Limits, Options, SinkRule};
pub use request::*;
