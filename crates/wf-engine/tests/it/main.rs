//! The engine from its front door, over a store that a test can hold and break. Each test ends with `World::end`,
//! which holds what is left against the promises of every run. Next: `common/mod.rs`.
#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod common;

mod across;
mod clock;
mod ends;
mod faults;
mod jobs;
mod keys;
mod log;
mod poison;
mod proof;
mod random;
