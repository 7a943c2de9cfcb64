//! The pure state machine: command × rows → rows, events, outcome. No async, no serde, no clock, no randomness.
//! Time and position arrive with the command, keys come from a counter in the state, ranges are ordered.
//! Read in this order; the path goes on in `wf_engine::partition`.

pub mod command;
pub mod decide;
pub mod draft;
pub mod rows;
pub mod ranges;
pub mod event;
pub mod outcome;
pub mod ids;
pub mod partitions;
pub mod text;
pub mod canonical;
pub mod planted;

mod deploy;
mod instances;
mod walk;
mod jobs;
mod messages;
mod incidents;
mod upkeep;
mod crossing;
mod variables;
mod expressions;
mod quarantine;

pub use command::{Command, Context};
pub use decide::decide;
pub use draft::{Base, Draft, Need, RangeView, Stop};
pub use event::Event;
pub use ids::{Key, Millis};
pub use messages::message_content;
pub use outcome::{Outcome, Rejection};
pub use partitions::Partitions;
pub use ranges::{RangeId, SortKey};
pub use rows::{Row, RowId};
