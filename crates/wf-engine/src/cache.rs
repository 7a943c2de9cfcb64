//! What the actor has in memory: committed rows (bounded), the changes of turns that are not yet committed, and heads of ranges.
//! Uncommitted changes win over anything loaded. It loads nothing itself. Next: `heads.rs`, `partition.rs`.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::RandomState;

use wf_core::draft::{Base, Changes, RangeView};
use wf_core::planted::{self, Bug};
use wf_core::rows::MessageId;
use wf_core::{Key, RangeId, Row, RowId};
use wf_idempotency::record::Record;
use wf_model::Process;
use wf_store::{Change, Loaded, OutboxId, OutboxRow, RecordId};

use crate::generations::Generations;
use crate::heads::{Heads, Moves};

/// Compiled definitions that are kept; they are few and each is used often.
const PROCESSES_MAX: usize = 1_000;

/// How much stays in memory between two commands. One command may hold more while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub rows_max: usize,
    pub heads_max: usize,
    pub head_entries_max: usize,
}

pub struct Cache {
    committed: Generations<RowId, Option<Row>>,
    records: Generations<RecordId, Option<Arc<Record>>>,
    processes: HashMap<Key, Arc<Process>>,
    heads: Heads,
    /// Turns whose commit is not known yet, the oldest first; the last one is the turn that is being made.
    layers: VecDeque<Layer>,
    /// For the command at hand only: marks change beside the turns.
    outbox: BTreeMap<OutboxId, Option<OutboxRow>>,
    /// Ids of the engine's own commands, for the slice at hand only.
    commands: BTreeMap<[u8; 16], bool>,
    /// Message ids that other partitions hold, for the command at hand only.
    elsewhere: BTreeMap<RowId, Option<Arc<MessageId>>>,
}

/// One turn's changes.
#[derive(Default)]
struct Layer {
    /// Whether it stood in the store, and what it is now. Looked up far more often than listed, and sorted then.
    rows: HashMap<RowId, (bool, Option<Row>), RandomState>,
    moved: BTreeMap<RangeId, Moves>,
    records: BTreeMap<RecordId, Arc<Record>>,
}

impl Cache {
    pub fn new(limits: Limits) -> Cache {
        Cache {
            committed: Generations::new(limits.rows_max),
            records: Generations::new(limits.rows_max / 4),
            processes: HashMap::new(),
            heads: Heads::new(limits.heads_max, limits.head_entries_max),
            layers: VecDeque::from([Layer::default()]),
            outbox: BTreeMap::new(),
            commands: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
        }
    }

    /// Everything is forgotten: after a failed turn the store alone knows.
    pub fn clear(&mut self) {
        self.committed.clear();
        self.records.clear();
        self.processes.clear();
        self.heads.clear();
        self.layers = VecDeque::from([Layer::default()]);
        self.outbox.clear();
        self.commands.clear();
        self.elsewhere.clear();
    }

    /// Closes the turn at hand and begins the next one on top of it.
    pub fn next_layer(&mut self) {
        self.layers.push_back(Layer::default());
    }

    /// The oldest turn is committed: its values are the store's now.
    pub fn settle(&mut self) {
        let Some(layer) = self.layers.pop_front() else { return };
        for (id, (_, row)) in layer.rows {
            self.committed.insert(id, row);
        }
        for (id, record) in layer.records {
            self.records.insert(id, Some(record));
        }
        if self.layers.is_empty() {
            self.layers.push_back(Layer::default());
        }
        self.age();
    }

    /// The changed rows of the turn at hand, in order.
    pub fn changes(&self) -> Vec<Change> {
        let Some(layer) = self.layers.back() else { return Vec::new() };
        let stays = |existed: &bool, new: &Option<Row>| *existed || new.is_some();
        let rows = layer.rows.iter().filter(|(_, (existed, new))| stays(existed, new));
        let change = |(id, (existed, new)): (&RowId, &(bool, Option<Row>))| Change {
            id: id.clone(),
            existed: *existed,
            new: new.clone(),
        };
        let mut changes: Vec<Change> = rows.map(change).collect();
        changes.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        changes
    }

    /// A command has run to its end: its changes belong to the turn at hand. `visit` gets each row as it was and as it is.
    pub fn apply(&mut self, changes: Changes, mut visit: impl FnMut(Option<&Row>, Option<&Row>)) {
        for key in changes.born {
            self.heads.born(RangeId::Variables(key));
            self.heads.born(RangeId::Elements(key));
        }
        for (id, new) in changes.rows {
            // A new row's key comes from the counter: what is not loaded does not exist.
            let old = self.row(&id).flatten();
            visit(old.as_ref(), new.as_ref());
            let Some(layer) = self.layers.back_mut() else { continue };
            match layer.rows.entry(id) {
                Entry::Occupied(known)
                    if planted::is(Bug::LostWrite) && matches!(known.key(), RowId::Variable { .. }) => {}
                Entry::Occupied(mut known) => known.get_mut().1 = new,
                Entry::Vacant(free) => {
                    free.insert((old.is_some(), new));
                }
            }
        }
        // After the rows: what a row was is asked of the heads too.
        for (id, moves) in changes.moved {
            self.heads.apply(&id, &moves);
            if let Some(layer) = self.layers.back_mut() {
                layer.moved.entry(id).or_default().extend(moves);
            }
        }
    }

    pub fn record(&self, id: &RecordId) -> Option<Option<Arc<Record>>> {
        let uncommitted = self.layers.iter().rev().find_map(|layer| layer.records.get(id));
        match uncommitted {
            Some(record) => Some(Some(record.clone())),
            None => self.records.get(id).cloned(),
        }
    }

    /// Also seen by a repeat later in this turn.
    pub fn file_record(&mut self, id: RecordId, record: Arc<Record>) {
        if planted::is(Bug::NoOverlay) {
            return;
        }
        if let Some(layer) = self.layers.back_mut() {
            layer.records.insert(id, record);
        }
    }

    pub fn outbox(&self, id: &OutboxId) -> Option<Option<&OutboxRow>> {
        self.outbox.get(id).map(Option::as_ref)
    }

    pub fn is_command_known(&self, id: &[u8; 16]) -> Option<bool> {
        self.commands.get(id).copied()
    }

    pub fn received_elsewhere(&self, id: &RowId) -> Option<Option<Arc<MessageId>>> {
        self.elsewhere.get(id).cloned()
    }

    /// The command at hand has ended: what was loaded for it may go.
    pub fn end_command(&mut self) {
        self.outbox.clear();
        self.elsewhere.clear();
        self.age();
    }

    /// So has a slice of the engine's own commands.
    pub fn end_slice(&mut self) {
        self.commands.clear();
    }

    fn age(&mut self) {
        self.committed.age();
        self.records.age();
        self.heads.age();
    }

    pub fn add_process(&mut self, definition: Key, process: Arc<Process>) {
        if self.processes.len() >= PROCESSES_MAX {
            self.processes.clear();
        }
        self.processes.insert(definition, process);
    }

    /// Takes what was loaded. Uncommitted turns keep their say.
    pub fn add(&mut self, loaded: Loaded) {
        for (id, row) in loaded.rows {
            self.committed.insert(id, row);
        }
        for (id, record) in loaded.records {
            self.records.insert(id, record);
        }
        self.outbox.extend(loaded.outbox);
        self.commands.extend(loaded.commands);
        self.elsewhere.extend(loaded.received_elsewhere);
        for range in loaded.ranges {
            let id = range.id.clone();
            self.heads.add(range, self.layers.iter().filter_map(|layer| layer.moved.get(&id)));
        }
    }
}

impl Base for Cache {
    fn row(&self, id: &RowId) -> Option<Option<Row>> {
        let uncommitted = self.layers.iter().rev().find_map(|layer| layer.rows.get(id));
        if let Some((_, row)) = uncommitted {
            return Some(row.clone());
        }
        if let Some(row) = self.committed.get(id) {
            return Some(row.clone());
        }
        self.heads.is_absent(id).then_some(None)
    }

    fn range(&self, id: &RangeId) -> Option<RangeView<'_>> {
        self.heads.view(id)
    }

    fn process(&self, definition: Key) -> Option<Arc<Process>> {
        self.processes.get(&definition).cloned()
    }
}
