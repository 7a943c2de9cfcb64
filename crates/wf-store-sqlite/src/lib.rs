//! `wf_store::Store` over SQLite: one file, one writer, one process. It decides nothing: it loads rows and writes batches.
//! It does not know what the rows mean beyond their columns; `wf_core` does.
//! Read in this order: `open.rs` (what makes a store), `commit.rs` (what a turn writes), `load.rs` (what a turn reads).

mod checkpoint;
mod commit;
mod lists;
mod load;
mod migrate;
mod open;
mod outbox;
mod readers;
mod records;
mod rows;
mod sql;
mod store;
mod uses;
mod writer;

pub use open::{Durability, OpenError, Options, SqliteStore};
