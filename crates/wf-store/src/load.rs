//! What a turn asks of the store before it can go on, and what comes back. Known-absent counts as loaded.

use std::collections::BTreeSet;
use std::sync::Arc;

use wf_core::rows::MessageId;
use wf_core::{Need, RangeId, Row, RowId, SortKey};
use wf_idempotency::record::Record;

use crate::batch::RecordId;
use crate::outbox::{OutboxId, OutboxRow};

#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Whose rows and ranges; a store with one partition need not look.
    pub partition: u16,
    /// Rows and ranges; `Need::Process` asks for the definition's row.
    pub core: BTreeSet<Need>,
    pub records: BTreeSet<RecordId>,
    /// Ids of the engine's own commands: known ones are dropped before they are executed.
    pub commands: BTreeSet<[u8; 16]>,
    pub outbox: BTreeSet<OutboxId>,
    /// Message ids (`RowId::MessageId`) that another partition may have received.
    pub received_elsewhere: BTreeSet<RowId>,
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
    /// What another partition holds under the id, expired or not.
    pub received_elsewhere: Vec<(RowId, Option<Arc<MessageId>>)>,
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
    /// Nothing yet, of this partition.
    pub fn of(partition: u16) -> Needs {
        Needs { partition, ..Needs::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.core.is_empty()
            && self.records.is_empty()
            && self.commands.is_empty()
            && self.outbox.is_empty()
            && self.received_elsewhere.is_empty()
    }
}
