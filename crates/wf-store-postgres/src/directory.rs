//! Where each tenant lives, of several databases that share them: whole in one, so that nothing is weaker than in one
//! database. A tenant is settled when it first works; a node remembers what it found, so that no request waits for this
//! twice. Next: `tenants.rs`, for operators.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use wf_store::{Later, StoreError};

use crate::connection::Values;
use crate::join::{Id, own_id};
use crate::open::PostgresStore;
use crate::reads::{Reader, one};
use crate::rows;
use crate::sql::Sql;

/// Tenants that a node remembers; without authentication anybody may invent names.
const KNOWN_MAX: usize = 100_000;

pub struct PostgresDirectory {
    first: Reader,
    /// In the order in which they were named.
    all: Vec<(Id, Reader)>,
    /// Tenants do not move while a node runs.
    known: RwLock<BTreeMap<String, usize>>,
}

impl PostgresDirectory {
    pub(crate) async fn of(first: &Reader, stores: &[PostgresStore]) -> Result<PostgresDirectory, StoreError> {
        let mut all = Vec::with_capacity(stores.len());
        for store in stores {
            let id = own_id(&store.turns).await?.ok_or_else(|| StoreError("a database without an id".to_owned()))?;
            all.push((id, store.turns.clone()));
        }
        Ok(PostgresDirectory { first: first.clone(), all, known: RwLock::default() })
    }

    fn known(&self, tenant: &str) -> Option<usize> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(tenant).copied()
    }

    async fn find(&self, tenant: &str) -> Result<Option<usize>, StoreError> {
        let Some(id) = home_of(&self.first, tenant).await? else { return Ok(None) };
        let at = self.all.iter().position(|(known, _)| *known == id);
        let at = at.ok_or_else(|| StoreError(format!("tenant {tenant} lives in a database that was added since")))?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(tenant.to_owned(), at);
        Ok(Some(at))
    }

    async fn settle(&self, tenant: &str) -> Result<(), StoreError> {
        settle(&self.first, tenant, worked_in(&self.all, tenant).await?).await
    }
}

impl wf_store::Directory for PostgresDirectory {
    fn home<'a>(&'a self, tenant: &'a str, settles: bool) -> Later<'a, Result<Option<usize>, StoreError>> {
        Box::pin(async move {
            if let Some(at) = self.known(tenant) {
                return Ok(Some(at));
            }
            let found = self.find(tenant).await?;
            if found.is_some() || !settles {
                return Ok(found);
            }
            // Whoever was first, the row is read afterwards.
            self.settle(tenant).await?;
            self.find(tenant).await
        })
    }
}

pub(crate) async fn home_of(first: &Reader, tenant: &str) -> Result<Option<Id>, StoreError> {
    let found = first.query(Sql::HomeOfTenant, Values::none().with(tenant)).await?;
    found.first().map(|row| rows::hash(row, 0)).transpose()
}

/// The one that has worked for a tenant without a line in the directory: before there was one, or before the first database
/// was restored from a backup. All of them are asked; none may be unreachable.
pub(crate) async fn worked_in(all: &[(Id, Reader)], tenant: &str) -> Result<Option<Id>, StoreError> {
    let mut found = None;
    for (id, reader) in all {
        let knows = reader.query(Sql::KnowsTenant, Values::none().with(tenant)).await?;
        if rows::get::<bool>(one(&knows)?, 0)? && found.replace(*id).is_some() {
            return Err(StoreError(format!("more than one database has worked for tenant {tenant}")));
        }
    }
    Ok(found)
}

/// `None`: where there are the fewest. One that has a home keeps it.
pub(crate) async fn settle(first: &Reader, tenant: &str, at: Option<Id>) -> Result<(), StoreError> {
    let values = Values::none().with(tenant).with(at.map(|id| id.to_vec()));
    first.write(vec![(Sql::SettleTenant, values)]).await?;
    Ok(())
}
