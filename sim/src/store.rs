//! The store as one node sees it: a memory store behind a slow, failing line. A dead node's handle answers nobody; what it
//! had on its way arrives or not. It judges nothing. Next: `node.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use wf_core::Millis;
use wf_core::rows::{Definition, Incident, Job, Scope, Text};
use wf_idempotency::record::Record;
use wf_store::memory::MemoryStore;
use wf_store::*;

use crate::world::World;

/// One life of a node, as far as the world around it knows.
pub struct Pulse {
    pub name: String,
    is_alive: AtomicBool,
    /// Rung when it dies.
    pub died: Notify,
}

impl Pulse {
    pub fn new(name: String) -> Arc<Pulse> {
        Arc::new(Pulse { name, is_alive: AtomicBool::new(true), died: Notify::new() })
    }

    pub fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Relaxed)
    }

    /// From now on nothing that it does reaches anybody.
    pub fn stop(&self) {
        self.is_alive.store(false, Ordering::Relaxed);
        self.died.notify_one();
    }
}

pub struct SimStore {
    world: Arc<World>,
    inner: Arc<MemoryStore>,
    pulse: Arc<Pulse>,
}

/// What a commit meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Works,
    Unavailable,
    UnknownApplied,
    UnknownLost,
    /// The answer is lost, and the transaction is still on its way.
    UnknownLate,
    Fenced,
    Conflict,
    Rejected,
    DiesBefore,
    DiesAfter,
}

const FATES: [(Fate, &str); 9] = [
    (Fate::Unavailable, "commit unavailable"),
    (Fate::UnknownApplied, "commit unknown, applied"),
    (Fate::UnknownLost, "commit unknown, lost"),
    (Fate::UnknownLate, "commit unknown, late"),
    (Fate::Fenced, "commit fenced"),
    (Fate::Conflict, "commit conflict"),
    (Fate::Rejected, "commit rejected"),
    (Fate::DiesBefore, "death before commit"),
    (Fate::DiesAfter, "death after commit"),
];

impl SimStore {
    pub fn new(world: Arc<World>, pulse: Arc<Pulse>) -> SimStore {
        SimStore { inner: world.store(), world, pulse }
    }

    /// The way to the store or back. A dead node's calls never come back.
    async fn travel(&self) {
        let slow = self.world.fault("slow store", self.world.plan.store_faults / 4);
        let ms =
            if slow { self.world.between(500, 3_000) } else { self.world.below(2 * self.world.plan.latency_ms + 1) };
        self.world.sleep(ms).await;
    }

    async fn unless_dead(&self) {
        if !self.pulse.is_alive() {
            std::future::pending().await
        }
    }

    fn fails(&self, what: &'static str) -> Result<(), StoreError> {
        match self.world.fault(what, self.world.plan.store_faults) {
            true => Err(StoreError(what.to_owned())),
            false => Ok(()),
        }
    }

    /// A call that changes nothing of the turns: there, failed or not, and back.
    async fn call<T>(
        &self,
        what: &'static str,
        run: impl AsyncFnOnce(&MemoryStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.travel().await;
        self.unless_dead().await;
        let result = match self.fails(what) {
            Ok(()) => run(&self.inner).await,
            Err(error) => Err(error),
        };
        self.travel().await;
        self.unless_dead().await;
        result
    }

    fn fate(&self) -> Fate {
        if !self.world.is_storm() || !self.world.chance(self.world.plan.store_faults * 2) {
            return Fate::Works;
        }
        let (fate, what) = self.world.one_of(&FATES);
        self.world.count(what);
        fate
    }

    async fn commit_here(&self, batch: Arc<Batch>) -> Result<(), CommitError> {
        self.travel().await;
        if !self.pulse.is_alive() && self.world.chance(500) {
            self.say(&batch, "was lost with its sender");
            std::future::pending().await
        }
        let is_poisoned = self.world.facts().is_poisoned(&batch);
        let fate = if is_poisoned { Fate::Rejected } else { self.fate() };
        let result = match is_poisoned {
            true => Err(CommitError::Rejected("it was poisoned".to_owned())),
            false => self.meet(fate, &batch).await,
        };
        self.say(&batch, &format!("{fate:?}: {}", ending(&result)));
        self.travel().await;
        self.unless_dead().await;
        result
    }

    async fn meet(&self, fate: Fate, batch: &Arc<Batch>) -> Result<(), CommitError> {
        let text = || format!("{fate:?}");
        match fate {
            Fate::Works => self.apply(batch).await,
            Fate::Unavailable => Err(CommitError::Unavailable(text())),
            Fate::UnknownLost => Err(CommitError::Unknown(text())),
            Fate::Conflict => Err(CommitError::Conflict(text())),
            Fate::UnknownApplied => match self.apply(batch).await {
                Ok(()) => Err(CommitError::Unknown(text())),
                refused => refused,
            },
            Fate::UnknownLate => {
                self.apply_late(batch);
                Err(CommitError::Unknown(text()))
            }
            Fate::Fenced => {
                // Somebody took the partition and went away again.
                let _ = self.inner.open(batch.fence.partition).await;
                self.apply(batch).await
            }
            // What cannot be stored cannot be stored the next time either; so it is one request of a client's.
            Fate::Rejected => match self.world.facts().poison(batch) {
                true => Err(CommitError::Rejected(text())),
                false => Err(CommitError::Unavailable(text())),
            },
            Fate::DiesBefore => {
                self.pulse.stop();
                std::future::pending().await
            }
            Fate::DiesAfter => {
                let _ = self.apply(batch).await;
                self.pulse.stop();
                std::future::pending().await
            }
        }
    }

    async fn apply(&self, batch: &Arc<Batch>) -> Result<(), CommitError> {
        self.inner.commit(batch.clone()).await
    }

    fn apply_late(&self, batch: &Arc<Batch>) {
        let (world, inner, batch) = (self.world.clone(), self.inner.clone(), batch.clone());
        let ms = world.between(1, 400);
        let name = self.pulse.name.clone();
        tokio::spawn(async move {
            world.sleep(ms).await;
            let result = inner.commit(batch).await;
            world.say(&name, format_args!("a late commit: {}", ending(&result)));
        });
    }

    fn say(&self, batch: &Batch, what: &str) {
        let verbs: Vec<&str> = batch.log.iter().map(|entry| entry.verb).collect();
        let (epoch, from, to) = (batch.fence.epoch, batch.fence.old_position, batch.fence.new_position);
        self.world.say(
            &self.pulse.name,
            format_args!(
                "commit in epoch {epoch}, {from}..{to} [{}] {} records: {what}",
                verbs.join(" "),
                batch.records.len()
            ),
        );
    }

    /// A page brings less than it may.
    fn cut(&self, loaded: &mut Loaded) {
        for range in &mut loaded.ranges {
            if range.entries.len() > self.world.plan.page_max {
                range.entries.truncate(self.world.plan.page_max);
                range.complete = false;
                self.world.count("page cut short");
            }
        }
    }
}

fn ending(result: &Result<(), CommitError>) -> &'static str {
    match result {
        Ok(()) => "ok",
        Err(CommitError::Fenced) => "fenced",
        Err(CommitError::Conflict(_)) => "conflict",
        Err(CommitError::Rejected(_)) => "rejected",
        Err(CommitError::Unavailable(_)) => "unavailable",
        Err(CommitError::Unknown(_)) => "unknown",
    }
}

impl Store for SimStore {
    fn open(&self, partition: u16) -> Later<'_, Result<Opened, StoreError>> {
        Box::pin(async move {
            let opened = self.call("open fails", async |inner| inner.open(partition).await).await?;
            let (epoch, position) = (opened.fence.epoch, opened.fence.old_position);
            self.world.say(&self.pulse.name, format_args!("opens epoch {epoch} at {position}"));
            Ok(opened)
        })
    }

    fn load(&self, needs: Needs) -> Later<'_, Result<Loaded, StoreError>> {
        Box::pin(async move {
            let mut loaded = self.call("load fails", async |inner| inner.load(needs).await).await?;
            self.cut(&mut loaded);
            Ok(loaded)
        })
    }

    fn commit(&self, batch: Arc<Batch>) -> Later<'_, Result<(), CommitError>> {
        Box::pin(self.commit_here(batch))
    }

    fn check_fence(&self, fence: Fence) -> Later<'_, Result<(), CommitError>> {
        Box::pin(async move {
            let checked = self.call("check fails", async |inner| Ok(inner.check_fence(fence).await)).await;
            let result = checked.map_err(|error| CommitError::Unavailable(error.to_string()))?;
            if result.is_err() {
                self.world.count("deposed answer");
                self.world.say(&self.pulse.name, format_args!("is deposed, and says nothing"));
            }
            result
        })
    }

    fn secret(&self, name: &'static str, fresh: [u8; 32]) -> Later<'_, Result<[u8; 32], StoreError>> {
        self.inner.secret(name, fresh)
    }

    fn claim_outbox(&self, claim: Claim) -> Later<'_, Result<Vec<OutboxRow>, StoreError>> {
        Box::pin(self.call("claim fails", async |inner| inner.claim_outbox(claim).await))
    }

    fn mark_outbox(&self, marks: Vec<Mark>) -> Later<'_, Result<(), StoreError>> {
        Box::pin(self.call("mark fails", async |inner| inner.mark_outbox(marks).await))
    }

    fn outbox_stats(&self) -> Later<'_, Result<Vec<OutboxStats>, StoreError>> {
        self.inner.outbox_stats()
    }

    fn sweep(&self, now: Millis, rows_max: usize) -> Later<'_, Result<usize, StoreError>> {
        Box::pin(self.call("sweep fails", async move |inner| inner.sweep(now, rows_max).await))
    }

    fn idle(&self) -> Later<'_, Result<(), StoreError>> {
        self.inner.idle()
    }

    fn ledger(&self, partition: u16) -> Later<'_, Result<Box<dyn Ledger>, StoreError>> {
        self.inner.ledger(partition)
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
    ) -> Later<'_, Result<Option<Arc<Definition>>, StoreError>> {
        self.inner.definition(tenant, process_id, version)
    }

    fn instances(&self, query: InstanceQuery) -> Later<'_, Result<Page<Arc<Scope>>, StoreError>> {
        self.inner.instances(query)
    }

    fn instance(&self, instance: wf_core::Key) -> Later<'_, Result<Option<InstanceDetail>, StoreError>> {
        self.inner.instance(instance)
    }

    fn jobs(&self, query: JobQuery) -> Later<'_, Result<Page<Arc<Job>>, StoreError>> {
        self.inner.jobs(query)
    }

    fn incidents(&self, query: IncidentQuery) -> Later<'_, Result<Page<Arc<Incident>>, StoreError>> {
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

impl Trace for SimStore {
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
