//! What one turn will write and answer, collected while its commands run. Nothing here is sent before the commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use wf_core::rows::Text;
use wf_core::{Event, Millis, RangeId, ids};
use wf_store::codec::events_to_json_each;
use wf_store::{
    AuditEntry, Batch, Change, Fence, Head, LogEntry, OutboxEntry, OutboxId, RecordEntry, Suppressed, event_id,
};

use crate::envelope::{Envelope, Reply};
use crate::options::SinkRule;
use crate::publish;

#[derive(Default)]
pub struct Turn {
    pub log: Vec<LogEntry>,
    pub log_bytes: usize,
    pub audit: Vec<AuditEntry>,
    pub outbox: Vec<OutboxEntry>,
    pub outbox_retries: Vec<OutboxId>,
    pub records: Vec<RecordEntry>,
    pub suppressed: Vec<Suppressed>,
    /// In the order of arrival; replies leave in this order.
    pub items: Vec<(Envelope, Reply)>,
    /// Queues that got a ready job: long polls wait for them.
    pub filled: BTreeSet<RangeId>,
    pub stats: Stats,
}

/// Counted here, told to the metrics after the commit.
#[derive(Default)]
pub struct Stats {
    pub verbs: std::collections::BTreeMap<&'static str, u64>,
    pub jobs_skipped: std::collections::BTreeMap<Text, u64>,
    pub replays: std::collections::BTreeMap<&'static str, u64>,
    pub conflicts: u64,
    pub commands_deduplicated: u64,
    pub leases_expired: u64,
    pub incidents: u64,
}

/// Where and when a command stands, for its log row, audit row and messages.
pub struct Stamp<'s> {
    pub partition: u16,
    pub position: u64,
    pub time: Millis,
    pub tenant: &'s Text,
    pub actor: &'s Text,
}

impl Turn {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.suppressed.is_empty()
    }

    /// What its commands take in the log.
    pub fn bytes(&self) -> usize {
        self.log_bytes
    }

    pub fn writes_nothing(&self) -> bool {
        self.log.is_empty() && self.records.is_empty() && self.outbox_retries.is_empty() && self.suppressed.is_empty()
    }

    /// Audit rows and outbox rows of one command's events; returns the chain's new head.
    pub fn tell(
        &mut self,
        events: &[Event],
        stamp: &Stamp<'_>,
        chain: [u8; 32],
        sinks: &[SinkRule],
        source: &str,
    ) -> [u8; 32] {
        if events.is_empty() {
            return chain;
        }
        let mut head = chain;
        let mut n = 0;
        let json = events_to_json_each(events, |event| {
            n += 1;
            head = link(&head, &event_id(stamp.partition, stamp.position, n), event);
        });
        for (index, event) in events.iter().enumerate().filter(|(_, event)| event.what.is_published()) {
            self.publish(event, index as u32 + 1, stamp, sinks, source);
        }
        self.audit.push(AuditEntry {
            position: stamp.position,
            time: stamp.time,
            tenant: stamp.tenant.clone(),
            actor: stamp.actor.clone(),
            events: json,
            count: events.len() as u32,
            chain: head,
        });
        head
    }

    fn publish(&mut self, event: &Event, n: u32, stamp: &Stamp<'_>, sinks: &[SinkRule], source: &str) {
        let wants = |sink: &&SinkRule| sink.events.iter().any(|name| name == "*" || name == event.what.name());
        let mut envelope: Option<Bytes> = None;
        for sink in sinks.iter().filter(wants) {
            let envelope = envelope.get_or_insert_with(|| publish::cloud_event(event, n, stamp, source).into());
            self.outbox.push(OutboxEntry {
                id: OutboxId { position: stamp.position, n, sink: sink.name.clone() },
                tenant: stamp.tenant.clone(),
                order_key: event.root,
                topic: publish::topic(event),
                event_id: event_id(stamp.partition, stamp.position, n).into(),
                envelope: envelope.clone(),
                created_at: stamp.time,
            });
        }
    }

    /// Takes what is to be written; envelopes and replies stay.
    pub fn batch(&mut self, fence: Fence, head: Head, rows: Vec<Change>) -> Arc<Batch> {
        Arc::new(Batch {
            fence,
            head,
            rows,
            log: std::mem::take(&mut self.log),
            audit: std::mem::take(&mut self.audit),
            outbox: std::mem::take(&mut self.outbox),
            outbox_retries: std::mem::take(&mut self.outbox_retries),
            records: std::mem::take(&mut self.records),
            suppressed: std::mem::take(&mut self.suppressed),
        })
    }
}

/// The chain covers hashes of events, so that a payload can be erased and the chain still be verified.
fn link(chain: &[u8; 32], event_id: &str, event: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(chain).update(event_id.as_bytes()).update(blake3::hash(event.as_bytes()).as_bytes());
    *hasher.finalize().as_bytes()
}

/// The id of a command from outside: its key and the time of its record, or what the door made.
pub fn request_id(time: Millis, tenant: &str, key: Option<&str>, nonce: &[u8; 16]) -> [u8; 16] {
    match key {
        Some(key) => ids::command_id(time, &[b"request", tenant.as_bytes(), key.as_bytes(), &time.to_be_bytes()]),
        None => ids::command_id(time, &[b"request", nonce]),
    }
}
