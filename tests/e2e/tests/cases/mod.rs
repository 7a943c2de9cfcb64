//! The body of cases that every store passes: `../sqlite/` and `../postgres/` include it, and say what a fresh store is.
//! One file per concern. Read `scenarios/` first, then `crash.rs`: what the product is for. Tests are named by the requirement
//! or scenario that they hold.

mod access;
mod bus;
mod command_line;
mod corpus;
mod crash;
mod explain;
mod input;
mod keys;
mod limits;
mod matrix;
pub mod scenarios;
mod seen;
mod stop;
