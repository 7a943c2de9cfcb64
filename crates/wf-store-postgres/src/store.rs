//! The contract over the parts. Nothing is decided here. Next: `combiner.rs` and `load.rs`.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_postgres::Row as SqlRow;
use wf_core::rows::{Definition, Incident, Job, Scope};
use wf_core::{Key, Millis, Partitions};
use wf_idempotency::record::Record;
use wf_store::*;

use crate::combiner::GONE;
use crate::connection::Values;
use crate::open::PostgresStore;
use crate::reads;
use crate::rows::{self, sql_partition};
use crate::sql::Sql;

impl Store for PostgresStore {
    fn open(&self, partition: u16) -> Later<'_, Result<Opened, StoreError>> {
        Box::pin(self.take(partition))
    }

    fn load(&self, needs: Needs) -> Later<'_, Result<Loaded, StoreError>> {
        Box::pin(async move { self.load_needs(&needs).await })
    }

    fn commit(&self, batch: Arc<Batch>) -> Later<'_, Result<(), CommitError>> {
        if let Err(refused) = self.check_inboxes(&batch) {
            return Box::pin(std::future::ready(Err(refused)));
        }
        let (answer, outcome) = oneshot::channel();
        self.combiner.send(batch, answer);
        Box::pin(async {
            // The combiner is gone: whether it got that far is not known.
            outcome.await.unwrap_or_else(|_| Err(CommitError::Unknown(GONE.to_owned())))
        })
    }

    fn check_fence(&self, fence: Fence) -> Later<'_, Result<(), CommitError>> {
        Box::pin(async move {
            let values = Values::none().with(sql_partition(fence.partition)).with(fence.epoch as i64);
            let found = self.turns.query(Sql::CheckFence, values).await;
            match found.map_err(|error| CommitError::Unavailable(error.0))?.is_empty() {
                true => Err(CommitError::Fenced),
                false => Ok(()),
            }
        })
    }

    fn secret(&self, name: &'static str, fresh: [u8; 32]) -> Later<'_, Result<[u8; 32], StoreError>> {
        Box::pin(reads::secret(&self.turns, name, fresh))
    }

    fn heard(&self) -> Later<'_, Heard> {
        Box::pin(self.ear.next())
    }

    fn claim_record(&self, entry: RecordEntry) -> Later<'_, Result<Claimed, StoreError>> {
        Box::pin(self.claim_key(entry))
    }

    fn finish_record(&self, entry: RecordEntry) -> Later<'_, Result<bool, StoreError>> {
        Box::pin(self.finish_key(entry))
    }

    fn partitions(&self) -> Partitions {
        self.partitions
    }

    fn inbox(&self, partition: u16, limit: usize) -> Later<'_, Result<Vec<Sent>, StoreError>> {
        Box::pin(self.read_inbox(partition, limit))
    }

    fn undelivered(&self, source: u16, positions: Vec<u64>) -> Later<'_, Result<Vec<u64>, StoreError>> {
        Box::pin(async move {
            let positions: Vec<i64> = positions.into_iter().map(|position| position as i64).collect();
            let values = Values::none().with(sql_partition(source)).with(positions);
            let found = self.turns.query(Sql::Undelivered, values).await?;
            found.iter().map(|row| rows::key(row, 0)).collect()
        })
    }

    fn cluster(&self) -> Option<&dyn Cluster> {
        Some(self)
    }

    fn claim_outbox(&self, claim: Claim) -> Later<'_, Result<Vec<OutboxRow>, StoreError>> {
        Box::pin(self.claim(claim))
    }

    fn mark_outbox(&self, marks: Vec<Mark>) -> Later<'_, Result<(), StoreError>> {
        Box::pin(self.mark(marks))
    }

    fn outbox_stats(&self) -> Later<'_, Result<Vec<OutboxStats>, StoreError>> {
        Box::pin(self.stats())
    }

    fn sweep(&self, now: Millis, rows_max: usize) -> Later<'_, Result<usize, StoreError>> {
        Box::pin(self.sweep_all(now, rows_max))
    }

    /// The server looks after its own log.
    fn idle(&self) -> Later<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn ledger(&self, partition: u16) -> Later<'_, Result<Box<dyn Ledger>, StoreError>> {
        Box::pin(self.open_ledger(partition))
    }

    fn record(&self, id: RecordId) -> Later<'_, Result<Option<Arc<Record>>, StoreError>> {
        Box::pin(async move { self.find_record(&id).await })
    }

    fn definitions(&self, query: DefinitionQuery) -> Later<'_, Result<Page<DefinitionInfo>, StoreError>> {
        Box::pin(self.list_definitions(query))
    }

    fn definition(
        &self,
        tenant: String,
        process_id: String,
        version: Option<u32>,
    ) -> Later<'_, Result<Option<Arc<Definition>>, StoreError>> {
        Box::pin(self.find_definition(tenant, process_id, version))
    }

    fn instances(&self, query: InstanceQuery) -> Later<'_, Result<Page<Arc<Scope>>, StoreError>> {
        Box::pin(self.list_instances(query))
    }

    fn instance(&self, instance: Key) -> Later<'_, Result<Option<InstanceDetail>, StoreError>> {
        Box::pin(self.show_instance(instance))
    }

    fn jobs(&self, query: JobQuery) -> Later<'_, Result<Page<Arc<Job>>, StoreError>> {
        Box::pin(self.list_jobs(query))
    }

    fn incidents(&self, query: IncidentQuery) -> Later<'_, Result<Page<Arc<Incident>>, StoreError>> {
        Box::pin(self.list_incidents(query))
    }

    fn outbox(&self, query: OutboxQuery) -> Later<'_, Result<Page<OutboxRow>, StoreError>> {
        Box::pin(self.list_outbox(query))
    }

    fn audit(&self, query: AuditQuery) -> Later<'_, Result<Page<AuditRow>, StoreError>> {
        Box::pin(self.list_audit(query))
    }

    fn idempotency(&self, query: IdempotencyQuery) -> Later<'_, Result<KeyUses, StoreError>> {
        Box::pin(self.key_uses(query))
    }

    fn gauges(&self) -> Later<'_, Result<Gauges, StoreError>> {
        Box::pin(self.count_rows())
    }
}

impl PostgresStore {
    /// What is sent nowhere would wait for ever; a partition that is alone sends nothing, and nobody to it.
    fn check_inboxes(&self, batch: &Batch) -> Result<(), CommitError> {
        let is_alone = self.partitions.is_one() && !(batch.sent.is_empty() && batch.taken.is_empty());
        let nowhere = batch.sent.iter().find(|sent| !self.partitions.contains(sent.target));
        match nowhere {
            Some(sent) => Err(CommitError::Rejected(format!("there is no partition {}", sent.target))),
            None if is_alone => Err(CommitError::Rejected("the store has one partition, and no inbox".to_owned())),
            None => Ok(()),
        }
    }

    async fn take(&self, partition: u16) -> Result<Opened, StoreError> {
        let values = Values::none().with(sql_partition(partition)).with(self.me.to_vec());
        let taken = self.turns.write(vec![(Sql::OpenPartition, values)]).await?;
        match taken.first().and_then(|rows| rows.first()) {
            Some(row) => rows::opened(row),
            None => Err(self.not_taken(partition).await?),
        }
    }

    async fn not_taken(&self, partition: u16) -> Result<StoreError, StoreError> {
        let found = self.turns.query(Sql::OwnerOf, Values::none().with(sql_partition(partition))).await?;
        let owner = found.first().map(|row| rows::text_or_null(row, 0)).transpose()?;
        Ok(StoreError(match owner {
            None => format!("there is no partition {partition}"),
            Some(None) => format!("partition {partition} is changing hands"),
            Some(Some(name)) => format!("partition {partition} belongs to the node {name}"),
        }))
    }

    async fn read_inbox(&self, partition: u16, limit: usize) -> Result<Vec<Sent>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let values = Values::none().with(sql_partition(partition)).with(limit);
        let found = self.turns.query(Sql::Inbox, values).await?;
        let sent = |row: &SqlRow| {
            let id =
                InboxId { source: rows::partition(row, 0)?, position: rows::key(row, 1)?, n: rows::number(row, 2)? };
            Ok(Sent { target: partition, id, time: rows::get(row, 3)?, payload: rows::get(row, 4)? })
        };
        found.iter().map(sent).collect()
    }
}
