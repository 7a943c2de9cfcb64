//! BPMN 2.0 XML with `zeebe:` extensions → an executable, indexed definition.
//! It knows nothing of instances or of a store. Read `graph.rs`, then `compile.rs`.

pub mod graph;

pub use graph::*;
