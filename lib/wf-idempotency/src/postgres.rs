//! The same promises inside your own PostgreSQL transaction: what is remembered and what is done commit together or not
//! at all, so neither needs repairing after a crash. Statements go as unnamed and typed, in one round trip each, and
//! nothing is set on the session: all of it works behind PgBouncer in transaction mode.
//!
//! Knows no pool and no engine: the caller brings the transaction, and the names of tables are the caller's.
//! Next: `once` (a request under a key), `transition` (compare-and-swap), `seen` (messages, forgotten by the day),
//! `queue` (leases on a table).

pub mod once;
pub mod transition;
pub mod seen;
pub mod queue;

mod error;
mod name;
mod value;

pub use error::Error;
pub use name::{Column, NameError, Table};
pub use value::Now;
