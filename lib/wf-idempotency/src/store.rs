//! Where records live while requests run that share no transaction with them: one atomic claim, and after it nothing but
//! compare-and-swap on the claim's owner. Every store gives the same answers; `conformance` is what that means.
//! It knows no runtime and no framework. Next: `store/entry.rs`, where a claim is decided; then the stores.

mod entry;
#[cfg(feature = "sqlite")]
mod headers;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "conformance")]
pub mod conformance;

use std::future::Future;
use std::sync::Arc;

use crate::{Answer, Fingerprint, Key, Policy};

pub use entry::{Entry, Next};
pub use memory::MemoryStore;
#[cfg(feature = "sqlite")]
pub use sqlite::{Durability, SqliteStore};

/// Made anew for each claim, by chance: whoever has another one has lost the claim.
pub type Owner = [u8; 16];

/// Under what a request is remembered. The tenant comes from a verified identity, never from the request's own word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    pub tenant: Arc<str>,
    pub key: Key,
}

/// Somebody wants to run the request of a slot.
#[derive(Clone, Debug)]
pub struct Claim {
    pub slot: Slot,
    /// What the request is, under each secret that records may name, the current one first.
    pub fingerprints: Vec<(u32, Fingerprint)>,
    pub owner: Owner,
    /// Nobody else may run it for so long, unless it is extended.
    pub lease_ms: i64,
    /// How long the key is remembered, from this claim on.
    pub ttl_ms: i64,
    pub policy: Policy,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// Run it. `attempt` counts from 1; `resume`: an earlier one may have come some way.
    Won { attempt: u32, resume: bool },
    /// It is done: give this answer.
    Replay(Answer),
    /// It is done, and its answer was too big to be kept: status and headers are left of it.
    NotKept(Answer),
    /// The key belongs to another request.
    Mismatch,
    /// It runs elsewhere.
    Busy { retry_after_ms: i64 },
    /// It may have been done, and nobody knows its answer.
    Unknown,
    /// It was done once; the policy keeps expired keys from being new again.
    Expired,
}

/// How a run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this answer, which repeats get.
    Answered(Answer),
    /// With an answer of which only status and headers are kept.
    NotKept(Answer),
    /// Without any effect: the key is free again.
    NotExecuted,
    /// Nobody knows.
    Unknown,
}

/// The store's own fault: nothing is said about the request. A claim that ends so may have been made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// All times are of the store's own clock.
pub trait Store: Send + Sync {
    /// Atomic: of any number at once with one slot at most one has won. Again with the same owner: wins again, as the
    /// answer to the first may have been lost on its way.
    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Claimed, StoreError>> + Send;

    /// From now on for so long. `false`: the claim is lost.
    fn extend(&self, slot: Slot, owner: Owner, lease_ms: i64) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// `false`: the claim is lost, and whoever has it now says how it ends. Also past the lease, as long as nobody has
    /// taken over.
    fn end(&self, slot: Slot, owner: Owner, ended: Ended) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Forgets up to `rows_max` records whose time was over `kept_ms` ago; the number. A claim whose lease lives stays.
    fn sweep(&self, kept_ms: i64, rows_max: usize) -> impl Future<Output = Result<usize, StoreError>> + Send;
}

/// Milliseconds since 1970, for stores that have no clock of their own.
pub trait Clock: Send + Sync {
    fn now_ms(&self) -> i64;
}

impl<F: Fn() -> i64 + Send + Sync> Clock for F {
    fn now_ms(&self) -> i64 {
        self()
    }
}

/// The machine's.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}
