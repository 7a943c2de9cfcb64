//! Committed records in memory, shared with the doors: the replay of one is the only answer that bypasses the actor.
//! Refusals and misses never do: a deposed owner's stale memory must not decide them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use wf_idempotency::record::{Record, State};
use wf_store::RecordId;

use crate::clock::lock;
use crate::generations::Generations;

const SHARDS: usize = 16;
/// Records over all shards.
const RECORDS_MAX: usize = 64_000;
/// A bigger answer is read from the store again.
const BODY_BYTES_MAX: usize = 4_096;

pub struct Replays {
    shards: Vec<Mutex<Generations<RecordId, Arc<Record>>>>,
}

impl Replays {
    pub fn new() -> Replays {
        let shard = || Mutex::new(Generations::new(RECORDS_MAX / SHARDS));
        Replays { shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    pub fn get(&self, id: &RecordId) -> Option<Arc<Record>> {
        let shard = self.shard(id)?;
        lock(shard).get(id).cloned()
    }

    /// Only after the commit.
    pub fn add(&self, id: &RecordId, record: &Arc<Record>) {
        let is_small = matches!(&record.state, State::Completed(answer) if answer.body.len() <= BODY_BYTES_MAX);
        if let Some(shard) = self.shard(id).filter(|_| is_small) {
            let mut shard = lock(shard);
            shard.insert(id.clone(), record.clone());
            shard.age();
        }
    }

    fn shard(&self, id: &RecordId) -> Option<&Mutex<Generations<RecordId, Arc<Record>>>> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        self.shards.get(hasher.finish() as usize % SHARDS)
    }
}
