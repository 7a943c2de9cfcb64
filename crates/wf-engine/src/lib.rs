//! The engine around the pure core: mailbox, turns, commits, timers. It names no store and no wire.
//! Follow a request: `request.rs` → `engine.rs::submit` → `actor.rs` → `partition.rs::execute` → the store's commit.

mod engine;
pub mod request;
pub mod options;

mod actor;
mod envelope;
mod partition;
mod turn;
mod publish;
mod suppressed;

mod cache;
mod heads;
mod loader;
mod generations;

mod due;
mod own_work;
mod polls;
mod recovery;
mod clock;
mod inflight;
mod replays;
mod stats;

pub use engine::{Engine, EngineError};
pub use options::{ClockMode, Options, SinkRule};
pub use request::*;
