//! The engine around the pure core: mailbox, turns, commits, timers. It names no store and no wire.
//! Follow a request: `request.rs` → `engine.rs::submit` → `actor.rs::turn` → `partition.rs::execute` → the store's commit.

pub mod options;
pub mod request;
mod engine;

pub use engine::{Engine, EngineError};
pub use options::{ClockMode, Options, SinkRule};
pub use request::*;
