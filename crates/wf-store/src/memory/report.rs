//! What is counted: the uses of keys, and gauges. Next: `conformance.rs`, which says what every store must answer.

use std::collections::BTreeMap;
use std::ops::Bound;

use wf_core::Millis;
use wf_core::rows::{Incident, Job, Text};
use wf_idempotency::record::State as RecordState;

use crate::batch::{RecordEntry, Suppressed, SuppressedKind};
use crate::memory::State;
use crate::memory::lists::{cursor, cut};
use crate::query::*;

impl State {
    pub(super) fn idempotency(&self, query: &IdempotencyQuery) -> KeyUses {
        let Ok(after) = cursor::<KeyCursor>(&query.slice) else { return KeyUses::default() };
        let (uses, in_progress) = self.key_uses(query);
        let lower = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.0));
        let behind = uses.range((lower, Bound::Unbounded)).map(|(_, key)| key.clone());
        let page = cut(behind, query.slice.limit, KeyUse::cursor);
        KeyUses {
            items: page.items,
            next: page.next,
            keys: uses.len() as u64,
            hits: uses.values().map(|key| key.hits).sum(),
            conflicts: uses.values().map(|key| key.conflicts).sum(),
            in_progress,
        }
    }

    /// All keys of the asked time, and how often one was in progress.
    fn key_uses(&self, query: &IdempotencyQuery) -> (BTreeMap<KeyId, KeyUse>, u64) {
        let mut uses: BTreeMap<KeyId, KeyUse> = BTreeMap::new();
        let mut in_progress = 0;
        let is_asked = |tenant: &Text| query.tenant.as_ref().is_none_or(|asked| asked == tenant);
        let mut counted: Vec<&Suppressed> =
            self.suppressed.values().filter(|row| is_asked(&row.tenant) && row.last >= query.since).collect();
        counted.sort_by_key(|row| row.last);
        for row in counted {
            let id = (row.tenant.clone(), row.key_hash);
            uses.entry(id).or_insert_with_key(|id| KeyUse::first_seen(id, row.first)).add(row);
            in_progress += if row.kind == SuppressedKind::InProgress { row.count } else { 0 };
        }
        for entry in self.records.values().filter(|entry| is_asked(&entry.id.tenant)) {
            let id = (entry.id.tenant.clone(), entry.key_hash);
            if entry.record.created_ms >= query.since || uses.contains_key(&id) {
                let first = |id: &KeyId| KeyUse::first_seen(id, entry.record.created_ms);
                add_record(uses.entry(id).or_insert_with_key(first), entry, query.now);
            }
        }
        (uses, in_progress)
    }

    pub(super) fn gauges(&self) -> Gauges {
        let mut jobs: BTreeMap<(Text, u8), Gauge> = BTreeMap::new();
        for job in self.all(|_: &Job| true) {
            let fresh = || (job.job_type.clone(), job.state, 0);
            jobs.entry((job.job_type.clone(), job.state as u8)).or_insert_with(fresh).2 += 1;
        }
        Gauges {
            jobs: jobs.into_values().collect(),
            incidents: self.all(|_: &Incident| true).len() as u64,
            records: self.records.len() as u64,
        }
    }
}

type Gauge = (Text, wf_core::rows::JobState, u64);

fn add_record(key: &mut KeyUse, entry: &RecordEntry, now: Millis) {
    key.see(entry.route.into(), entry.record.created_ms);
    key.state = match entry.record.state {
        _ if entry.record.expires_ms <= now => "EXPIRED",
        RecordState::Completed(_) => "COMPLETED",
        _ => "IN_PROGRESS",
    };
}
