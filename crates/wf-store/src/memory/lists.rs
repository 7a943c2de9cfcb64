//! Lists and details: filters over the maps, pages cut behind the limit. A malformed cursor is an empty page.
//! Next: `report.rs`, what is counted.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;
use std::sync::Arc;

use wf_core::rows::{
    Definition, Element, Incident, Job, Scope, ScopeState, Stored, Subscription, Text, Timer, Variable,
};
use wf_core::{Key, Millis, RangeId, RowId, ranges};

use crate::codec::scalar_text;
use crate::memory::state::{State, Tables};
use crate::outbox::{OutboxId, OutboxRow};
use crate::query::*;

impl State {
    /// Every partition has a copy of each definition; the first one's stand for all.
    pub(super) fn definitions(&self, query: &DefinitionQuery) -> Page<DefinitionInfo> {
        let wanted =
            |row: &&Arc<Definition>| row.tenant == query.tenant && is_in(query.process_id.as_deref(), &row.process_id);
        let Ok(after) = cursor(&query.slice) else { return empty() };
        let rows = self.first().map(|tables| tables.keyed(RowId::Definition, after)).into_iter().flatten();
        cut(rows.filter(wanted).map(|row| info(row)), query.slice.limit, |row| row.key.to_string())
    }

    pub(super) fn definition(&self, tenant: &str, process_id: &str, version: Option<u32>) -> Option<Arc<Definition>> {
        let versions = RangeId::Versions { tenant: tenant.into(), process_id: process_id.into() };
        let tables = self.first()?;
        let mut all = tables.ranges.get(&versions)?.iter().filter_map(|sort| ranges::row_at(&versions, sort));
        all.find_map(|id| {
            let row = tables.rows.get(&id).and_then(Definition::unwrap)?;
            version.is_none_or(|version| version == row.version).then(|| row.clone())
        })
    }

    fn first(&self) -> Option<&Tables> {
        Some(&self.partitions.get(&self.numbers.first())?.tables)
    }

    /// Partitions count their keys apart: by the start first, which within one partition is the same order.
    pub(super) fn instances(&self, query: &InstanceQuery) -> Page<Arc<Scope>> {
        let Ok(after) = cursor::<InstanceCursor>(&query.slice) else { return empty() };
        let mut wanted: Vec<(InstanceCursor, &Arc<Scope>)> = Vec::new();
        for tables in self.tables() {
            let roots = tables.keyed::<Scope>(RowId::Scope, None).filter(|root| tables.is_wanted(root, query));
            wanted.extend(roots.map(|root| (InstanceCursor::of(root), root)));
        }
        wanted.retain(|(at, _)| after.as_ref().is_none_or(|after| at < after));
        wanted.sort_by(|(a, _), (b, _)| b.cmp(a));
        let rows = wanted.into_iter().map(|(_, root)| root.clone());
        cut(rows, query.slice.limit, |root| InstanceCursor::of(root).to_string())
    }

    pub(super) fn instance(&self, instance: Key) -> Option<InstanceDetail> {
        self.tables().find_map(|tables| tables.instance(instance))
    }

    pub(super) fn jobs(&self, query: &JobQuery) -> Page<Arc<Job>> {
        let wanted = |row: &&Arc<Job>| {
            row.tenant == query.tenant
                && is_in(query.job_type.as_deref(), &row.job_type)
                && query.state.is_none_or(|state| state == row.state)
                && query.instance.is_none_or(|instance| instance == row.root)
        };
        let Ok(after) = cursor(&query.slice) else { return empty() };
        let rows = self.merged(query.slice.limit, |tables| tables.keyed(RowId::Job, after).filter(wanted));
        cut(rows, query.slice.limit, |row| row.key.to_string())
    }

    pub(super) fn incidents(&self, query: &IncidentQuery) -> Page<Arc<Incident>> {
        let wanted = |row: &&Arc<Incident>| {
            row.tenant == query.tenant && query.instance.is_none_or(|instance| instance == row.root)
        };
        let Ok(after) = cursor(&query.slice) else { return empty() };
        let rows = self.merged(query.slice.limit, |tables| tables.keyed(RowId::Incident, after).filter(wanted));
        cut(rows, query.slice.limit, |row| row.key.to_string())
    }

    /// What each partition has in order, of all of them in order; as many as a page and its successor may want.
    fn merged<'a, T: Stored + 'a, I: Iterator<Item = &'a Arc<T>>>(
        &'a self,
        limit: usize,
        of: impl Fn(&'a Tables) -> I,
    ) -> impl Iterator<Item = Arc<T>> {
        let mut rows: Vec<Arc<T>> =
            self.tables().flat_map(|tables| of(tables).take(limit.saturating_add(1))).cloned().collect();
        rows.sort_by_key(|row| row.row_id());
        rows.into_iter()
    }

    pub(super) fn outbox_page(&self, query: &OutboxQuery) -> Page<OutboxRow> {
        let Ok(after) = cursor::<OutboxCursor>(&query.slice) else { return empty() };
        let lower = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.0));
        let rows = self.outbox.range((lower, Bound::Unbounded)).map(|(_, shipment)| &shipment.row);
        let wanted = rows.filter(|row| {
            row.entry.tenant == query.tenant
                && query.state.is_none_or(|state| state == row.state)
                && query.id.as_ref().is_none_or(|id| *id == row.entry.id)
        });
        cut(wanted.cloned(), query.slice.limit, |row| {
            let id = &row.entry.id;
            format!("{}-{}-{}-{}", id.partition, id.position, id.n, id.sink)
        })
    }

    pub(super) fn audit(&self, query: &AuditQuery) -> Page<AuditRow> {
        let Ok(after) = cursor::<AuditCursor>(&query.slice) else { return empty() };
        let from = Bound::Included((query.partition, query.from.unwrap_or(0)));
        let behind = after.map_or(Bound::Unbounded, |after| Bound::Excluded((after.0, after.1)));
        let end = match query.until {
            Some(until) => (query.partition, until),
            None if query.is_alone => (query.partition, u64::MAX),
            None => (u16::MAX, u64::MAX),
        };
        let entries = self.audit.range((from, Bound::Unbounded)).take_while(|(at, _)| **at <= end);
        let mine =
            entries.filter(|(at, entry)| entry.tenant == query.tenant && (behind, Bound::Unbounded).contains(*at));
        let rows = mine.map(|((partition, position), entry)| AuditRow {
            partition: *partition,
            position: *position,
            time: entry.time,
            actor: entry.actor.clone(),
            events: entry.events.clone(),
        });
        cut(rows, query.slice.limit, |row| format!("{}-{}", row.partition, row.position))
    }

    pub(super) fn all<T: Stored>(&self, wanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        self.tables().flat_map(|tables| tables.all(&wanted)).collect()
    }
}

impl Tables {
    fn is_wanted(&self, root: &Scope, query: &InstanceQuery) -> bool {
        root.instance.as_ref().is_some_and(|instance| {
            instance.tenant == query.tenant
                && is_in(query.process_id.as_deref(), &instance.process_id)
                && query.state.is_none_or(|state| state == state_of(root))
                && query.started_after.is_none_or(|after| instance.started_at > after)
        }) && query.variables.iter().all(|(name, text)| {
            let id = RowId::Variable { scope: root.key, name: name.as_str().into() };
            let variable = self.rows.get(&id).and_then(Variable::unwrap);
            variable.is_some_and(|variable| scalar_text(&variable.value).as_ref() == Some(text))
        })
    }

    fn instance(&self, instance: Key) -> Option<InstanceDetail> {
        let root = self.rows.get(&RowId::Scope(instance)).and_then(Scope::unwrap)?;
        root.instance.as_ref()?;
        let mut elements: Vec<_> = self.all(|row: &Element| row.root == instance);
        elements.sort_by_key(|element| element.key);
        Some(InstanceDetail {
            root: root.clone(),
            scopes: self.all(|row: &Scope| row.root == instance),
            elements,
            variables: self.all(|row: &Variable| row.scope == instance),
            jobs: self.all(|row: &Job| row.root == instance),
            timers: self.all(|row: &Timer| row.root == instance),
            // Those with scope 0 are copies, at the messages' partitions.
            subscriptions: self.all(|row: &Subscription| row.root == instance && row.scope != 0),
            incidents: self.all(|row: &Incident| row.root == instance),
        })
    }

    /// The rows of a table with one key, in its order, after the cursor.
    fn keyed<'a, T: Stored + 'a>(
        &'a self,
        id: fn(Key) -> RowId,
        after: Option<Key>,
    ) -> impl Iterator<Item = &'a Arc<T>> {
        let lower = after.map_or(Bound::Included(id(0)), |after| Bound::Excluded(id(after)));
        self.rows.range((lower, Bound::Included(id(Key::MAX)))).filter_map(|(_, row)| T::unwrap(row))
    }

    fn all<T: Stored>(&self, wanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        self.rows.values().filter_map(T::unwrap).filter(|row| wanted(row)).cloned().collect()
    }
}

fn is_in(asked: Option<&str>, text: &Text) -> bool {
    asked.is_none_or(|asked| asked == &**text)
}

fn state_of(root: &Scope) -> InstanceState {
    match root.state {
        ScopeState::Active | ScopeState::Terminating => InstanceState::Active,
        ScopeState::Completed => InstanceState::Completed,
        ScopeState::Canceled => InstanceState::Canceled,
    }
}

fn info(row: &Definition) -> DefinitionInfo {
    DefinitionInfo {
        key: row.key,
        process_id: row.process_id.clone(),
        version: row.version,
        resource: row.resource.clone(),
        deployed_at: row.deployed_at,
    }
}

pub(super) struct Malformed;

/// Where the page begins; `None`: at the first item.
pub(super) fn cursor<T: FromStr>(slice: &Slice) -> Result<Option<T>, Malformed> {
    slice.after.as_deref().map(|text| text.parse().map_err(|_| Malformed)).transpose()
}

/// Where an instance stands among all: its start and its key.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct InstanceCursor(Millis, Key);

impl InstanceCursor {
    fn of(root: &Scope) -> InstanceCursor {
        InstanceCursor(root.instance.as_ref().map_or(0, |instance| instance.started_at), root.key)
    }
}

impl fmt::Display for InstanceCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0, self.1)
    }
}

impl FromStr for InstanceCursor {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<InstanceCursor, Malformed> {
        let (started_at, key) = text.split_once(':').ok_or(Malformed)?;
        Ok(InstanceCursor(started_at.parse().map_err(|_| Malformed)?, key.parse().map_err(|_| Malformed)?))
    }
}

/// Partition and position.
struct AuditCursor(u16, u64);

impl FromStr for AuditCursor {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<AuditCursor, Malformed> {
        let (partition, position) = text.split_once('-').ok_or(Malformed)?;
        Ok(AuditCursor(partition.parse().map_err(|_| Malformed)?, position.parse().map_err(|_| Malformed)?))
    }
}

struct OutboxCursor(OutboxId);

impl FromStr for OutboxCursor {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<OutboxCursor, Malformed> {
        let mut parts = text.splitn(4, '-');
        let mut part = || parts.next().ok_or(Malformed);
        let partition = part()?.parse().map_err(|_| Malformed)?;
        let position = part()?.parse().map_err(|_| Malformed)?;
        let n = part()?.parse().map_err(|_| Malformed)?;
        Ok(OutboxCursor(OutboxId { partition, position, n, sink: part()?.into() }))
    }
}

fn empty<T>() -> Page<T> {
    Page { items: Vec::new(), next: None }
}

/// One item more than asked tells that another page follows.
pub(super) fn cut<T>(rows: impl Iterator<Item = T>, limit: usize, cursor: impl Fn(&T) -> String) -> Page<T> {
    let mut items: Vec<T> = rows.take(limit.saturating_add(1)).collect();
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(cursor);
    Page { items, next }
}
