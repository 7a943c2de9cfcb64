//! Somebody else at the database: a session that takes locks and keeps them, as a report, a migration by hand or a forgotten
//! `psql` does. It knows nothing of the engine.

use tokio::runtime::Runtime;
use tokio_postgres::{Client, Error};

/// Closed with this value, and its transaction with it.
pub struct Session {
    client: Client,
    runtime: Runtime,
}

impl Session {
    #[track_caller]
    pub fn open(url: &str) -> Session {
        Session::try_open(url).unwrap_or_else(|error| panic!("{url}: {error:?}"))
    }

    pub fn try_open(url: &str) -> Result<Session, Error> {
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = threads.expect("a runtime");
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, tokio_postgres::NoTls))?;
        runtime.spawn(connection);
        Ok(Session { client, runtime })
    }

    #[track_caller]
    pub fn run(&self, sql: &str) {
        self.try_run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// An error may be what the test is after: a deadlock, say.
    pub fn try_run(&self, sql: &str) -> Result<(), Error> {
        self.runtime.block_on(self.client.batch_execute(sql))
    }
}
