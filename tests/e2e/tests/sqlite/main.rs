//! The real binary on SQLite, from outside: started, used, broken, killed, restarted. All cases that PostgreSQL runs too, and
//! what is SQLite's own: its file, its folder, power that goes, what the README does.

#![allow(clippy::unwrap_used, reason = "a test that is surprised fails")]

#[path = "../cases/mod.rs"]
mod cases;
mod documents;
mod files;
mod places;
#[cfg(target_os = "linux")]
mod power;
mod proofs;
mod restore;
mod stories;
mod tour;

/// What every case begins with.
fn fresh_setup() -> e2e::node::Setup {
    e2e::node::Setup::new()
}
