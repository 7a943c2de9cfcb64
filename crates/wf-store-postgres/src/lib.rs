//! `wf_store::Store` over PostgreSQL: several partitions, shared by several nodes. It decides nothing: it loads rows and
//! writes batches. It does not know what the rows mean beyond their columns; `wf_core` does.
//! Read in this order: `open.rs` (what makes a store), `join.rs` (which databases belong together), `combiner.rs`, `commit.rs`
//! and `runs.rs` (what turns write), `load.rs` and `keys.rs` (what a turn reads), `cluster.rs` (who owns what).

mod open;
mod join;
mod directory;
mod tenants;
mod connect;
mod tls;
mod pool;
mod connection;

mod store;
mod combiner;
mod commit;
mod runs;
mod claims;
mod rows;

mod reads;
mod load;
mod keys;
mod cluster;
mod listen;
mod upkeep;
mod ledger;
mod archive;
mod lists;
mod scan;
mod cursors;
mod outbox;
mod uses;
mod trace;

mod migrate;
mod sql;
#[cfg(test)]
mod plans;

pub use archive::{Archive, ArchiveError, End, Log, Week};
pub use connect::{ConnectError, Limits, address_of};
pub use directory::PostgresDirectory;
pub use join::{JoinError, connect_all};
pub use ledger::{PostgresLedger, read_only};
pub use migrate::{MigrateError, Versions, check, migrate};
pub use open::{NotOpened, OpenError, Options, PostgresStore};
pub use tenants::{DatabaseInfo, databases, settle_tenant};
