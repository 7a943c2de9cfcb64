//! P1: a request under a key happens once, by a UNIQUE key and in the transaction of its effect. A repeat that comes while
//! the first still runs waits at the key until that transaction ends: then it replays, or, if it was rolled back, runs.
//! So there is no state in progress here, no lease, and nothing to clean up after a crash.
//!
//! The verdict is `decide`'s. Next: `sql/once_table.sql`.

use super::name::fill;
use super::value::now_sql;
use super::{Error, Now, Table};
use crate::fingerprint::Fingerprint;
use crate::{Answer, Policy, Record, State, Verdict, decide};
use bytes::Bytes;
use std::sync::Arc;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{GenericClient, Row, Transaction};

pub const CREATE_TABLE: &str = include_str!("sql/once_table.sql");

/// A request that is to happen once.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Whose keys these are, the tenant say. One tenant's key never meets another's.
    pub scope: &'a str,
    pub key: &'a str,
    /// Made with the current secret first, then with those that older records may name: (secret's id, fingerprint).
    pub fingerprints: &'a [(u32, Fingerprint)],
    /// How long the answer is kept; after that the key is new again.
    pub keep_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Once {
    /// Do it, in this transaction, and leave the answer with `OnceTable::answer`.
    New,
    /// It is done. Do nothing; give this answer. Where the first left none it is 204 without a body.
    Repeat(Answer),
    /// The key was used for another request. Do nothing.
    Mismatch,
}

/// The table of one service's requests. Make it once; it holds its statements.
#[derive(Clone, Debug)]
pub struct OnceTable {
    create: String,
    insert: String,
    select: String,
    answer: String,
    sweep: String,
}

impl OnceTable {
    pub fn new(table: &Table) -> Result<OnceTable, Error> {
        let expiry = table.beside("_expiry")?.short();
        let with_now = |now: usize, sql: &str| fill(sql, &[("{table}", table), ("{now}", &now_sql(now))]);
        Ok(OnceTable {
            create: fill(CREATE_TABLE, &[("{table}", table), ("{expiry}", &expiry)]),
            insert: with_now(6, INSERT),
            select: with_now(3, SELECT),
            answer: with_now(0, ANSWER),
            sweep: with_now(1, SWEEP),
        })
    }

    /// Creates what is missing. Run it once, before the first request.
    pub async fn install(&self, client: &(impl GenericClient + Sync)) -> Result<(), Error> {
        Ok(client.batch_execute(&self.create).await?)
    }

    /// Insert if new; else look. Several requests in one transaction: in one order of their keys everywhere, or two such
    /// transactions may wait for one another. `SET LOCAL lock_timeout` limits the wait, see `Error::is_busy`.
    pub async fn once(&self, transaction: &Transaction<'_>, request: &Request<'_>, now: Now) -> Result<Once, Error> {
        if self.insert(transaction, request, now).await? {
            return Ok(Once::New);
        }
        // The insert has locked the row that it met: it is still there.
        look(&self.select(transaction, request, now).await?, request)
    }

    async fn insert(&self, transaction: &Transaction<'_>, request: &Request<'_>, now: Now) -> Result<bool, Error> {
        let (id, fingerprint) = request.fingerprints.first().ok_or(Error::UnknownMacKey(-1))?;
        let given = now.given();
        let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
            (&request.scope, Type::TEXT),
            (&request.key, Type::TEXT),
            (&fingerprint.0.as_slice(), Type::BYTEA),
            (&i64::from(*id), Type::INT8),
            (&request.keep_ms, Type::INT8),
            (&given, Type::INT8),
        ];
        Ok(transaction.execute_typed(&self.insert, &parameters).await? == 1)
    }

    async fn select(&self, transaction: &Transaction<'_>, request: &Request<'_>, now: Now) -> Result<Row, Error> {
        let given = now.given();
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&request.scope, Type::TEXT), (&request.key, Type::TEXT), (&given, Type::INT8)];
        Ok(transaction.query_typed_one(&self.select, &parameters).await?)
    }

    /// What repeats are to get. In the transaction that `once` called new.
    pub async fn answer(
        &self,
        transaction: &Transaction<'_>,
        request: &Request<'_>,
        answer: &Answer,
    ) -> Result<(), Error> {
        let (names, values): (Vec<&str>, Vec<&str>) =
            answer.headers.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).unzip();
        let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
            (&request.scope, Type::TEXT),
            (&request.key, Type::TEXT),
            (&i32::from(answer.status), Type::INT4),
            (&names, Type::TEXT_ARRAY),
            (&values, Type::TEXT_ARRAY),
            (&answer.body.as_ref(), Type::BYTEA),
        ];
        transaction.execute_typed(&self.answer, &parameters).await?;
        Ok(())
    }

    /// Deletes expired records, so many at most; says how many. Rows that somebody looks at are left for the next time.
    pub async fn sweep(&self, client: &(impl GenericClient + Sync), count_max: i64, now: Now) -> Result<u64, Error> {
        let given = now.given();
        Ok(client.execute_typed(&self.sweep, &[(&given, Type::INT8), (&count_max, Type::INT8)]).await?)
    }
}

const SELECT: &str = "SELECT fingerprint, mac_key_id, created_ms, expires_ms, status, header_names, header_values, body, \
     {now} AS now_ms FROM {table} WHERE scope = $1 AND key = $2";

/// An expired row is as good as none: it becomes the new one. One that lives is locked and left as it is.
const INSERT: &str = "INSERT INTO {table} AS known (scope, key, fingerprint, mac_key_id, created_ms, expires_ms) \
     VALUES ($1, $2, $3, $4, {now}, {now} + $5) \
     ON CONFLICT (scope, key) DO UPDATE SET fingerprint = excluded.fingerprint, mac_key_id = excluded.mac_key_id, \
     created_ms = excluded.created_ms, expires_ms = excluded.expires_ms, \
     status = DEFAULT, header_names = DEFAULT, header_values = DEFAULT, body = DEFAULT \
     WHERE known.expires_ms <= excluded.created_ms";

const ANSWER: &str = "UPDATE {table} SET status = $3, header_names = $4, header_values = $5, body = $6 \
     WHERE scope = $1 AND key = $2";

const SWEEP: &str = "DELETE FROM {table} WHERE (scope, key) IN (SELECT scope, key FROM {table} \
     WHERE expires_ms <= {now} ORDER BY expires_ms LIMIT $2 FOR UPDATE SKIP LOCKED)";

fn look(row: &Row, request: &Request<'_>) -> Result<Once, Error> {
    let id: i64 = row.try_get("mac_key_id")?;
    let made_with_it = request.fingerprints.iter().find(|(known, _)| i64::from(*known) == id);
    let (mac_key_id, fingerprint) = made_with_it.ok_or(Error::UnknownMacKey(id))?;
    let record = record(row, *mac_key_id)?;
    // The insert found the record alive. If it has expired since, its answer is still the right one.
    let now_ms = row.try_get::<_, i64>("now_ms")?.min(record.expires_ms - 1);
    match decide(Some(&record), fingerprint, &Policy::default(), now_ms) {
        Verdict::Replay(answer) => Ok(Once::Repeat(answer.clone())),
        Verdict::Mismatch => Ok(Once::Mismatch),
        _ => Err(Error::Corrupt("a completed record is replayed or does not match")),
    }
}

/// What another transaction committed is complete: there is no other state here.
fn record(row: &Row, mac_key_id: u32) -> Result<Record, Error> {
    let fingerprint: &[u8] = row.try_get("fingerprint")?;
    Ok(Record {
        fingerprint: Fingerprint(fingerprint.try_into().map_err(|_| Error::Corrupt("a fingerprint has 32 bytes"))?),
        mac_key_id,
        created_ms: row.try_get("created_ms")?,
        expires_ms: row.try_get("expires_ms")?,
        state: State::Completed(answer(row)?),
    })
}

fn answer(row: &Row) -> Result<Answer, Error> {
    let (names, values): (Vec<String>, Vec<String>) = (row.try_get("header_names")?, row.try_get("header_values")?);
    let status: i32 = row.try_get("status")?;
    Ok(Answer {
        status: status.try_into().map_err(|_| Error::Corrupt("a status has 16 bits"))?,
        headers: names.into_iter().zip(values).map(|(name, value)| (Arc::from(name), Arc::from(value))).collect(),
        body: Bytes::from(row.try_get::<_, Vec<u8>>("body")?),
    })
}
