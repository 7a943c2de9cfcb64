//! Idempotency records and the counts of repeats, to columns and back. Next: `commit.rs`, which writes them.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::types::ToSql;
use rusqlite::{Error, Result, Row, params};
use wf_core::{Millis, ids};
use wf_idempotency::Fingerprint;
use wf_idempotency::record::{Answer, Record, State};
use wf_store::codec::{headers_from_json, headers_to_json};
use wf_store::{RecordEntry, RecordId, Suppressed, SuppressedKind};

use crate::rows::{malformed, named};
use crate::sql::{Sql, Statements};

/// Records of one millisecond that the slot can tell apart.
const TIES: u64 = 1 << 20;
/// Slots that are tried for one record: more than one only where a clock stands still for a million turns.
const SLOT_TRIES: u64 = 64;

/// The primary key of the look-up: 16 bytes instead of two texts, in the one index that random keys touch.
pub fn id_of(id: &RecordId) -> [u8; 16] {
    ids::hash16(&[id.tenant.as_bytes(), id.key.as_bytes()])
}

/// Times that the slot can hold; beyond them the order of sweeping suffers, nothing else.
fn clamped(time: Millis) -> i64 {
    time.clamp(0, (1 << 43) - 1)
}

/// The first slot of a time: what expires before it stands below.
pub fn slot_at(time: Millis) -> i64 {
    clamped(time) << 20
}

/// Writes a record; 0 where one stands that does not give way. `tie` tells records of one millisecond apart.
pub fn put(statements: &mut Statements, entry: &RecordEntry, tie: u64) -> Result<usize> {
    for tie in tie..tie + SLOT_TRIES {
        match put_at(statements, entry, slot_at(entry.record.expires_ms) + (tie % TIES) as i64) {
            Err(error) if is_slot_taken(&error) => continue,
            result => return result,
        }
    }
    Ok(0)
}

fn is_slot_taken(error: &Error) -> bool {
    error.sqlite_error().is_some_and(|error| {
        matches!(
            error.extended_code,
            rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY | rusqlite::ffi::SQLITE_CONSTRAINT_ROWID
        )
    })
}

fn put_at(statements: &mut Statements, entry: &RecordEntry, slot: i64) -> Result<usize> {
    let record = &*entry.record;
    let state = columns_of(&record.state);
    statements.get(Sql::PutRecord)?.execute(params![
        slot,
        id_of(&entry.id),
        entry.id.tenant,
        entry.id.key,
        entry.key_hash,
        entry.route,
        record.fingerprint.0,
        record.mac_key_id,
        record.created_ms,
        record.expires_ms,
        state.name,
        state.status,
        state.headers,
        state.body,
        state.subject,
        state.owner,
        state.lease_until,
        state.since,
    ])
}

#[derive(Default)]
struct StateColumns<'a> {
    name: &'static str,
    status: Option<u16>,
    headers: Option<String>,
    body: Option<&'a [u8]>,
    subject: Option<i64>,
    owner: Option<&'a [u8; 16]>,
    lease_until: Option<i64>,
    since: Option<i64>,
}

fn columns_of(state: &State) -> StateColumns<'_> {
    let none = StateColumns::default();
    match state {
        State::Completed(answer) => StateColumns {
            name: "COMPLETED",
            status: Some(answer.status),
            headers: Some(headers_to_json(&answer.headers)),
            body: Some(&answer.body),
            ..none
        },
        State::Started { subject } => StateColumns { name: "STARTED", subject: Some(*subject as i64), ..none },
        State::InProgress { owner, lease_until_ms } => {
            StateColumns { name: "IN_PROGRESS", owner: Some(owner), lease_until: Some(*lease_until_ms), ..none }
        }
        State::Unknown { since_ms } => StateColumns { name: "UNKNOWN", since: Some(*since_ms), ..none },
    }
}

pub fn get(statements: &mut Statements, id: &RecordId) -> Result<Option<Arc<Record>>> {
    let mut rows = statements.get(Sql::GetRecord)?.query([id_of(id)])?;
    rows.next()?.map(|row| record(row).map(Arc::new)).transpose()
}

pub fn record(row: &Row) -> Result<Record> {
    Ok(Record {
        fingerprint: Fingerprint(row.get(0)?),
        mac_key_id: row.get(1)?,
        created_ms: row.get(2)?,
        expires_ms: row.get(3)?,
        state: state(row)?,
    })
}

fn state(row: &Row) -> Result<State> {
    Ok(match row.get_ref(4)?.as_str()? {
        "COMPLETED" => State::Completed(Answer {
            status: row.get(5)?,
            headers: headers_from_json(row.get_ref(6)?.as_str()?).map_err(|error| malformed(6, &error.to_string()))?,
            body: Bytes::copy_from_slice(row.get_ref(7)?.as_blob()?),
        }),
        "STARTED" => State::Started { subject: row.get::<_, i64>(8)? as u64 },
        "IN_PROGRESS" => State::InProgress { owner: row.get(9)?, lease_until_ms: row.get(10)? },
        "UNKNOWN" => State::Unknown { since_ms: row.get(11)? },
        other => return Err(malformed(4, &format!("unknown state {other:?}"))),
    })
}

pub fn add_suppressed(statements: &mut Statements, row: &Suppressed) -> Result<usize> {
    let params: [&dyn ToSql; 8] = [
        &row.minute,
        &row.tenant,
        &row.key_hash,
        &row.kind.name(),
        &row.route,
        &(row.count as i64),
        &row.first,
        &row.last,
    ];
    statements.get(Sql::AddSuppressed)?.execute(params)
}

/// Columns as `scan_events` selects them; the minute is not among them.
pub fn suppressed(row: &Row) -> Result<Suppressed> {
    Ok(Suppressed {
        tenant: row.get(0)?,
        key_hash: row.get(1)?,
        kind: named(row, 2, &SuppressedKind::ALL.map(|kind| (kind, kind.name())))?,
        route: row.get(3)?,
        minute: 0,
        count: row.get::<_, i64>(4)? as u64,
        first: row.get(5)?,
        last: row.get(6)?,
    })
}
