//! What an operator does with the directory beside running nodes: looks at it, and settles a tenant before it first works.
//! Next: `directory.rs`.

use wf_store::StoreError;

use crate::connection::Values;
use crate::directory::{home_of, settle, worked_in};
use crate::join::{Id, JoinError, Member, check_first, check_named, members, own_id};
use crate::open::{Database, OpenError, Options};
use crate::rows;
use crate::sql::Sql;

/// A database among several, as people see it.
pub struct DatabaseInfo {
    /// `HOST:PORT/DATABASE`, as it was when a node last started.
    pub address: String,
    pub first_partition: u16,
    pub last_partition: u16,
    /// By name.
    pub tenants: Vec<String>,
}

/// All databases, in the order of their partitions. `url`: of the first one.
pub async fn databases(url: &str) -> Result<Vec<DatabaseInfo>, OpenError> {
    let first = connect(url).await?;
    let all = listed(&first).await?;
    let found = first.turns.query(Sql::ListTenants, Values::none()).await?;
    let tenant = |row| Ok((rows::hash(row, 0)?, rows::get(row, 1)?));
    let tenants: Vec<(Id, String)> = found.iter().map(tenant).collect::<Result<_, StoreError>>()?;
    let info = |member: Member| DatabaseInfo {
        tenants: tenants.iter().filter(|(home, _)| *home == member.id).map(|(_, name)| name.clone()).collect(),
        address: member.address,
        first_partition: member.numbers.first(),
        last_partition: member.numbers.last(),
    };
    Ok(all.into_iter().map(info).collect())
}

/// Settles a tenant that has never worked. Again: changes nothing. `urls`: all databases, the first one first; each is asked
/// whether it knows the tenant.
pub async fn settle_tenant(urls: &[&str], tenant: &str, address: &str) -> Result<(), OpenError> {
    let mut all = Vec::with_capacity(urls.len());
    for url in urls {
        all.push(connect(url).await?);
    }
    let Some(first) = all.first() else { return Err(JoinError::Alone.into()) };
    let members = listed(first).await?;
    let mut readers = Vec::with_capacity(all.len());
    for database in &all {
        readers.extend(own_id(&database.turns).await?.map(|id| (id, database.turns.clone())));
    }
    check_named(&members, &readers.iter().map(|(id, _)| *id).collect::<Vec<_>>())?;
    let Some(wanted) = members.iter().find(|member| member.address == address) else {
        let known: Vec<&str> = members.iter().map(|member| &*member.address).collect();
        return Err(JoinError::Unknown { address: address.to_owned(), known: known.join(", ") }.into());
    };
    let worked = worked_in(&readers, tenant).await?;
    settle(&first.turns, tenant, worked.or(Some(wanted.id))).await?;
    let home = home_of(&first.turns, tenant).await?;
    match members.iter().find(|member| Some(member.id) == home) {
        Some(found) if found.id != wanted.id => {
            Err(JoinError::Lives { tenant: tenant.to_owned(), address: found.address.clone() }.into())
        }
        _ => Ok(()),
    }
}

async fn connect(url: &str) -> Result<Database, OpenError> {
    Database::connect(Options { migrates: false, ..Options::at(url) }).await
}

async fn listed(first: &Database) -> Result<Vec<Member>, OpenError> {
    check_first(first).await?;
    let all = members(&first.turns).await?;
    if all.is_empty() { Err(JoinError::Alone.into()) } else { Ok(all) }
}
