//! One binary for all tests of the state machine: what is linked once is built fast.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

mod across;
mod budgets;
mod corpus;
mod deployment;
mod errors;
mod flow;
mod golden;
mod jobs;
mod leases;
mod interleavings;
mod messages;
mod random;
mod timers;
mod variables;
