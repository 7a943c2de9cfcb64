//! What clients and workers saw, for the checkers: requests with the answers to them, jobs as they were handed out.
//! It judges nothing. Next: `checks.rs`.

use std::collections::BTreeMap;

use wf_core::{Key, Millis};
use wf_store::Batch;

use crate::door::{Call, Reply};

#[derive(Default)]
pub struct Facts {
    pub errands: Vec<Errand>,
    pub given: Vec<Given>,
    /// Commands that the store will never take, by what stands in the log: each meets it twice, in its batch and alone.
    poisoned: BTreeMap<String, u32>,
    pub poisons: u64,
    pub internal_errors: u64,
}

/// A logical request: the same key and body however often it is sent.
#[derive(Clone, Debug)]
pub struct Errand {
    pub name: String,
    pub call: Call,
    /// No record of it is older than this, by any node's clock.
    pub sent_min: Millis,
    /// Successes and refusals that mean it, in the order heard.
    pub answers: Vec<Heard>,
    /// Attempts that may have had an effect: answered with success, or not answered, or in doubt.
    pub may_have_run: u64,
    /// Requests with its key and another body.
    pub misuses: Vec<Heard>,
}

#[derive(Clone, Debug)]
pub struct Heard {
    pub reply: Reply,
    /// No clock showed more when it was heard.
    pub clock_max: Millis,
    pub history: u32,
}

/// A job as a worker got it.
#[derive(Clone, Debug)]
pub struct Given {
    pub history: u32,
    pub job: Key,
    pub lease: u64,
    pub worker: String,
    pub instance: Key,
    pub element: String,
    pub order: String,
    pub provider_key: String,
    pub lineage_key: String,
    pub variables: BTreeMap<String, String>,
    /// Asked for without a key: no repeat can give it again.
    pub is_fresh: bool,
}

impl Facts {
    /// The same request again is the same errand, also after a restore.
    pub fn begin(&mut self, name: &str, call: Call, clock_floor: Millis) -> usize {
        let is_it = |errand: &Errand| errand.call.key.is_some() && errand.call == call;
        if let Some(known) = self.errands.iter().position(is_it) {
            return known;
        }
        self.errands.push(Errand {
            name: name.to_owned(),
            call,
            sent_min: clock_floor,
            answers: Vec::new(),
            may_have_run: 0,
            misuses: Vec::new(),
        });
        self.errands.len() - 1
    }

    /// One keyed request of the batch cannot be stored from now on; false where there is none.
    pub fn poison(&mut self, batch: &Batch) -> bool {
        let Some(entry) = batch.log.iter().find(|entry| entry.payload.contains("\"origin\"")) else { return false };
        // This time, and once more alone; alone already, only this time.
        self.poisoned.insert(entry.payload.clone(), 1);
        self.poisons += 1;
        true
    }

    pub fn is_poisoned(&mut self, batch: &Batch) -> bool {
        let hit = batch.log.iter().find(|entry| self.poisoned.contains_key(&entry.payload));
        let Some(entry) = hit else { return false };
        self.poisoned.remove(&entry.payload);
        true
    }
}
