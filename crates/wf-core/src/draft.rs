//! One command's changes on top of what is loaded. A read of a row or range that is not loaded stops the command with
//! what it needs; it is pure, so it simply runs again. A draft that is dropped never existed. Next: `decide.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wf_model::Process;

use crate::command::Command;
use crate::event::{Event, What};
use crate::ids::{self, Key};
use crate::outcome::Rejection;
use crate::ranges::{self, RangeId, SortKey};
use crate::rows::{Row, RowId, Stored};

/// What must be loaded before the command can go on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    Row(RowId),
    /// The range's entries after a sort key (from its begin where absent), with their rows.
    Range(RangeId, Option<SortKey>),
    /// A compiled definition.
    Process(Key),
}

/// Why a command did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    Missing(BTreeSet<Need>),
    Rejected(Rejection),
}

impl From<Need> for Stop {
    fn from(need: Need) -> Stop {
        Stop::Missing(BTreeSet::from([need]))
    }
}

impl From<Rejection> for Stop {
    fn from(rejection: Rejection) -> Stop {
        Stop::Rejected(rejection)
    }
}

pub type Run<T> = Result<T, Stop>;

/// Does something for each item, and asks for everything that is missing at once: a thousand rows must not mean a
/// thousand loads.
pub fn gather<I, T>(items: impl IntoIterator<Item = I>, mut one: impl FnMut(I) -> Run<T>) -> Run<Vec<T>> {
    let mut done = Vec::new();
    let mut missing = BTreeSet::new();
    for item in items {
        match one(item) {
            Ok(result) => done.push(result),
            Err(Stop::Missing(needs)) => missing.extend(needs),
            Err(refused) => return Err(refused),
        }
    }
    if missing.is_empty() { Ok(done) } else { Err(Stop::Missing(missing)) }
}

/// What is loaded: committed rows and the changes of turns before this command.
pub trait Base {
    /// `None`: not loaded. `Some(None)`: known to be absent.
    fn row(&self, id: &RowId) -> Option<Option<Row>>;
    /// `None`: not loaded.
    fn range(&self, id: &RangeId) -> Option<RangeView<'_>>;
    fn process(&self, definition: Key) -> Option<Arc<Process>>;
}

/// The loaded head of a range: complete below the frontier.
#[derive(Clone, Copy, Debug)]
pub struct RangeView<'a> {
    pub entries: &'a BTreeSet<SortKey>,
    /// The sort key up to and including which `entries` is complete; `None`: complete to the end.
    pub frontier: Option<&'a SortKey>,
}

/// The changes of one command.
pub struct Draft<'a> {
    base: &'a dyn Base,
    changes: BTreeMap<RowId, Option<Row>>,
    /// Entries that the changes add (`true`) or remove.
    moved: BTreeMap<RangeId, BTreeMap<SortKey, bool>>,
    events: Vec<Event>,
    /// Commands for other partitions, in order.
    sent: Vec<(u16, Command)>,
    /// Instances that this command makes.
    born: Vec<Key>,
    partition: u16,
    /// Keys from here on are this command's own: nothing can stand under them but what it puts there.
    first_counter: u64,
    next_counter: u64,
}

/// A draft's content, when its command has run to its end.
#[derive(Debug, Default)]
pub struct Changes {
    pub rows: BTreeMap<RowId, Option<Row>>,
    pub moved: BTreeMap<RangeId, BTreeMap<SortKey, bool>>,
    pub events: Vec<Event>,
    /// Commands for other partitions, in order.
    pub sent: Vec<(u16, Command)>,
    pub born: Vec<Key>,
    pub next_counter: u64,
}

impl<'a> Draft<'a> {
    pub fn new(base: &'a dyn Base, partition: u16, next_counter: u64) -> Draft<'a> {
        Draft {
            base,
            changes: BTreeMap::new(),
            moved: BTreeMap::new(),
            events: Vec::new(),
            sent: Vec::new(),
            born: Vec::new(),
            partition,
            first_counter: next_counter,
            next_counter,
        }
    }

    pub fn finish(self) -> Changes {
        Changes {
            rows: self.changes,
            moved: self.moved,
            events: self.events,
            sent: self.sent,
            born: self.born,
            next_counter: self.next_counter,
        }
    }

    pub fn next_key(&mut self) -> Key {
        let key = ids::key(self.partition, self.next_counter);
        self.next_counter += 1;
        key
    }

    /// Lifts the key counter, for a new epoch.
    pub fn lift_counter(&mut self, floor: u64) {
        self.next_counter = self.next_counter.max(floor);
    }

    /// Whoever keeps ranges in memory knows those of a new instance from here on.
    pub fn born(&mut self, instance: Key) {
        self.born.push(instance);
    }

    /// To be executed by another partition, once this command is committed.
    pub fn send(&mut self, target: u16, command: Command) {
        self.sent.push((target, command));
    }

    pub fn emit(&mut self, root: Key, resource: Key, what: What) {
        self.events.push(Event { resource, root, what });
    }

    pub fn get<T: Stored>(&self, id: &RowId) -> Run<Option<Arc<T>>> {
        let row = self.row(id)?;
        Ok(row.as_ref().and_then(T::unwrap).cloned())
    }

    pub(crate) fn row(&self, id: &RowId) -> Run<Option<Row>> {
        if let Some(change) = self.changes.get(id) {
            return Ok(change.clone());
        }
        if owner(id).is_some_and(|key| self.is_new(key)) {
            return Ok(None);
        }
        self.base.row(id).ok_or_else(|| Need::Row(id.clone()).into())
    }

    fn is_new(&self, key: Key) -> bool {
        (ids::key(self.partition, self.first_counter)..ids::key(self.partition, self.next_counter)).contains(&key)
    }

    pub fn process(&self, definition: Key) -> Run<Arc<Process>> {
        self.base.process(definition).ok_or_else(|| Need::Process(definition).into())
    }

    /// Inserts or replaces a row.
    pub fn put<T: Stored>(&mut self, row: T) -> Run<Arc<T>> {
        let row = Arc::new(row);
        self.change(row.row_id(), Some(T::wrap(row.clone())))?;
        Ok(row)
    }

    pub fn delete(&mut self, id: RowId) -> Run<()> {
        self.change(id, None)
    }

    /// The row before must be known: its range entries and its digest go.
    fn change(&mut self, id: RowId, new: Option<Row>) -> Run<()> {
        let old = self.row(&id)?;
        if let Some(old) = &old {
            ranges::entries(old, |range, sort| self.note_entry(range, sort, false));
        }
        if let Some(new) = &new {
            ranges::entries(new, |range, sort| self.note_entry(range, sort, true));
        }
        self.changes.insert(id, new);
        Ok(())
    }

    fn note_entry(&mut self, range: RangeId, sort: SortKey, added: bool) {
        self.moved.entry(range).or_default().insert(sort, added);
    }

    /// A new row: its key comes from the counter, so that nothing can stand there.
    pub fn insert_new<T: Stored>(&mut self, row: T) -> Arc<T> {
        let row = Arc::new(row);
        let wrapped = T::wrap(row.clone());
        ranges::entries(&wrapped, |range, sort| self.note_entry(range, sort, true));
        self.changes.insert(row.row_id(), Some(wrapped));
        row
    }

    /// The first entry after `after` (from the begin where absent).
    pub fn next_in(&self, range: &RangeId, after: Option<&SortKey>) -> Run<Option<SortKey>> {
        let Some(view) = self.view(range) else {
            return Err(Need::Range(range.clone(), None).into());
        };
        let moved = self.moved.get(range);
        let is_removed = |sort: &SortKey| moved.is_some_and(|moved| moved.get(sort) == Some(&false));
        let lower = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let bounds = (lower, std::ops::Bound::Unbounded);
        let old = view.entries.range::<SortKey, _>(bounds).find(|sort| !is_removed(sort));
        let added = moved.and_then(|moved| moved.range::<SortKey, _>(bounds).find(|(_, added)| **added));
        let first = match (old, added.map(|(sort, _)| sort)) {
            (Some(old), Some(new)) => Some(old.min(new)),
            (old, new) => old.or(new),
        };
        match (first, view.frontier) {
            (Some(first), Some(frontier)) if first > frontier => {
                Err(Need::Range(range.clone(), Some(frontier.clone())).into())
            }
            (None, Some(frontier)) => Err(Need::Range(range.clone(), Some(frontier.clone())).into()),
            (first, _) => Ok(first.cloned()),
        }
    }

    fn view(&self, range: &RangeId) -> Option<RangeView<'_>> {
        static NOTHING: BTreeSet<SortKey> = BTreeSet::new();
        let of_one = match range {
            RangeId::Variables(key) | RangeId::Elements(key) | RangeId::Steps(key) => Some(*key),
            _ => None,
        };
        if of_one.is_some_and(|key| self.is_new(key)) {
            return Some(RangeView { entries: &NOTHING, frontier: None });
        }
        self.base.range(range)
    }

    /// Up to `limit` entries from the begin.
    pub fn first_in(&self, range: &RangeId, limit: usize) -> Run<Vec<SortKey>> {
        self.some_in(range, None, limit)
    }

    /// Up to `limit` entries after `after` (from the begin where absent).
    pub fn some_in(&self, range: &RangeId, after: Option<&SortKey>, limit: usize) -> Run<Vec<SortKey>> {
        let mut found: Vec<SortKey> = Vec::new();
        while found.len() < limit {
            match self.next_in(range, found.last().or(after))? {
                Some(sort) => found.push(sort),
                None => break,
            }
        }
        Ok(found)
    }
}

/// The key without which the row cannot exist.
fn owner(id: &RowId) -> Option<Key> {
    match id {
        RowId::Variable { scope: key, .. } | RowId::Element { scope: key, .. } | RowId::Step { job: key, .. } => {
            Some(*key)
        }
        RowId::Definition(key)
        | RowId::Scope(key)
        | RowId::Job(key)
        | RowId::Timer(key)
        | RowId::Subscription(key)
        | RowId::Message(key)
        | RowId::Incident(key)
        | RowId::FollowUp(key) => Some(*key),
        RowId::StartSubscription { .. }
        | RowId::MessageId { .. }
        | RowId::StartLock { .. }
        | RowId::Unique { .. }
        | RowId::Handover { .. } => None,
    }
}
