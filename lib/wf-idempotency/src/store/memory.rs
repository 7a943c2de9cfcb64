//! Records in this process alone, for tests and for services that may forget with it. Next: `sqlite.rs`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::entry::{Entry, Next};
use super::{Claim, Claimed, Clock, Ended, Owner, Slot, Store, StoreError, SystemClock};
use crate::decide::OnUnknown;

/// Nothing of it outlives the process: a restart makes every key new.
pub struct MemoryStore<C = SystemClock> {
    entries: Mutex<BTreeMap<Slot, Entry>>,
    clock: C,
}

impl MemoryStore {
    pub fn new() -> MemoryStore {
        MemoryStore::with_clock(SystemClock)
    }
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

impl<C: Clock> MemoryStore<C> {
    pub fn with_clock(clock: C) -> MemoryStore<C> {
        MemoryStore { entries: Mutex::default(), clock }
    }

    /// Each wish is one look and one write: a panic between two of them leaves nothing half done.
    fn entries(&self) -> MutexGuard<'_, BTreeMap<Slot, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Clock> Store for MemoryStore<C> {
    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        let mut entries = self.entries();
        let next = Next::of(&claim, entries.get(&claim.slot), self.clock.now_ms())?;
        if let Next::Write(entry) = &next {
            entries.insert(claim.slot, entry.clone());
        }
        Ok(next.told(claim.policy.on_unknown == OnUnknown::Resume))
    }

    async fn extend(&self, slot: Slot, owner: Owner, lease_ms: i64) -> Result<bool, StoreError> {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(&slot).filter(|entry| entry.is_held_by(&owner)) else { return Ok(false) };
        *entry = entry.extended(owner, lease_ms, self.clock.now_ms());
        Ok(true)
    }

    async fn end(&self, slot: Slot, owner: Owner, ended: Ended) -> Result<bool, StoreError> {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(&slot).filter(|entry| entry.is_held_by(&owner)) else { return Ok(false) };
        match entry.ended(ended, self.clock.now_ms()) {
            Some(ended) => *entry = ended,
            None => drop(entries.remove(&slot)),
        }
        Ok(true)
    }

    async fn sweep(&self, kept_ms: i64, rows_max: usize) -> Result<usize, StoreError> {
        let (mut entries, now_ms) = (self.entries(), self.clock.now_ms());
        let over = entries.iter().filter(|(_, entry)| entry.is_over(kept_ms, now_ms));
        let over: Vec<Slot> = over.take(rows_max).map(|(slot, _)| slot.clone()).collect();
        over.iter().for_each(|slot| drop(entries.remove(slot)));
        Ok(over.len())
    }
}
