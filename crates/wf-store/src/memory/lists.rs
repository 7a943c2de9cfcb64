//! Lists and details: filters over the maps, pages cut behind the limit. A malformed cursor is an empty page.
//! Next: `report.rs`, what is counted.

use std::ops::Bound;
use std::str::FromStr;
use std::sync::Arc;

use wf_core::rows::{
    Definition, Element, Incident, Job, Scope, ScopeState, Stored, Subscription, Text, Timer, Variable,
};
use wf_core::{Key, RangeId, RowId, ranges};

use crate::codec::scalar_text;
use crate::memory::State;
use crate::outbox::{OutboxId, OutboxRow};
use crate::query::*;

impl State {
    pub(super) fn definitions(&self, query: &DefinitionQuery) -> Page<DefinitionInfo> {
        let wanted =
            |row: &&Arc<Definition>| row.tenant == query.tenant && is_in(query.process_id.as_deref(), &row.process_id);
        let Ok(after) = cursor(&query.slice) else { return empty() };
        let rows = self.keyed(RowId::Definition, after).filter(wanted);
        cut(rows.map(|row| info(row)), query.slice.limit, |row| row.key.to_string())
    }

    pub(super) fn definition(&self, tenant: &str, process_id: &str, version: Option<u32>) -> Option<Arc<Definition>> {
        let versions = RangeId::Versions { tenant: tenant.into(), process_id: process_id.into() };
        let mut all = self.ranges.get(&versions)?.iter().filter_map(|sort| ranges::row_at(&versions, sort));
        all.find_map(|id| {
            let row = self.rows.get(&id).and_then(Definition::unwrap)?;
            version.is_none_or(|version| version == row.version).then(|| row.clone())
        })
    }

    pub(super) fn instances(&self, query: &InstanceQuery) -> Page<Arc<Scope>> {
        let Ok(after) = cursor::<Key>(&query.slice) else { return empty() };
        let upper = after.map_or(Bound::Included(RowId::Scope(Key::MAX)), |key| Bound::Excluded(RowId::Scope(key)));
        let scopes = self.rows.range((Bound::Included(RowId::Scope(0)), upper)).rev();
        let wanted = scopes.filter_map(|(_, row)| Scope::unwrap(row)).filter(|row| self.is_wanted(row, query));
        cut(wanted.cloned(), query.slice.limit, |row| row.key.to_string())
    }

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

    pub(super) fn instance(&self, instance: Key) -> Option<InstanceDetail> {
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
            subscriptions: self.all(|row: &Subscription| row.root == instance),
            incidents: self.all(|row: &Incident| row.root == instance),
        })
    }

    pub(super) fn jobs(&self, query: &JobQuery) -> Page<Arc<Job>> {
        let wanted = |row: &&Arc<Job>| {
            row.tenant == query.tenant
                && is_in(query.job_type.as_deref(), &row.job_type)
                && query.state.is_none_or(|state| state == row.state)
                && query.instance.is_none_or(|instance| instance == row.root)
        };
        let Ok(after) = cursor(&query.slice) else { return empty() };
        let rows = self.keyed(RowId::Job, after).filter(wanted);
        cut(rows.cloned(), query.slice.limit, |row| row.key.to_string())
    }

    pub(super) fn incidents(&self, query: &IncidentQuery) -> Page<Arc<Incident>> {
        let wanted = |row: &&Arc<Incident>| {
            row.tenant == query.tenant && query.instance.is_none_or(|instance| instance == row.root)
        };
        let Ok(after) = cursor(&query.slice) else { return empty() };
        let rows = self.keyed(RowId::Incident, after).filter(wanted);
        cut(rows.cloned(), query.slice.limit, |row| row.key.to_string())
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
            format!("{}-{}-{}", id.position, id.n, id.sink)
        })
    }

    pub(super) fn audit(&self, query: &AuditQuery) -> Page<AuditRow> {
        let Ok(after) = cursor::<u64>(&query.slice) else { return empty() };
        let from = query.from.unwrap_or(0).max(after.map_or(0, |after| after.saturating_add(1)));
        let entries = self
            .audit
            .range((from, 0)..)
            .take_while(|((position, _), _)| query.until.is_none_or(|until| *position <= until));
        let rows =
            entries.filter(|(_, entry)| entry.tenant == query.tenant).map(|((position, partition), entry)| AuditRow {
                partition: *partition,
                position: *position,
                time: entry.time,
                actor: entry.actor.clone(),
                events: entry.events.clone(),
            });
        cut(rows, query.slice.limit, |row| row.position.to_string())
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

    pub(super) fn all<T: Stored>(&self, wanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
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

struct OutboxCursor(OutboxId);

impl FromStr for OutboxCursor {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<OutboxCursor, Malformed> {
        let mut parts = text.splitn(3, '-');
        let mut part = || parts.next().ok_or(Malformed);
        let position = part()?.parse().map_err(|_| Malformed)?;
        let n = part()?.parse().map_err(|_| Malformed)?;
        Ok(OutboxCursor(OutboxId { position, n, sink: part()?.into() }))
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
