//! Sweeping what nobody asks for any more, in small batches that several nodes may do at once, and the time partitions: made
//! ahead, dropped behind. Next: `cluster.rs`.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio_postgres::Row;
use wf_core::Millis;
use wf_store::{StoreError, failpoint};

use crate::connection::Values;
use crate::open::PostgresStore;
use crate::rows::{get, number};
use crate::sql::Sql;

/// How long counts of repeats and shipped messages are kept.
const KEPT_MS: Millis = 30 * DAY_MS;
const DAY_MS: Millis = 24 * 60 * 60 * 1000;

impl PostgresStore {
    /// What is missing from today on. A test's clock may run far from here: its rows go to the default partitions.
    pub(crate) async fn make_time_partitions(&self) -> Result<(), StoreError> {
        let today = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        self.turns.write(vec![(Sql::MakeTimePartitions, Values::none().with(today))]).await.map(drop)
    }

    pub(crate) async fn sweep_all(&self, now: Millis, rows_max: usize) -> Result<usize, StoreError> {
        let old = now.saturating_sub(KEPT_MS);
        let mut swept = 0;
        for (sql, bound) in [(Sql::SweepRecords, now), (Sql::SweepEvents, old), (Sql::SweepOutbox, old)] {
            swept += self.sweep_table(sql, bound, rows_max - swept).await?;
            failpoint::hit("in-sweep");
        }
        self.drop_answers(rows_max).await?;
        self.make_time_partitions().await?;
        Ok(swept)
    }

    async fn sweep_table(&self, sql: Sql, bound: Millis, rows_max: usize) -> Result<usize, StoreError> {
        let limit = i64::try_from(rows_max).unwrap_or(i64::MAX);
        let rows = self.turns.write(vec![(sql, Values::none().with(bound).with(limit))]).await?;
        let count = rows.first().and_then(|rows| rows.first()).map(|row| number(row, 0)).transpose()?;
        Ok(count.unwrap_or(0))
    }

    /// Answers go with the day of their expiry, a day later than the partition that is furthest behind: a record is asked
    /// at that partition's time.
    async fn drop_answers(&self, rows_max: usize) -> Result<(), StoreError> {
        let rows = self.turns.query(Sql::LowestTime, Values::none()).await?;
        let lowest = rows.first().map(|row: &Row| get::<Option<i64>>(row, 0)).transpose()?.flatten().unwrap_or(0);
        let behind = lowest.saturating_sub(DAY_MS);
        if behind > 0 {
            self.turns.write(vec![(Sql::DropAnswers, Values::none().with(behind))]).await?;
            self.sweep_table(Sql::SweepAnswers, behind, rows_max).await?;
        }
        Ok(())
    }
}
