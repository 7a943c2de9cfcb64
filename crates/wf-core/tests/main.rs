//! One binary for all tests of the state machine: what is linked once is built fast.

mod common;

mod corpus;
mod flow;
mod jobs;
mod messages;
