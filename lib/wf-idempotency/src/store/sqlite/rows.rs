//! The statements over one table, and entries as its rows. It decides nothing. Next: back to `sqlite.rs`.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{Durability, failed};
use crate::store::entry::Entry;
use crate::store::headers::{from_lines, to_lines};
use crate::store::{Slot, StoreError};
use crate::{Answer, Fingerprint, Record, State};

/// `state`: 1 in progress, 2 completed, 3 unknown. Ids and hashes are blobs, times milliseconds since 1970.
const TABLE: &str = "
CREATE TABLE IF NOT EXISTS idempotency_record (
    tenant       TEXT NOT NULL,
    key          TEXT NOT NULL,
    fingerprint  BLOB NOT NULL,
    mac_key_id   INTEGER NOT NULL,
    created_ms   INTEGER NOT NULL,
    expires_ms   INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    owner        BLOB,
    -- In progress: the lease's end. Unknown: since when.
    until_ms     INTEGER,
    status       INTEGER,
    is_cut       INTEGER NOT NULL,
    headers      TEXT,
    body         BLOB,
    PRIMARY KEY (tenant, key)
) STRICT;
CREATE INDEX IF NOT EXISTS idempotency_record_expiry ON idempotency_record (expires_ms);";

const FIND: &str = "SELECT fingerprint, mac_key_id, created_ms, expires_ms, attempts, state, owner, until_ms, status,
    is_cut, headers, body FROM idempotency_record WHERE tenant = ?1 AND key = ?2";
const PUT: &str = "INSERT OR REPLACE INTO idempotency_record (tenant, key, fingerprint, mac_key_id, created_ms,
    expires_ms, attempts, state, owner, until_ms, status, is_cut, headers, body)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
const REMOVE: &str = "DELETE FROM idempotency_record WHERE tenant = ?1 AND key = ?2";
const SWEEP: &str = "DELETE FROM idempotency_record WHERE rowid IN (
    SELECT rowid FROM idempotency_record WHERE expires_ms <= ?1 AND (state <> 1 OR until_ms <= ?2) LIMIT ?3)";

const IN_PROGRESS: i64 = 1;
const COMPLETED: i64 = 2;
const UNKNOWN: i64 = 3;

pub fn open(path: &Path, durability: Durability) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(1))?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = if durability == Durability::Full { "FULL" } else { "NORMAL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.execute_batch(TABLE)?;
    Ok(connection)
}

pub struct Rows<'c>(pub &'c Transaction<'c>);

impl Rows<'_> {
    pub fn find(&self, slot: &Slot) -> Result<Option<Entry>, StoreError> {
        let mut statement = self.0.prepare_cached(FIND).map_err(failed)?;
        let found = statement.query_row(params![&*slot.tenant, slot.key.as_str()], entry).optional();
        found.map_err(failed)
    }

    pub fn put(&self, slot: &Slot, entry: &Entry) -> Result<(), StoreError> {
        let record = &entry.record;
        let (state, owner, until, answer) = match &record.state {
            State::InProgress { owner, lease_until_ms } => (IN_PROGRESS, Some(owner), Some(*lease_until_ms), None),
            State::Completed(answer) => (COMPLETED, None, None, Some(answer)),
            State::Unknown { since_ms } => (UNKNOWN, None, Some(*since_ms), None),
            State::Started { .. } => return Err(StoreError("a start is no request of this store".to_owned())),
        };
        let mut statement = self.0.prepare_cached(PUT).map_err(failed)?;
        let written = statement.execute(params![
            &*slot.tenant,
            slot.key.as_str(),
            &record.fingerprint.0[..],
            record.mac_key_id,
            record.created_ms,
            record.expires_ms,
            entry.attempts,
            state,
            owner.map(|owner| &owner[..]),
            until,
            answer.map(|answer| answer.status),
            entry.is_cut,
            answer.map(|answer| to_lines(&answer.headers)),
            answer.map(|answer| &answer.body[..]),
        ]);
        written.map(drop).map_err(failed)
    }

    pub fn remove(&self, slot: &Slot) -> Result<(), StoreError> {
        let mut statement = self.0.prepare_cached(REMOVE).map_err(failed)?;
        statement.execute(params![&*slot.tenant, slot.key.as_str()]).map(drop).map_err(failed)
    }

    pub fn sweep(&self, now_ms: i64, kept_ms: i64, rows_max: usize) -> Result<usize, StoreError> {
        let mut statement = self.0.prepare_cached(SWEEP).map_err(failed)?;
        let rows_max = i64::try_from(rows_max).unwrap_or(i64::MAX);
        statement.execute(params![now_ms.saturating_sub(kept_ms), now_ms, rows_max]).map_err(failed)
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let state = match row.get(5)? {
        IN_PROGRESS => State::InProgress { owner: row.get(6)?, lease_until_ms: row.get(7)? },
        COMPLETED => State::Completed(answer(row)?),
        UNKNOWN => State::Unknown { since_ms: row.get(7)? },
        other => return Err(rusqlite::Error::IntegralValueOutOfRange(5, other)),
    };
    let record = Record {
        fingerprint: Fingerprint(row.get(0)?),
        mac_key_id: row.get(1)?,
        created_ms: row.get(2)?,
        expires_ms: row.get(3)?,
        state,
    };
    Ok(Entry { record, attempts: row.get(4)?, is_cut: row.get(9)? })
}

fn answer(row: &Row<'_>) -> rusqlite::Result<Answer> {
    let headers = from_lines(row.get_ref(10)?.as_str()?);
    let headers =
        headers.ok_or(rusqlite::Error::InvalidColumnType(10, "headers".to_owned(), rusqlite::types::Type::Text))?;
    Ok(Answer { status: row.get(8)?, headers, body: Bytes::from(row.get::<_, Vec<u8>>(11)?) })
}
