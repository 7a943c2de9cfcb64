//! Partitions made ahead and dropped when their time is over. Run both now and then, by anybody: who comes second waits
//! and finds it done.

use super::{Retention, SeenTable};
use crate::postgres::name::{Table, fill};
use crate::postgres::value::now_sql;
use crate::postgres::{Error, Now};
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

impl SeenTable {
    /// Makes the partition of this moment and so many after it; says how many were missing. Where none is there for a key's
    /// time, marking it fails: call this well ahead.
    pub async fn ensure_partitions(&self, transaction: &Transaction<'_>, ahead: u32, now: Now) -> Result<usize, Error> {
        let now_ms = self.alone(transaction, now).await?;
        let known = self.partitions(transaction).await?;
        let span_ms = self.retention.partition_ms;
        let first_ms = now_ms.div_euclid(span_ms) * span_ms;
        let wanted = (0..=i64::from(ahead)).map(|n| first_ms + n * span_ms);
        let missing: Vec<i64> = wanted.filter(|start_ms| !known.contains(start_ms)).collect();
        for &start_ms in &missing {
            let end_ms = start_ms + span_ms;
            let partition = self.partition(start_ms)?;
            let bounds: [(&str, &dyn std::fmt::Display); 4] =
                [("{partition}", &partition), ("{table}", &self.table), ("{start}", &start_ms), ("{end}", &end_ms)];
            transaction.batch_execute(&fill(CREATE, &bounds)).await?;
        }
        Ok(missing.len())
    }

    /// Drops the partitions that hold nothing which still counts; says how many. Dropping waits for the transactions that
    /// use the table and holds up those that come: `SET LOCAL lock_timeout` first, and try again another time.
    pub async fn trim(&self, transaction: &Transaction<'_>, now: Now) -> Result<usize, Error> {
        let now_ms = self.alone(transaction, now).await?;
        let Retention { keep_ms, partition_ms } = self.retention;
        let known = self.partitions(transaction).await?;
        let over: Vec<i64> = known.into_iter().filter(|start_ms| start_ms + partition_ms <= now_ms - keep_ms).collect();
        for &start_ms in &over {
            transaction.batch_execute(&format!("DROP TABLE {}", self.partition(start_ms)?)).await?;
        }
        Ok(over.len())
    }

    /// Nobody else makes or drops partitions until the transaction ends.
    async fn alone(&self, transaction: &Transaction<'_>, now: Now) -> Result<i64, Error> {
        let lock = self.lock_of("\0partitions");
        transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &[(&lock, Type::INT8)]).await?;
        let given = now.given();
        let row = transaction.query_typed_one(&format!("SELECT {}", now_sql(1)), &[(&given, Type::INT8)]).await?;
        Ok(row.try_get(0)?)
    }

    /// The beginnings of those that are there. A partition with a name of somebody else's making is left alone.
    async fn partitions(&self, transaction: &Transaction<'_>) -> Result<Vec<i64>, Error> {
        let table = self.table.to_string();
        let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&table, Type::TEXT)];
        let rows = transaction.query_typed(PARTITIONS, &parameters).await?;
        let start = |name: &str| name.strip_prefix(self.table.name())?.strip_prefix('_')?.parse().ok();
        let names = rows.iter().map(|row| row.try_get::<_, String>(0)).collect::<Result<Vec<_>, _>>()?;
        Ok(names.iter().filter_map(|name| start(name)).collect())
    }

    fn partition(&self, start_ms: i64) -> Result<Table, Error> {
        Ok(self.table.beside(&format!("_{start_ms}"))?)
    }
}

/// Attaching takes a lock that readers and writers of the table do not mind; creating it in its place would stop them.
const CREATE: &str = "CREATE TABLE {partition} (LIKE {table} INCLUDING ALL); \
     ALTER TABLE {table} ATTACH PARTITION {partition} FOR VALUES FROM ({start}) TO ({end})";

const PARTITIONS: &str = "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
     WHERE i.inhparent = $1::regclass";
