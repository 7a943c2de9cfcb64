//! What is counted: the uses of keys, and gauges. Next: `conformance.rs`, which says what every store must answer.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::str::FromStr;

use wf_core::Millis;
use wf_core::rows::{Incident, Job, Text};
use wf_idempotency::record::State as RecordState;

use crate::batch::{RecordEntry, Suppressed, SuppressedKind};
use crate::memory::State;
use crate::memory::lists::{Malformed, cursor, cut};
use crate::query::*;

type KeyId = (Text, [u8; 16]);

impl State {
    pub(super) fn idempotency(&self, query: &IdempotencyQuery) -> KeyUses {
        let Ok(after) = cursor::<KeyCursor>(&query.slice) else { return KeyUses::default() };
        let (uses, in_progress) = self.key_uses(query);
        let lower = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.0));
        let behind = uses.range((lower, Bound::Unbounded)).map(|(_, key)| key.clone());
        let page =
            cut(behind, query.slice.limit, |key| format!("{:032x}-{}", u128::from_be_bytes(key.key_hash), key.tenant));
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
            let key = uses.entry((row.tenant.clone(), row.key_hash)).or_insert_with(|| first_seen_in(row));
            add_repeats(key, row);
            in_progress += if row.kind == SuppressedKind::InProgress { row.count } else { 0 };
        }
        for entry in self.records.values().filter(|entry| is_asked(&entry.id.tenant)) {
            let id = (entry.id.tenant.clone(), entry.key_hash);
            if entry.record.created_ms >= query.since || uses.contains_key(&id) {
                add_record(uses.entry(id).or_insert_with(|| first_seen_as(entry)), entry, query.now);
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

fn first_seen_in(row: &Suppressed) -> KeyUse {
    KeyUse {
        tenant: row.tenant.clone(),
        key_hash: row.key_hash,
        route: row.route.clone(),
        state: "NONE",
        first_seen: row.first,
        last_seen: row.last,
        hits: 0,
        conflicts: 0,
    }
}

/// Rows come by their last time: the latest names the route.
fn add_repeats(key: &mut KeyUse, row: &Suppressed) {
    key.route = row.route.clone();
    key.first_seen = key.first_seen.min(row.first);
    key.last_seen = key.last_seen.max(row.last);
    match row.kind {
        SuppressedKind::Replay | SuppressedKind::Message | SuppressedKind::Job => key.hits += row.count,
        SuppressedKind::Conflict => key.conflicts += row.count,
        SuppressedKind::InProgress => (),
    }
}

fn first_seen_as(entry: &RecordEntry) -> KeyUse {
    KeyUse {
        tenant: entry.id.tenant.clone(),
        key_hash: entry.key_hash,
        route: entry.route.into(),
        state: "NONE",
        first_seen: entry.record.created_ms,
        last_seen: entry.record.created_ms,
        hits: 0,
        conflicts: 0,
    }
}

fn add_record(key: &mut KeyUse, entry: &RecordEntry, now: Millis) {
    key.route = entry.route.into();
    key.first_seen = key.first_seen.min(entry.record.created_ms);
    key.last_seen = key.last_seen.max(entry.record.created_ms);
    key.state = match entry.record.state {
        _ if entry.record.expires_ms <= now => "EXPIRED",
        RecordState::Completed(_) => "COMPLETED",
        _ => "IN_PROGRESS",
    };
}

struct KeyCursor(KeyId);

impl FromStr for KeyCursor {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<KeyCursor, Malformed> {
        let (hash, tenant) = text.split_once('-').ok_or(Malformed)?;
        let hash = u128::from_str_radix(hash, 16).map_err(|_| Malformed)?;
        Ok(KeyCursor((tenant.into(), hash.to_be_bytes())))
    }
}
