//! Connections lent out one at a time. One comes back only when everything that was sent on it has been answered; one that is
//! dropped half-way is thrown away, as what was sent on it may still be executed. Next: `connect.rs`, which makes them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connect::{Begin, ConnectError, Connector};
use crate::connection::Connection;

#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    #[error("no connection to the database was free for {0:?}")]
    Exhausted(Duration),
    #[error("the store is closed")]
    Closed,
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    connector: Arc<Connector>,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
    wait_max: Duration,
    /// Connections are made and driven here: whoever borrows one may have a runtime that ends before it, as an engine's
    /// actor has.
    runtime: Handle,
}

impl Pool {
    /// Within the runtime that is to drive the connections.
    pub fn new(connector: Arc<Connector>, connections_max: usize, wait_max: Duration) -> Pool {
        let permits = Arc::new(Semaphore::new(connections_max));
        let runtime = Handle::current();
        Pool(Arc::new(Shared { connector, idle: Mutex::default(), permits, wait_max, runtime }))
    }

    pub async fn get(&self) -> Result<Lent, PoolError> {
        let shared = &self.0;
        let permit = tokio::time::timeout(shared.wait_max, shared.permits.clone().acquire_owned()).await;
        // The semaphore is never closed.
        let Ok(Ok(permit)) = permit else { return Err(PoolError::Exhausted(shared.wait_max)) };
        let connection = match self.idle() {
            Some(connection) => connection,
            None => {
                let connector = shared.connector.clone();
                let made = shared.runtime.spawn(async move { connector.connect().await });
                made.await.map_err(|_| PoolError::Closed)??
            }
        };
        Ok(Lent { connection, pool: self.clone(), _permit: permit })
    }

    pub fn begin(&self) -> &Begin {
        self.0.connector.begin()
    }

    /// The one used last: the others may be closed for having nothing to do.
    fn idle(&self) -> Option<Connection> {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| !connection.is_closed());
        idle.pop()
    }
}

/// A connection that is thrown away, unless it is given back.
pub struct Lent {
    connection: Connection,
    pool: Pool,
    _permit: OwnedSemaphorePermit,
}

impl Lent {
    /// Nothing is under way on it, and no transaction is open.
    pub fn give_back(self) {
        let Lent { connection, pool, _permit } = self;
        if !connection.is_closed() {
            pool.0.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}

impl std::ops::Deref for Lent {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}
