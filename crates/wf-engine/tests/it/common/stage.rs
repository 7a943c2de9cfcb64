//! A memory store on a stage: a test holds its commits, makes them fail, cuts its pages short and looks at what came.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use wf_core::rows::Text;
use wf_core::{Key, Millis};
use wf_idempotency::record::Record;
use wf_store::memory::MemoryStore;
use wf_store::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Unavailable,
    UnknownApplied,
    UnknownLost,
    Fenced,
    Conflict,
    Rejected,
}

type Rule = Box<dyn FnMut(&Batch) -> Option<Fault> + Send>;

pub struct Stage {
    pub inner: Arc<MemoryStore>,
    plan: Mutex<VecDeque<Option<Fault>>>,
    rule: Mutex<Option<Rule>>,
    begun: watch::Sender<u64>,
    allowed: watch::Sender<u64>,
    /// Entries that one load of a range brings.
    pub page_max: AtomicUsize,
    pub fail_loads: AtomicBool,
    pub fail_opens: AtomicUsize,
    /// Every command id is said to stand in the log.
    pub knows_all: AtomicBool,
    pub loads: AtomicUsize,
    pub opens: AtomicUsize,
}

impl Stage {
    pub fn new() -> Arc<Stage> {
        Stage::over(Arc::new(MemoryStore::new()))
    }

    pub fn over(inner: Arc<MemoryStore>) -> Arc<Stage> {
        Arc::new(Stage {
            inner,
            plan: Mutex::default(),
            rule: Mutex::default(),
            begun: watch::Sender::new(0),
            allowed: watch::Sender::new(u64::MAX),
            page_max: AtomicUsize::new(usize::MAX),
            fail_loads: AtomicBool::new(false),
            fail_opens: AtomicUsize::new(0),
            knows_all: AtomicBool::new(false),
            loads: AtomicUsize::new(0),
            opens: AtomicUsize::new(0),
        })
    }

    /// One entry per commit to come; after them commits succeed.
    pub fn plan(&self, faults: &[Option<Fault>]) {
        self.plan.lock().unwrap().extend(faults);
    }

    pub fn fail_next(&self, fault: Fault) {
        self.plan(&[Some(fault)]);
    }

    /// A judge of every commit.
    pub fn rule(&self, rule: impl FnMut(&Batch) -> Option<Fault> + Send + 'static) {
        *self.rule.lock().unwrap() = Some(Box::new(rule));
    }

    pub fn no_rule(&self) {
        *self.rule.lock().unwrap() = None;
    }

    /// Commits that begin from now on wait.
    pub fn hold(&self) {
        self.allowed.send_replace(*self.begun.borrow());
    }

    /// So many of them go on.
    pub fn step(&self, commits: u64) {
        self.allowed.send_modify(|allowed| *allowed = allowed.saturating_add(commits));
    }

    pub fn release(&self) {
        self.allowed.send_replace(u64::MAX);
    }

    pub fn begun(&self) -> u64 {
        *self.begun.borrow()
    }

    /// Until so many commits have begun, over all time.
    pub async fn until_begun(&self, commits: u64) {
        self.begun.subscribe().wait_for(|begun| *begun >= commits).await.unwrap();
    }

    async fn commit_here(&self, batch: Arc<Batch>) -> Result<(), CommitError> {
        let mut number = 0;
        self.begun.send_modify(|begun| {
            *begun += 1;
            number = *begun;
        });
        self.allowed.subscribe().wait_for(|allowed| *allowed >= number).await.unwrap();
        let planned = self.plan.lock().unwrap().pop_front().flatten();
        let fault = planned.or_else(|| self.rule.lock().unwrap().as_mut().and_then(|rule| rule(&batch)));
        let text = || "ordered by a test".to_owned();
        match fault {
            None => self.inner.commit(batch).await,
            Some(Fault::Unavailable) => Err(CommitError::Unavailable(text())),
            Some(Fault::UnknownLost) => Err(CommitError::Unknown(text())),
            Some(Fault::Conflict) => Err(CommitError::Conflict(text())),
            Some(Fault::Rejected) => Err(CommitError::Rejected(text())),
            Some(Fault::UnknownApplied) => {
                self.inner.commit(batch).await?;
                Err(CommitError::Unknown(text()))
            }
            Some(Fault::Fenced) => {
                // Somebody else takes the partition.
                self.inner.open(batch.fence.partition).await.unwrap();
                self.inner.commit(batch).await
            }
        }
    }

    fn cut(&self, loaded: &mut Loaded) {
        let page_max = self.page_max.load(Ordering::Relaxed);
        for range in &mut loaded.ranges {
            if range.entries.len() > page_max {
                range.entries.truncate(page_max);
                range.complete = false;
            }
        }
        if self.knows_all.load(Ordering::Relaxed) {
            loaded.commands.iter_mut().for_each(|(_, known)| *known = true);
        }
    }
}

impl Store for Stage {
    fn ledger(&self, partition: u16) -> Later<'_, Result<Box<dyn Ledger>, StoreError>> {
        self.inner.ledger(partition)
    }

    fn open(&self, partition: u16) -> Later<'_, Result<Opened, StoreError>> {
        Box::pin(async move {
            self.opens.fetch_add(1, Ordering::Relaxed);
            let fails = self.fail_opens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            match fails {
                Ok(_) => Err(StoreError("ordered by a test".to_owned())),
                Err(_) => self.inner.open(partition).await,
            }
        })
    }

    fn partitions(&self) -> wf_core::Partitions {
        self.inner.partitions()
    }

    fn inbox(&self, partition: u16, limit: usize) -> Later<'_, Result<Vec<Sent>, StoreError>> {
        self.inner.inbox(partition, limit)
    }

    fn undelivered(&self, source: u16, positions: Vec<u64>) -> Later<'_, Result<Vec<u64>, StoreError>> {
        self.inner.undelivered(source, positions)
    }

    fn check_fence(&self, fence: Fence) -> Later<'_, Result<(), CommitError>> {
        self.inner.check_fence(fence)
    }

    fn load(&self, needs: Needs) -> Later<'_, Result<Loaded, StoreError>> {
        Box::pin(async move {
            self.loads.fetch_add(1, Ordering::Relaxed);
            if self.fail_loads.load(Ordering::Relaxed) {
                return Err(StoreError("ordered by a test".to_owned()));
            }
            let mut loaded = self.inner.load(needs).await?;
            self.cut(&mut loaded);
            Ok(loaded)
        })
    }

    fn commit(&self, batch: Arc<Batch>) -> Later<'_, Result<(), CommitError>> {
        Box::pin(self.commit_here(batch))
    }

    fn secret(&self, name: &'static str, fresh: [u8; 32]) -> Later<'_, Result<[u8; 32], StoreError>> {
        self.inner.secret(name, fresh)
    }

    fn claim_outbox(&self, claim: Claim) -> Later<'_, Result<Vec<OutboxRow>, StoreError>> {
        self.inner.claim_outbox(claim)
    }

    fn mark_outbox(&self, marks: Vec<Mark>) -> Later<'_, Result<(), StoreError>> {
        self.inner.mark_outbox(marks)
    }

    fn outbox_stats(&self) -> Later<'_, Result<Vec<OutboxStats>, StoreError>> {
        self.inner.outbox_stats()
    }

    fn sweep(&self, now: Millis, rows_max: usize) -> Later<'_, Result<usize, StoreError>> {
        self.inner.sweep(now, rows_max)
    }

    fn idle(&self) -> Later<'_, Result<(), StoreError>> {
        self.inner.idle()
    }

    fn record(&self, id: RecordId) -> Later<'_, Result<Option<Arc<Record>>, StoreError>> {
        self.inner.record(id)
    }

    fn definitions(&self, query: DefinitionQuery) -> Later<'_, Result<Page<DefinitionInfo>, StoreError>> {
        self.inner.definitions(query)
    }

    fn definition(
        &self,
        tenant: String,
        process_id: String,
        version: Option<u32>,
    ) -> Later<'_, Result<Option<Arc<wf_core::rows::Definition>>, StoreError>> {
        self.inner.definition(tenant, process_id, version)
    }

    fn instances(&self, query: InstanceQuery) -> Later<'_, Result<Page<Arc<wf_core::rows::Scope>>, StoreError>> {
        self.inner.instances(query)
    }

    fn instance(&self, instance: Key) -> Later<'_, Result<Option<InstanceDetail>, StoreError>> {
        self.inner.instance(instance)
    }

    fn jobs(&self, query: JobQuery) -> Later<'_, Result<Page<Arc<wf_core::rows::Job>>, StoreError>> {
        self.inner.jobs(query)
    }

    fn incidents(&self, query: IncidentQuery) -> Later<'_, Result<Page<Arc<wf_core::rows::Incident>>, StoreError>> {
        self.inner.incidents(query)
    }

    fn outbox(&self, query: OutboxQuery) -> Later<'_, Result<Page<OutboxRow>, StoreError>> {
        self.inner.outbox(query)
    }

    fn audit(&self, query: AuditQuery) -> Later<'_, Result<Page<AuditRow>, StoreError>> {
        self.inner.audit(query)
    }

    fn idempotency(&self, query: IdempotencyQuery) -> Later<'_, Result<KeyUses, StoreError>> {
        self.inner.idempotency(query)
    }

    fn gauges(&self) -> Later<'_, Result<Gauges, StoreError>> {
        self.inner.gauges()
    }
}

/// Beside the turns: as the store answers.
impl Trace for Stage {
    fn filed(&self, id: RecordId) -> Later<'_, Result<Option<Filed>, StoreError>> {
        self.inner.filed(id)
    }

    fn filed_at(&self, query: FiledQuery) -> Later<'_, Result<Vec<Filed>, StoreError>> {
        self.inner.filed_at(query)
    }

    fn logged(&self, query: LoggedQuery) -> Later<'_, Result<Vec<Logged>, StoreError>> {
        self.inner.logged(query)
    }

    fn trail(&self, query: TrailQuery) -> Later<'_, Result<Trail, StoreError>> {
        self.inner.trail(query)
    }

    fn outbox_of(
        &self,
        tenant: Text,
        partition: u16,
        positions: Vec<u64>,
    ) -> Later<'_, Result<Vec<OutboxRow>, StoreError>> {
        self.inner.outbox_of(tenant, partition, positions)
    }

    fn repeats(&self, query: RepeatsQuery) -> Later<'_, Result<Repeats, StoreError>> {
        self.inner.repeats(query)
    }
}
