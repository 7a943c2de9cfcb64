//! Read connections: one for the turns, in the caller's thread, some for lists, in threads of their own.
//! Every read is one short snapshot. It does not know what is read. Next: `load.rs` and `lists.rs`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, mpsc};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;
use wf_store::StoreError;

use crate::sql::{Sql, Statements};
use crate::writer::GONE;

/// Threads for lists: a slow one leaves the others free.
pub const LIST_THREADS: usize = 2;

pub struct Readers {
    /// For turns only.
    turns: Mutex<Connection>,
    /// For single rows, asked beside the turns.
    beside: [Mutex<Connection>; 2],
    lists: Option<mpsc::Sender<List>>,
    threads: Vec<JoinHandle<()>>,
}

type List = Box<dyn FnOnce(&Reader) + Send>;

impl Readers {
    pub fn spawn(mut open: impl FnMut() -> rusqlite::Result<Connection>) -> Result<Readers, SpawnError> {
        let (lists, inbox) = mpsc::channel::<List>();
        let inbox = Arc::new(Mutex::new(inbox));
        let mut threads = Vec::with_capacity(LIST_THREADS);
        for _ in 0..LIST_THREADS {
            let (reader, inbox) = (Reader(open()?), inbox.clone());
            let thread = std::thread::Builder::new().name("wf-reader".into());
            threads.push(thread.spawn(move || serve(&reader, &inbox))?);
        }
        let beside = [Mutex::new(open()?), Mutex::new(open()?)];
        Ok(Readers { turns: Mutex::new(open()?), beside, lists: Some(lists), threads })
    }

    /// A snapshot for a turn, here and now.
    pub fn for_turn<T>(&self, read: impl FnOnce(&mut Statements) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        snapshot(&lock(&self.turns), read)
    }

    /// One short read, here and now, on whichever connection is free.
    pub fn beside<T>(&self, read: impl FnOnce(&mut Statements) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let [first, second] = &self.beside;
        match first.try_lock() {
            Ok(connection) => snapshot(&connection, read),
            Err(TryLockError::Poisoned(connection)) => snapshot(&connection.into_inner(), read),
            Err(TryLockError::WouldBlock) => snapshot(&lock(second), read),
        }
    }

    /// A read that may take its time, in several snapshots.
    pub async fn list<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    {
        let (answer, result) = oneshot::channel();
        let list: List = Box::new(move |reader| {
            let _ = answer.send(read(reader));
        });
        if let Some(lists) = &self.lists {
            let _ = lists.send(list);
        }
        result.await.unwrap_or_else(|_| Err(StoreError(GONE.to_owned())))
    }
}

impl Drop for Readers {
    /// Ends the threads, after what they have begun.
    fn drop(&mut self) {
        self.lists = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A connection of a list's thread.
pub struct Reader(Connection);

impl Reader {
    pub fn snapshot<T>(&self, read: impl FnOnce(&mut Statements) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        snapshot(&self.0, read)
    }
}

fn serve(reader: &Reader, inbox: &Mutex<mpsc::Receiver<List>>) {
    while let Ok(list) = next(inbox) {
        list(reader);
    }
}

/// The lock is held while waiting, not while reading.
fn next(inbox: &Mutex<mpsc::Receiver<List>>) -> Result<List, mpsc::RecvError> {
    lock(inbox).recv()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn snapshot<T>(
    connection: &Connection,
    read: impl FnOnce(&mut Statements) -> rusqlite::Result<T>,
) -> Result<T, StoreError> {
    let mut statements = Statements::new(connection);
    let result = statements.run(Sql::BeginRead).and_then(|_| read(&mut statements));
    // A snapshot that stayed open would stop every checkpoint from then on.
    if !connection.is_autocommit() {
        statements.run(Sql::Commit).map_err(store_error)?;
    }
    result.map_err(store_error)
}

pub fn store_error(error: rusqlite::Error) -> StoreError {
    StoreError(error.to_string())
}
