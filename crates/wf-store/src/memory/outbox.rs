//! Claims and marks of messages. The oldest unsent message of a sink and order key bars the later ones.
//! Next: `lists.rs`.

use std::collections::{BTreeMap, BTreeSet};

use wf_core::Millis;
use wf_core::planted::{self, Bug};

use crate::memory::State;
use crate::outbox::*;

#[derive(Clone, Debug)]
pub(super) struct Shipment {
    pub row: OutboxRow,
    /// Owner and the lease's end (exclusive). It stays after that until somebody else claims the row.
    pub claim: Option<([u8; 16], Millis)>,
}

impl Shipment {
    pub fn new(entry: OutboxEntry) -> Shipment {
        let row =
            OutboxRow { entry, state: OutboxState::Pending, attempts: 0, last_error: None, retry_at: 0, shipped_at: 0 };
        Shipment { row, claim: None }
    }

    fn may_be_claimed(&self, now: Millis) -> bool {
        let is_free = self.claim.is_none_or(|(_, until)| until <= now);
        is_free && self.row.retry_at <= now
    }

    fn settle(&mut self, result: MarkResult) {
        self.claim = None;
        let row = &mut self.row;
        row.attempts += u32::from(result != MarkResult::Release);
        match result {
            MarkResult::Shipped { at } => (row.state, row.shipped_at) = (OutboxState::Shipped, at),
            MarkResult::Retry { at, error } => (row.retry_at, row.last_error) = (at, Some(error)),
            MarkResult::Dead { error } => (row.state, row.last_error) = (OutboxState::Dead, Some(error)),
            MarkResult::Release => (),
        }
    }
}

impl State {
    pub(super) fn claim(&mut self, claim: &Claim) -> Vec<OutboxRow> {
        let mut barred = BTreeSet::new();
        let mut claimed = Vec::new();
        for shipment in self.outbox.values_mut().filter(|shipment| shipment.row.entry.id.sink == claim.sink) {
            let bars = match shipment.row.state {
                OutboxState::Shipped => false,
                OutboxState::Dead => !claim.dead_pass,
                OutboxState::Pending => true,
            };
            let is_barred = bars && !barred.insert(shipment.row.entry.order_key) && !planted::is(Bug::Overtaking);
            if !bars || is_barred || shipment.row.state == OutboxState::Dead {
                continue;
            }
            if claimed.len() < claim.limit && shipment.may_be_claimed(claim.now) {
                shipment.claim = Some((claim.owner, claim.now + claim.lease_ms));
                claimed.push(shipment.row.clone());
            }
        }
        claimed
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        if let Some(shipment) = self.outbox.get_mut(&mark.id)
            && shipment.claim.is_some_and(|(owner, _)| owner == mark.owner)
        {
            shipment.settle(mark.result);
        }
    }

    /// A pending one may be under way just now: its claim stays.
    pub(super) fn ship_again(&mut self, id: &OutboxId) {
        if let Some(shipment) = self.outbox.get_mut(id) {
            let row = OutboxRow {
                state: OutboxState::Pending,
                attempts: 0,
                retry_at: 0,
                shipped_at: 0,
                ..shipment.row.clone()
            };
            shipment.row = row;
        }
    }

    pub(super) fn outbox_row(&self, id: &OutboxId) -> Option<OutboxRow> {
        self.outbox.get(id).map(|shipment| shipment.row.clone())
    }

    pub(super) fn outbox_stats(&self) -> Vec<OutboxStats> {
        let mut sinks = BTreeMap::new();
        for shipment in self.outbox.values() {
            let entry = &shipment.row.entry;
            let fresh = || OutboxStats { sink: entry.id.sink.clone(), ..OutboxStats::default() };
            let stats = sinks.entry(entry.id.sink.clone()).or_insert_with(fresh);
            match shipment.row.state {
                OutboxState::Pending => {
                    let oldest = stats.oldest_pending.map_or(entry.created_at, |oldest| oldest.min(entry.created_at));
                    (stats.pending, stats.oldest_pending) = (stats.pending + 1, Some(oldest));
                }
                OutboxState::Dead => stats.dead += 1,
                OutboxState::Shipped => (),
            }
        }
        sinks.into_values().collect()
    }
}
