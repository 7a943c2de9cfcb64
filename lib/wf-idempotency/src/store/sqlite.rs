//! Records in a SQLite file of their own. One thread writes; whatever waits when it comes by goes into one transaction, so
//! that many claims share one sync. Nobody is answered before that transaction is durable.
//! Next: `sqlite/rows.rs`, the statements.

mod rows;

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use futures_channel::oneshot;
use rusqlite::{Connection, TransactionBehavior};

use super::entry::Next;
use super::{Claim, Claimed, Clock, Ended, Owner, Slot, Store, StoreError, SystemClock};
use crate::decide::OnUnknown;
use rows::Rows;

/// What a loss of power may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing that was answered.
    #[default]
    Full,
    /// The last moments; never what a crash of the process alone would have to leave.
    Normal,
}

/// Wishes that share a transaction.
const BATCH_MAX: usize = 256;

/// One process at a time: another one is refused the file.
pub struct SqliteStore<C = SystemClock> {
    jobs: Option<Sender<Box<dyn Job>>>,
    writer: Option<JoinHandle<()>>,
    clock: C,
}

impl SqliteStore {
    pub fn open(path: &Path, durability: Durability) -> Result<SqliteStore, StoreError> {
        SqliteStore::with_clock(path, durability, SystemClock)
    }
}

impl<C: Clock> SqliteStore<C> {
    pub fn with_clock(path: &Path, durability: Durability, clock: C) -> Result<SqliteStore<C>, StoreError> {
        let mut connection = rows::open(path, durability).map_err(failed)?;
        let (jobs, inbox) = channel();
        let writer = std::thread::Builder::new().name("idempotency-sqlite".to_owned());
        let writer = writer.spawn(move || serve(&mut connection, &inbox));
        let writer = writer.map_err(|error| StoreError(format!("start a thread: {error}")))?;
        Ok(SqliteStore { jobs: Some(jobs), writer: Some(writer), clock })
    }

    /// Runs this in a transaction, perhaps with others, perhaps more than once; answers when it is durable.
    async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&Rows<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let task = Task { work, done: None, answer: Some(answer) };
        let gone = || StoreError("the store is closed".to_owned());
        self.jobs.as_ref().ok_or_else(gone)?.send(Box::new(task)).map_err(|_| gone())?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl<C> Drop for SqliteStore<C> {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn failed(error: rusqlite::Error) -> StoreError {
    StoreError(format!("SQLite: {error}"))
}

/// A wish on its way to the writer and back.
trait Job: Send {
    /// Whether it went well; its outcome is kept.
    fn run(&mut self, rows: &Rows<'_>) -> bool;
    /// Tells its outcome, or what the transaction's end made of it.
    fn answer(&mut self, committed: Result<(), StoreError>);
}

struct Task<T, W> {
    work: W,
    done: Option<Result<T, StoreError>>,
    answer: Option<oneshot::Sender<Result<T, StoreError>>>,
}

impl<T: Send, W: Fn(&Rows<'_>) -> Result<T, StoreError> + Send> Job for Task<T, W> {
    fn run(&mut self, rows: &Rows<'_>) -> bool {
        let done = (self.work)(rows);
        let is_done = done.is_ok();
        self.done = Some(done);
        is_done
    }

    fn answer(&mut self, committed: Result<(), StoreError>) {
        let Some(answer) = self.answer.take() else { return };
        let done = self.done.take().unwrap_or_else(|| Err(StoreError("it was not tried".to_owned())));
        let _ = answer.send(committed.and(done));
    }
}

fn serve(connection: &mut Connection, inbox: &Receiver<Box<dyn Job>>) {
    while let Ok(first) = inbox.recv() {
        let mut batch = vec![first];
        batch.extend(inbox.try_iter().take(BATCH_MAX - 1));
        let together = transaction(connection, &mut batch);
        // One that fails does not fail the others: each by itself then. Nothing of the first try is left.
        if together.is_err() && batch.len() > 1 {
            for job in &mut batch {
                let alone = transaction(connection, std::slice::from_mut(job));
                job.answer(alone);
            }
            continue;
        }
        batch.iter_mut().for_each(|job| job.answer(together.clone()));
    }
}

fn transaction(connection: &mut Connection, batch: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let rows = Rows(&transaction);
    if !batch.iter_mut().all(|job| job.run(&rows)) {
        transaction.rollback().map_err(failed)?;
        return match batch {
            // Its own words are in the job.
            [_] => Ok(()),
            _ => Err(StoreError("one of several failed".to_owned())),
        };
    }
    transaction.commit().map_err(failed)
}

impl<C: Clock> Store for SqliteStore<C> {
    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        let now_ms = self.clock.now_ms();
        self.write(move |rows| {
            let next = Next::of(&claim, rows.find(&claim.slot)?.as_ref(), now_ms)?;
            if let Next::Write(entry) = &next {
                rows.put(&claim.slot, entry)?;
            }
            Ok(next.told(claim.policy.on_unknown == OnUnknown::Resume))
        })
        .await
    }

    async fn extend(&self, slot: Slot, owner: Owner, lease_ms: i64) -> Result<bool, StoreError> {
        let now_ms = self.clock.now_ms();
        self.write(move |rows| {
            let Some(entry) = rows.find(&slot)?.filter(|entry| entry.is_held_by(&owner)) else { return Ok(false) };
            rows.put(&slot, &entry.extended(owner, lease_ms, now_ms))?;
            Ok(true)
        })
        .await
    }

    async fn end(&self, slot: Slot, owner: Owner, ended: Ended) -> Result<bool, StoreError> {
        let now_ms = self.clock.now_ms();
        self.write(move |rows| {
            let Some(entry) = rows.find(&slot)?.filter(|entry| entry.is_held_by(&owner)) else { return Ok(false) };
            match entry.ended(ended.clone(), now_ms) {
                Some(entry) => rows.put(&slot, &entry)?,
                None => rows.remove(&slot)?,
            }
            Ok(true)
        })
        .await
    }

    async fn sweep(&self, kept_ms: i64, rows_max: usize) -> Result<usize, StoreError> {
        let now_ms = self.clock.now_ms();
        self.write(move |rows| rows.sweep(now_ms, kept_ms, rows_max)).await
    }
}
