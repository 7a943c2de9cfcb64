//! One request through a store: claimed, kept alive while it runs, and ended. It knows no HTTP. The claim is the store's,
//! what to run is the caller's. Next: `layer.rs`, which drives requests of a web service.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until};

use crate::store::{Claim, Claimed, Ended, Owner, Slot, Store, StoreError};
use crate::{Fingerprint, Policy};

/// Of one that finds its key busy: between two looks whether the first is done.
const LOOK: Duration = Duration::from_millis(25);
/// A store that fails is asked so often altogether; each time for the same owner, so that a claim whose answer was lost is
/// found to be ours.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Nobody else may run it for so long after the last sign of life.
    pub lease_ms: i64,
    /// How long a repeat waits for the first one's answer.
    pub wait_ms: u64,
    /// How long a key is remembered.
    pub ttl_ms: i64,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing { lease_ms: 30_000, wait_ms: 0, ttl_ms: 86_400_000 }
    }
}

pub struct Driver<S> {
    store: Arc<S>,
}

impl<S> Clone for Driver<S> {
    fn clone(&self) -> Driver<S> {
        Driver { store: self.store.clone() }
    }
}

/// What is to be done about a request.
pub enum Begun<S> {
    /// Run it, and say how it ended.
    Run(Run<S>),
    /// Anything but `Claimed::Won`: run nothing.
    Told(Claimed),
}

impl<S: Store + 'static> Driver<S> {
    pub fn new(store: Arc<S>) -> Driver<S> {
        Driver { store }
    }

    pub fn store(&self) -> &Arc<S> {
        &self.store
    }

    /// `fingerprints`: under each secret that records may name, the current one first. Needs a runtime that goes on while
    /// the request runs.
    pub async fn begin(
        &self,
        slot: Slot,
        fingerprints: Vec<(u32, Fingerprint)>,
        policy: Policy,
        timing: Timing,
    ) -> Result<Begun<S>, StoreError> {
        let Timing { lease_ms, ttl_ms, wait_ms } = timing;
        let claim = Claim { slot, fingerprints, owner: fresh_owner()?, lease_ms, ttl_ms, policy };
        let until = Instant::now() + Duration::from_millis(wait_ms);
        loop {
            match self.claim(&claim).await? {
                Claimed::Won { attempt, resume } => {
                    let (store, slot, owner) = (self.store.clone(), claim.slot, claim.owner);
                    let heart = tokio::spawn(beat(store.clone(), slot.clone(), owner, lease_ms)).abort_handle();
                    return Ok(Begun::Run(Run { store, slot, owner, attempt, resume, heart }));
                }
                Claimed::Busy { .. } if Instant::now() < until => sleep_until(until.min(Instant::now() + LOOK)).await,
                told => return Ok(Begun::Told(told)),
            }
        }
    }

    async fn claim(&self, claim: &Claim) -> Result<Claimed, StoreError> {
        let mut last = self.store.claim(claim.clone()).await;
        for _ in 1..TRIES {
            if last.is_ok() {
                break;
            }
            sleep(PAUSE).await;
            last = self.store.claim(claim.clone()).await;
        }
        last
    }
}

fn fresh_owner() -> Result<Owner, StoreError> {
    let mut owner = [0; 16];
    getrandom::fill(&mut owner).map_err(|error| StoreError(format!("no chance to be had: {error}")))?;
    Ok(owner)
}

/// Until the claim is lost, or this is aborted.
async fn beat<S: Store>(store: Arc<S>, slot: Slot, owner: Owner, lease_ms: i64) {
    let pause = Duration::from_millis(u64::try_from(lease_ms / 3).unwrap_or(0).max(1));
    loop {
        sleep(pause).await;
        // A store that cannot be reached may be there again before the lease is over.
        if store.extend(slot.clone(), owner, lease_ms).await == Ok(false) {
            return;
        }
    }
}

/// A claim that is won. Dropped without an end it is left alone: its outcome is unknown when its lease is over.
pub struct Run<S> {
    store: Arc<S>,
    slot: Slot,
    owner: Owner,
    /// From 1; the same request is tried for the so-manieth time.
    pub attempt: u32,
    /// An earlier attempt may have come some way.
    pub resume: bool,
    heart: AbortHandle,
}

impl<S: Store> Run<S> {
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// `Ok(false)`: somebody has taken over meanwhile. `Err`: how it ended is not stored; the claim stays until its lease is
    /// over, and after that the outcome is unknown. What happened has happened: the client gets its answer all the same.
    pub async fn end(self, ended: Ended) -> Result<bool, StoreError> {
        let mut last = self.store.end(self.slot.clone(), self.owner, ended.clone()).await;
        for _ in 1..TRIES {
            if last.is_ok() {
                break;
            }
            sleep(PAUSE).await;
            last = self.store.end(self.slot.clone(), self.owner, ended.clone()).await;
        }
        last
    }
}

impl<S> Drop for Run<S> {
    fn drop(&mut self) {
        self.heart.abort();
    }
}
