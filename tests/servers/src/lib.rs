//! Servers for tests: a PostgreSQL cluster of one's own, PgBouncer before it, and a line that can be cut. Each takes a
//! free port, ends with its test however that ends, and a missing program is a failure that says what to install.
//! Knows nothing of the engine. A test that needs only *a database* takes `database()`; one that kills the server, or
//! gives it settings, starts a `Cluster`. Next: `database.rs`, `cluster.rs`.

mod database;
mod cluster;
mod bouncer;
mod proxy;

mod backup;
mod certificate;
mod client;
mod ports;
mod process;
mod programs;
mod shell;

pub use bouncer::PgBouncer;
pub use client::{connect, execute, try_execute};
pub use cluster::{Cluster, Options};
pub use database::{Database, SHARED, database};
pub use proxy::{Line, Proxy};
