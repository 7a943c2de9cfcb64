//! Sinks against their real other sides, and the shipper over the memory store. One binary, one link.
//! Time in the shipper's tests is tokio's paused one: it jumps, nobody sleeps. Read `outbox.rs` and `receiver.rs` first.

#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod config;
mod end_to_end;
mod outbox;
mod receiver;
mod shipper;
mod sinks;
