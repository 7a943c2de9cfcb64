//! The contract over the parts: turns load here and now and commit through the writer; lists have threads of their own.
//! Nothing is decided here. Next: `commit.rs` and `load.rs`.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::{OptionalExtension, params};
use tokio::sync::oneshot;
use wf_core::rows::{Definition, Incident, Job, Scope};
use wf_core::{Key, Millis};
use wf_idempotency::record::Record;
use wf_store::*;

use crate::ledger::{self, SqliteLedger};
use crate::open::{SqliteStore, open_reader};
use crate::readers::store_error;
use crate::sql::{Sql, Statements};
use crate::writer::{self, GONE};
use crate::{commit, lists, load, outbox, records, uses};

/// How long counts of repeats and shipped messages are kept.
const KEPT_MS: Millis = 30 * 24 * 60 * 60 * 1000;

impl Store for SqliteStore {
    fn open(&self, partition: u16) -> Later<'_, Result<Opened, StoreError>> {
        Box::pin(async move {
            let opened = self.writer.write(move |statements| open_partition(statements, partition)).await?;
            let elsewhere = || StoreError("this store belongs to another partition: it has one".to_owned());
            let opened = opened.ok_or_else(elsewhere)?;
            self.epoch.fetch_max(opened.fence.epoch, Ordering::AcqRel);
            Ok(opened)
        })
    }

    fn load(&self, needs: Needs) -> Later<'_, Result<Loaded, StoreError>> {
        Box::pin(ready(self.readers.for_turn(|statements| load::load(statements, &needs))))
    }

    fn commit(&self, batch: Arc<Batch>) -> Later<'_, Result<(), CommitError>> {
        let (answer, outcome) = oneshot::channel();
        self.writer.send(Box::new(Turn { batch, failed: None, answer }));
        Box::pin(async {
            // The writer is gone: whether it got that far is not known.
            outcome.await.unwrap_or_else(|_| Err(CommitError::Unknown(GONE.to_owned())))
        })
    }

    /// Without a look at the database: the lock file keeps every other process out, so whoever took the partition did it here.
    fn check_fence(&self, fence: Fence) -> Later<'_, Result<(), CommitError>> {
        let is_owner = self.epoch.load(Ordering::Acquire) == fence.epoch;
        Box::pin(ready(if is_owner { Ok(()) } else { Err(CommitError::Fenced) }))
    }

    fn secret(&self, name: &'static str, fresh: [u8; 32]) -> Later<'_, Result<[u8; 32], StoreError>> {
        Box::pin(self.writer.write(move |statements| {
            let name = format!("secret:{name}");
            statements.get(Sql::InsertSecret)?.execute(params![name, fresh])?;
            statements.get(Sql::GetSecret)?.query_row([name], |row| row.get(0))
        }))
    }

    fn claim_outbox(&self, claim: Claim) -> Later<'_, Result<Vec<OutboxRow>, StoreError>> {
        Box::pin(async move {
            let wanted = claim.clone();
            let ids = self
                .readers
                .list(move |reader| reader.snapshot(|statements| outbox::claimable(statements, &wanted)))
                .await?;
            if ids.is_empty() {
                return Ok(Vec::new());
            }
            self.writer.write(move |statements| outbox::claim(statements, &claim, &ids)).await
        })
    }

    fn mark_outbox(&self, marks: Vec<Mark>) -> Later<'_, Result<(), StoreError>> {
        Box::pin(self.writer.write(move |statements| {
            failpoint::hit("before-mark");
            marks.iter().try_for_each(|mark| outbox::mark(statements, mark).map(drop))
        }))
    }

    fn outbox_stats(&self) -> Later<'_, Result<Vec<OutboxStats>, StoreError>> {
        Box::pin(self.readers.list(|reader| reader.snapshot(outbox::stats)))
    }

    fn sweep(&self, now: Millis, rows_max: usize) -> Later<'_, Result<usize, StoreError>> {
        Box::pin(self.writer.write(move |statements| sweep(statements, now, rows_max)))
    }

    fn idle(&self) -> Later<'_, Result<(), StoreError>> {
        Box::pin(async {
            self.checkpointer.idle().await;
            Ok(())
        })
    }

    fn ledger(&self, _partition: u16) -> Later<'_, Result<Box<dyn Ledger>, StoreError>> {
        // A store has one partition.
        let ledger = open_reader(&self.path).map_err(store_error);
        Box::pin(ready(ledger.map(|connection| Box::new(SqliteLedger::over(connection)) as Box<dyn Ledger>)))
    }

    fn record(&self, id: RecordId) -> Later<'_, Result<Option<Arc<Record>>, StoreError>> {
        Box::pin(ready(self.readers.beside(|statements| records::get(statements, &id))))
    }

    fn definitions(&self, query: DefinitionQuery) -> Later<'_, Result<Page<DefinitionInfo>, StoreError>> {
        Box::pin(self.readers.list(move |reader| lists::definitions(reader, &query)))
    }

    fn definition(
        &self,
        tenant: String,
        process_id: String,
        version: Option<u32>,
    ) -> Later<'_, Result<Option<Arc<Definition>>, StoreError>> {
        Box::pin(self.readers.list(move |reader| {
            reader.snapshot(|statements| lists::definition(statements, &tenant, &process_id, version))
        }))
    }

    fn instances(&self, query: InstanceQuery) -> Later<'_, Result<Page<Arc<Scope>>, StoreError>> {
        Box::pin(self.readers.list(move |reader| lists::instances(reader, &query)))
    }

    fn instance(&self, instance: Key) -> Later<'_, Result<Option<InstanceDetail>, StoreError>> {
        Box::pin(self.readers.list(move |reader| reader.snapshot(|statements| lists::instance(statements, instance))))
    }

    fn jobs(&self, query: JobQuery) -> Later<'_, Result<Page<Arc<Job>>, StoreError>> {
        Box::pin(self.readers.list(move |reader| lists::jobs(reader, &query)))
    }

    fn incidents(&self, query: IncidentQuery) -> Later<'_, Result<Page<Arc<Incident>>, StoreError>> {
        Box::pin(self.readers.list(move |reader| lists::incidents(reader, &query)))
    }

    fn outbox(&self, query: OutboxQuery) -> Later<'_, Result<Page<OutboxRow>, StoreError>> {
        Box::pin(self.readers.list(move |reader| lists::outbox(reader, &query)))
    }

    fn audit(&self, query: AuditQuery) -> Later<'_, Result<Page<AuditRow>, StoreError>> {
        Box::pin(self.readers.list(move |reader| lists::audit(reader, &query)))
    }

    fn idempotency(&self, query: IdempotencyQuery) -> Later<'_, Result<KeyUses, StoreError>> {
        Box::pin(self.readers.list(move |reader| uses::idempotency(reader, &query)))
    }

    fn gauges(&self) -> Later<'_, Result<Gauges, StoreError>> {
        Box::pin(self.readers.list(uses::gauges))
    }
}

impl SqliteStore {
    /// Takes up to `rows_max` commands before this position out of the log; the number taken. They are gone: the caller
    /// has kept them somewhere else.
    pub async fn archive_log(&self, before: u64, rows_max: usize) -> Result<usize, StoreError> {
        self.writer
            .write(move |statements| {
                statements.get(Sql::OpenArchive)?.execute([before as i64])?;
                statements.get(Sql::ArchiveLog)?.execute(params![before as i64, rows_max as i64])
            })
            .await
    }

    /// Where the log begins, if an interrupted archiving has left rows below it behind.
    pub async fn archive_begun(&self) -> Result<Option<u64>, StoreError> {
        self.writer
            .write(|statements| statements.get(Sql::ArchiveBegun)?.query_row([], |row| row.get::<_, i64>(0)).optional())
            .await
            .map(|before| before.map(|before| before as u64))
    }

    /// Takes up to `rows_max` commands that an interrupted archiving has left behind; the number taken.
    pub async fn archive_rest(&self, rows_max: usize) -> Result<usize, StoreError> {
        self.writer
            .write(move |statements| statements.get(Sql::ArchiveLog)?.execute(params![i64::MAX, rows_max as i64]))
            .await
    }
}

/// A turn on its way to the writer.
struct Turn {
    batch: Arc<Batch>,
    failed: Option<CommitError>,
    answer: oneshot::Sender<Result<(), CommitError>>,
}

impl writer::Job for Turn {
    fn run(&mut self, statements: &mut Statements) -> bool {
        self.failed = commit::write(statements, &self.batch).err();
        self.failed.is_none()
    }

    fn answer(self: Box<Self>, outcome: Result<(), CommitError>) {
        let _ = self.answer.send(self.failed.map_or(outcome, Err));
    }
}

/// `None`: the store has another partition.
fn open_partition(statements: &mut Statements, partition: u16) -> rusqlite::Result<Option<Opened>> {
    if statements.get(Sql::OtherPartition)?.exists([partition])? {
        return Ok(None);
    }
    let opened = statements.get(Sql::OpenPartition)?.query_row([partition], |row| {
        let position = row.get::<_, i64>(1)? as u64;
        let epoch = row.get::<_, i64>(0)? as u64;
        let fence = Fence { partition, epoch, old_position: position, new_position: position };
        Ok(Opened { fence, head: ledger::head(row, 2)? })
    })?;
    Ok(Some(opened))
}

fn sweep(statements: &mut Statements, now: Millis, rows_max: usize) -> rusqlite::Result<usize> {
    let old = now.saturating_sub(KEPT_MS);
    let mut swept = 0;
    let bounds = [
        (Sql::SweepRecords, records::slot_at(now.saturating_add(1))),
        (Sql::SweepEvents, old),
        (Sql::SweepOutbox, old),
    ];
    for (sql, bound) in bounds {
        let left = i64::try_from(rows_max - swept).unwrap_or(i64::MAX);
        swept += statements.get(sql)?.execute(params![bound, left])?;
        failpoint::hit("in-sweep");
    }
    Ok(swept)
}
