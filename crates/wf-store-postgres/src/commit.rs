//! One transaction of some turns: the fences first, then everything that the batches hold, in one pipeline. Written rows must
//! equal sent rows, and each statement sees to that by itself: it fails the transaction, as nobody is there to count before
//! COMMIT is sent. Next: `rows.rs` for the columns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::{Error, Row as SqlRow};
use wf_core::{Row, RowId};
use wf_store::{
    AuditEntry, Batch, Change, CommitError, LogEntry, NodeId, OutboxEntry, OutboxId, RecordEntry, failpoint,
};

use crate::connect::{Limits, shown};
use crate::connection::{Connection, Pipeline, Values};
use crate::listen;
use crate::pool::{Lent, Pool};
use crate::rows::{self, TABLES, Table, sql_partition, table_of};
use crate::runs;
use crate::sql::Sql;

/// How often a transaction is begun again that met another one.
const TRIES: usize = 4;

pub struct Committer {
    pool: Pool,
    limits: Limits,
    voice: Voice,
}

/// How other nodes are told what was sent and taken.
pub struct Voice {
    pub me: NodeId,
    pub channel: String,
    /// Nobody is told where there is nobody else.
    pub has_company: Arc<AtomicBool>,
}

impl Voice {
    fn note(&self, batches: &[&Batch]) -> Option<Values<'_>> {
        self.has_company.load(Ordering::Relaxed).then(|| listen::note(&self.channel, &self.me, batches))?
    }
}

impl Committer {
    pub fn new(pool: Pool, limits: Limits, voice: Voice) -> Committer {
        Committer { pool, limits, voice }
    }

    /// Some turns in one transaction that waits for nobody for long. `None`: nothing of them stands, because of what one of
    /// them holds or waits for: each is to be tried alone.
    pub async fn together(&self, batches: &[&Batch]) -> Option<Result<(), CommitError>> {
        let is_one = batches.len() == 1;
        match self.commit_or_again(batches, &self.pool.begin().hasty).await {
            Err(Failure::Held(_)) => None,
            Err(failure) if !is_one && failure.is_of_one() => None,
            outcome => Some(outcome.map_err(Failure::error)),
        }
    }

    /// As long as it takes.
    pub async fn alone(&self, batch: &Batch) -> Result<(), CommitError> {
        self.commit_or_again(&[batch], &self.pool.begin().write).await.map_err(Failure::error)
    }

    async fn commit_or_again(&self, batches: &[&Batch], begin: &str) -> Result<(), Failure> {
        let mut met = String::new();
        for _ in 0..TRIES {
            match self.try_commit(batches, begin).await {
                Err(Failure::Met(text)) => met = text,
                outcome => return outcome,
            }
        }
        Err(Failure::Met(met))
    }

    async fn try_commit(&self, batches: &[&Batch], begin: &str) -> Result<(), Failure> {
        let unavailable = |text: String| Failure::Ended(CommitError::Unavailable(text));
        let connection = self.pool.get().await.map_err(|error| unavailable(error.to_string()))?;
        let mut statements = statements(batches);
        statements.extend(self.voice.note(batches).map(|note| (Sql::Notify, note)));
        let names: Vec<Sql> = statements.iter().map(|(sql, _)| *sql).collect();
        // Nothing is sent yet that could be committed.
        connection.prepare(&names).await.map_err(|error| unavailable(shown(&error)))?;
        // The server gives up before that, where it is there to give up.
        let limit = self.limits.statement + self.limits.silence;
        match tokio::time::timeout(limit, run(&connection, begin, statements)).await {
            Ok(answers) => settle(connection, answers),
            Err(_) => Err(Failure::Ended(CommitError::Unknown(format!("no answer came for {limit:?}")))),
        }
    }
}

/// Why a transaction did not commit.
enum Failure {
    /// It met another one and may be begun again.
    Met(String),
    /// Somebody holds a lock for longer than was waited.
    Held(String),
    Ended(CommitError),
}

impl Failure {
    /// Without one of the turns it might not have come to this.
    fn is_of_one(&self) -> bool {
        let Failure::Ended(error) = self else { return true };
        matches!(error, CommitError::Fenced | CommitError::Conflict(_) | CommitError::Rejected(_))
    }

    fn error(self) -> CommitError {
        match self {
            Failure::Met(text) => CommitError::Conflict(text),
            Failure::Held(text) => CommitError::Unavailable(text),
            Failure::Ended(error) => error,
        }
    }
}

type Answers = Vec<Result<Vec<SqlRow>, Error>>;

async fn run(connection: &Connection, begin: &str, statements: Vec<(Sql, Values<'_>)>) -> Answers {
    let mut pipeline = Pipeline::on(connection);
    pipeline.send_text(begin);
    let half = statements.len().div_ceil(2);
    for (n, (sql, values)) in statements.into_iter().enumerate() {
        if n == half {
            failpoint::hit("in-turn");
        }
        pipeline.send(sql, values);
    }
    failpoint::hit("before-commit");
    pipeline.send_text("COMMIT");
    let answers = pipeline.answers().await;
    failpoint::hit("after-commit");
    answers
}

/// COMMIT of a failed transaction is a success that rolls back: only if every answer is one, it is committed.
fn settle(connection: Lent, answers: Answers) -> Result<(), Failure> {
    let last = answers.len() - 1;
    let failed = answers.into_iter().enumerate().find_map(|(at, answer)| Some((at, answer.err()?)));
    let Some((at, error)) = failed else {
        connection.give_back();
        return Ok(());
    };
    let failure = match error.as_db_error() {
        Some(answer) if !is_end(answer) => {
            connection.give_back();
            failure_of(answer, shown(&error))
        }
        // The server ended the session before it came to COMMIT: that rolls back.
        Some(_) if at < last => Failure::Ended(CommitError::Unavailable(shown(&error))),
        // All has been sent, and what of it was executed nobody tells.
        _ => Failure::Ended(CommitError::Unknown(shown(&error))),
    };
    Err(failure)
}

fn is_end(answer: &DbError) -> bool {
    !matches!(answer.parsed_severity(), Some(Severity::Error) | None)
}

/// How the statements say that a fence or a count was not met: see `onceflow.fail`.
const FENCED: &str = "OF001";
const NOT_MET: &str = "OF002";

/// What an answer of the server says about the turns. Nothing of them stands.
fn failure_of(answer: &DbError, text: String) -> Failure {
    let code = answer.code();
    Failure::Ended(match code.code() {
        FENCED => CommitError::Fenced,
        NOT_MET => CommitError::Conflict(answer.message().to_owned()),
        _ if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED => {
            return Failure::Met(text);
        }
        _ if *code == SqlState::LOCK_NOT_AVAILABLE => return Failure::Held(text),
        // Another node has just attached the time partition that the row belongs to.
        _ if *code == SqlState::CHECK_VIOLATION && answer.message().contains("partition constraint") => {
            return Failure::Met(text);
        }
        // A unique key that stands there already, or the same one twice: reload and execute again.
        _ if *code == SqlState::UNIQUE_VIOLATION || *code == SqlState::CARDINALITY_VIOLATION => {
            CommitError::Conflict(text)
        }
        // Data exceptions, constraints, and what is too big.
        code if code.starts_with("22") || code.starts_with("23") || code.starts_with("54") => {
            CommitError::Rejected(text)
        }
        _ => CommitError::Unavailable(text),
    })
}

/// Everything of the batches, in the one order in which every transaction touches the tables (within a run the order is the
/// server's). What has no rows is not sent.
fn statements<'a>(batches: &[&'a Batch]) -> Vec<(Sql, Values<'a>)> {
    let mut all = vec![(Sql::Fence, rows::fence_columns(batches))];
    logs(&mut all, batches);
    audits(&mut all, batches);
    changes(&mut all, batches);
    taken(&mut all, batches);
    messages(&mut all, batches);
    records(&mut all, batches);
    sent(&mut all, batches);
    runs::fold(&mut all);
    all
}

type All<'a> = Vec<(Sql, Values<'a>)>;

fn column<'a, T, V>(rows: &[(u16, &'a T)], value: impl Fn(u16, &'a T) -> V) -> Vec<V> {
    rows.iter().map(|(partition, row)| value(*partition, row)).collect()
}

/// Rows of all batches, each with its partition.
fn of_all<'a, T>(batches: &[&'a Batch], rows: impl Fn(&'a Batch) -> &'a [T]) -> Vec<(u16, &'a T)> {
    batches.iter().flat_map(|batch| rows(batch).iter().map(|row| (batch.fence.partition, row))).collect()
}

fn logs<'a>(all: &mut All<'a>, batches: &[&'a Batch]) {
    let mut log: Vec<(u16, &LogEntry)> = of_all(batches, |batch| &batch.log);
    if log.is_empty() {
        return;
    }
    log.sort_by_key(|(_, entry)| entry.id);
    let values = Values::none()
        .with(column(&log, |partition, _| sql_partition(partition)))
        .with(column(&log, |_, entry| entry.position as i64))
        .with(column(&log, |_, entry| &entry.id[..]))
        .with(column(&log, |_, entry| entry.time))
        .with(column(&log, |_, entry| &*entry.tenant))
        .with(column(&log, |_, entry| entry.verb))
        .with(column(&log, |_, entry| entry.digest.to_be_bytes().to_vec()))
        .with(column(&log, |_, entry| &*entry.payload));
    all.push((Sql::InsertCommand, values));
}

fn audits<'a>(all: &mut All<'a>, batches: &[&'a Batch]) {
    let audit: Vec<(u16, &AuditEntry)> = of_all(batches, |batch| &batch.audit);
    if audit.is_empty() {
        return;
    }
    let values = Values::none()
        .with(column(&audit, |partition, _| sql_partition(partition)))
        .with(column(&audit, |_, entry| entry.position as i64))
        .with(column(&audit, |_, entry| entry.time))
        .with(column(&audit, |_, entry| &*entry.tenant))
        .with(column(&audit, |_, entry| &*entry.actor))
        .with(column(&audit, |_, entry| i64::from(entry.count)))
        .with(column(&audit, |_, entry| &entry.chain[..]))
        .with(column(&audit, |_, entry| &*entry.events));
    all.push((Sql::InsertAudit, values));
}

/// Deletions before insertions: a value that one gives up another may take.
fn changes<'a>(all: &mut All<'a>, batches: &[&'a Batch]) {
    let mut changes: Vec<(u16, &Change)> = of_all(batches, |batch| &batch.rows);
    // Keys that are unique over all partitions are locked in one order.
    changes.sort_by(|(_, a), (_, b)| a.id.cmp(&b.id));
    let mut deleted: [Vec<(u16, &RowId)>; TABLES.len()] = Default::default();
    let mut updated: [Vec<(u16, &Row)>; TABLES.len()] = Default::default();
    let mut inserted: [Vec<(u16, &Row)>; TABLES.len()] = Default::default();
    for (partition, change) in changes {
        let table = table_of(&change.id) as usize;
        match &change.new {
            None => deleted[table].push((partition, &change.id)),
            Some(row) if change.existed => updated[table].push((partition, row)),
            Some(row) => inserted[table].push((partition, row)),
        }
    }
    for (access, ids) in TABLES.iter().zip(deleted).filter(|(_, ids)| !ids.is_empty()) {
        all.push((access.delete, deletions(access.table, &ids)));
        if access.table == Table::MessageId {
            all.push((Sql::ForgetMessageId, deletions(access.table, &ids)));
        }
    }
    for (rows, pick) in [(updated, false), (inserted, true)] {
        for (access, rows) in TABLES.iter().zip(rows).filter(|(_, rows)| !rows.is_empty()) {
            all.push((if pick { access.insert } else { access.update }, rows::put(access.table, &rows)));
            if access.table == Table::MessageId {
                all.push((Sql::NoteMessageId, note(batches, &rows)));
            }
        }
    }
}

fn deletions<'a>(table: Table, ids: &[(u16, &'a RowId)]) -> Values<'a> {
    let partitions = Values::none().with(column(ids, |partition, _| sql_partition(partition)));
    let ids: Vec<&RowId> = ids.iter().map(|(_, id)| *id).collect();
    partitions.and(rows::ids(table, &ids))
}

/// The rows with each partition's time, which tells what has expired elsewhere.
fn note<'a>(batches: &[&'a Batch], rows: &[(u16, &'a Row)]) -> Values<'a> {
    let time = |partition| {
        let batch = batches.iter().find(|batch| batch.fence.partition == partition);
        batch.map_or(0, |batch| batch.head.last_time)
    };
    rows::put(Table::MessageId, rows).with(column(rows, |partition, _| time(partition)))
}

fn taken<'a>(all: &mut All<'a>, batches: &[&'a Batch]) {
    let taken = of_all(batches, |batch| &batch.taken);
    if taken.is_empty() {
        return;
    }
    let values = Values::none()
        .with(column(&taken, |partition, _| sql_partition(partition)))
        .with(column(&taken, |_, id| sql_partition(id.source)))
        .with(column(&taken, |_, id| id.position as i64))
        .with(column(&taken, |_, id| i64::from(id.n)));
    all.push((Sql::DeleteTaken, values));
}

fn messages<'a>(all: &mut All<'a>, batches: &[&'a Batch]) {
    let entries: Vec<&OutboxEntry> = batches.iter().flat_map(|batch| &batch.outbox).collect();
    if !entries.is_empty() {
        all.push((Sql::InsertOutbox, rows::outbox_columns(&entries)));
    }
    let retries: Vec<&OutboxId> = batches.iter().flat_map(|batch| &batch.outbox_retries).collect();
    if !retries.is_empty() {
        all.push((Sql::ResetOutbox, rows::outbox_ids(&retries)));
    }
}

fn records<'a>(all: &mut All<'a>, batches: &[&'a Batch]) {
    let mut entries: Vec<&RecordEntry> = batches.iter().flat_map(|batch| &batch.records).collect();
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    if !entries.is_empty() {
        all.push((Sql::PutRecord, rows::record_columns(&entries)));
    }
    if let Some(answers) = rows::answer_columns(&entries) {
        all.push((Sql::PutAnswer, answers));
    }
    let suppressed: Vec<_> = batches.iter().flat_map(|batch| &batch.suppressed).collect();
    if !suppressed.is_empty() {
        all.push((Sql::AddSuppressed, rows::suppressed_columns(&suppressed)));
    }
}

fn sent<'a>(all: &mut All<'a>, batches: &[&'a Batch]) {
    let sent = of_all(batches, |batch| &batch.sent);
    if sent.is_empty() {
        return;
    }
    let values = Values::none()
        .with(column(&sent, |_, row| sql_partition(row.target)))
        .with(column(&sent, |_, row| sql_partition(row.id.source)))
        .with(column(&sent, |_, row| row.id.position as i64))
        .with(column(&sent, |_, row| i64::from(row.id.n)))
        .with(column(&sent, |_, row| row.time))
        .with(column(&sent, |_, row| &*row.payload));
    all.push((Sql::InsertSent, values));
}
