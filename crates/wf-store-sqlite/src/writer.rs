//! The one writer: a thread that owns the write connection and takes jobs from a channel, several in one transaction
//! where several wait. It answers only after COMMIT. It does not know what the jobs write.
//! Next: `checkpoint.rs`, which keeps the log short behind it.

use std::cell::Cell;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;
use wf_store::{CommitError, StoreError, failpoint};

use crate::commit::commit_error;
use crate::sql::{Sql, Statements};

/// Jobs of one transaction.
const JOBS_MAX: usize = 64;

/// Something to be written. Its answer comes only when the transaction has ended.
pub trait Job: Send {
    /// Whether what it did is to be kept.
    fn run(&mut self, statements: &mut Statements) -> bool;
    /// `outcome` is the transaction's; a job that failed by itself answers with its own error.
    fn answer(self: Box<Self>, outcome: Result<(), CommitError>);
}

enum Message {
    Job(Box<dyn Job>),
    Checkpoint(CheckpointMode, oneshot::Sender<bool>),
    Stop,
}

pub struct Writer {
    messages: mpsc::Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn spawn(connection: Connection) -> std::io::Result<Writer> {
        let (messages, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new().name("wf-writer".into()).spawn(move || run(&connection, &inbox))?;
        Ok(Writer { messages, thread: Some(thread) })
    }

    /// A job that is dropped unheard answers by its channel's end.
    pub fn send(&self, job: Box<dyn Job>) {
        let _ = self.messages.send(Message::Job(job));
    }

    /// Beside the turns: a closure in the writer's transaction.
    pub async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Statements) -> rusqlite::Result<T> + Send + 'static,
    {
        let (answer, result) = oneshot::channel();
        self.send(Box::new(Beside { work: Some(work), result: None, answer }));
        result.await.unwrap_or_else(|_| Err(StoreError(GONE.to_owned())))
    }

    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints(self.messages.clone())
    }
}

impl Drop for Writer {
    /// Ends the thread after what waits already.
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The end of the channel that the checkpointer holds.
#[derive(Clone)]
pub struct Checkpoints(mpsc::Sender<Message>);

impl Checkpoints {
    /// A checkpoint between two transactions of the writer, waited for. Whether the log begins anew.
    pub fn run(&self, mode: CheckpointMode) -> bool {
        let (done, result) = oneshot::channel();
        let sent = self.0.send(Message::Checkpoint(mode, done));
        sent.is_ok() && result.blocking_recv().unwrap_or(false)
    }
}

pub const GONE: &str = "the store is closed";

struct Beside<T, F> {
    work: Option<F>,
    result: Option<rusqlite::Result<T>>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Beside<T, F>
where
    T: Send,
    F: FnOnce(&mut Statements) -> rusqlite::Result<T> + Send,
{
    fn run(&mut self, statements: &mut Statements) -> bool {
        self.result = self.work.take().map(|work| work(statements));
        matches!(self.result, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, outcome: Result<(), CommitError>) {
        let answer = match (self.result, outcome) {
            (Some(Ok(value)), Ok(())) => Ok(value),
            (Some(Err(error)), _) => Err(StoreError(error.to_string())),
            (_, Err(error)) => Err(StoreError(error.to_string())),
            (None, Ok(())) => Err(StoreError(GONE.to_owned())),
        };
        let _ = self.answer.send(answer);
    }
}

fn run(connection: &Connection, inbox: &mpsc::Receiver<Message>) {
    let mut ahead = None;
    while let Some(message) = ahead.take().or_else(|| inbox.recv().ok()) {
        match message {
            Message::Job(job) => {
                let mut jobs = vec![job];
                ahead = take_waiting(inbox, &mut jobs);
                let outcome = transact(connection, &mut jobs);
                jobs.into_iter().for_each(|job| job.answer(outcome.clone()));
            }
            Message::Checkpoint(mode, done) => {
                let _ = done.send(checkpoint(connection, mode));
            }
            Message::Stop => return failpoint::hit("before-close"),
        }
    }
}

/// Jobs that wait already share the transaction; the first other message stays ahead.
fn take_waiting(inbox: &mpsc::Receiver<Message>, jobs: &mut Vec<Box<dyn Job>>) -> Option<Message> {
    while jobs.len() < JOBS_MAX {
        match inbox.try_recv().ok()? {
            Message::Job(job) => jobs.push(job),
            other => return Some(other),
        }
    }
    None
}

fn transact(connection: &Connection, jobs: &mut [Box<dyn Job>]) -> Result<(), CommitError> {
    let mut statements = Statements::new(connection);
    statements.run(Sql::BeginWrite).map_err(commit_error)?;
    let written = match jobs {
        [job] => job.run(&mut statements),
        jobs => match run_each(connection, &mut statements, jobs) {
            Ok(written) => written,
            Err(error) => return roll_back(connection, &mut statements).and(Err(error)),
        },
    };
    match written {
        true => commit(connection, &mut statements),
        false => roll_back(connection, &mut statements),
    }
}

/// A savepoint each, so that one job may fail alone. Whether anything is to be committed.
fn run_each(
    connection: &Connection,
    statements: &mut Statements,
    jobs: &mut [Box<dyn Job>],
) -> Result<bool, CommitError> {
    let mut written = false;
    for job in jobs {
        let kept = statements.run(Sql::Savepoint).is_ok() && job.run(statements);
        if connection.is_autocommit() {
            // A full disk ends the whole transaction, with what the jobs before had written.
            return Err(CommitError::Unavailable("another job of the transaction failed it".to_owned()));
        }
        if !kept {
            statements.run(Sql::RollbackTo).map_err(commit_error)?;
        }
        statements.run(Sql::Release).map_err(commit_error)?;
        written |= kept;
    }
    Ok(written)
}

fn commit(connection: &Connection, statements: &mut Statements) -> Result<(), CommitError> {
    failpoint::hit("before-commit");
    let Err(error) = statements.run(Sql::Commit) else {
        failpoint::hit("after-commit");
        return Ok(());
    };
    roll_back(connection, statements)?;
    match error.sqlite_error_code() {
        // The frames may have reached the disk before the error: a crash now could bring them back.
        Some(ErrorCode::SystemIoFailure) => Err(CommitError::Unknown(error.to_string())),
        _ => Err(commit_error(error)),
    }
}

/// Leaves the connection outside any transaction; SQLite may have rolled back by itself.
fn roll_back(connection: &Connection, statements: &mut Statements) -> Result<(), CommitError> {
    if connection.is_autocommit() {
        return Ok(());
    }
    let result = statements.run(Sql::Rollback);
    match connection.is_autocommit() {
        true => Ok(()),
        false => Err(CommitError::Unknown(format!("rollback: {result:?}"))),
    }
}

/// Whether everything was copied and the log begins anew. A reader in the way is no failure: a later round gets further.
fn checkpoint(connection: &Connection, mode: CheckpointMode) -> bool {
    TRIES_MAX.set(CHECKPOINT_TRIES);
    let result = connection.wal_checkpoint_v2(rusqlite::MAIN_DB.into(), mode);
    TRIES_MAX.set(LOCK_TRIES);
    if let Err(error) = &result {
        tracing::debug!(%error, "checkpoint");
    }
    result.is_ok()
}

const LOCK_STEP: Duration = Duration::from_micros(200);
/// 5 s: a foreign process may hold the write lock for a while.
const LOCK_TRIES: i32 = 25_000;
/// 10 ms: a reader's snapshot is shorter, and commits wait meanwhile.
const CHECKPOINT_TRIES: i32 = 50;

thread_local! {
    static TRIES_MAX: Cell<i32> = const { Cell::new(LOCK_TRIES) };
}

/// Waits in small steps for a lock that a reader or a foreign process holds.
pub fn wait_for_lock(tries: i32) -> bool {
    std::thread::sleep(LOCK_STEP);
    tries < TRIES_MAX.get()
}
