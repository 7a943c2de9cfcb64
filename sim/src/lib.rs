//! A deterministic simulator: the real door, engine, shipper and store contract in a world of one seed, with failing stores,
//! dying nodes, jumping clocks, impatient clients and careless workers; and checkers of what must hold whatever happens.
//! Read `plan.rs` and `world.rs`, then `run.rs`, then `checks.rs`.

pub mod many;
pub mod planted;
pub mod run;
pub mod plan;
pub mod rng;
pub mod trace;

mod world;
mod store;
mod node;
mod models;
mod door;
mod facts;

mod client;
mod worker;
mod operator;
mod provider;
mod broker;
mod restore;

pub mod checks;

pub use world::Violation;
