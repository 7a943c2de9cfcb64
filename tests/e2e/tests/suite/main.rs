//! The real binary, from outside: started, used, broken, killed, restarted. One file per concern, one program to link.
//! Read `scenarios/` first, then `crash.rs`: what the product is for. Tests are named by the requirement or scenario that they hold.

#![allow(clippy::unwrap_used, reason = "a test that is surprised fails")]

mod access;
mod bus;
mod command_line;
mod corpus;
mod crash;
mod documents;
mod explain;
mod input;
mod keys;
mod limits;
mod matrix;
#[cfg(target_os = "linux")]
mod power;
mod proofs;
mod scenarios;
mod seen;
mod stop;
mod stories;
mod tour;
