//! The contract between the engine and a store: what is needed, what was loaded, what one turn writes.
//! It knows no SQL and decides nothing. Read `batch.rs` first (what a turn leaves behind), then `load.rs`, `store.rs`, `query.rs`.

pub mod batch;
pub mod load;
pub mod store;
pub mod cluster;
pub mod query;
pub mod trace;
pub mod outbox;
pub mod directory;
pub mod ledger;
pub mod codec;
pub mod failpoint;

pub mod memory;
pub mod conformance;

pub use batch::*;
pub use cluster::*;
pub use directory::Directory;
pub use ledger::*;
pub use load::*;
pub use outbox::*;
pub use query::*;
pub use store::*;
pub use trace::*;
