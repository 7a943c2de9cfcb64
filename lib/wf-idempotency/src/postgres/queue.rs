//! L3.6: the engine's lease pattern for a table of your own. A worker leases rows for a while; it alone may complete, fail
//! or extend them, and only while the lease lasts; a worker that comes late is told so and changes nothing. A worker that
//! died needs nobody to notice: its leases end, and the rows are taken again.
//!
//! `complete` in the transaction of the row's effect makes the effect happen once: if the answer is `LeaseLost`, roll back.
//! The queue sets only its own columns, `lease_*`. Next: `sql/queue_columns.sql`, `queue/settle.rs`.

mod settle;

pub use settle::Settled;

use super::name::{NameError, fill};
use super::value::{AsText, now_sql};
use super::{Column, Error, Now, Table};
use settle::Statements;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{GenericClient, Row};

pub const CREATE_TABLE: &str = include_str!("sql/queue_table.sql");
pub const ADD_COLUMNS: &str = include_str!("sql/queue_columns.sql");

/// What a worker shows to settle what it leased.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The row's key as the database writes it.
    pub key: String,
    pub holder: String,
    pub number: i64,
}

/// A row that is ours until then.
#[derive(Clone, Debug)]
pub struct Leased {
    pub lease: Lease,
    pub until_ms: i64,
    /// All columns of the row, yours too.
    pub row: Row,
}

/// The statements for one table. Make it once.
#[derive(Clone, Debug)]
pub struct Queue {
    create: String,
    add_columns: String,
    enqueue: String,
    lease: String,
    forget: String,
    settle: Statements,
}

impl Queue {
    /// `key` must be unique and can be of any type that is ordered.
    pub fn new(table: &Table, key: &Column) -> Result<Queue, NameError> {
        let next = table.beside("_next")?.short();
        let with_now = |now: usize, sql: &str| {
            fill(sql, &[("{table}", table), ("{key}", key), ("{next}", &next), ("{now}", &now_sql(now))])
        };
        Ok(Queue {
            create: with_now(0, CREATE_TABLE),
            add_columns: with_now(0, ADD_COLUMNS),
            enqueue: with_now(0, ENQUEUE),
            lease: with_now(4, LEASE),
            forget: with_now(3, FORGET),
            settle: Statements::new(with_now),
        })
    }

    /// For a table that you have: adds the columns, each of which has a default, so every row is ready. What you insert
    /// from now on is enqueued.
    pub async fn install_on(&self, client: &(impl GenericClient + Sync)) -> Result<(), Error> {
        Ok(client.batch_execute(&self.add_columns).await?)
    }

    /// Makes a table with a key and a payload of JSON.
    pub async fn install(&self, client: &(impl GenericClient + Sync)) -> Result<(), Error> {
        client.batch_execute(&self.create).await?;
        self.install_on(client).await
    }

    /// Into a table made by `install`. False: the key is there already, and nothing was changed.
    pub async fn enqueue(
        &self,
        client: &(impl GenericClient + Sync),
        key: &str,
        json: &str,
        priority: i32,
    ) -> Result<bool, Error> {
        let (key, json) = (AsText(key), AsText(json));
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&key, Type::UNKNOWN), (&json, Type::UNKNOWN), (&priority, Type::INT4)];
        Ok(client.execute_typed(&self.enqueue, &parameters).await? == 1)
    }

    /// At most so many rows that nobody has, the highest priority first and then by key. Rows that somebody else is just
    /// taking are passed by, not waited for. Commit before you work: others must see that they are taken.
    pub async fn lease(
        &self,
        client: &(impl GenericClient + Sync),
        worker: &str,
        count_max: i64,
        for_ms: i64,
        now: Now,
    ) -> Result<Vec<Leased>, Error> {
        let given = now.given();
        let parameters: [(&(dyn ToSql + Sync), Type); 4] =
            [(&worker, Type::TEXT), (&count_max, Type::INT8), (&for_ms, Type::INT8), (&given, Type::INT8)];
        let rows = client.query_typed(&self.lease, &parameters).await?;
        rows.into_iter().map(|row| leased(row, worker)).collect()
    }

    /// Deletes rows that are done or failed for so long, so many at most; says how many.
    pub async fn forget(
        &self,
        client: &(impl GenericClient + Sync),
        keep_ms: i64,
        count_max: i64,
        now: Now,
    ) -> Result<u64, Error> {
        let given = now.given();
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&keep_ms, Type::INT8), (&count_max, Type::INT8), (&given, Type::INT8)];
        Ok(client.execute_typed(&self.forget, &parameters).await?)
    }
}

fn leased(row: Row, worker: &str) -> Result<Leased, Error> {
    let lease =
        Lease { key: row.try_get("leased_key")?, holder: worker.to_owned(), number: row.try_get("lease_number")? };
    Ok(Leased { lease, until_ms: row.try_get("lease_at_ms")?, row })
}

const ENQUEUE: &str = "INSERT INTO {table} ({key}, payload, lease_priority) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

/// Materialised: were the inner statement run again for each row, it would lock more than its limit.
const LEASE: &str = "WITH next AS MATERIALIZED (SELECT {key} AS next_key FROM {table} \
     WHERE lease_state IN ('ready', 'leased') AND lease_at_ms <= {now} \
     ORDER BY lease_priority DESC, {key} LIMIT $2 FOR UPDATE SKIP LOCKED), \
     taken AS (UPDATE {table} AS own SET lease_state = 'leased', lease_holder = $1, lease_number = own.lease_number + 1, \
     lease_at_ms = {now} + $3 FROM next WHERE own.{key} = next.next_key RETURNING own.*) \
     SELECT taken.{key}::text AS leased_key, taken.* FROM taken ORDER BY lease_priority DESC, taken.{key}";

const FORGET: &str = "DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} \
     WHERE lease_state IN ('done', 'failed') AND lease_at_ms <= {now} - $1 LIMIT $2 FOR UPDATE SKIP LOCKED)";
