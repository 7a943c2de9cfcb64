//! What is counted: the uses of keys, and gauges. Both may pass many rows, slice by slice, and are called in the
//! background. Next: `trace.rs`.

use std::collections::BTreeMap;

use tokio_postgres::Row;
use wf_core::Millis;
use wf_core::rows::{JobState, Text};
use wf_store::*;

use crate::connection::Values;
use crate::cursors::{Place, cursor};
use crate::lists::{all_of, read};
use crate::open::PostgresStore;
use crate::reads::Reader;
use crate::rows::{JOB_STATES, Result, get, hash, key, named, partition, sql_partition, text};
use crate::scan::{Passed, passed};
use crate::sql::Sql;

const SLICE_ROWS: usize = 16_384;

impl PostgresStore {
    pub(crate) async fn key_uses(&self, query: IdempotencyQuery) -> Result<KeyUses> {
        idempotency(&self.lists, &query).await
    }

    pub(crate) async fn count_rows(&self) -> Result<Gauges> {
        gauges(&self.lists).await
    }
}

async fn idempotency(reader: &Reader, query: &IdempotencyQuery) -> Result<KeyUses> {
    let Some(after) = cursor::<KeyCursor>(&query.slice) else { return Ok(KeyUses::default()) };
    let mut uses = Uses { limit: query.slice.limit, after: after.map(|after| after.0), ..Uses::default() };
    uses.add_repeats(reader, query).await?;
    let hashes: Vec<[u8; 16]> = uses.repeated.keys().map(|(_, hash)| *hash).collect();
    let tenant = query.tenant.clone().unwrap_or_else(|| "".into());
    let mut at = Some(RecordId { tenant, key: "".into() });
    while let Some(after) = at {
        at = uses.add_records(reader, query, &hashes, &after).await?;
    }
    Ok(uses.finish())
}

/// All keys with repeats, and of the many without only those of the page.
#[derive(Default)]
struct Uses {
    limit: usize,
    after: Option<KeyId>,
    repeated: BTreeMap<KeyId, KeyUse>,
    quiet: BTreeMap<KeyId, KeyUse>,
    quiet_keys: u64,
    in_progress: u64,
}

impl Uses {
    async fn add_repeats(&mut self, reader: &Reader, query: &IdempotencyQuery) -> Result<()> {
        let values = Values::none().with(query.since).with(query.tenant.as_deref());
        for row in &read(reader, Sql::RepeatsPerKey, values).await? {
            let id: KeyId = (text(row, 0)?, hash(row, 1)?);
            let key_use = KeyUse {
                route: text(row, 2)?,
                last_seen: get(row, 4)?,
                hits: key(row, 5)?,
                conflicts: key(row, 6)?,
                ..KeyUse::first_seen(&id, get(row, 3)?)
            };
            self.in_progress += key(row, 7)?;
            self.repeated.insert(id, key_use);
        }
        Ok(())
    }

    /// One slice of the records; where the next one begins.
    async fn add_records(
        &mut self,
        reader: &Reader,
        query: &IdempotencyQuery,
        hashes: &[[u8; 16]],
        after: &RecordId,
    ) -> Result<Option<RecordId>> {
        let values = Values::none()
            .with(query.since)
            .with(hashes.iter().map(|hash| &hash[..]).collect::<Vec<_>>())
            .with(&*after.tenant)
            .with(&*after.key)
            .with(query.tenant.as_deref())
            .with(SLICE_ROWS as i64);
        let rows = read(reader, Sql::ScanRecords, values).await?;
        let mut next = None;
        for row in &rows {
            let found: Passed<&Row> = passed(row, row)?;
            if found.is_wanted {
                self.add_record(row, query)?;
            }
            if found.is_last(SLICE_ROWS) {
                next = Some(RecordId { tenant: text(row, 0)?, key: text(row, 1)? });
            }
        }
        Ok(next)
    }

    fn add_record(&mut self, row: &Row, query: &IdempotencyQuery) -> Result<()> {
        let id: KeyId = (text(row, 0)?, hash(row, 2)?);
        let (route, created): (Text, Millis) = (text(row, 3)?, get(row, 4)?);
        let state = state_of(row, query.now)?;
        if let Some(key_use) = self.repeated.get_mut(&id) {
            key_use.see(route, created);
            key_use.state = state;
            return Ok(());
        }
        if created < query.since {
            return Ok(());
        }
        self.quiet_keys += 1;
        if self.after.as_ref().is_none_or(|after| id > *after) {
            let key_use = KeyUse { route, state, ..KeyUse::first_seen(&id, created) };
            self.quiet.insert(id, key_use);
            if self.quiet.len() > self.limit + 1 {
                self.quiet.pop_last();
            }
        }
        Ok(())
    }

    fn finish(self) -> KeyUses {
        let keys = self.quiet_keys + self.repeated.len() as u64;
        let hits = self.repeated.values().map(|key_use| key_use.hits).sum();
        let conflicts = self.repeated.values().map(|key_use| key_use.conflicts).sum();
        let mut page = self.quiet;
        let after = self.after;
        page.extend(self.repeated.into_iter().filter(|(id, _)| after.as_ref().is_none_or(|after| id > after)));
        let has_more = page.len() > self.limit;
        let items: Vec<KeyUse> = page.into_values().take(self.limit).collect();
        let next = items.last().filter(|_| has_more).map(KeyUse::cursor);
        KeyUses { items, next, keys, hits, conflicts, in_progress: self.in_progress }
    }
}

/// An expired record stands until it is swept.
fn state_of(row: &Row, now: Millis) -> Result<&'static str> {
    let expires: Millis = get(row, 5)?;
    Ok(match get(row, 6)? {
        _ if expires <= now => "EXPIRED",
        "COMPLETED" => "COMPLETED",
        _ => "IN_PROGRESS",
    })
}

async fn gauges(reader: &Reader) -> Result<Gauges> {
    let mut counts: BTreeMap<(Text, u8), (JobState, u64)> = BTreeMap::new();
    let mut at = Some(Place::BEGIN);
    while let Some(after) = at {
        at = count_jobs(reader, after, &mut counts).await?;
    }
    Ok(Gauges {
        jobs: counts.into_iter().map(|((job_type, _), (state, count))| (job_type, state, count)).collect(),
        incidents: count(reader, Sql::CountIncidents).await?,
        records: count(reader, Sql::CountRecords).await?,
    })
}

/// One slice of the jobs; where the next one begins.
async fn count_jobs(
    reader: &Reader,
    after: Place,
    counts: &mut BTreeMap<(Text, u8), (JobState, u64)>,
) -> Result<Option<Place>> {
    let values = Values::none().with(sql_partition(after.partition)).with(after.key).with(SLICE_ROWS as i64);
    let (mut passed, mut last) = (0, None);
    for row in &read(reader, Sql::CountJobs, values).await? {
        let (state, count) = (named(row, 1, JOB_STATES)?, key(row, 2)?);
        counts.entry((text(row, 0)?, state as u8)).or_insert((state, 0)).1 += count;
        passed += count;
        last = Some(Place { partition: partition(row, 3)?, key: get(row, 4)? });
    }
    Ok(last.filter(|_| passed == SLICE_ROWS as u64))
}

async fn count(reader: &Reader, sql: Sql) -> Result<u64> {
    let rows = all_of(&read(reader, sql, Values::none()).await?, |row| key(row, 0))?;
    Ok(rows.first().copied().unwrap_or(0))
}
