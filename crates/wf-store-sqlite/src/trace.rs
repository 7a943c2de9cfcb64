//! One request followed through all layers, by indexes that are there for turns and sweeps. What has none of its own
//! (the audit by instance, repeats by key) is read along another order, slice by slice, and given up after a while.
//! It judges nothing. Next: `sql/trace.sql`.

use std::sync::Arc;

use rusqlite::{Params, Result, Row, params};
use wf_core::rows::Text;
use wf_core::{Key, Millis};
use wf_store::*;

use crate::open::SqliteStore;
use crate::readers::Reader;
use crate::rows::{key_of, sql_key};
use crate::sql::{Sql, Statements};
use crate::{lists, outbox, records};

/// Rows of one snapshot.
const SLICE_ROWS: usize = 8192;
/// Look-ups of one search for repeats: a second at most.
const PROBES_MAX: usize = 500_000;
const MINUTE_MS: Millis = 60_000;

impl Trace for SqliteStore {
    fn filed(&self, id: RecordId) -> Later<'_, Result<Option<Filed>, StoreError>> {
        let read = move |statements: &mut Statements| {
            all(statements, Sql::GetFiled, params![records::id_of(&id)], filed).map(|mut found| found.pop())
        };
        Box::pin(self.readers.list(move |reader| reader.snapshot(read)))
    }

    fn filed_at(&self, query: FiledQuery) -> Later<'_, Result<Vec<Filed>, StoreError>> {
        Box::pin(self.readers.list(move |reader| reader.snapshot(|statements| filed_at(statements, &query))))
    }

    fn logged(&self, query: LoggedQuery) -> Later<'_, Result<Vec<Logged>, StoreError>> {
        Box::pin(self.readers.list(move |reader| reader.snapshot(|statements| logged(statements, &query))))
    }

    fn trail(&self, query: TrailQuery) -> Later<'_, Result<Trail, StoreError>> {
        Box::pin(self.readers.list(move |reader| trail(reader, &query)))
    }

    fn outbox_of(
        &self,
        tenant: Text,
        _partition: u16,
        positions: Vec<u64>,
    ) -> Later<'_, Result<Vec<OutboxRow>, StoreError>> {
        Box::pin(self.readers.list(move |reader| {
            reader.snapshot(|statements| {
                let mut found = Vec::new();
                for position in &positions {
                    let params = params![sql_key(*position), tenant];
                    found.extend(all(statements, Sql::OutboxOf, params, outbox::outbox_row)?);
                }
                Ok(found)
            })
        }))
    }

    fn repeats(&self, query: RepeatsQuery) -> Later<'_, Result<Repeats, StoreError>> {
        Box::pin(self.readers.list(move |reader| repeats(reader, query)))
    }
}

fn all<T>(
    statements: &mut Statements,
    sql: Sql,
    params: impl Params,
    read: impl FnMut(&Row) -> Result<T>,
) -> Result<Vec<T>> {
    statements.get(sql)?.query_map(params, read)?.collect()
}

fn filed(row: &Row) -> Result<Filed> {
    Ok(Filed {
        record: Arc::new(records::record(row)?),
        key: row.get(12)?,
        key_hash: row.get(13)?,
        route: row.get(14)?,
    })
}

fn filed_at(statements: &mut Statements, query: &FiledQuery) -> Result<Vec<Filed>> {
    let (begin, end) = (records::slot_at(query.expires_at), records::slot_at(query.expires_at.saturating_add(1)));
    let params = params![begin, end, query.tenant, query.created_at, limit(query.limit)];
    let mut found = all(statements, Sql::FiledAt, params, filed)?;
    found.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(found)
}

fn logged(statements: &mut Statements, query: &LoggedQuery) -> Result<Vec<Logged>> {
    let tenant = &query.tenant;
    let mut found = match query.which {
        Which::Id(id) => all(statements, Sql::LoggedId, params![id, tenant], logged_row)?,
        Which::Position { position, .. } => {
            all(statements, Sql::LoggedPosition, params![sql_key(position), tenant], logged_row)?
        }
        Which::At { time, verb, limit: rows } => {
            let params = params![time_of(time), time_of(time.saturating_add(1)), tenant, verb, limit(rows)];
            all(statements, Sql::LoggedAt, params, logged_row)?
        }
    };
    found.sort_by_key(|command| command.position);
    Ok(found)
}

/// How the ids of this time begin.
fn time_of(time: Millis) -> [u8; 6] {
    let [_, _, six @ ..] = time.to_be_bytes();
    six
}

fn logged_row(row: &Row) -> Result<Logged> {
    Ok(Logged {
        partition: row.get(0)?,
        position: key_of(row.get(1)?),
        id: row.get(2)?,
        time: row.get(3)?,
        verb: row.get(4)?,
        payload: row.get(5)?,
    })
}

fn trail(reader: &Reader, query: &TrailQuery) -> Result<Trail, StoreError> {
    let root = root_member(query.instance);
    let mut trail = Trail::default();
    let (mut from, mut left) = (query.from, query.passed_max);
    loop {
        // One row more than may be passed: it tells whether there is anything behind them.
        let rows_max = left.min(SLICE_ROWS);
        let found = reader.snapshot(|statements| {
            let until = i64::try_from(query.until).unwrap_or(i64::MAX);
            let params = params![query.tenant, root, sql_key(from), until, limit(rows_max + 1)];
            let found = all(statements, Sql::ScanOfInstance, params, |row| Ok((key_of(row.get(0)?), row.get(1)?)))?;
            trail.next = take_trail(statements, query, &mut trail.rows, &found[..found.len().min(rows_max)])?;
            Ok(found)
        })?;
        left -= rows_max;
        let behind = found.get(rows_max).map(|(position, _)| *position);
        match behind {
            Some(next) if trail.next.is_none() && left > 0 => from = next,
            _ => {
                trail.next = trail.next.or(behind);
                return Ok(trail);
            }
        }
    }
}

/// Takes what is wanted of one slice; the first that is too much, if any.
fn take_trail(
    statements: &mut Statements,
    query: &TrailQuery,
    rows: &mut Vec<AuditRow>,
    found: &[(Key, bool)],
) -> Result<Option<Key>> {
    let wanted = found.iter().filter(|(_, is_wanted)| *is_wanted).map(|(position, _)| sql_key(*position));
    let wanted: Vec<i64> = wanted.collect();
    let (taken, more) = wanted.split_at(wanted.len().min(query.limit - rows.len()));
    rows.extend(lists::audit_rows(statements, taken)?);
    Ok(more.first().map(|position| key_of(*position)))
}

/// From minute to minute, and there to each subject.
fn repeats(reader: &Reader, mut query: RepeatsQuery) -> Result<Repeats, StoreError> {
    query.subjects.sort_unstable();
    query.subjects.dedup();
    let mut search = Search { found: Repeats::default(), minute: Some(query.since.div_euclid(MINUTE_MS)), probes: 0 };
    while search.minute.is_some() && !search.found.is_cut {
        reader.snapshot(|statements| search.slice(statements, &query))?;
    }
    Ok(search.found)
}

struct Search {
    found: Repeats,
    /// Where the next slice begins; `None` at the end.
    minute: Option<i64>,
    probes: usize,
}

impl Search {
    fn slice(&mut self, statements: &mut Statements, query: &RepeatsQuery) -> Result<()> {
        let probes_max = self.probes + SLICE_ROWS;
        while let Some(begin) = self.minute.filter(|_| self.probes < probes_max) {
            let next: Vec<i64> = all(statements, Sql::NextMinute, [begin], |row| row.get(0))?;
            self.minute = next.first().copied();
            let Some(minute) = self.minute else { break };
            self.probes += 1 + query.subjects.len();
            for subject in &query.subjects {
                let params = params![minute, query.tenant, subject];
                let rows = all(statements, Sql::RepeatsOf, params, records::suppressed)?;
                self.found.rows.extend(rows.into_iter().map(|row| Suppressed { minute, ..row }));
            }
            self.minute = minute.checked_add(1);
            if self.found.rows.len() > query.limit || self.probes >= PROBES_MAX {
                self.found.rows.truncate(query.limit);
                self.found.is_cut = true;
                break;
            }
        }
        Ok(())
    }
}

fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}
