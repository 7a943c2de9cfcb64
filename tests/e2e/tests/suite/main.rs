//! The real binary, from outside: started, used, broken, killed, restarted. One file per concern, one program to link.
//! Read `scenarios/` first, then `crash.rs`: what the product is for. Tests are named by the requirement or scenario that they hold.

#![allow(clippy::unwrap_used, reason = "a test that is surprised fails")]

mod access;
mod bus;
mod command_line;
mod corpus;
mod crash;
mod database;
mod documents;
mod explain;
mod input;
mod keys;
mod kills;
mod limits;
mod proofs;
mod receiver;
mod scenarios;
mod seen;
mod stop;
mod stories;
mod stream;
mod tour;
