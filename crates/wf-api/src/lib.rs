//! The only home of REST shapes: request bodies → commands, outcomes and rows → answers, refusals → problem+json.
//! It knows no HTTP framework and no engine; everything here is a pure function over bytes and values.
//! Read `body.rs` and `problem.rs`, then one file per noun; `wf-server` calls them.

pub mod body;
pub mod code;
pub mod problem;

mod scan;
mod write;

pub mod answer;
pub mod time;
pub mod variables;

pub mod audit;
pub mod clock;
pub mod definitions;
pub mod explain;
pub mod idempotency;
pub mod incidents;
pub mod instances;
pub mod jobs;
pub mod messages;
pub mod nodes;
pub mod outbox;
pub mod proofs;

pub use code::Code;
pub use problem::Problem;
