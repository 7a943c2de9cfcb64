//! BPMN 2.0 XML with `zeebe:` extensions → an executable, indexed definition.
//! It knows nothing of instances or of a store. Read `graph.rs`, then `compile.rs`; the rest in the order below.

pub mod graph;

mod compile;
mod xml;
mod elements;
mod events;
mod timers;
mod extensions;
mod user_task;
mod validate;
mod problem;

pub use compile::compile;
pub use extensions::is_name;
pub use graph::*;
pub use problem::Problem;
