//! The list of nodes and who owns what. Leases are of the database's clock; each change is one small transaction.
//! Next: `upkeep.rs`.

use std::sync::atomic::Ordering;

use tokio_postgres::Row;
use wf_store::{Cluster, Later, Members, Node, NodeId, Ownership, StoreError};

use crate::connection::Values;
use crate::open::PostgresStore;
use crate::reads::Asked;
use crate::rows::{get, hash, hash_or_null, key, partition, sql_partition};
use crate::sql::Sql;

impl Cluster for PostgresStore {
    fn me(&self) -> NodeId {
        self.me
    }

    fn join(&self) -> Later<'_, Result<(), StoreError>> {
        Box::pin(async {
            let name = Values::none().with(self.options.node.as_str()).with(self.me.to_vec());
            let asked = [self.directory_lock(), self.alone_check(), (Sql::StrikeOffName, name), self.entry()];
            self.turns.write(asked.into()).await.map(drop)
        })
    }

    fn renew(&self) -> Later<'_, Result<Members, StoreError>> {
        Box::pin(async {
            let me = Values::none().with(self.me.to_vec());
            let mut asked = vec![self.alone_check(), self.entry(), (Sql::StrikeOffDead, me)];
            asked.extend(standing());
            let answers = self.turns.write(asked).await.map_err(|error| self.of_twin(error))?;
            let members = members(&answers[3..])?;
            self.has_company.store(members.nodes.len() > 1, Ordering::Relaxed);
            Ok(members)
        })
    }

    fn members(&self) -> Later<'_, Result<Members, StoreError>> {
        Box::pin(async { members(&self.turns.snapshot(standing()).await?) })
    }

    fn release(&self, partition: u16) -> Later<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let values = Values::none().with(sql_partition(partition)).with(self.me.to_vec());
            self.turns.write(vec![(Sql::ReleasePartition, values)]).await.map(drop)
        })
    }

    fn leave(&self) -> Later<'_, Result<(), StoreError>> {
        Box::pin(async {
            let me = || Values::none().with(self.me.to_vec());
            self.turns.write(vec![(Sql::ReleaseAll, me()), (Sql::Leave, me())]).await.map(drop)
        })
    }
}

impl PostgresStore {
    /// A node that knows one database comes in before there are several, or not at all.
    fn directory_lock(&self) -> Asked<'static> {
        (Sql::LockDirectory, Values::none())
    }

    fn alone_check(&self) -> Asked<'static> {
        (Sql::CheckAlone, Values::none().with(self.is_shared))
    }

    /// A later run of the same name has struck this one off and taken its place in the list.
    fn of_twin(&self, error: StoreError) -> StoreError {
        match error.0.contains("node_name_key") {
            true => {
                StoreError(format!("another node has started under the name {}: names must differ", self.options.node))
            }
            false => error,
        }
    }

    fn entry(&self) -> Asked<'_> {
        let lease_ms = i64::try_from(self.options.lease.as_millis()).unwrap_or(i64::MAX);
        let values = Values::none()
            .with(self.me.to_vec())
            .with(self.options.node.as_str())
            .with(self.options.address.as_str())
            .with(self.options.version.as_str())
            .with(lease_ms);
        (Sql::Enter, values)
    }
}

fn standing() -> Vec<Asked<'static>> {
    [Sql::ListNodes, Sql::ListPartitions, Sql::DatabaseClock].map(|sql| (sql, Values::none())).into()
}

fn members(answers: &[Vec<Row>]) -> Result<Members, StoreError> {
    let [nodes, partitions, clock] = answers else {
        return Err(StoreError("three answers were expected".to_owned()));
    };
    Ok(Members {
        nodes: nodes.iter().map(node).collect::<Result<_, _>>()?,
        partitions: partitions.iter().map(ownership).collect::<Result<_, _>>()?,
        now: clock.first().map(|row| get(row, 0)).transpose()?.unwrap_or(0),
    })
}

fn node(row: &Row) -> Result<Node, StoreError> {
    Ok(Node {
        id: hash(row, 0)?,
        name: get(row, 1)?,
        address: get(row, 2)?,
        version: get(row, 3)?,
        joined_at: get(row, 4)?,
        lease_left_ms: get(row, 5)?,
    })
}

fn ownership(row: &Row) -> Result<Ownership, StoreError> {
    Ok(Ownership {
        partition: partition(row, 0)?,
        epoch: key(row, 1)?,
        position: key(row, 2)?,
        owner: hash_or_null(row, 3)?,
    })
}
