//! Lists and details for people and tools. A list passes rows slice by slice, each slice a snapshot of its own, so that
//! however long it takes no checkpoint waits for it; after a bounded number of rows it answers a short page.
//! Next: `uses.rs`, which counts.

use std::str::FromStr;
use std::sync::Arc;

use rusqlite::{Result, params};
use wf_core::rows::*;
use wf_core::{Key, RowId};
use wf_store::codec::scalar_text;
use wf_store::*;

use crate::PARTITION;
use crate::outbox;
use crate::readers::Reader;
use crate::rows::{self, job_state_name, key_of, sql_key};
use crate::sql::{Sql, Statements};

/// Rows of one snapshot.
const SLICE_ROWS: usize = 8192;
/// Rows that one page may pass; then it ends, however few were wanted.
const SCAN_ROWS_MAX: usize = 2_000_000;

pub fn definitions(reader: &Reader, query: &DefinitionQuery) -> Result<Page<DefinitionInfo>, StoreError> {
    let Some(after) = key_cursor(&query.slice) else { return Ok(empty()) };
    let mut items: Vec<DefinitionInfo> = reader.snapshot(|statements| {
        let params = params![query.tenant, query.process_id, after.unwrap_or(-1), one_more(query.slice.limit)];
        statements.get(Sql::ListDefinitions)?.query_map(params, definition_info)?.collect()
    })?;
    let has_more = items.len() > query.slice.limit;
    items.truncate(query.slice.limit);
    let next = items.last().filter(|_| has_more).map(|info| info.key.to_string());
    Ok(Page { items, next })
}

fn definition_info(row: &rusqlite::Row) -> Result<DefinitionInfo> {
    Ok(DefinitionInfo {
        key: key_of(row.get(0)?),
        process_id: row.get(1)?,
        version: row.get(2)?,
        resource: row.get(3)?,
        deployed_at: row.get(4)?,
    })
}

pub fn definition(
    statements: &mut Statements,
    tenant: &str,
    process_id: &str,
    version: Option<u32>,
) -> Result<Option<Arc<Definition>>> {
    let params = params![tenant, process_id, version];
    let keys = rows::keys(statements, Sql::DefinitionByVersion, params)?;
    keys.first().map_or(Ok(None), |key| rows::read_as(statements, &RowId::Definition(*key)))
}

pub fn instances(reader: &Reader, query: &InstanceQuery) -> Result<Page<Arc<Scope>>, StoreError> {
    let Some(before) = key_cursor(&query.slice) else { return Ok(empty()) };
    let state = query.state.map(|state| match state {
        InstanceState::Active => "ACTIVE",
        InstanceState::Completed => "COMPLETED",
        InstanceState::Canceled => "CANCELED",
    });
    let found = scan(query.slice.limit, before, |before, rows| {
        // Downwards from the greatest key.
        let from = before.map_or(i64::MAX, |before| before - 1);
        reader.snapshot(|statements| {
            let params = params![query.tenant, state, query.process_id, query.started_after, from, rows];
            let mut found = scan_keys(statements, Sql::ScanInstances, params)?;
            for (key, wanted) in &mut found {
                *wanted = *wanted && has_variables(statements, *key, &query.variables)?;
            }
            Ok(found)
        })
    })?;
    page_of(reader, found, RowId::Scope)
}

fn has_variables(statements: &mut Statements, scope: i64, wanted: &[(String, String)]) -> Result<bool> {
    for (name, text) in wanted {
        let id = RowId::Variable { scope: key_of(scope), name: name.as_str().into() };
        let variable = rows::read_as::<Variable>(statements, &id)?;
        if variable.and_then(|variable| scalar_text(&variable.value)).as_ref() != Some(text) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub fn instance(statements: &mut Statements, instance: Key) -> Result<Option<InstanceDetail>> {
    let root: Option<Arc<Scope>> = rows::read_as(statements, &RowId::Scope(instance))?;
    let Some(root) = root.filter(|root| root.instance.is_some()) else { return Ok(None) };
    let mut scopes = vec![root.clone()];
    scopes.extend(all_of(statements, Sql::InnerScopes, instance, RowId::Scope)?);
    let mut elements = Vec::new();
    for scope in &scopes {
        let params = params![sql_key(scope.key), -1, -1];
        let rows = statements.get(Sql::Elements)?.query_map(params, rows::element)?;
        elements.extend(rows.map(|row| row.map(Arc::new)).collect::<Result<Vec<_>>>()?);
    }
    elements.sort_by_key(|element| element.key);
    let variables = statements
        .get(Sql::Variables)?
        .query_map(params![sql_key(instance), "", None::<&str>, -1], |row| rows::variable(row).map(Arc::new))?;
    Ok(Some(InstanceDetail {
        variables: variables.collect::<Result<_>>()?,
        jobs: all_of(statements, Sql::JobsOfInstance, instance, RowId::Job)?,
        timers: all_of(statements, Sql::TimersOfInstance, instance, RowId::Timer)?,
        subscriptions: all_of(statements, Sql::SubscriptionsOfInstance, instance, RowId::Subscription)?,
        incidents: all_of(statements, Sql::IncidentsOfInstance, instance, RowId::Incident)?,
        root,
        scopes,
        elements,
    }))
}

fn all_of<T: Stored>(
    statements: &mut Statements,
    sql: Sql,
    instance: Key,
    id: fn(Key) -> RowId,
) -> Result<Vec<Arc<T>>> {
    let keys = rows::keys(statements, sql, [sql_key(instance)])?;
    read_all(statements, &keys, id)
}

fn read_all<T: Stored>(statements: &mut Statements, keys: &[Key], id: fn(Key) -> RowId) -> Result<Vec<Arc<T>>> {
    let rows = keys.iter().map(|key| rows::read_as(statements, &id(*key)));
    rows.filter_map(Result::transpose).collect()
}

pub fn jobs(reader: &Reader, query: &JobQuery) -> Result<Page<Arc<Job>>, StoreError> {
    let Some(after) = key_cursor(&query.slice) else { return Ok(empty()) };
    let state = query.state.map(job_state_name);
    let root = query.instance.map(sql_key);
    let found = scan(query.slice.limit, after, |after, rows| {
        let after = after.copied().unwrap_or(-1);
        reader.snapshot(|statements| match root {
            None => {
                let params = params![query.tenant, query.job_type, state, after, rows];
                scan_keys(statements, Sql::ScanJobs, params)
            }
            Some(root) => {
                let params = params![query.tenant, query.job_type, state, after, rows, root];
                scan_keys(statements, Sql::ScanJobsOfInstance, params)
            }
        })
    })?;
    page_of(reader, found, RowId::Job)
}

pub fn incidents(reader: &Reader, query: &IncidentQuery) -> Result<Page<Arc<Incident>>, StoreError> {
    let Some(after) = key_cursor(&query.slice) else { return Ok(empty()) };
    let (after, limit) = (after.unwrap_or(-1), one_more(query.slice.limit));
    let mut keys = reader.snapshot(|statements| match query.instance {
        None => rows::keys(statements, Sql::ListIncidents, params![query.tenant, after, limit]),
        Some(root) => {
            let params = params![query.tenant, after, limit, sql_key(root)];
            rows::keys(statements, Sql::ListIncidentsOfInstance, params)
        }
    })?;
    let has_more = keys.len() > query.slice.limit;
    keys.truncate(query.slice.limit);
    let next = keys.last().filter(|_| has_more).copied().map(sql_key);
    page_of(reader, Found { passed: keys.into_iter().map(sql_key).collect(), next }, RowId::Incident)
}

pub fn outbox(reader: &Reader, query: &OutboxQuery) -> Result<Page<OutboxRow>, StoreError> {
    let Some(after) = cursor::<OutboxCursor>(&query.slice) else { return Ok(empty()) };
    let state = query.state.map(outbox::state_name);
    let found = match &query.id {
        Some(id) => Found { passed: vec![OutboxCursor(id.clone())], next: None },
        None => scan(query.slice.limit, after, |after, rows| {
            reader.snapshot(|statements| {
                let (position, n, sink) = match after {
                    Some(OutboxCursor(id)) => (id.position as i64, id.n, &*id.sink),
                    None => (-1, 0, ""),
                };
                let params = params![query.tenant, state, position, n, sink, rows];
                statements.get(Sql::ScanOutbox)?.query_map(params, scanned_message)?.collect()
            })
        })?,
    };
    let mut items: Vec<OutboxRow> = reader.snapshot(|statements| {
        let rows = found.passed.iter().map(|OutboxCursor(id)| outbox::get(statements, id));
        rows.filter_map(Result::transpose).collect()
    })?;
    items.retain(|row| row.entry.tenant == query.tenant && query.state.is_none_or(|state| state == row.state));
    Ok(Page { items, next: found.next.map(|next| next.to_string()) })
}

fn scanned_message(row: &rusqlite::Row) -> Result<(OutboxCursor, bool)> {
    let id = OutboxId { partition: PARTITION, position: key_of(row.get(0)?), n: row.get(1)?, sink: row.get(2)? };
    Ok((OutboxCursor(id), row.get(3)?))
}

pub fn audit(reader: &Reader, query: &AuditQuery) -> Result<Page<AuditRow>, StoreError> {
    let Some(after) = key_cursor(&query.slice) else { return Ok(empty()) };
    let from = query.from.map_or(-1, |from| sql_key(from) - 1);
    let until = query.until.map_or(i64::MAX, sql_key);
    let found = scan(query.slice.limit, Some(from.max(after.unwrap_or(-1))), |after, rows| {
        reader.snapshot(|statements| scan_keys(statements, Sql::ScanAudit, params![query.tenant, after, until, rows]))
    })?;
    let items = reader.snapshot(|statements| audit_rows(statements, &found.passed))?;
    Ok(Page { items, next: found.next.map(|next| next.to_string()) })
}

pub fn audit_rows(statements: &mut Statements, positions: &[i64]) -> Result<Vec<AuditRow>> {
    let statement = statements.get(Sql::GetAudit)?;
    let rows = positions.iter().map(|position| {
        statement.query_row([position], |row| {
            Ok(AuditRow {
                partition: row.get(0)?,
                position: key_of(row.get(1)?),
                time: row.get(2)?,
                actor: row.get(3)?,
                events: row.get(4)?,
            })
        })
    });
    rows.collect()
}

/// What a scan passed and found wanted, and where the next page begins.
struct Found<C> {
    passed: Vec<C>,
    next: Option<C>,
}

/// Passes rows until one more than `limit` is wanted. The slices grow: most lists end in the first one.
fn scan<C: Clone>(
    limit: usize,
    start: Option<C>,
    mut slice: impl FnMut(Option<&C>, i64) -> Result<Vec<(C, bool)>, StoreError>,
) -> Result<Found<C>, StoreError> {
    let mut passed = Vec::new();
    let mut at = start;
    let mut rows = limit.saturating_add(1).min(SLICE_ROWS);
    let mut rows_passed = 0;
    loop {
        let found = slice(at.as_ref(), rows as i64)?;
        let is_last = found.len() < rows;
        rows_passed += found.len();
        for (row, wanted) in found {
            if wanted && passed.len() == limit {
                return Ok(Found { next: passed.last().cloned(), passed });
            }
            if wanted {
                passed.push(row.clone());
            }
            at = Some(row);
        }
        if is_last || rows_passed >= SCAN_ROWS_MAX {
            return Ok(Found { passed, next: at.filter(|_| !is_last) });
        }
        rows = (rows * 2).min(SLICE_ROWS);
    }
}

fn scan_keys(statements: &mut Statements, sql: Sql, params: impl rusqlite::Params) -> Result<Vec<(i64, bool)>> {
    statements.get(sql)?.query_map(params, |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// The rows of what was found, as far as they still stand.
fn page_of<T: Stored>(reader: &Reader, found: Found<i64>, id: fn(Key) -> RowId) -> Result<Page<Arc<T>>, StoreError> {
    let keys: Vec<Key> = found.passed.into_iter().map(key_of).collect();
    let items = reader.snapshot(|statements| read_all(statements, &keys, id))?;
    Ok(Page { items, next: found.next.map(|next| next.to_string()) })
}

/// Where the page begins: `None` for a malformed text, `Some(None)` for the list's begin.
pub fn cursor<C: FromStr>(slice: &Slice) -> Option<Option<C>> {
    match &slice.after {
        None => Some(None),
        Some(text) => text.parse().ok().map(Some),
    }
}

/// Of lists that are ordered by a number, which is never negative.
fn key_cursor(slice: &Slice) -> Option<Option<i64>> {
    cursor::<i64>(slice).filter(|after| after.is_none_or(|after| after >= 0))
}

#[derive(Clone)]
struct OutboxCursor(OutboxId);

impl std::fmt::Display for OutboxCursor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}-{}-{}", self.0.position, self.0.n, self.0.sink)
    }
}

impl FromStr for OutboxCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<OutboxCursor, ()> {
        let mut parts = text.splitn(3, '-');
        let (Some(position), Some(n), Some(sink)) = (parts.next(), parts.next(), parts.next()) else { return Err(()) };
        let position = position.parse().map_err(|_| ())?;
        Ok(OutboxCursor(OutboxId { partition: PARTITION, position, n: n.parse().map_err(|_| ())?, sink: sink.into() }))
    }
}

fn one_more(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

fn empty<T>() -> Page<T> {
    Page { items: Vec::new(), next: None }
}
