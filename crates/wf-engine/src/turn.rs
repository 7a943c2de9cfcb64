//! What one turn will write and answer, collected while its commands run. Nothing here is sent before the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wf_core::RangeId;
use wf_core::rows::Text;
use wf_idempotency::record::Record;
use wf_store::{
    AuditEntry, Batch, Change, Fence, Head, InboxId, LogEntry, OutboxEntry, OutboxId, RecordEntry, RecordId, Sent,
    Suppressed,
};

use crate::clock;
use crate::envelope::{Asked, Envelope, Reply};
use crate::inbox::Held;
use crate::suppressed::merged;

#[derive(Default)]
pub struct Turn {
    pub log: Vec<LogEntry>,
    pub log_bytes: usize,
    pub audit: Vec<AuditEntry>,
    pub outbox: Vec<OutboxEntry>,
    pub outbox_retries: Vec<OutboxId>,
    pub records: Vec<RecordEntry>,
    /// Records that answered its envelopes; committed when it is released.
    pub replayed: Vec<(RecordId, Arc<Record>)>,
    /// Repeats and conflicts among its envelopes.
    pub suppressed: Vec<Suppressed>,
    /// Commands for other partitions.
    pub sent: Vec<Sent>,
    /// Items, by their place, whose answers wait until what they sent was taken: with their positions.
    pub held: BTreeMap<usize, u64>,
    /// Rows of the inbox that its commands have dealt with.
    pub taken: Vec<InboxId>,
    /// Repeats that were answered beside the turns. They are not envelopes: a failed turn gives them back.
    pub tallied: Vec<Suppressed>,
    /// In the order of arrival; replies leave in this order.
    pub items: Vec<(Envelope, Reply)>,
    /// Queues that got a ready job: long polls may wait for them.
    pub filled: BTreeSet<RangeId>,
    /// The same, kept for those outside who are told after the commit.
    pub ready: BTreeSet<RangeId>,
    pub stats: Stats,
    /// Where the test clock stood before this turn set it.
    pub clock_before: Option<clock::Test>,
    /// It holds the first command of an epoch, alone.
    pub opens_epoch: bool,
    /// It holds one envelope, to find out which one cannot be stored.
    pub is_alone: bool,
    /// It is committed although it is empty: to see whether the store works again.
    pub is_probe: bool,
    /// When it was closed nothing was due any more.
    pub is_quiet: bool,
}

/// Counted here, told to the metrics after the commit.
#[derive(Default)]
pub struct Stats {
    pub verbs: BTreeMap<&'static str, u64>,
    pub jobs_skipped: BTreeMap<Text, u64>,
    pub replays: BTreeMap<&'static str, u64>,
    pub conflicts: u64,
    pub commands_deduplicated: u64,
    pub leases_expired: u64,
    pub incidents: u64,
}

impl Turn {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.writes_nothing()
    }

    /// What its commands take in the log.
    pub fn bytes(&self) -> usize {
        self.log_bytes
    }

    pub fn writes_nothing(&self) -> bool {
        self.log.is_empty()
            && self.records.is_empty()
            && self.outbox_retries.is_empty()
            && self.suppressed.is_empty()
            && self.tallied.is_empty()
            && self.taken.is_empty()
            && !self.is_probe
    }

    /// Takes what is to be written; envelopes and replies stay.
    pub fn batch(&mut self, fence: Fence, head: Head, rows: Vec<Change>) -> Arc<Batch> {
        let mut suppressed = std::mem::take(&mut self.suppressed);
        suppressed.extend(self.tallied.iter().cloned());
        Arc::new(Batch {
            fence,
            head,
            rows,
            log: std::mem::take(&mut self.log),
            audit: std::mem::take(&mut self.audit),
            outbox: std::mem::take(&mut self.outbox),
            outbox_retries: std::mem::take(&mut self.outbox_retries),
            records: std::mem::take(&mut self.records),
            suppressed: merged(suppressed),
            sent: std::mem::take(&mut self.sent),
            taken: std::mem::take(&mut self.taken),
        })
    }

    /// Only planted: what changed nothing is answered at once, although it may say what is not yet durable.
    pub fn release_harmless(&mut self) {
        let (harmless, others) =
            std::mem::take(&mut self.items).into_iter().partition(|(_, reply)| reply.changed_nothing());
        self.items = others;
        Turn { items: harmless, ..Turn::default() }.release();
    }

    /// The answers that wait for other partitions; the rest stays, in its order.
    pub fn take_held(&mut self) -> Vec<Held> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let held = std::mem::take(&mut self.held);
        let (mut waiting, mut items) = (Vec::new(), Vec::with_capacity(self.items.len()));
        for (place, item) in std::mem::take(&mut self.items).into_iter().enumerate() {
            match (held.get(&place), item) {
                (Some(position), (Envelope::Asked(asked), reply)) => {
                    waiting.push(Held { position: *position, asked, reply });
                }
                (_, item) => items.push(item),
            }
        }
        self.items = items;
        waiting
    }

    /// Replies leave in the order of arrival. Changes of the clock come back: they wait for what fell due.
    pub fn release(&mut self) -> Vec<(Box<Asked>, Reply)> {
        let mut clock = Vec::new();
        for (envelope, reply) in self.items.drain(..) {
            match envelope {
                Envelope::Asked(asked) if reply.sets_clock() => clock.push((asked, reply)),
                Envelope::Asked(asked) => asked.answer(reply),
                Envelope::Own(_) => (),
            }
        }
        clock
    }
}
