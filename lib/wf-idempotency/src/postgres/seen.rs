//! P8: what was seen within a while, in a table partitioned by time: forgetting a day is dropping a partition, whatever
//! stood in it. For streams of messages, where deleting row by row would cost as much as the rest together.
//!
//! The price: no unique constraint reaches over partitions (it must contain the partition's column, since each partition
//! checks its own index alone), so a key could stand in yesterday's and in today's. Who looks and inserts must therefore
//! hold a lock on the key. That is an advisory lock of the transaction, and the look-up is a statement after it: under
//! READ COMMITTED each statement sees what was committed when *it* starts, so it sees the rows of whoever held the lock
//! before; one statement that locks and looks would not, nor would a stricter isolation, which is refused.
//!
//! Where requests have answers, or keys must never be forgotten early, take `once`. Next: `seen/partitions.rs`.

mod partitions;

use super::name::{NameError, fill};
use super::value::now_sql;
use super::{Error, Now, Table};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

pub const CREATE_TABLE: &str = include_str!("sql/seen_table.sql");

/// Each key is one lock in the server's memory (`max_locks_per_transaction` times `max_connections` in all).
pub const KEYS_MAX: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Do what it asks for, in this transaction.
    New,
    /// It was seen then, or twice in this call. Do nothing.
    Before { seen_ms: i64 },
}

/// What to keep, and in how large pieces it is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// A key that is older is new again.
    pub keep_ms: i64,
    /// The span of one partition. A key stays up to so much longer on the disk.
    pub partition_ms: i64,
}

/// The table of one stream. Make it once; it holds its statements.
#[derive(Clone, Debug)]
pub struct SeenTable {
    table: Table,
    retention: Retention,
    look: String,
    insert: String,
}

impl SeenTable {
    /// All callers of a table must agree on its name as given here: the locks are made from it.
    pub fn new(table: &Table, retention: Retention) -> Result<SeenTable, NameError> {
        // A partition's name is the table's with its beginning in milliseconds.
        table.beside(&format!("_{}", i64::MAX))?;
        let filled = |sql: &str| fill(sql, &[("{table}", table), ("{now}", &now_sql(2))]);
        Ok(SeenTable { table: table.clone(), retention, look: filled(LOOK), insert: filled(INSERT) })
    }

    /// Creates the table and its first partitions.
    pub async fn install(&self, transaction: &Transaction<'_>, now: Now) -> Result<(), Error> {
        transaction.batch_execute(&fill(CREATE_TABLE, &[("{table}", &self.table)])).await?;
        self.ensure_partitions(transaction, 2, now).await?;
        Ok(())
    }

    /// Marks the keys that are new and says of each, in their order, whether it is. Whoever marks one of them in another
    /// transaction waits for this one to end. A rollback forgets: the message comes again and is new again. Call it once in
    /// a transaction, with all its keys: they are locked in one order.
    pub async fn mark_seen(&self, transaction: &Transaction<'_>, keys: &[&str], now: Now) -> Result<Vec<Seen>, Error> {
        self.lock(transaction, keys).await?;
        let (mut known, now_ms) = self.look(transaction, keys, now).await?;
        let mut fresh = Vec::new();
        let answers = keys.iter().map(|key| match known.insert((*key).to_owned(), now_ms) {
            Some(seen_ms) => Seen::Before { seen_ms },
            None => {
                fresh.push(*key);
                Seen::New
            }
        });
        let answers = answers.collect();
        if !fresh.is_empty() {
            let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&fresh, Type::TEXT_ARRAY), (&now_ms, Type::INT8)];
            transaction.execute_typed(&self.insert, &parameters).await?;
        }
        Ok(answers)
    }

    /// Sorted, so that two transactions with keys in common never wait for one another in a circle.
    async fn lock(&self, transaction: &Transaction<'_>, keys: &[&str]) -> Result<(), Error> {
        let distinct: HashSet<&&str> = keys.iter().collect();
        if distinct.len() > KEYS_MAX {
            return Err(Error::TooManyKeys(distinct.len()));
        }
        let mut locks: Vec<i64> = distinct.iter().map(|key| self.lock_of(key)).collect();
        locks.sort_unstable();
        let rows = transaction.query_typed(LOCK, &[(&locks, Type::INT8_ARRAY)]).await?;
        match rows.first().map(|row| row.try_get::<_, String>("isolation")).transpose()? {
            Some(isolation) if isolation != "read committed" => Err(Error::Isolation(isolation)),
            _ => Ok(()),
        }
    }

    /// What was seen in time, and the time by which that was judged.
    async fn look(
        &self,
        transaction: &Transaction<'_>,
        keys: &[&str],
        now: Now,
    ) -> Result<(HashMap<String, i64>, i64), Error> {
        let given = now.given();
        let keep_ms = self.retention.keep_ms;
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&keys, Type::TEXT_ARRAY), (&given, Type::INT8), (&keep_ms, Type::INT8)];
        let row = transaction.query_typed_one(&self.look, &parameters).await?;
        let (keys, times): (Vec<String>, Vec<i64>) = (row.try_get("keys")?, row.try_get("times")?);
        Ok((keys.into_iter().zip(times).collect(), row.try_get("now_ms")?))
    }

    /// The same in every process and version: machines with different ones work on one table during an upgrade. Two keys
    /// with one lock wait for one another, and that is all.
    fn lock_of(&self, key: &str) -> i64 {
        let mut hash = Sha256::new();
        for part in ["wf-idempotency/seen/1", &self.table.to_string(), key] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hash.finalize().into();
        i64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// Locks end with the transaction, never with the session: a pool would hand them on.
const LOCK: &str = "SELECT current_setting('transaction_isolation') AS isolation, pg_advisory_xact_lock(lock) \
     FROM unnest($1) AS lock";

/// The bound on the time lets the server leave out partitions that are too old.
const LOOK: &str = "SELECT coalesce(array_agg(key), '{}') AS keys, coalesce(array_agg(seen_ms), '{}') AS times, \
     {now} AS now_ms FROM (SELECT key, max(seen_ms) AS seen_ms FROM {table} \
     WHERE key = ANY($1) AND seen_ms > {now} - $3 GROUP BY key) AS known";

const INSERT: &str = "INSERT INTO {table} (key, seen_ms) SELECT key, $2 FROM unnest($1) AS key";
