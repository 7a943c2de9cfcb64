//! The only home of REST shapes: request bodies → commands, outcomes and rows → answers, refusals → problem+json.
//! It knows no HTTP framework and no engine; everything here is a pure function over bytes and values.
//! Read `body.rs` and `problem.rs`, then one file per noun; `wf-server` calls them.

pub mod body;
pub mod problem;
pub mod code;

mod scan;
mod write;

pub mod answer;
pub mod variables;
pub mod time;

pub mod definitions;
pub mod instances;
pub mod jobs;
pub mod messages;
pub mod incidents;
pub mod outbox;
pub mod audit;
pub mod idempotency;
pub mod clock;

pub use code::Code;
pub use problem::Problem;
