//! The sinks that come along. Each knows its own protocol and nothing of the outbox. Read `stdout.rs` for the shape.

pub mod nats;
pub mod signature;
pub mod stdout;
pub mod webhook;
