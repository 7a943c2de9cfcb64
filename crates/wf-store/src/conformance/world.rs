//! One owner of one partition, with a mirror of what it committed: the store is held against the mirror.
//! Next: `commits.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::panic::Location;
use std::sync::Arc;

use wf_core::{Command, Need, RangeId, Row, RowId, SortKey, ids, ranges};

use crate::batch::*;
use crate::codec::command_to_json;
use crate::load::{Loaded, LoadedRange, Needs, RANGE_MAX};
use crate::store::*;

pub const PARTITION: u16 = 1;
pub const TENANT: &str = "acme";

/// A broken promise: where in the suite, what was expected and what came.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

impl From<StoreError> for Failed {
    #[track_caller]
    fn from(error: StoreError) -> Failed {
        Failed(format!("{}: {error}", Location::caller()))
    }
}

impl From<CommitError> for Failed {
    #[track_caller]
    fn from(error: CommitError) -> Failed {
        Failed(format!("{}: {error}", Location::caller()))
    }
}

#[track_caller]
pub fn same<T: PartialEq + Debug>(what: &str, got: T, want: T) -> Result<(), Failed> {
    match got == want {
        true => Ok(()),
        false => Err(Failed(format!("{}: {what}\n  expected {want:?}\n  got      {got:?}", Location::caller()))),
    }
}

/// How a commit ended, in one word.
pub fn ending(result: &Result<(), CommitError>) -> &'static str {
    match result {
        Ok(()) => "committed",
        Err(CommitError::Fenced) => "fenced",
        Err(CommitError::Conflict(_)) => "conflict",
        Err(CommitError::Rejected(_)) => "rejected",
        Err(CommitError::Unavailable(_)) => "unavailable",
        Err(CommitError::Unknown(_)) => "unknown",
    }
}

pub struct World {
    pub store: Arc<dyn Store>,
    /// `new_position` is the last committed position.
    pub fence: Fence,
    pub head: Head,
    pub mirror: BTreeMap<RowId, Row>,
}

impl World {
    pub async fn open(store: Arc<dyn Store>) -> Result<World, Failed> {
        World::open_at(store, PARTITION).await
    }

    /// The owner of another partition of the same store.
    pub async fn open_at(store: Arc<dyn Store>, partition: u16) -> Result<World, Failed> {
        let opened = store.open(partition).await?;
        Ok(World { store, fence: opened.fence, head: opened.head, mirror: BTreeMap::new() })
    }

    /// Another owner of the same partition: this one is deposed.
    pub async fn take_over(&self) -> Result<World, Failed> {
        let mut other = World::open_at(self.store.clone(), self.fence.partition).await?;
        other.mirror = self.mirror.clone();
        Ok(other)
    }

    /// A turn of one command at the next position; it changes nothing yet.
    pub fn batch(&self) -> Batch {
        let old_position = self.fence.new_position;
        let new_position = old_position + 1;
        Batch {
            fence: Fence { old_position, new_position, ..self.fence },
            head: Head { next_counter: self.head.next_counter + 1, ..self.head },
            log: vec![log_entry_at(self.fence.partition, new_position)],
            ..Batch::default()
        }
    }

    pub fn change(&self, id: RowId, new: Option<Row>) -> Change {
        Change { existed: self.mirror.contains_key(&id), id, new }
    }

    pub async fn commit(&mut self, batch: Batch) -> Result<(), CommitError> {
        self.store.commit(Arc::new(batch.clone())).await?;
        self.fence = batch.fence;
        self.head = batch.head;
        for change in batch.rows {
            match change.new {
                Some(row) => self.mirror.insert(change.id, row),
                None => self.mirror.remove(&change.id),
            };
        }
        Ok(())
    }

    /// Commits the next batch as edited.
    pub async fn turn(&mut self, edit: impl FnOnce(&mut Batch)) -> Result<(), CommitError> {
        let mut batch = self.batch();
        edit(&mut batch);
        self.commit(batch).await
    }

    pub async fn put(&mut self, rows: impl IntoIterator<Item = Row>) -> Result<(), CommitError> {
        let mut batch = self.batch();
        batch.rows = rows.into_iter().map(|row| self.change(row.id(), Some(row))).collect();
        self.commit(batch).await
    }

    pub async fn delete(&mut self, ids: impl IntoIterator<Item = RowId>) -> Result<(), CommitError> {
        let mut batch = self.batch();
        batch.rows = ids.into_iter().map(|id| self.change(id, None)).collect();
        self.commit(batch).await
    }

    pub async fn load(&self, core: impl IntoIterator<Item = Need>) -> Result<Loaded, Failed> {
        Ok(self.store.load(Needs { core: core.into_iter().collect(), ..Needs::of(self.fence.partition) }).await?)
    }

    /// The store holds these rows as the mirror does, or knows their absence.
    pub async fn check_rows(&self, ids: impl IntoIterator<Item = RowId>) -> Result<(), Failed> {
        let ids: BTreeSet<RowId> = ids.into_iter().collect();
        let loaded = self.load(ids.iter().cloned().map(Need::Row)).await?;
        let rows: BTreeMap<RowId, Option<Row>> = loaded.rows.into_iter().collect();
        for id in ids {
            same("the row", rows.get(&id).cloned(), Some(self.mirror.get(&id).cloned()))?;
        }
        Ok(())
    }

    /// Every range in which a row of the mirror stands, and `others` beside them, are as the mirror has them.
    pub async fn check_ranges(&self, others: impl IntoIterator<Item = RangeId>) -> Result<(), Failed> {
        let mut want: BTreeMap<RangeId, BTreeSet<SortKey>> =
            others.into_iter().map(|id| (id, BTreeSet::new())).collect();
        for row in self.mirror.values() {
            ranges::entries(row, |range, sort| {
                want.entry(range).or_default().insert(sort);
            });
        }
        for (id, entries) in want {
            let pages = self.pages(&id).await?;
            let got: Vec<SortKey> = pages.into_iter().flat_map(|page| page.entries).collect();
            same(&format!("entries of {id:?}"), got, entries.into_iter().collect())?;
        }
        Ok(())
    }

    /// All pages of a range, each with its rows.
    pub async fn pages(&self, id: &RangeId) -> Result<Vec<LoadedRange>, Failed> {
        let mut pages = vec![self.page(id, None).await?];
        while let Some(last) = pages.last().filter(|page| !page.complete) {
            let Some(after) = last.entries.last().cloned() else {
                return Err(Failed(format!("an empty page of {id:?} is not complete")));
            };
            pages.push(self.page(id, Some(after)).await?);
        }
        Ok(pages)
    }

    pub async fn page(&self, id: &RangeId, after: Option<SortKey>) -> Result<LoadedRange, Failed> {
        let loaded = self.load([Need::Range(id.clone(), after.clone())]).await?;
        let rows: BTreeMap<RowId, Option<Row>> = loaded.rows.into_iter().collect();
        let mut pages = loaded.ranges.into_iter();
        let (Some(page), None) = (pages.next(), pages.next()) else {
            return Err(Failed(format!("not one page of {id:?}")));
        };
        same("which range", (&page.id, &page.after), (id, &after))?;
        same("entries of a page are bounded", page.entries.len() <= RANGE_MAX, true)?;
        for sort in &page.entries {
            let row = ranges::row_at(id, sort).ok_or_else(|| Failed(format!("no row can stand at {sort:?}")))?;
            same("a range brings its rows", rows.get(&row).cloned(), Some(self.mirror.get(&row).cloned()))?;
        }
        Ok(page)
    }
}

pub fn log_entry(position: u64) -> LogEntry {
    let command = Command::SetClock { now: position as i64, frozen: false };
    LogEntry {
        position,
        id: ids::hash16(&[&position.to_le_bytes()]),
        time: position as i64,
        tenant: TENANT.into(),
        verb: command.verb(),
        payload: command_to_json(&command),
        digest: u128::MAX - u128::from(position),
    }
}

/// Ids of commands differ between partitions, as those of an engine do.
pub fn log_entry_at(partition: u16, position: u64) -> LogEntry {
    let entry = log_entry(position);
    match partition {
        PARTITION => entry,
        _ => LogEntry { id: ids::hash16(&[&partition.to_le_bytes(), &position.to_le_bytes()]), ..entry },
    }
}

pub fn audit_entry(position: u64) -> AuditEntry {
    AuditEntry {
        position,
        time: position as i64,
        tenant: TENANT.into(),
        actor: "w-1".into(),
        events: format!("[{{\"type\":\"n-{position}\"}}]"),
        count: 1,
        chain: [position as u8; 32],
    }
}
