//! What a turn asks for, in one round trip (a second one where a key has a record): one statement for all rows of a table,
//! one for all ranges of a kind; its keys beside them, with those of other turns (`keys.rs`). They are not of one snapshot
//! and need not be: rows of a partition change by its own turns alone, and its engine puts what it has not seen committed
//! yet over what comes from here. Known-absent is an answer. Next: `rows.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio_postgres::Row as SqlRow;
use wf_core::ranges::{self, Due};
use wf_core::{Need, RangeId, Row, RowId, SortKey};
use wf_idempotency::record::Record;
use wf_store::{Loaded, LoadedRange, Needs, RANGE_MAX, RecordId, StoreError};

use crate::connection::Values;
use crate::keys;
use crate::open::PostgresStore;
use crate::reads::{Asked, Reader};
use crate::rows::{self, TABLES, Table, sql_key, sql_partition, table_of};
use crate::sql::Sql;

impl PostgresStore {
    pub(crate) async fn load_needs(&self, needs: &Needs) -> Result<Loaded, StoreError> {
        let ids = row_ids(needs);
        let wanted = wanted(needs, &ids);
        let asked = wanted.iter().map(|what| what.ask(needs)).collect();
        let known = self.keys.among(needs.records.iter().cloned().collect());
        let (answers, known) = futures_util::future::try_join(self.turns.pipelined(asked), known).await?;
        let rows = ids.iter().map(|id| (id.clone(), None)).collect();
        let mut found = Found { rows, loaded: Loaded::default() };
        for (what, answer) in wanted.iter().zip(&answers) {
            found.take(needs, what, answer)?;
        }
        found.loaded.rows = found.rows.into_iter().collect();
        found.loaded.records = each(&needs.records, get_records(&self.turns, &known).await?);
        Ok(found.loaded)
    }

    pub(crate) async fn find_record(&self, id: &RecordId) -> Result<Option<Arc<Record>>, StoreError> {
        let known = self.keys.among(vec![id.clone()]).await?;
        Ok(get_records(&self.turns, &known).await?.remove(id))
    }
}

/// The records of keys that are known; one that was swept meanwhile is not.
async fn get_records(reader: &Reader, known: &[RecordId]) -> Result<BTreeMap<RecordId, Arc<Record>>, StoreError> {
    if known.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found = reader.query(Sql::GetRecord, keys::columns(known)).await?;
    found.iter().map(|row| Ok((rows::record_id(row)?, Arc::new(rows::record(row)?)))).collect()
}

fn row_ids(needs: &Needs) -> BTreeSet<RowId> {
    let id = |need: &Need| match need {
        Need::Row(id) => Some(id.clone()),
        Need::Process(key) => Some(RowId::Definition(*key)),
        Need::Range(..) => None,
    };
    needs.core.iter().filter_map(id).collect()
}

/// One statement, and what its answer is.
enum Wanted<'a> {
    Rows(Table, Vec<&'a RowId>),
    Ranges(Kind, Vec<RangeNeed<'a>>),
    Commands,
    Outbox,
    Elsewhere,
}

/// A range from an entry on.
type RangeNeed<'a> = (&'a RangeId, Option<&'a SortKey>);

fn wanted<'a>(needs: &'a Needs, ids: &'a BTreeSet<RowId>) -> Vec<Wanted<'a>> {
    let mut by_table: BTreeMap<Table, Vec<&RowId>> = BTreeMap::new();
    for id in ids {
        by_table.entry(table_of(id)).or_default().push(id);
    }
    let mut by_kind: BTreeMap<Kind, Vec<RangeNeed>> = BTreeMap::new();
    for need in &needs.core {
        if let Need::Range(id, after) = need {
            by_kind.entry(Kind::of(id)).or_default().push((id, after.as_ref()));
        }
    }
    let mut wanted: Vec<Wanted> = by_table.into_iter().map(|(table, ids)| Wanted::Rows(table, ids)).collect();
    wanted.extend(by_kind.into_iter().map(|(kind, ranges)| Wanted::Ranges(kind, ranges)));
    let others = [
        (!needs.commands.is_empty(), Wanted::Commands),
        (!needs.outbox.is_empty(), Wanted::Outbox),
        (!needs.received_elsewhere.is_empty(), Wanted::Elsewhere),
    ];
    wanted.extend(others.into_iter().filter_map(|(is_wanted, what)| is_wanted.then_some(what)));
    wanted
}

impl<'a> Wanted<'a> {
    fn ask(&self, needs: &'a Needs) -> Asked<'a> {
        let partition = || Values::none().with(sql_partition(needs.partition));
        match self {
            Wanted::Rows(table, ids) => (TABLES[*table as usize].get, partition().and(rows::ids(*table, ids))),
            Wanted::Ranges(kind, ranges) => {
                let limit = Values::none().with(LIMIT as i64);
                (kind.statement().0, partition().and(range_values(*kind, ranges)).and(limit))
            }
            Wanted::Commands => {
                let ids: Vec<&[u8]> = needs.commands.iter().map(|id| &id[..]).collect();
                (Sql::HasCommand, Values::none().with(ids))
            }
            Wanted::Outbox => (Sql::GetOutbox, rows::outbox_ids(&needs.outbox.iter().collect::<Vec<_>>())),
            Wanted::Elsewhere => {
                let ids: Vec<&RowId> = needs.received_elsewhere.iter().collect();
                (Sql::ReceivedElsewhere, partition().and(rows::ids(Table::MessageId, &ids)))
            }
        }
    }
}

struct Found {
    /// Each row once, whether asked for itself or brought by a range.
    rows: BTreeMap<RowId, Option<Row>>,
    loaded: Loaded,
}

impl Found {
    fn take(&mut self, needs: &Needs, what: &Wanted, answer: &[SqlRow]) -> Result<(), StoreError> {
        match what {
            Wanted::Rows(table, _) => {
                for row in answer {
                    let row = rows::read(*table, row)?;
                    self.rows.insert(row.id(), Some(row));
                }
            }
            Wanted::Ranges(kind, ranges) => self.take_ranges(*kind, ranges, answer)?,
            Wanted::Commands => {
                let known = answer.iter().map(|row| rows::hash(row, 0)).collect::<Result<BTreeSet<[u8; 16]>, _>>()?;
                self.loaded.commands = needs.commands.iter().map(|id| (*id, known.contains(id))).collect();
            }
            Wanted::Outbox => {
                let found = answer.iter().map(|row| rows::outbox_row(row).map(|row| (row.entry.id.clone(), row)));
                self.loaded.outbox = each(&needs.outbox, found.collect::<Result<_, StoreError>>()?);
            }
            Wanted::Elsewhere => {
                let found = answer.iter().map(|row| rows::message_id(row).map(|row| (row.id(), Arc::new(row))));
                self.loaded.received_elsewhere =
                    each(&needs.received_elsewhere, found.collect::<Result<_, StoreError>>()?);
            }
        }
        Ok(())
    }

    fn take_ranges(&mut self, kind: Kind, ranges: &[RangeNeed], answer: &[SqlRow]) -> Result<(), StoreError> {
        let (_, table) = kind.statement();
        let mut pages: Vec<BTreeMap<SortKey, Row>> = vec![BTreeMap::new(); ranges.len()];
        for found in answer {
            // Behind the row's own columns stands which range it is of, from 1.
            let at: usize = rows::number(found, found.len() - 1)?;
            let (Some((id, _)), Some(page)) = (ranges.get(at.wrapping_sub(1)), pages.get_mut(at.wrapping_sub(1)))
            else {
                continue;
            };
            let row = rows::read(table, found)?;
            let mut sorts = Vec::with_capacity(1);
            ranges::entries(&row, |range, sort| sorts.extend((range == **id).then_some(sort)));
            page.extend(sorts.into_iter().map(|sort| (sort, row.clone())));
        }
        for ((id, after), page) in ranges.iter().zip(pages) {
            let complete = page.len() < LIMIT;
            let mut entries = Vec::with_capacity(page.len().min(RANGE_MAX));
            for (sort, row) in page.into_iter().take(RANGE_MAX) {
                entries.push(sort);
                self.rows.insert(row.id(), Some(row));
            }
            let (id, after) = ((*id).clone(), after.cloned());
            self.loaded.ranges.push(LoadedRange { id, after, entries, complete });
        }
        Ok(())
    }
}

/// Everything that was asked for, found or not.
fn each<K: Ord + Clone, V>(asked: &BTreeSet<K>, mut found: BTreeMap<K, V>) -> Vec<(K, Option<V>)> {
    asked.iter().map(|id| (id.clone(), found.remove(id))).collect()
}

/// One entry more than a page holds is read: it tells whether the page is the last.
const LIMIT: usize = RANGE_MAX + 1;

/// Ranges that one statement reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Versions,
    MessageStarts,
    Ready,
    Due(Due),
    Elements,
    Variables,
    Steps,
    Subscriptions,
    Buffered,
    FollowUps,
}

impl Kind {
    fn of(id: &RangeId) -> Kind {
        match id {
            RangeId::Versions { .. } => Kind::Versions,
            RangeId::MessageStarts { .. } => Kind::MessageStarts,
            RangeId::Ready { .. } => Kind::Ready,
            RangeId::Due(due) => Kind::Due(*due),
            RangeId::Elements(_) => Kind::Elements,
            RangeId::Variables(_) => Kind::Variables,
            RangeId::Steps(_) => Kind::Steps,
            RangeId::Subscriptions { .. } => Kind::Subscriptions,
            RangeId::Buffered { .. } => Kind::Buffered,
            RangeId::FollowUps => Kind::FollowUps,
        }
    }

    /// What reads it, and whose rows it brings.
    fn statement(self) -> (Sql, Table) {
        match self {
            Kind::Versions => (Sql::Versions, Table::Definition),
            Kind::MessageStarts => (Sql::MessageStarts, Table::StartSubscription),
            Kind::Ready => (Sql::ReadyJobs, Table::Job),
            Kind::Due(Due::Timers) => (Sql::DueTimers, Table::Timer),
            Kind::Due(Due::Leases) => (Sql::DueLeases, Table::Job),
            Kind::Due(Due::Backoffs) => (Sql::DueBackoffs, Table::Job),
            Kind::Due(Due::Messages) => (Sql::DueMessages, Table::Message),
            Kind::Due(Due::MessageIds) => (Sql::DueMessageIds, Table::MessageId),
            Kind::Due(Due::Ended) => (Sql::DueEnded, Table::Scope),
            Kind::Due(Due::FinishedJobs) => (Sql::DueFinished, Table::Job),
            Kind::Elements => (Sql::Elements, Table::Element),
            Kind::Variables => (Sql::Variables, Table::Variable),
            Kind::Steps => (Sql::Steps, Table::Step),
            Kind::Subscriptions => (Sql::Subscriptions, Table::Subscription),
            Kind::Buffered => (Sql::Buffered, Table::Message),
            Kind::FollowUps => (Sql::FollowUps, Table::FollowUp),
        }
    }
}

/// What names each range, and where in it the page begins.
fn range_values<'a>(kind: Kind, ranges: &[RangeNeed<'a>]) -> Values<'a> {
    let (names, owners) = (|at| column(ranges, |id, _| names_of(id)[at]), || column(ranges, |id, _| owner_of(id)));
    let rank = || column(ranges, |_, after| rank_after(after));
    let key = || column(ranges, |_, after| key_after(after));
    let least = || column(ranges, |_, after| after.map_or("", |sort| &*sort.name));
    let excluded = || column(ranges, |_, after| after.map(|sort| &*sort.name));
    let none = Values::none();
    match kind {
        Kind::Versions | Kind::Ready => none.with(names(0)).with(names(1)).with(rank()).with(key()),
        Kind::MessageStarts => none.with(names(0)).with(names(1)).with(least()).with(excluded()),
        Kind::Due(Due::MessageIds) => {
            let part = |at| column(ranges, |id, after| id_after(id, after, at));
            none.with(rank()).with(key()).with(part(0)).with(part(1)).with(part(2))
        }
        Kind::Due(_) => none.with(rank()).with(key()),
        Kind::Elements => none.with(owners()).with(key()),
        Kind::Variables | Kind::Steps => none.with(owners()).with(least()).with(excluded()),
        Kind::Subscriptions | Kind::Buffered => none.with(names(0)).with(names(1)).with(names(2)).with(key()),
        Kind::FollowUps => none.with(key()),
    }
}

fn column<'a, V>(ranges: &[RangeNeed<'a>], value: impl Fn(&'a RangeId, Option<&'a SortKey>) -> V) -> Vec<V> {
    ranges.iter().map(|(id, after)| value(id, *after)).collect()
}

fn names_of(id: &RangeId) -> [&str; 3] {
    match id {
        RangeId::Versions { tenant, process_id } => [tenant, process_id, ""],
        RangeId::MessageStarts { tenant, message } => [tenant, message, ""],
        RangeId::Ready { tenant, job_type } => [tenant, job_type, ""],
        RangeId::Subscriptions { tenant, message, correlation_key }
        | RangeId::Buffered { tenant, message, correlation_key } => [tenant, message, correlation_key],
        _ => ["", "", ""],
    }
}

fn owner_of(id: &RangeId) -> i64 {
    match id {
        RangeId::Elements(key) | RangeId::Variables(key) | RangeId::Steps(key) => sql_key(*key),
        _ => 0,
    }
}

/// What stands before every entry: no key is negative.
fn rank_after(after: Option<&SortKey>) -> i64 {
    after.map_or(i64::MIN, |sort| sort.rank)
}

fn key_after(after: Option<&SortKey>) -> i64 {
    after.map_or(-1, |sort| sql_key(sort.key))
}

/// Message ids of one time are ordered by the parts of their primary key, which the entry's name joins.
fn id_after(range: &RangeId, after: Option<&SortKey>, part: usize) -> String {
    match after.and_then(|sort| ranges::row_at(range, sort)) {
        Some(RowId::MessageId { tenant, name, message_id }) => [tenant, name, message_id][part].to_string(),
        _ => String::new(),
    }
}
