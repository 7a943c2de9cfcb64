//! Repeats and conflicts: counted per key and minute, logged with the key's hash, never the key. They take no position.

use std::collections::BTreeMap;
use std::sync::Mutex;

use wf_core::Millis;
use wf_core::rows::Text;
use wf_idempotency::key::hex;
use wf_store::{Suppressed, SuppressedKind};

use crate::clock::lock;
use crate::envelope::Asked;
use crate::request::{Passport, Request};

const MINUTE_MS: i64 = 60_000;
/// Keys and minutes that are counted at a time; what comes beyond, while nothing can be stored, is not counted.
const TALLY_MAX: usize = 100_000;

/// One suppressed request.
pub struct Note {
    tenant: Text,
    key_hash: [u8; 16],
    kind: SuppressedKind,
    route: &'static str,
    now: Millis,
}

impl Note {
    pub fn new(asked: &Asked, passport: &Passport, kind: SuppressedKind, now: Millis) -> Note {
        Note::of(&asked.request, passport, kind, now)
    }

    pub fn of(request: &Request, passport: &Passport, kind: SuppressedKind, now: Millis) -> Note {
        Note { tenant: request.tenant.clone(), key_hash: passport.key_hash, kind, route: passport.route, now }
    }

    /// L6.3: tenant, route, key hash and age.
    pub fn log_replay(&self, first: Millis) {
        let age_ms = self.now.saturating_sub(first);
        if tracing::enabled!(tracing::Level::INFO) {
            tracing::info!(tenant = %self.tenant, route = self.route, key_hash = %hex(&self.key_hash), age_ms, "replayed");
        }
    }

    pub fn log_conflict(&self) {
        tracing::warn!(tenant = %self.tenant, route = self.route, key_hash = %hex(&self.key_hash),
            "refused: the key was used with another request");
    }

    pub fn into_entry(self) -> Suppressed {
        Suppressed {
            tenant: self.tenant,
            key_hash: self.key_hash,
            kind: self.kind,
            route: self.route.into(),
            minute: self.now.div_euclid(MINUTE_MS),
            count: 1,
            first: self.now,
            last: self.now,
        }
    }
}

/// Counts of requests that were answered beside the turns, until a turn takes them along.
#[derive(Default)]
pub struct Tally(Mutex<Counts>);

type Counts = BTreeMap<(Text, [u8; 16], SuppressedKind, i64), Suppressed>;

impl Tally {
    pub fn add(&self, entry: Suppressed) {
        let mut all = lock(&self.0);
        if all.len() < TALLY_MAX {
            count(&mut all, entry);
        }
    }

    pub fn take(&self) -> Vec<Suppressed> {
        std::mem::take(&mut *lock(&self.0)).into_values().collect()
    }

    pub fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }
}

/// One turn's entries for the same key and minute become one row.
pub fn merged(entries: Vec<Suppressed>) -> Vec<Suppressed> {
    let mut all = Counts::new();
    entries.into_iter().for_each(|entry| count(&mut all, entry));
    all.into_values().collect()
}

fn count(all: &mut Counts, entry: Suppressed) {
    let key = (entry.tenant.clone(), entry.key_hash, entry.kind, entry.minute);
    all.entry(key)
        .and_modify(|known| {
            known.count += entry.count;
            known.first = known.first.min(entry.first);
            known.last = known.last.max(entry.last);
        })
        .or_insert(entry);
}
