//! What a turn asks for, from one snapshot, in the caller's thread: it stands on the path of every command.
//! Known-absent is an answer. Next: `rows.rs`; the lists that nobody waits for in a turn are in `lists.rs`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rusqlite::{Params, Result, Row as SqlRow, params};
use wf_core::ranges::{self, Due};
use wf_core::rows::Text;
use wf_core::{Need, RangeId, Row, RowId, SortKey};
use wf_store::{Loaded, LoadedRange, Needs, RANGE_MAX};

use crate::rows::{self, key_of, sql_key};
use crate::sql::{Sql, Statements};
use crate::{outbox, records};

pub fn load(statements: &mut Statements, needs: &Needs) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    let mut rows = Rows::default();
    for need in &needs.core {
        match need {
            Need::Row(id) => rows.read(statements, id.clone())?,
            Need::Process(key) => rows.read(statements, RowId::Definition(*key))?,
            Need::Range(id, after) => loaded.ranges.push(load_range(statements, id, after.as_ref(), &mut rows)?),
        }
    }
    loaded.rows = rows.0.into_iter().collect();
    for id in &needs.records {
        loaded.records.push((id.clone(), records::get(statements, id)?));
    }
    for id in &needs.commands {
        loaded.commands.push((*id, statements.get(Sql::HasCommand)?.exists([id])?));
    }
    for id in &needs.outbox {
        loaded.outbox.push((id.clone(), outbox::get(statements, id)?));
    }
    Ok(loaded)
}

/// Each row once, whether asked for itself or brought by a range.
#[derive(Default)]
struct Rows(BTreeMap<RowId, Option<Row>>);

impl Rows {
    fn read(&mut self, statements: &mut Statements, id: RowId) -> Result<()> {
        if let Entry::Vacant(place) = self.0.entry(id) {
            let row = rows::read(statements, place.key())?;
            place.insert(row);
        }
        Ok(())
    }
}

/// One entry more than a page holds is read: it tells whether the page is the last.
const LIMIT: usize = RANGE_MAX + 1;

fn load_range(
    statements: &mut Statements,
    id: &RangeId,
    after: Option<&SortKey>,
    rows: &mut Rows,
) -> Result<LoadedRange> {
    let mut entries = match id {
        // Their rows are clustered in the range's order: one read brings both.
        RangeId::Elements(_) | RangeId::Variables(_) | RangeId::Steps(_) => whole_rows(statements, id, after, rows)?,
        _ => sort_keys(statements, id, after)?,
    };
    let complete = entries.len() < LIMIT;
    entries.truncate(RANGE_MAX);
    for row_id in entries.iter().filter_map(|sort| ranges::row_at(id, sort)) {
        rows.read(statements, row_id)?;
    }
    Ok(LoadedRange { id: id.clone(), after: after.cloned(), entries, complete })
}

fn whole_rows(
    statements: &mut Statements,
    id: &RangeId,
    after: Option<&SortKey>,
    rows: &mut Rows,
) -> Result<Vec<SortKey>> {
    let mut sorts = Vec::new();
    let mut take = |row: Row| {
        ranges::entries(&row, |_, sort| sorts.push(sort));
        rows.0.insert(row.id(), Some(row));
    };
    let (name, excluded) = names_after(after);
    match id {
        RangeId::Elements(scope) => {
            let params = params![sql_key(*scope), key_after(after), LIMIT as i64];
            each(statements, Sql::Elements, params, |row| {
                take(Row::Element(rows::element(row)?.into()));
                Ok(())
            })?;
        }
        RangeId::Variables(scope) => {
            each(statements, Sql::Variables, params![sql_key(*scope), name, excluded, LIMIT as i64], |row| {
                take(Row::Variable(rows::variable(row)?.into()));
                Ok(())
            })?;
        }
        RangeId::Steps(job) => {
            each(statements, Sql::Steps, params![sql_key(*job), name, excluded, LIMIT as i64], |row| {
                take(Row::Step(rows::step(row)?.into()));
                Ok(())
            })?;
        }
        _ => (),
    }
    Ok(sorts)
}

fn each(
    statements: &mut Statements,
    sql: Sql,
    params: impl Params,
    mut take: impl FnMut(&SqlRow) -> Result<()>,
) -> Result<()> {
    let mut rows = statements.get(sql)?.query(params)?;
    while let Some(row) = rows.next()? {
        take(row)?;
    }
    Ok(())
}

/// Statements of ranges that select rank, key and name.
fn sort_keys(statements: &mut Statements, id: &RangeId, after: Option<&SortKey>) -> Result<Vec<SortKey>> {
    let limit = LIMIT as i64;
    let (rank, key) = rank_after(after);
    let (name, excluded) = names_after(after);
    let mut sorts = |sql, params: &[&dyn rusqlite::ToSql]| -> Result<Vec<SortKey>> {
        statements.get(sql)?.query_map(params, sort_key)?.collect()
    };
    match id {
        RangeId::Versions { tenant, process_id } => {
            sorts(Sql::DefinitionVersions, &[tenant, process_id, &rank, &key, &limit])
        }
        RangeId::MessageStarts { tenant, message } => {
            sorts(Sql::MessageStarts, &[tenant, message, &name, &excluded, &limit])
        }
        RangeId::Ready { tenant, job_type } => sorts(Sql::ReadyJobs, &[tenant, job_type, &rank, &key, &limit]),
        RangeId::Due(Due::MessageIds) => due_message_ids(statements, after),
        RangeId::Due(due) => sorts(due_statement(*due), &[&rank, &key, &limit]),
        RangeId::Subscriptions { tenant, message, correlation_key } => {
            sorts(Sql::Subscriptions, &[tenant, message, correlation_key, &key, &limit])
        }
        RangeId::Buffered { tenant, message, correlation_key } => {
            sorts(Sql::Buffered, &[tenant, message, correlation_key, &key, &limit])
        }
        RangeId::FollowUps => sorts(Sql::FollowUps, &[&key, &limit]),
        RangeId::Elements(_) | RangeId::Variables(_) | RangeId::Steps(_) => Ok(Vec::new()),
    }
}

fn due_statement(due: Due) -> Sql {
    match due {
        Due::Timers => Sql::DueTimers,
        Due::Leases => Sql::DueLeases,
        Due::Backoffs => Sql::DueBackoffs,
        Due::Messages => Sql::DueMessages,
        Due::MessageIds => Sql::DueMessageIds,
        Due::Ended => Sql::DueEnded,
        Due::FinishedJobs => Sql::DueFinished,
    }
}

/// Ordered by the parts of the primary key behind time and key.
fn due_message_ids(statements: &mut Statements, after: Option<&SortKey>) -> Result<Vec<SortKey>> {
    let (rank, key) = rank_after(after);
    let id = after.and_then(|sort| ranges::row_at(&RangeId::Due(Due::MessageIds), sort));
    let empty = || Text::from("");
    let (tenant, name, message_id) = match id {
        Some(RowId::MessageId { tenant, name, message_id }) => (tenant, name, message_id),
        _ => (empty(), empty(), empty()),
    };
    let params = params![rank, key, tenant, name, message_id, LIMIT as i64];
    statements.get(Sql::DueMessageIds)?.query_map(params, sort_key)?.collect()
}

fn sort_key(row: &SqlRow) -> Result<SortKey> {
    let (rank, key) = (row.get(0)?, key_of(row.get(1)?));
    Ok(match row.get_ref(2)?.as_str()? {
        "" => SortKey::by_rank(rank, key),
        name => SortKey { rank, key, name: name.into() },
    })
}

/// What stands before every entry: no key is negative.
fn rank_after(after: Option<&SortKey>) -> (i64, i64) {
    after.map_or((i64::MIN, -1), |sort| (sort.rank, sql_key(sort.key)))
}

fn key_after(after: Option<&SortKey>) -> i64 {
    rank_after(after).1
}

/// The least name wanted, and the one that is not: an empty name may be an entry.
fn names_after(after: Option<&SortKey>) -> (&str, Option<&str>) {
    after.map_or(("", None), |sort| (&sort.name, Some(&sort.name)))
}
