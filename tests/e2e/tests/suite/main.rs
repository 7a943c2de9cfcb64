//! The real binary, from outside: started, used, broken, killed, restarted. One file per concern, one program to link.
//! Read `crash.rs` first: what the product is for. Tests are named by the requirement or scenario that they hold.

#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod access;
mod bus;
mod command_line;
mod corpus;
mod crash;
mod database;
mod input;
mod kills;
mod limits;
mod receiver;
mod seen;
mod stop;
mod stories;
mod tour;
