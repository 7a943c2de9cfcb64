//! One binary for all tests of the state machine: what is linked once is built fast.

mod common;

mod budgets;
mod corpus;
mod errors;
mod flow;
mod jobs;
mod messages;
mod random;
mod timers;
mod variables;
