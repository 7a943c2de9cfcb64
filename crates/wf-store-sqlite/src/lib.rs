//! `wf_store::Store` over SQLite: one file, one writer, one process. It decides nothing: it loads rows and writes batches.
//! It does not know what the rows mean beyond their columns; `wf_core` does.
//! Read in this order: `open.rs` (what makes a store), `commit.rs` (what a turn writes), `load.rs` (what a turn reads).

mod open;
mod files;
mod store;

mod writer;
mod commit;
mod rows;
mod records;
mod checkpoint;

mod readers;
mod load;
mod ledger;
mod lists;
mod outbox;
mod uses;
mod trace;

mod migrate;
mod sql;
mod backup;

pub use backup::{Contents, CopyError, PAUSED_FILE, backup, restore};
pub use files::{make_dir, put_in_place};
/// Such a store has one partition: its rows name none.
const PARTITION: u16 = 1;

pub use open::{Durability, OpenError, Options, STORE_FILE, SqliteStore, read_only};
