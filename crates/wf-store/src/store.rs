//! The store's contract. One conformance suite (`conformance.rs`) is run by every store, also by a third party's.
//! A store decides nothing: it loads, commits in one transaction, and answers reads of committed data.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use wf_core::{Key, Millis, Partitions};

use crate::batch::{Batch, Claimed, Fence, Head, RecordEntry, RecordId, Sent};
use crate::cluster::{Cluster, Heard};
use crate::ledger::Ledger;
use crate::load::{Loaded, Needs};
use crate::outbox::{Claim, Mark, OutboxRow, OutboxStats};
use crate::query::*;
use crate::trace::Trace;

pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A read or maintenance call failed: the machine's fault, nothing was done.
#[derive(Clone, Debug, thiserror::Error)]
#[error("store: {0}")]
pub struct StoreError(pub String);

/// Why a turn was not committed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// The partition's row has another epoch or position: somebody else owns it.
    #[error("fenced: the partition is owned elsewhere")]
    Fenced,
    /// Fewer rows were inserted than sent (a command id that is known), or a serialization failure: reload and execute again.
    #[error("conflict: {0}")]
    Conflict(String),
    /// This batch cannot be stored (a row too big, a constraint): nothing was done; its commands are tried one by one.
    #[error("rejected: {0}")]
    Rejected(String),
    /// Disk full, connection refused: nothing was done.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// Whether it was committed is not known: counts as lost ownership.
    #[error("outcome unknown: {0}")]
    Unknown(String),
}

/// A partition as it was taken: the epoch is already raised and durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// `old_position` = `new_position` = the last committed position.
    pub fence: Fence,
    pub head: Head,
}

pub trait Store: Trace + Send + Sync + 'static {
    /// Takes the partition: raises its epoch durably and returns where it stands. A fresh one stands at position 0.
    /// Where nodes share the store, one that another living node owns is refused.
    fn open(&self, partition: u16) -> Later<'_, Result<Opened, StoreError>>;

    fn load(&self, needs: Needs) -> Later<'_, Result<Loaded, StoreError>>;

    /// One transaction, the fence first. `Ok` only when it is durable. A record takes the place of one that is expired
    /// at its own `created_ms`, or of an unfinished one of the same request (fingerprint and `created_ms`).
    fn commit(&self, batch: Arc<Batch>) -> Later<'_, Result<(), CommitError>>;

    /// Whether a turn with this fence could still be committed, for answers that no commit stands behind; nothing is
    /// changed. May look at the epoch alone. `Fenced`: somebody else has taken the partition.
    fn check_fence(&self, fence: Fence) -> Later<'_, Result<(), CommitError>>;

    /// A value made once with the store and kept in it (the MAC key): the stored one, else `fresh` is stored.
    fn secret(&self, name: &'static str, fresh: [u8; 32]) -> Later<'_, Result<[u8; 32], StoreError>>;

    /// Fixed when the store is made.
    fn partitions(&self) -> Partitions {
        Partitions::ONE
    }

    /// What other partitions have sent to this one, at most `limit` rows, ordered by source, position and number.
    /// A cut page holds the first rows of each source that it has rows of.
    fn inbox(&self, partition: u16, limit: usize) -> Later<'_, Result<Vec<Sent>, StoreError>> {
        let _ = (partition, limit);
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// What other nodes have committed about inboxes, as soon as that is known. Only a hint that may fail to come; it never
    /// comes where nobody shares the store. Safe to be dropped while it waits.
    fn heard(&self) -> Later<'_, Heard> {
        Box::pin(std::future::pending())
    }

    /// Those of the positions of which a row still waits in another partition's inbox.
    fn undelivered(&self, source: u16, positions: Vec<u64>) -> Later<'_, Result<Vec<u64>, StoreError>> {
        let _ = (source, positions);
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Who owns which partition, where several nodes share the store.
    fn cluster(&self) -> Option<&dyn Cluster> {
        None
    }

    // A key of a request that several partitions answer together: no turn holds all of its effect, so its record is
    // claimed first, and finished when every part is durable. Only where there are several partitions.

    /// Files an unfinished record in a transaction of its own, where none stands in its way: as `commit` would, it takes
    /// the place of an expired one, or of itself.
    fn claim_record(&self, entry: RecordEntry) -> Later<'_, Result<Claimed, StoreError>> {
        let _ = entry;
        Box::pin(std::future::ready(Err(StoreError("this store has one partition: nothing is claimed".to_owned()))))
    }

    /// Completes what was claimed, if it still stands there unfinished with this fingerprint and `created_ms`: `true`.
    fn finish_record(&self, entry: RecordEntry) -> Later<'_, Result<bool, StoreError>> {
        let _ = entry;
        Box::pin(std::future::ready(Err(StoreError("this store has one partition: nothing is claimed".to_owned()))))
    }

    // Beside the turns.
    fn claim_outbox(&self, claim: Claim) -> Later<'_, Result<Vec<OutboxRow>, StoreError>>;
    fn mark_outbox(&self, marks: Vec<Mark>) -> Later<'_, Result<(), StoreError>>;
    fn outbox_stats(&self) -> Later<'_, Result<Vec<OutboxStats>, StoreError>>;
    /// Drops records that expired, suppressed-repeat counts older than 30 days and shipped outbox rows of that age,
    /// at most `rows_max` rows; the number dropped.
    fn sweep(&self, now: Millis, rows_max: usize) -> Later<'_, Result<usize, StoreError>>;
    /// Moves what was committed out of the write-ahead log when nothing else is to be done.
    fn idle(&self) -> Later<'_, Result<(), StoreError>>;

    /// Everything that stands, in order: for replays, checks and exports.
    fn ledger(&self, partition: u16) -> Later<'_, Result<Box<dyn Ledger>, StoreError>>;

    // Reads of committed data, in short transactions.
    /// A committed record, for the one answer that may bypass the actor.
    fn record(&self, id: RecordId) -> Later<'_, Result<Option<Arc<wf_idempotency::record::Record>>, StoreError>>;
    fn definitions(&self, query: DefinitionQuery) -> Later<'_, Result<Page<DefinitionInfo>, StoreError>>;
    fn definition(
        &self,
        tenant: String,
        process_id: String,
        version: Option<u32>,
    ) -> Later<'_, Result<Option<Arc<wf_core::rows::Definition>>, StoreError>>;
    fn instances(&self, query: InstanceQuery) -> Later<'_, Result<Page<Arc<wf_core::rows::Scope>>, StoreError>>;
    /// Of any tenant: the caller compares.
    fn instance(&self, instance: Key) -> Later<'_, Result<Option<InstanceDetail>, StoreError>>;
    fn jobs(&self, query: JobQuery) -> Later<'_, Result<Page<Arc<wf_core::rows::Job>>, StoreError>>;
    fn incidents(&self, query: IncidentQuery) -> Later<'_, Result<Page<Arc<wf_core::rows::Incident>>, StoreError>>;
    fn outbox(&self, query: OutboxQuery) -> Later<'_, Result<Page<OutboxRow>, StoreError>>;
    fn audit(&self, query: AuditQuery) -> Later<'_, Result<Page<AuditRow>, StoreError>>;
    fn idempotency(&self, query: IdempotencyQuery) -> Later<'_, Result<KeyUses, StoreError>>;
    /// Counts for gauges: jobs by type and state, records. May be expensive: called in the background.
    fn gauges(&self) -> Later<'_, Result<Gauges, StoreError>>;
}
