//! The end of a lease, or its extension: compare-and-swap on the state, the holder, the lease's number and its time. What
//! was found instead decides the answer.

use super::{Lease, Queue};
use crate::postgres::value::AsText;
use crate::postgres::{Error, Now};
use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    Done,
    /// The same worker said the same of the same lease before, and its answer was lost. Nothing was changed.
    Duplicate,
    /// The lease ended, or the row is another's or settled otherwise. Nothing was changed: roll back what you did for it.
    LeaseLost,
    /// There is no such row (any more).
    Missing,
}

#[derive(Clone, Debug)]
pub(super) struct Statements {
    settle: String,
    look: String,
}

impl Statements {
    pub(super) fn new(fill: impl Fn(usize, &str) -> String) -> Statements {
        Statements { settle: fill(6, SETTLE), look: fill(0, LOOK) }
    }
}

impl Queue {
    /// In the transaction of the effect.
    pub async fn complete(
        &self,
        client: &(impl GenericClient + Sync),
        lease: &Lease,
        now: Now,
    ) -> Result<Settled, Error> {
        self.settle(client, lease, "done", 0, now).await
    }

    /// Gives the row back for another try after so long; with `None` for good.
    pub async fn fail(
        &self,
        client: &(impl GenericClient + Sync),
        lease: &Lease,
        retry_after_ms: Option<i64>,
        now: Now,
    ) -> Result<Settled, Error> {
        let state = if retry_after_ms.is_some() { "ready" } else { "failed" };
        self.settle(client, lease, state, retry_after_ms.unwrap_or(0), now).await
    }

    /// The lease lasts so long from now. Asking again asks for the same: it is never a duplicate.
    pub async fn extend(
        &self,
        client: &(impl GenericClient + Sync),
        lease: &Lease,
        for_ms: i64,
        now: Now,
    ) -> Result<Settled, Error> {
        self.settle(client, lease, "leased", for_ms, now).await
    }

    async fn settle(
        &self,
        client: &(impl GenericClient + Sync),
        lease: &Lease,
        state: &str,
        after_ms: i64,
        now: Now,
    ) -> Result<Settled, Error> {
        let (key, given) = (AsText(&lease.key), now.given());
        let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
            (&key, Type::UNKNOWN),
            (&lease.holder, Type::TEXT),
            (&lease.number, Type::INT8),
            (&state, Type::TEXT),
            (&after_ms, Type::INT8),
            (&given, Type::INT8),
        ];
        if client.execute_typed(&self.settle.settle, &parameters).await? == 1 {
            return Ok(Settled::Done);
        }
        let Some(row) = client.query_typed_opt(&self.settle.look, &parameters[..1]).await? else {
            return Ok(Settled::Missing);
        };
        let found: (String, Option<String>, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(if is_own(&found, lease, state) { Settled::Duplicate } else { Settled::LeaseLost })
    }
}

/// A row that was given back or settled keeps the number of its last lease until it is leased again.
fn is_own((state, holder, number): &(String, Option<String>, i64), lease: &Lease, wanted: &str) -> bool {
    state == wanted && wanted != "leased" && holder.as_deref() == Some(&lease.holder) && *number == lease.number
}

const SETTLE: &str = "UPDATE {table} SET lease_state = $4, lease_at_ms = {now} + $5 WHERE {key} = $1 \
     AND lease_state = 'leased' AND lease_holder = $2 AND lease_number = $3 AND lease_at_ms > {now}";

const LOOK: &str = "SELECT lease_state, lease_holder, lease_number FROM {table} WHERE {key} = $1";
