//! What every store must look like after every run, however it went: no gap, no extra, sums that agree.

use std::collections::{BTreeMap, BTreeSet};

use wf_core::{Row, ids};
use wf_engine::proof::{Progress, Range, replay, verify_audit, verify_tables};
use wf_store::memory::MemoryStore;
use wf_store::*;

use super::TENANTS;

/// What is left for a test to compare.
#[derive(Debug, PartialEq)]
pub struct Left {
    pub rows: Vec<Row>,
    pub head: Head,
    pub position: u64,
    /// Verbs by position.
    pub log: Vec<(u64, &'static str)>,
    /// Event types with their resource, in order.
    pub events: Vec<(u64, String, String)>,
}

impl Left {
    pub fn count(&self, event: &str) -> usize {
        self.events.iter().filter(|(_, name, _)| name == event).count()
    }
}

#[derive(serde::Deserialize)]
struct Event {
    r#type: String,
    resource: String,
}

pub async fn check(store: &MemoryStore) -> Left {
    check_of(store, 1).await
}

/// One partition of several.
pub async fn check_of(store: &MemoryStore, partition: u16) -> Left {
    let opened = store.open(partition).await.unwrap();
    let audit = audit_of(store, partition).await;
    let log = store.log_of(partition);
    positions_have_no_gap(&log);
    assert_eq!(log.last().map_or(0, |entry| entry.position), opened.fence.old_position, "the head's position");
    proofs_hold(store, partition, &opened.head).await;
    let written: Vec<u64> = audit.keys().copied().collect();
    let executed: Vec<u64> = log.iter().map(|entry| entry.position).collect();
    assert_eq!(written, executed, "one audit row per command (L6.1)");
    outbox_matches(store, partition, &audit).await;
    let events = events_of(&audit);
    leases_never_overlap(&events);
    Left {
        rows: store.rows_of(partition),
        head: opened.head,
        position: opened.fence.old_position,
        log: log.iter().map(|entry| (entry.position, entry.verb)).collect(),
        events,
    }
}

async fn audit_of(store: &MemoryStore, partition: u16) -> BTreeMap<u64, AuditRow> {
    let mut all = BTreeMap::new();
    for tenant in TENANTS {
        let slice = Slice { after: None, limit: usize::MAX - 1 };
        let page = store
            .audit(AuditQuery { tenant: tenant.into(), partition, is_alone: true, from: None, until: None, slice })
            .await
            .unwrap();
        for row in page.items {
            assert!(all.insert(row.position, row).is_none(), "one audit row per position");
        }
    }
    all
}

/// L6.1: a gap is legal only before an `epoch.opened` that names what precedes it.
fn positions_have_no_gap(log: &[LogEntry]) {
    let mut last = 0;
    let mut ids = BTreeSet::new();
    let mut time = 0;
    for entry in log {
        assert!(ids.insert(entry.id), "a command id stands twice (L2.1)");
        assert!(entry.time >= time, "time goes back");
        if entry.verb == "open-epoch" {
            assert!(entry.payload.contains(&format!("{last}")), "{} names {last}", entry.payload);
        } else {
            assert_eq!(entry.position, last + 1, "a gap before {}", entry.verb);
        }
        (last, time) = (entry.position, entry.time);
    }
}

pub fn go_on(_: Progress) -> Visit {
    Visit::Continue(())
}

/// L2.3 and L6.2: the tables, the log executed again and the audit's chain all say the same.
async fn proofs_hold(store: &MemoryStore, partition: u16, head: &Head) {
    let mut ledger = store.ledger(partition).await.unwrap();
    let tables = verify_tables(&mut *ledger, &mut go_on).unwrap();
    assert!(tables.agrees(), "the digest is not the sum over the tables: {tables:?}");
    let audit = verify_audit(&mut *ledger, &mut go_on).unwrap();
    assert_eq!(audit.fault, None, "the audit");
    let scratch = MemoryStore::with_partitions(store.partitions());
    // Mostly in memory, or nearly all of it in the scratch store.
    let rows_max = if store.rows_of(partition).len().is_multiple_of(2) { 3 } else { usize::MAX };
    let range = Range { rows_max, ..Range::default() };
    let replayed = replay(ledger, &scratch, range, &mut go_on).await.unwrap();
    assert!(replayed.is_identical(), "the replay: {replayed:#?}");
    let keys = store.rows_of(partition).into_iter().filter_map(|row| match row {
        Row::Job(job) => Some(job.key),
        Row::Scope(scope) => Some(scope.key),
        _ => None,
    });
    keys.for_each(|key| assert!(key < ids::key(partition, head.next_counter), "a key that was never given"));
}

fn events_of(audit: &BTreeMap<u64, AuditRow>) -> Vec<(u64, String, String)> {
    let of = |row: &AuditRow| -> Vec<Event> { serde_json::from_str(&row.events).unwrap() };
    let all = audit.values().flat_map(|row| of(row).into_iter().map(|event| (row.position, event)));
    all.map(|(position, event)| (position, event.r#type, event.resource)).collect()
}

/// L5.1: a message for every published event, and none besides.
async fn outbox_matches(store: &MemoryStore, partition: u16, audit: &BTreeMap<u64, AuditRow>) {
    const PUBLISHED: [&str; 5] =
        ["instance.started", "instance.completed", "instance.canceled", "job.completed", "incident.created"];
    let mut wanted = BTreeSet::new();
    for row in audit.values() {
        let events: Vec<Event> = serde_json::from_str(&row.events).unwrap();
        for (n, event) in (1..).zip(events) {
            if PUBLISHED.contains(&&*event.r#type) {
                wanted.insert((row.position, n, event_id(partition, row.position, n)));
            }
        }
    }
    let mut found = BTreeSet::new();
    for tenant in TENANTS {
        let slice = Slice { after: None, limit: usize::MAX - 1 };
        let query = OutboxQuery { tenant: tenant.into(), state: None, id: None, slice };
        let all = store.outbox(query).await.unwrap().items;
        for row in all.into_iter().filter(|row| row.entry.id.partition == partition) {
            found.insert((row.entry.id.position, row.entry.id.n, row.entry.event_id.to_string()));
        }
    }
    assert_eq!(found, wanted, "outbox rows iff committed (L5.1)");
}

/// L3.1: between two activations of a job its lease has ended.
fn leases_never_overlap(events: &[(u64, String, String)]) {
    let mut held = BTreeSet::new();
    for (position, name, resource) in events {
        match name.as_str() {
            "job.activated" => assert!(held.insert(resource), "two live leases of {resource} at {position}"),
            "job.completed" | "job.failed" | "job.error-thrown" | "job.canceled" | "job.lease-expired" => {
                held.remove(resource);
            }
            _ => (),
        }
    }
}
