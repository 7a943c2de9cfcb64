//! The server from outside: one binary, so that it is linked once.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing has failed")]

mod support;

mod bodies;
mod databases;
mod documented;
mod doors;
mod explain;
mod keys;
mod nodes;
mod sockets;
mod story;
