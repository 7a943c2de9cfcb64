//! The story's scenes, one file per layer, in the order in which they are played. Each knows the stage as its
//! predecessors left it: orders o-1 and o-2 from the first, the crash's from the second.

pub mod audit;
pub mod bus;
pub mod calls;
pub mod ingress;
pub mod jobs;
pub mod queue;

/// Orders of the second scene are named so.
pub const CRASH: &str = "crash-";
