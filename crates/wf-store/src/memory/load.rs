//! What a turn asks for, read at one moment. Known-absent is an answer. Next: `commit.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use wf_core::rows::{MessageId, Stored};
use wf_core::{Need, RangeId, Row, RowId, SortKey, ranges};
use wf_idempotency::record::Record;

use crate::batch::RecordId;
use crate::load::{Loaded, LoadedRange, Needs, RANGE_MAX};
use crate::memory::state::{State, Tables};

impl State {
    pub(super) fn load(&self, needs: &Needs) -> Loaded {
        let nothing = Tables::default();
        // With one there is no other to look at.
        let partition = if self.numbers.is_one() { self.numbers.first() } else { needs.partition };
        let tables = self.partitions.get(&partition).map_or(&nothing, |partition| &partition.tables);
        let (rows, ranges) = tables.load(&needs.core);
        let of_here = |id: &[u8; 16]| (partition, *id);
        let elsewhere = |id: &RowId| self.received_elsewhere(partition, id).cloned();
        Loaded {
            rows,
            ranges,
            records: needs.records.iter().map(|id| (id.clone(), self.record(id))).collect(),
            commands: needs.commands.iter().map(|id| (*id, self.command_ids.contains(&of_here(id)))).collect(),
            outbox: needs.outbox.iter().map(|id| (id.clone(), self.outbox_row(id))).collect(),
            received_elsewhere: needs.received_elsewhere.iter().map(|id| (id.clone(), elsewhere(id))).collect(),
        }
    }

    pub(super) fn record(&self, id: &RecordId) -> Option<Arc<Record>> {
        self.records.get(id).map(|entry| entry.record.clone())
    }

    /// Of several that other partitions hold: the one that expires last.
    pub(super) fn received_elsewhere<'a>(&'a self, partition: u16, id: &'a RowId) -> Option<&'a Arc<MessageId>> {
        self.elsewhere(partition, id).filter_map(MessageId::unwrap).max_by_key(|row| row.expires_at)
    }
}

type LoadedRows = Vec<(RowId, Option<Row>)>;

impl Tables {
    fn load(&self, needs: &BTreeSet<Need>) -> (LoadedRows, Vec<LoadedRange>) {
        let mut rows: BTreeMap<RowId, Option<Row>> = BTreeMap::new();
        let mut ranges = Vec::new();
        for need in needs {
            match need {
                Need::Row(id) => self.load_row(id.clone(), &mut rows),
                Need::Process(key) => self.load_row(RowId::Definition(*key), &mut rows),
                Need::Range(id, after) => {
                    let range = self.load_range(id, after.clone());
                    let ids = range.entries.iter().filter_map(|sort| ranges::row_at(id, sort));
                    ids.for_each(|id| self.load_row(id, &mut rows));
                    ranges.push(range);
                }
            }
        }
        (rows.into_iter().collect(), ranges)
    }

    fn load_row(&self, id: RowId, rows: &mut BTreeMap<RowId, Option<Row>>) {
        let row = self.rows.get(&id).cloned();
        rows.insert(id, row);
    }

    fn load_range(&self, id: &RangeId, after: Option<SortKey>) -> LoadedRange {
        let lower = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut behind = self.ranges.get(id).into_iter().flat_map(|all| all.range((lower, Bound::Unbounded)));
        let entries: Vec<SortKey> = behind.by_ref().take(RANGE_MAX).cloned().collect();
        LoadedRange { id: id.clone(), complete: behind.next().is_none(), after: after.clone(), entries }
    }
}
