//! One request followed through all layers, by indexes that are there for turns and sweeps. What has none of its own
//! (the audit by instance, repeats by key) is read along another order, and given up after a while.
//! It judges nothing. Next: `sql/trace.sql`.

use std::sync::Arc;

use tokio_postgres::Row;
use wf_core::Millis;
use wf_core::rows::Text;
use wf_store::*;

use crate::connection::Values;
use crate::cursors::Place;
use crate::lists::{Audited, all_of, audit_rows, limit, read};
use crate::open::PostgresStore;
use crate::reads::Reader;
use crate::rows::{self, Result, get, hash, key, partition, sql_key, sql_partition, text};
use crate::scan::{Passed, SLICE_ROWS, passed};
use crate::sql::Sql;

const MINUTE_MS: Millis = 60_000;

impl Trace for PostgresStore {
    fn filed(&self, id: RecordId) -> Later<'_, Result<Option<Filed>>> {
        Box::pin(async move {
            let values = Values::none().with(vec![&*id.tenant]).with(vec![&*id.key]);
            let mut found = all_of(&read(&self.lists, Sql::GetRecord, values).await?, filed)?;
            Ok(found.pop())
        })
    }

    fn filed_at(&self, query: FiledQuery) -> Later<'_, Result<Vec<Filed>>> {
        Box::pin(async move {
            let values = Values::none()
                .with(query.expires_at)
                .with(&*query.tenant)
                .with(query.created_at)
                .with(limit(query.limit));
            all_of(&read(&self.lists, Sql::FiledAt, values).await?, filed)
        })
    }

    fn logged(&self, query: LoggedQuery) -> Later<'_, Result<Vec<Logged>>> {
        Box::pin(async move { logged(&self.lists, &query).await })
    }

    fn trail(&self, query: TrailQuery) -> Later<'_, Result<Trail>> {
        Box::pin(async move { trail(&self.lists, &query).await })
    }

    fn outbox_of(&self, tenant: Text, partition: u16, positions: Vec<u64>) -> Later<'_, Result<Vec<OutboxRow>>> {
        Box::pin(async move {
            let positions: Vec<i64> = positions.into_iter().map(sql_key).collect();
            let values = Values::none().with(positions).with(sql_partition(partition)).with(&*tenant);
            all_of(&read(&self.lists, Sql::OutboxOf, values).await?, rows::outbox_row)
        })
    }

    fn repeats(&self, query: RepeatsQuery) -> Later<'_, Result<Repeats>> {
        Box::pin(async move { repeats(&self.lists, query).await })
    }
}

fn filed(row: &Row) -> Result<Filed> {
    Ok(Filed {
        record: Arc::new(rows::record(row)?),
        key: text(row, 13)?,
        key_hash: hash(row, 14)?,
        route: text(row, 15)?,
    })
}

async fn logged(reader: &Reader, query: &LoggedQuery) -> Result<Vec<Logged>> {
    let tenant = &*query.tenant;
    let found = match query.which {
        Which::Id(id) => read(reader, Sql::LoggedId, Values::none().with(id.to_vec()).with(tenant)).await?,
        Which::Position { partition, position } => {
            let at = Values::none().with(sql_partition(partition)).with(sql_key(position));
            read(reader, Sql::LoggedPosition, at.with(tenant)).await?
        }
        Which::At { time, verb, limit: rows } => {
            let between = Values::none().with(time_of(time)).with(time_of(time.saturating_add(1)));
            read(reader, Sql::LoggedAt, between.with(tenant).with(verb).with(limit(rows))).await?
        }
    };
    all_of(&found, logged_row)
}

/// How the ids of this time begin.
fn time_of(time: Millis) -> Vec<u8> {
    time.to_be_bytes()[2..].to_vec()
}

fn logged_row(row: &Row) -> Result<Logged> {
    Ok(Logged {
        partition: partition(row, 0)?,
        position: key(row, 1)?,
        id: hash(row, 2)?,
        time: get(row, 3)?,
        verb: text(row, 4)?,
        payload: get(row, 5)?,
    })
}

async fn trail(reader: &Reader, query: &TrailQuery) -> Result<Trail> {
    let mut trail = Trail::default();
    let (mut from, mut left) = (query.from, query.passed_max);
    loop {
        // One row more than may be passed: it tells whether there is anything behind them.
        let rows_max = left.min(SLICE_ROWS);
        let found = slice_of_trail(reader, query, from, rows_max + 1).await?;
        let behind = found.last().filter(|last| last.is_last(rows_max + 1)).map(|last| last.at.place.key as u64);
        let wanted = found.iter().filter(|passed| passed.is_wanted && !passed.is_last(rows_max + 1));
        let wanted: Vec<Audited> = wanted.map(|passed| passed.at).collect();
        let (taken, more) = wanted.split_at(wanted.len().min(query.limit - trail.rows.len()));
        trail.rows.extend(audit_rows(reader, taken).await?);
        trail.next = more.first().map(|at| at.place.key as u64);
        left -= rows_max;
        match behind {
            Some(next) if trail.next.is_none() && left > 0 => from = next,
            _ => {
                trail.next = trail.next.or(behind);
                return Ok(trail);
            }
        }
    }
}

async fn slice_of_trail(reader: &Reader, query: &TrailQuery, from: u64, rows: usize) -> Result<Vec<Passed<Audited>>> {
    let values = Values::none()
        .with(&*query.tenant)
        .with(root_member(query.instance))
        .with(sql_partition(query.partition))
        .with(sql_key(from))
        .with(i64::try_from(query.until).unwrap_or(i64::MAX))
        .with(limit(rows));
    all_of(&read(reader, Sql::ScanOfInstance, values).await?, |row| {
        let place = Place { partition: query.partition, key: get(row, 0)? };
        passed(row, Audited { place, time: get(row, 1)? })
    })
}

async fn repeats(reader: &Reader, mut query: RepeatsQuery) -> Result<Repeats> {
    query.subjects.sort_unstable();
    query.subjects.dedup();
    let values = Values::none()
        .with(query.since.div_euclid(MINUTE_MS))
        .with(query.subjects.iter().map(|subject| &subject[..]).collect::<Vec<_>>())
        .with(&*query.tenant)
        .with(limit(query.limit).saturating_add(1));
    let mut rows = all_of(&read(reader, Sql::RepeatsOf, values).await?, |row| {
        Ok(Suppressed { minute: get(row, 7)?, ..rows::suppressed(row)? })
    })?;
    let is_cut = rows.len() > query.limit;
    rows.truncate(query.limit);
    Ok(Repeats { rows, is_cut })
}
