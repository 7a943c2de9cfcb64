//! What a turn asks for, read at one moment. Known-absent is an answer. Next: `commit.rs`.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use wf_core::{Need, RangeId, Row, RowId, SortKey, ranges};
use wf_idempotency::record::Record;

use crate::batch::RecordId;
use crate::load::{Loaded, LoadedRange, Needs, RANGE_MAX};
use crate::memory::State;

impl State {
    pub(super) fn load(&self, needs: &Needs) -> Loaded {
        let mut rows: BTreeMap<RowId, Option<Row>> = BTreeMap::new();
        let mut ranges = Vec::new();
        for need in &needs.core {
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
        Loaded {
            rows: rows.into_iter().collect(),
            ranges,
            records: needs.records.iter().map(|id| (id.clone(), self.record(id))).collect(),
            commands: needs.commands.iter().map(|id| (*id, self.command_ids.contains(id))).collect(),
            outbox: needs.outbox.iter().map(|id| (id.clone(), self.outbox_row(id))).collect(),
        }
    }

    pub(super) fn record(&self, id: &RecordId) -> Option<Arc<Record>> {
        self.records.get(id).map(|entry| entry.record.clone())
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
