//! The real binary on PostgreSQL, from outside: the very cases that run on SQLite, each on a database of its own; and what
//! only several nodes and a server can suffer. What is not here is SQLite's own: `../sqlite/`.

#![allow(clippy::unwrap_used, reason = "a test that is surprised fails")]

#[path = "../cases/mod.rs"]
mod cases;
mod archive;
mod company;
mod connect;
mod databases;
mod faults;
mod restore;
mod session;
mod soak;

/// What every case begins with.
fn fresh_setup() -> e2e::node::Setup {
    e2e::node::Setup::postgres()
}
