//! Records of requests that several partitions answer together: claimed before the parts, finished after them, each in a
//! transaction of its own. No turn is part of it: what makes it safe is the comparison in the statement. Next: `records.rs`.

use std::sync::Arc;

use wf_store::*;

use crate::connection::Values;
use crate::open::PostgresStore;
use crate::rows;
use crate::sql::Sql;

impl PostgresStore {
    pub(crate) async fn claim_key(&self, entry: RecordEntry) -> Result<Claimed, StoreError> {
        if self.count(Sql::ClaimRecord, rows::record_columns(&[&entry])).await? > 0 {
            return Ok(Claimed::Fresh);
        }
        let standing: Option<Arc<_>> = self.record(entry.id).await?;
        // It has expired and was swept in between: the client asks again.
        standing.map(Claimed::Standing).ok_or_else(|| StoreError("the record under the key is just going".to_owned()))
    }

    pub(crate) async fn finish_key(&self, entry: RecordEntry) -> Result<bool, StoreError> {
        // What has no answer finishes nothing.
        let Some(values) = rows::finished_columns(&entry) else { return Ok(false) };
        Ok(self.count(Sql::FinishRecord, values).await? > 0)
    }

    async fn count(&self, sql: Sql, values: Values<'_>) -> Result<i64, StoreError> {
        let found = self.turns.write(vec![(sql, values)]).await?;
        found.first().and_then(|rows| rows.first()).map_or(Ok(0), |row| rows::get(row, 0))
    }
}
