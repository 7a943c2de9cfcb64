//! Commands on their way from one partition to another. Next: `outbox.rs`, messages on their way out of the store.

use std::collections::BTreeSet;

use crate::batch::*;
use crate::memory::State;
use crate::memory::commit::conflict;
use crate::store::CommitError;

const FIRST: InboxId = InboxId { source: 0, position: 0, n: 0 };
const LAST: InboxId = InboxId { source: u16::MAX, position: u64::MAX, n: u32::MAX };

impl State {
    pub(super) fn check_inboxes(&self, batch: &Batch) -> Result<(), CommitError> {
        if self.numbers.is_one() && !(batch.sent.is_empty() && batch.taken.is_empty()) {
            return Err(CommitError::Rejected("the store has one partition, and no inbox".to_owned()));
        }
        if let Some(sent) = batch.sent.iter().find(|sent| !self.has(sent.target)) {
            return Err(CommitError::Rejected(format!("there is no partition {}", sent.target)));
        }
        let mut places = BTreeSet::new();
        if !batch.sent.iter().map(place).all(|place| !self.inbox.contains_key(&place) && places.insert(place)) {
            return Err(conflict("a command was sent already"));
        }
        let mut taken = BTreeSet::new();
        let here = batch.fence.partition;
        match batch.taken.iter().all(|id| self.inbox.contains_key(&(here, *id)) && taken.insert(id)) {
            true => Ok(()),
            false => Err(conflict("a command of the inbox is gone")),
        }
    }

    pub(super) fn apply_inboxes(&mut self, batch: &Batch) {
        for id in &batch.taken {
            self.inbox.remove(&(batch.fence.partition, *id));
        }
        self.inbox.extend(batch.sent.iter().map(|sent| (place(sent), sent.clone())));
    }

    pub(super) fn inbox_of(&self, partition: u16, limit: usize) -> Vec<Sent> {
        let waiting = self.inbox.range((partition, FIRST)..=(partition, LAST));
        waiting.take(limit).map(|(_, sent)| sent.clone()).collect()
    }

    pub(super) fn undelivered(&self, source: u16, mut positions: Vec<u64>) -> Vec<u64> {
        let waiting: BTreeSet<u64> =
            self.inbox.keys().filter(|(_, id)| id.source == source).map(|(_, id)| id.position).collect();
        positions.retain(|position| waiting.contains(position));
        positions
    }
}

fn place(sent: &Sent) -> (u16, InboxId) {
    (sent.target, sent.id)
}
