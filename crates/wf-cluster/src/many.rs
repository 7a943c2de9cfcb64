//! A batch completion over several partitions. Without a key it is split, and each item stands alone. Under a key its
//! record is claimed first; each part runs under a key of its own, made from the client's, so that a repeat of the whole
//! goes through the parts again, finds those that are done, and finishes the record. Next: `route.rs` for the split.

use std::sync::Arc;

use wf_core::{Command, Partitions};
use wf_engine::{Answered, Ask, Engine, Passport, Refusal, Request};
use wf_idempotency::record::{Answer, Record, State};
use wf_store::{Claimed, RecordEntry, RecordId, Store};

use crate::route;

/// What a claim found.
pub enum Claim {
    /// The parts are to be done, for the first time or again.
    Held(Held),
    /// All was done before.
    Replay(Answered),
}

/// A record that stands unfinished.
pub struct Held {
    entry: RecordEntry,
}

/// The part of a batch that belongs to a partition, with the key of that part. `None`: it has no part there, or it is
/// no batch.
pub fn part(request: &Request, partition: u16, partitions: Partitions) -> Option<Request> {
    let Ask::Command(Command::CompleteJobs { worker, items }) = &request.ask else { return None };
    let places = route::parts(items, partitions).remove(&partition)?;
    let items = places.iter().filter_map(|at| items.get(*at).cloned()).collect();
    let command = Command::CompleteJobs { worker: worker.clone(), items };
    let of_part = |passport: &Passport| Passport { key: passport.key.of_part(partition), ..passport.clone() };
    Some(Request { ask: Ask::Command(command), passport: request.passport.as_ref().map(of_part), ..request.clone() })
}

/// Claims the record of a keyed batch. `leader`: the engine whose time counts, and who counts repeats.
pub async fn claim(leader: &Engine, request: &Request, passport: &Passport) -> Result<Claim, Refusal> {
    let now = leader.time();
    let state = State::InProgress { owner: [0; 16], lease_until_ms: now };
    let record = Record {
        fingerprint: passport.fingerprint,
        mac_key_id: passport.mac_key_id,
        created_ms: now,
        expires_ms: now.saturating_add(passport.ttl_ms),
        state,
    };
    let id = RecordId { tenant: request.tenant.clone(), key: passport.key.text() };
    let entry = RecordEntry { id, key_hash: passport.key_hash, route: passport.route, record: Arc::new(record) };
    // Whether it stands now or not, nothing was done.
    let claimed = leader.store().claim_record(entry.clone()).await;
    match claimed.map_err(|error| Refusal::Unavailable { reason: error.to_string() })? {
        Claimed::Fresh => Ok(Claim::Held(Held { entry })),
        Claimed::Standing(record) => match leader.verdict_of(request, passport, &record) {
            Some(Ok(answer)) => Ok(Claim::Replay(Answered { answer, replayed: true })),
            Some(Err(refusal)) => {
                leader.note_conflict(request, passport);
                Err(refusal)
            }
            None => Ok(Claim::Held(Held { entry: RecordEntry { record, ..entry } })),
        },
    }
}

/// Completes the record: every part is durable. Somebody else may have done so meanwhile, with the same answer.
pub async fn finish(store: &dyn Store, held: Held, answer: Answer) -> Result<Answered, Refusal> {
    let unknown = |error: wf_store::StoreError| {
        tracing::warn!(%error, "a batch is done, but its record is not finished: a repeat finishes it");
        Refusal::OutcomeUnknown
    };
    let record = Record { state: State::Completed(answer.clone()), ..(*held.entry.record).clone() };
    let entry = RecordEntry { record: Arc::new(record), ..held.entry };
    let id = entry.id.clone();
    if store.finish_record(entry).await.map_err(unknown)? {
        return Ok(Answered { answer, replayed: false });
    }
    let standing = store.record(id).await.map_err(unknown)?;
    Ok(match standing.as_deref() {
        Some(Record { state: State::Completed(stored), .. }) => Answered { answer: stored.clone(), replayed: true },
        _ => Answered { answer, replayed: false },
    })
}
