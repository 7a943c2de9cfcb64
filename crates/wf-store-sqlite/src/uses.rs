//! What keys were used for, and the gauges. Both pass whole tables, in slices. Next: `migrate.rs`.

use std::collections::BTreeMap;

use rusqlite::{Result, Row, params};
use wf_core::Millis;
use wf_core::rows::{JobState, Text};
use wf_store::*;

use crate::lists::cursor;
use crate::readers::Reader;
use crate::records;
use crate::rows::{JOB_STATES, named};
use crate::sql::{Sql, Statements};

const SLICE_ROWS: i64 = 16_384;

pub fn idempotency(reader: &Reader, query: &IdempotencyQuery) -> Result<KeyUses, StoreError> {
    let Some(after) = cursor::<KeyCursor>(&query.slice) else { return Ok(KeyUses::default()) };
    let mut uses = Uses { limit: query.slice.limit, after: after.map(|after| after.0), ..Uses::default() };
    reader.snapshot(|statements| uses.add_repeats(statements, query))?;
    let mut slot = Some(i64::MIN);
    while let Some(after) = slot {
        slot = reader.snapshot(|statements| uses.add_records(statements, query, after))?;
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
    fn add_repeats(&mut self, statements: &mut Statements, query: &IdempotencyQuery) -> Result<()> {
        let mut rows = statements.get(Sql::ScanEvents)?.query(params![query.since, query.tenant])?;
        while let Some(row) = rows.next()? {
            let row = records::suppressed(row)?;
            let id = (row.tenant.clone(), row.key_hash);
            let key = self.repeated.entry(id).or_insert_with_key(|id| KeyUse::first_seen(id, row.first));
            key.add(&row);
            self.in_progress += if row.kind == SuppressedKind::InProgress { row.count } else { 0 };
        }
        Ok(())
    }

    /// One slice of the records; where the next one begins.
    fn add_records(
        &mut self,
        statements: &mut Statements,
        query: &IdempotencyQuery,
        after: i64,
    ) -> Result<Option<i64>> {
        let mut rows = statements.get(Sql::ScanRecords)?.query(params![after, query.tenant, SLICE_ROWS])?;
        let (mut last, mut passed) = (None, 0);
        while let Some(row) = rows.next()? {
            passed += 1;
            last = Some(row.get(0)?);
            if row.get(1)? {
                self.add_record(row, query)?;
            }
        }
        Ok(last.filter(|_| passed == SLICE_ROWS))
    }

    fn add_record(&mut self, row: &Row, query: &IdempotencyQuery) -> Result<()> {
        let id: KeyId = (row.get(2)?, row.get(3)?);
        let created: Millis = row.get(5)?;
        let state = state_of(row, query.now)?;
        if let Some(key) = self.repeated.get_mut(&id) {
            key.see(row.get(4)?, created);
            key.state = state;
            return Ok(());
        }
        if created < query.since {
            return Ok(());
        }
        self.quiet_keys += 1;
        if self.after.as_ref().is_none_or(|after| id > *after) {
            let key = KeyUse { route: row.get(4)?, state, ..KeyUse::first_seen(&id, created) };
            self.quiet.insert(id, key);
            if self.quiet.len() > self.limit + 1 {
                self.quiet.pop_last();
            }
        }
        Ok(())
    }

    fn finish(self) -> KeyUses {
        let keys = self.quiet_keys + self.repeated.len() as u64;
        let hits = self.repeated.values().map(|key| key.hits).sum();
        let conflicts = self.repeated.values().map(|key| key.conflicts).sum();
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
    let expires: Millis = row.get(6)?;
    Ok(match row.get_ref(7)?.as_str()? {
        _ if expires <= now => "EXPIRED",
        "COMPLETED" => "COMPLETED",
        _ => "IN_PROGRESS",
    })
}

pub fn gauges(reader: &Reader) -> Result<Gauges, StoreError> {
    let mut counts: BTreeMap<(Text, u8), (JobState, u64)> = BTreeMap::new();
    let mut after = Some(-1);
    while let Some(begin) = after {
        after = reader.snapshot(|statements| {
            let end: Option<i64> =
                statements.get(Sql::SliceOfJobs)?.query_row(params![begin, SLICE_ROWS], |row| row.get(0))?;
            let Some(end) = end else { return Ok(None) };
            let mut rows = statements.get(Sql::CountJobs)?.query(params![begin, end])?;
            while let Some(row) = rows.next()? {
                let state = named(row, 1, JOB_STATES)?;
                counts.entry((row.get(0)?, state as u8)).or_insert((state, 0)).1 += row.get::<_, i64>(2)? as u64;
            }
            Ok(Some(end))
        })?;
    }
    let count = |sql| reader.snapshot(|statements| statements.get(sql)?.query_row([], |row| row.get::<_, i64>(0)));
    Ok(Gauges {
        jobs: counts.into_iter().map(|((job_type, _), (state, count))| (job_type, state, count)).collect(),
        incidents: count(Sql::CountIncidents)? as u64,
        records: count(Sql::CountRecords)? as u64,
    })
}
