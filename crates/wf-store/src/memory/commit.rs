//! One turn's transaction: everything is checked before anything is changed, the fence first.
//! Next: `outbox.rs`, what happens to messages afterwards.

use std::collections::BTreeSet;

use wf_core::planted::{self, Bug};
use wf_core::ranges;
use wf_core::{Millis, Row, RowId};
use wf_idempotency::record::{Record, State as RecordState};

use crate::batch::*;
use crate::memory::outbox::Shipment;
use crate::memory::state::{State, Tables};
use crate::outbox::OutboxState;
use crate::store::CommitError;

/// How long counts of repeats and shipped messages are kept.
const KEPT_MS: Millis = 30 * 24 * 60 * 60 * 1000;

impl State {
    pub(super) fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        self.check_fence(&batch.fence)?;
        self.check_inserts(batch)?;
        self.check_inboxes(batch)?;
        batch.rows.iter().try_for_each(|change| self.check_row(batch, change))?;
        batch.records.iter().try_for_each(|entry| self.check_record(entry))?;
        self.apply(batch);
        Ok(())
    }

    pub(super) fn check_fence(&self, fence: &Fence) -> Result<(), CommitError> {
        let row = self.partitions.get(&fence.partition).ok_or(CommitError::Fenced)?;
        let was_owner = planted::is(Bug::FenceAsSelect) && row.epoch == fence.epoch + 1;
        if !was_owner && (row.epoch != fence.epoch || row.position != fence.old_position) {
            return Err(CommitError::Fenced);
        }
        if fence.new_position < fence.old_position {
            return Err(CommitError::Rejected("the position goes back".to_owned()));
        }
        Ok(())
    }

    /// Inserted rows must equal sent rows.
    fn check_inserts(&self, batch: &Batch) -> Result<(), CommitError> {
        let partition = batch.fence.partition;
        let place = |position| (partition, position);
        let mut ids = BTreeSet::new();
        let mut places = BTreeSet::new();
        for entry in &batch.log {
            let known =
                self.command_ids.contains(&(partition, entry.id)) || self.log.contains_key(&place(entry.position));
            if known || !ids.insert(entry.id) || !places.insert(entry.position) {
                return Err(conflict("a command is in the log"));
            }
        }
        let mut places = BTreeSet::new();
        if batch
            .audit
            .iter()
            .any(|entry| self.audit.contains_key(&place(entry.position)) || !places.insert(entry.position))
        {
            return Err(conflict("an audit entry is known"));
        }
        let mut sent = BTreeSet::new();
        if batch.outbox.iter().any(|entry| self.outbox.contains_key(&entry.id) || !sent.insert(&entry.id)) {
            return Err(conflict("a message is in the outbox"));
        }
        match batch.outbox_retries.iter().all(|id| self.outbox.contains_key(id)) {
            true => Ok(()),
            false => Err(conflict("a message to ship again is gone")),
        }
    }

    fn check_row(&self, batch: &Batch, change: &Change) -> Result<(), CommitError> {
        let partition = batch.fence.partition;
        if self.rows_of(partition).is_some_and(|rows| rows.contains_key(&change.id)) != change.existed {
            return Err(conflict(if change.existed { "a row is gone" } else { "a row is there already" }));
        }
        match &change.new {
            Some(Row::Unique(_)) if self.elsewhere(partition, &change.id).next().is_some() => {
                Err(conflict("the value is taken at another partition"))
            }
            Some(Row::MessageId(_)) if self.is_received_elsewhere(partition, &change.id, batch.head.last_time) => {
                Err(conflict("the message was received at another partition"))
            }
            _ => Ok(()),
        }
    }

    fn is_received_elsewhere(&self, partition: u16, id: &RowId, now: Millis) -> bool {
        self.received_elsewhere(partition, id).is_some_and(|received| received.expires_at > now)
    }

    fn check_record(&self, entry: &RecordEntry) -> Result<(), CommitError> {
        match self.records.get(&entry.id).is_none_or(|old| may_replace(&old.record, &entry.record)) {
            true => Ok(()),
            false => Err(conflict("a record is not expired")),
        }
    }

    pub(super) fn claim_record(&mut self, entry: RecordEntry) -> Claimed {
        match self.records.get(&entry.id) {
            Some(old) if !may_replace(&old.record, &entry.record) => Claimed::Standing(old.record.clone()),
            _ => {
                self.put_records(&[entry]);
                Claimed::Fresh
            }
        }
    }

    pub(super) fn finish_record(&mut self, entry: RecordEntry) -> bool {
        let is_claimed = self.records.get(&entry.id).is_some_and(|old| is_unfinished_own(&old.record, &entry.record));
        if is_claimed {
            self.put_records(&[entry]);
        }
        is_claimed
    }

    fn apply(&mut self, batch: &Batch) {
        let partition = batch.fence.partition;
        if let Some(row) = self.partitions.get_mut(&partition) {
            row.position = batch.fence.new_position;
            row.head = batch.head;
            batch.rows.iter().for_each(|change| row.tables.replace(&change.id, change.new.clone()));
        }
        for entry in &batch.log {
            self.command_ids.insert((partition, entry.id));
            self.log.insert((partition, entry.position), entry.clone());
        }
        self.audit.extend(batch.audit.iter().map(|entry| ((partition, entry.position), entry.clone())));
        self.apply_inboxes(batch);
        self.outbox.extend(batch.outbox.iter().map(|entry| (entry.id.clone(), Shipment::new(entry.clone()))));
        batch.outbox_retries.iter().for_each(|id| self.ship_again(id));
        self.put_records(&batch.records);
        batch.suppressed.iter().for_each(|counted| self.count(counted));
    }

    pub(super) fn put_records(&mut self, records: &[RecordEntry]) {
        self.records.extend(records.iter().map(|entry| (entry.id.clone(), entry.clone())));
    }

    fn count(&mut self, counted: &Suppressed) {
        let id = (counted.tenant.clone(), counted.key_hash, counted.kind, counted.route.clone(), counted.minute);
        let row = self.suppressed.entry(id).or_insert_with(|| Suppressed { count: 0, ..counted.clone() });
        row.count += counted.count;
        row.first = row.first.min(counted.first);
        row.last = row.last.max(counted.last);
    }

    pub(super) fn sweep(&mut self, now: Millis, rows_max: usize) -> usize {
        let mut left = rows_max;
        let old = now - KEPT_MS;
        // `retain` asks once per row: it drops as long as something may be dropped.
        let mut drops = |due: bool| {
            let drop = due && left > 0;
            left -= usize::from(drop);
            drop
        };
        self.records.retain(|_, entry| !drops(entry.record.expires_ms <= now));
        self.suppressed.retain(|_, counted| !drops(counted.last < old));
        self.outbox
            .retain(|_, shipment| !drops(shipment.row.state == OutboxState::Shipped && shipment.row.shipped_at < old));
        rows_max - left
    }
}

impl Tables {
    /// Ranges follow the rows.
    fn replace(&mut self, id: &RowId, new: Option<Row>) {
        if let Some(old) = self.rows.remove(id) {
            ranges::entries(&old, |range, sort| {
                if let Some(entries) = self.ranges.get_mut(&range) {
                    entries.remove(&sort);
                    if entries.is_empty() {
                        self.ranges.remove(&range);
                    }
                }
            });
        }
        if let Some(new) = new {
            ranges::entries(&new, |range, sort| {
                self.ranges.entry(range).or_default().insert(sort);
            });
            self.rows.insert(id.clone(), new);
        }
    }
}

/// A record gives way when it is expired, or when its own request finishes it: a completed one never changes.
fn may_replace(old: &Record, new: &Record) -> bool {
    old.expires_ms <= new.created_ms || is_unfinished_own(old, new)
}

fn is_unfinished_own(old: &Record, new: &Record) -> bool {
    let is_unfinished = matches!(old.state, RecordState::InProgress { .. } | RecordState::Started { .. });
    is_unfinished && old.fingerprint == new.fingerprint && old.created_ms == new.created_ms
}

pub(super) fn conflict(what: &str) -> CommitError {
    CommitError::Conflict(what.to_owned())
}
