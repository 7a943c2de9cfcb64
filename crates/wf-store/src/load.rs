//! What a turn asks of the store before it can go on, and what comes back. Known-absent counts as loaded.

use std::collections::BTreeSet;
use std::sync::Arc;

use wf_core::{Need, RangeId, Row, RowId, SortKey};
use wf_idempotency::record::Record;

use crate::batch::RecordId;
use crate::outbox::{OutboxId, OutboxRow};

#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Rows and ranges; `Need::Process` asks for the definition's row.
    pub core: BTreeSet<Need>,
    pub records: BTreeSet<RecordId>,
    /// Ids of the engine's own commands: known ones are dropped before they are executed.
    pub commands: BTreeSet<[u8; 16]>,
    pub outbox: BTreeSet<OutboxId>,
}

#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Every row that was asked for, and the rows of loaded ranges.
    pub rows: Vec<(RowId, Option<Row>)>,
    pub ranges: Vec<LoadedRange>,
    pub records: Vec<(RecordId, Option<Arc<Record>>)>,
    /// Ids with whether they stand in the log.
    pub commands: Vec<([u8; 16], bool)>,
    pub outbox: Vec<(OutboxId, Option<OutboxRow>)>,
}

/// The entries of a range after `after`, at most [`RANGE_MAX`].
#[derive(Clone, Debug)]
pub struct LoadedRange {
    pub id: RangeId,
    pub after: Option<SortKey>,
    pub entries: Vec<SortKey>,
    /// No entries stand behind the last one.
    pub complete: bool,
}

/// Entries that one load of a range brings.
pub const RANGE_MAX: usize = 1024;

impl Needs {
    pub fn is_empty(&self) -> bool {
        self.core.is_empty() && self.records.is_empty() && self.commands.is_empty() && self.outbox.is_empty()
    }
}
