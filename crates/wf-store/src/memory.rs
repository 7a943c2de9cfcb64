//! A whole store in ordered maps: for tests, the simulator and a first look at what a store must do. It can be told to
//! fail, and several nodes may share it. It keeps nothing on a disk and decides nothing.
//! Next: `memory/state.rs`, what is durable; then `memory/commit.rs`, the transaction, and `memory/cluster.rs`.

mod cluster;
mod commit;
mod inbox;
mod ledger;
mod lists;
mod load;
mod outbox;
mod report;
mod state;
mod trace;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wf_core::planted::{self, Bug};
use wf_core::rows::{Definition, Incident, Job, Scope};
use wf_core::{Key, Millis, Partitions, Row};
use wf_idempotency::record::Record;

use crate::batch::*;
use crate::cluster::{Cluster, Node};
use crate::ledger::Ledger;
use crate::load::{Loaded, Needs};
use crate::memory::cluster::Clock;
use crate::memory::state::State;
use crate::outbox::{Claim, Mark, OutboxRow, OutboxStats};
use crate::query::*;
use crate::store::*;

/// A handle on a store. Handles of nodes ([`MemoryStore::node`]) share what is durable; faults and counts are each one's own.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    control: Mutex<Control>,
    /// Whose handle it is. One of nobody takes partitions from whomever it likes, and then they are nobody's.
    me: Option<Node>,
}

/// What the next commit meets instead of success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `Unavailable`, nothing done.
    BeforeCommit,
    /// `Unknown`, although everything was applied.
    AfterCommit,
    /// Somebody else takes the partition first: this and every later commit of the old epoch is `Fenced`.
    Fenced,
    /// `Conflict`, nothing done.
    Conflict,
    /// `Rejected`, nothing done.
    Rejected,
}

/// Calls so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub loads: u64,
    pub commits: u64,
    /// Those of `commits` that were applied.
    pub applied: u64,
}

#[derive(Debug, Default)]
struct Control {
    faults: VecDeque<Fault>,
    counts: Counts,
    is_cut_off: bool,
    /// Only planted: the fence of a turn and the records that it has yet to write.
    late: (Fence, Vec<RecordEntry>),
}

impl MemoryStore {
    /// One partition, numbered 1.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    pub fn with_partitions(partitions: Partitions) -> MemoryStore {
        let store = MemoryStore::default();
        store.state().numbers = partitions;
        store
    }

    /// How long leases of nodes last, and the clock that judges them. Without: 6 s, and time stands still.
    pub fn with_leases(self, lease_ms: Millis, clock: impl Fn() -> Millis + Send + Sync + 'static) -> MemoryStore {
        let mut state = self.state();
        (state.lease_ms, state.clock) = (lease_ms, Clock::of(clock));
        drop(state);
        self
    }

    /// The handle of one run of a node, over the same store. It is in no list before it joins.
    pub fn node(&self, name: &str, address: &str) -> MemoryStore {
        let me = self.state().next_run(name, address);
        MemoryStore { state: self.state.clone(), control: Mutex::default(), me: Some(me) }
    }

    /// Faults queue up: each commit takes one.
    pub fn fail_next(&self, fault: Fault) {
        self.control().faults.push_back(fault);
    }

    /// From now on this handle sees no other node, until it is told otherwise.
    pub fn cut_off(&self, is_cut_off: bool) {
        self.control().is_cut_off = is_cut_off;
    }

    pub fn counts(&self) -> Counts {
        self.control().counts
    }

    /// What a backup made now would hold. Calls and faults are not part of it.
    pub fn backup(&self) -> MemoryStore {
        MemoryStore { state: Arc::new(Mutex::new(self.state().clone())), control: Mutex::default(), me: None }
    }

    /// All rows, by partition, table and key: for sums over the tables.
    pub fn rows(&self) -> Vec<Row> {
        self.state().tables().flat_map(|tables| tables.rows.values().cloned()).collect()
    }

    /// Those of one partition.
    pub fn rows_of(&self, partition: u16) -> Vec<Row> {
        self.state().rows_of(partition).into_iter().flatten().map(|(_, row)| row.clone()).collect()
    }

    /// The whole outbox in its order: for sums over it.
    pub fn outbox_rows(&self) -> Vec<OutboxRow> {
        self.state().outbox.values().map(|shipment| shipment.row.clone()).collect()
    }

    /// The whole log by partition and position: for replays.
    pub fn log(&self) -> Vec<LogEntry> {
        self.state().log.values().cloned().collect()
    }

    /// That of one partition.
    pub fn log_of(&self, partition: u16) -> Vec<LogEntry> {
        self.state().log.range((partition, 0)..=(partition, u64::MAX)).map(|(_, entry)| entry.clone()).collect()
    }

    /// Every inbox, by target, source, position and number.
    pub fn inboxes(&self) -> Vec<Sent> {
        self.state().inbox.values().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit_now(&self, batch: &Batch) -> Result<(), CommitError> {
        let fault = {
            let mut control = self.control();
            control.counts.commits += 1;
            control.faults.pop_front()
        };
        let ordered = || "ordered by a test".to_owned();
        match fault {
            Some(Fault::BeforeCommit) => return Err(CommitError::Unavailable(ordered())),
            Some(Fault::Conflict) => return Err(CommitError::Conflict(ordered())),
            Some(Fault::Rejected) => return Err(CommitError::Rejected(ordered())),
            Some(Fault::Fenced) => {
                self.state().take(batch.fence.partition, None).map_err(|error| CommitError::Unavailable(error.0))?;
            }
            Some(Fault::AfterCommit) | None => (),
        }
        match planted::is(Bug::RecordOutside) {
            true => self.commit_without_records(batch)?,
            false => self.state().commit(batch)?,
        }
        self.control().counts.applied += 1;
        match fault {
            Some(Fault::AfterCommit) => Err(CommitError::Unknown(ordered())),
            _ => Ok(()),
        }
    }
}

impl MemoryStore {
    /// Only planted: the records follow with the owner's next commit. Who takes the partition before that finds none.
    fn commit_without_records(&self, batch: &Batch) -> Result<(), CommitError> {
        let mut state = self.state();
        state.commit(&Batch { records: Vec::new(), ..batch.clone() })?;
        let mut control = self.control();
        let (fence, late) = std::mem::take(&mut control.late);
        if (fence.partition, fence.epoch) == (batch.fence.partition, batch.fence.epoch) {
            state.put_records(&late);
        }
        control.late = (batch.fence, batch.records.clone());
        Ok(())
    }
}

impl Store for MemoryStore {
    fn open(&self, partition: u16) -> Later<'_, Result<Opened, StoreError>> {
        Box::pin(async move { self.state().take(partition, self.me.as_ref()) })
    }

    fn load(&self, needs: Needs) -> Later<'_, Result<Loaded, StoreError>> {
        Box::pin(async move {
            self.control().counts.loads += 1;
            Ok(self.state().load(&needs))
        })
    }

    fn commit(&self, batch: Arc<Batch>) -> Later<'_, Result<(), CommitError>> {
        Box::pin(async move { self.commit_now(&batch) })
    }

    fn check_fence(&self, fence: Fence) -> Later<'_, Result<(), CommitError>> {
        Box::pin(async move { self.state().check_fence(&fence) })
    }

    fn secret(&self, name: &'static str, fresh: [u8; 32]) -> Later<'_, Result<[u8; 32], StoreError>> {
        Box::pin(async move { Ok(*self.state().secrets.entry(name).or_insert(fresh)) })
    }

    fn partitions(&self) -> Partitions {
        self.state().numbers
    }

    fn inbox(&self, partition: u16, limit: usize) -> Later<'_, Result<Vec<Sent>, StoreError>> {
        Box::pin(async move { Ok(self.state().inbox_of(partition, limit)) })
    }

    fn undelivered(&self, source: u16, positions: Vec<u64>) -> Later<'_, Result<Vec<u64>, StoreError>> {
        Box::pin(async move { Ok(self.state().undelivered(source, positions)) })
    }

    fn cluster(&self) -> Option<&dyn Cluster> {
        self.me.as_ref().map(|_| self as &dyn Cluster)
    }

    fn claim_record(&self, entry: RecordEntry) -> Later<'_, Result<Claimed, StoreError>> {
        Box::pin(async move { Ok(self.state().claim_record(entry)) })
    }

    fn finish_record(&self, entry: RecordEntry) -> Later<'_, Result<bool, StoreError>> {
        Box::pin(async move { Ok(self.state().finish_record(entry)) })
    }

    fn claim_outbox(&self, claim: Claim) -> Later<'_, Result<Vec<OutboxRow>, StoreError>> {
        Box::pin(async move { Ok(self.state().claim(&claim)) })
    }

    fn mark_outbox(&self, marks: Vec<Mark>) -> Later<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let mut state = self.state();
            marks.into_iter().for_each(|mark| state.mark(mark));
            Ok(())
        })
    }

    fn outbox_stats(&self) -> Later<'_, Result<Vec<OutboxStats>, StoreError>> {
        Box::pin(async move { Ok(self.state().outbox_stats()) })
    }

    fn sweep(&self, now: Millis, rows_max: usize) -> Later<'_, Result<usize, StoreError>> {
        Box::pin(async move { Ok(self.state().sweep(now, rows_max)) })
    }

    fn idle(&self) -> Later<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn ledger(&self, partition: u16) -> Later<'_, Result<Box<dyn Ledger>, StoreError>> {
        Box::pin(async move { Ok(ledger::of(self.state.clone(), partition)) })
    }

    fn record(&self, id: RecordId) -> Later<'_, Result<Option<Arc<Record>>, StoreError>> {
        Box::pin(async move { Ok(self.state().record(&id)) })
    }

    fn definitions(&self, query: DefinitionQuery) -> Later<'_, Result<Page<DefinitionInfo>, StoreError>> {
        Box::pin(async move { Ok(self.state().definitions(&query)) })
    }

    fn definition(
        &self,
        tenant: String,
        process_id: String,
        version: Option<u32>,
    ) -> Later<'_, Result<Option<Arc<Definition>>, StoreError>> {
        Box::pin(async move { Ok(self.state().definition(&tenant, &process_id, version)) })
    }

    fn instances(&self, query: InstanceQuery) -> Later<'_, Result<Page<Arc<Scope>>, StoreError>> {
        Box::pin(async move { Ok(self.state().instances(&query)) })
    }

    fn instance(&self, instance: Key) -> Later<'_, Result<Option<InstanceDetail>, StoreError>> {
        Box::pin(async move { Ok(self.state().instance(instance)) })
    }

    fn jobs(&self, query: JobQuery) -> Later<'_, Result<Page<Arc<Job>>, StoreError>> {
        Box::pin(async move { Ok(self.state().jobs(&query)) })
    }

    fn incidents(&self, query: IncidentQuery) -> Later<'_, Result<Page<Arc<Incident>>, StoreError>> {
        Box::pin(async move { Ok(self.state().incidents(&query)) })
    }

    fn outbox(&self, query: OutboxQuery) -> Later<'_, Result<Page<OutboxRow>, StoreError>> {
        Box::pin(async move { Ok(self.state().outbox_page(&query)) })
    }

    fn audit(&self, query: AuditQuery) -> Later<'_, Result<Page<AuditRow>, StoreError>> {
        Box::pin(async move { Ok(self.state().audit(&query)) })
    }

    fn idempotency(&self, query: IdempotencyQuery) -> Later<'_, Result<KeyUses, StoreError>> {
        Box::pin(async move { Ok(self.state().idempotency(&query)) })
    }

    fn gauges(&self) -> Later<'_, Result<Gauges, StoreError>> {
        Box::pin(async move { Ok(self.state().gauges()) })
    }
}
