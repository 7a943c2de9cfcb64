//! Which databases belong together, found out when a node starts. Each is claimed by one first database for good: by itself,
//! where it stands alone. The first one keeps the list of all, with the numbers of their partitions. Whether they may belong
//! together is judged before any is claimed (their schemas and ids are there by then); each write after that may be the last
//! one, and the next start goes on from it. Next: `directory.rs`, where a tenant lives.

use wf_core::Partitions;
use wf_store::StoreError;

use crate::connection::Values;
use crate::directory::PostgresDirectory;
use crate::open::{Database, NotOpened, OpenError, Options, PostgresStore, numbers_of};
use crate::reads::{Reader, secret};
use crate::rows;
use crate::sql::Sql;

/// What a database is known by, wherever it stands.
pub type Id = [u8; 32];

/// Secrets of a database: its own id, and that of the first one, which has claimed it.
const OWN: &str = "database";
const FIRST: &str = "directory";

#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("it is named twice")]
    Twice,
    #[error("it is one of several databases, of which another one is the first: name that one first")]
    NotFirst,
    #[error("it stands alone or belongs to other databases, and stays there")]
    Foreign,
    #[error("tenants also live in {0}: name that database too")]
    Missing(String),
    #[error("nodes that do not know it still run, or their leases have not run out yet: stop them and try again")]
    Busy,
    #[error("its partitions {} to {} do not fit those that the first database has on its list", .0.first(), .0.last())]
    Numbers(Partitions),
    #[error("there are no {0} numbers left for its partitions")]
    Full(u16),
    #[error("there is no {address}; there are: {known}")]
    Unknown { address: String, known: String },
    #[error("tenant {tenant} lives in {address}, and stays there")]
    Lives { tenant: String, address: String },
    #[error("it has all tenants: there are no other databases")]
    Alone,
}

/// Several stores and where the tenants live; one store has no directory. Must be called within a runtime.
pub async fn connect_all(all: Vec<Options>) -> Result<(Vec<PostgresStore>, Option<PostgresDirectory>), NotOpened> {
    if let [alone] = all.as_slice() {
        let opened = PostgresStore::connect(alone.clone()).await;
        return Ok((vec![opened.map_err(|error| NotOpened::at(&alone.url, error))?], None));
    }
    let mut databases = Vec::with_capacity(all.len());
    for options in all {
        let url = options.url.clone();
        databases.push(Joining::connect(options).await.map_err(|error| NotOpened::at(&url, error))?);
    }
    let members = judge(&databases).await?;
    let mut stores = Vec::with_capacity(databases.len());
    let first = databases.first().map(|first| (first.id, first.database.turns.clone()));
    let (first_id, first) = first.ok_or_else(|| NotOpened::at("", StoreError("no database".to_owned()).into()))?;
    for joining in databases {
        let url = joining.database.url().to_owned();
        let opened = joining.open(first_id, &first, &members).await;
        stores.push(opened.map_err(|error| NotOpened::at(&url, error))?);
    }
    let directory = PostgresDirectory::of(&first, &stores).await;
    Ok((stores, Some(directory.map_err(|error| NotOpened::at("", error.into()))?)))
}

/// A database that stands alone claims itself, so that it is never one of several whose first is another; and it is refused
/// where it already is one of several.
pub(crate) async fn claim_alone(database: &Database) -> Result<(), OpenError> {
    let own = secret(&database.turns, OWN, fresh_id()).await?;
    if secret(&database.turns, FIRST, own).await? != own {
        return Err(JoinError::NotFirst.into());
    }
    check_named(&members(&database.turns).await?, &[own])
}

struct Joining {
    database: Database,
    id: Id,
    claimed_by: Option<Id>,
    standing: Option<Partitions>,
}

impl Joining {
    async fn connect(options: Options) -> Result<Joining, OpenError> {
        let database = Database::connect(options).await?;
        let id = secret(&database.turns, OWN, fresh_id()).await?;
        let claimed_by = find_secret(&database.turns, FIRST).await?;
        let standing = database.partitions().await?;
        Ok(Joining { database, id, claimed_by, standing })
    }

    async fn open(self, first_id: Id, first: &Reader, known: &[Member]) -> Result<PostgresStore, OpenError> {
        if secret(&self.database.turns, FIRST, first_id).await? != first_id {
            return Err(JoinError::Foreign.into());
        }
        let numbers = self.enter(first, known).await?;
        let store = self.database.open(numbers, true).await?;
        match store.partitions == numbers {
            true => Ok(store),
            false => Err(JoinError::Numbers(store.partitions).into()),
        }
    }

    /// The numbers of its partitions: those that it has, else free ones, which stay its own from here on.
    async fn enter(&self, first: &Reader, known: &[Member]) -> Result<Partitions, OpenError> {
        let count = self.standing.map_or(self.database.count(), Partitions::count);
        let values = Values::none()
            .with(self.id.to_vec())
            .with(self.database.address())
            .with(self.standing.map(|numbers| i32::from(numbers.first())))
            .with(i32::from(count));
        first.write(vec![(Sql::LockDirectory, Values::none()), (Sql::EnterDatabase, values)]).await?;
        let entered = members(first).await?.into_iter().find(|member| member.id == self.id);
        match (entered, self.standing) {
            (Some(member), None) => Ok(member.numbers),
            (Some(member), Some(standing)) if member.numbers == standing => Ok(standing),
            (Some(_), Some(standing)) => Err(JoinError::Numbers(standing).into()),
            (None, Some(standing)) if known.iter().any(|member| member.numbers.overlaps(standing)) => {
                Err(JoinError::Numbers(standing).into())
            }
            (None, None) if known.iter().any(|member| member.numbers.last() + count > Partitions::LAST) => {
                Err(JoinError::Full(count).into())
            }
            (None, _) => Err(JoinError::Busy.into()),
        }
    }
}

/// Whether they may belong together, before anything is written. The first one's list.
async fn judge(databases: &[Joining]) -> Result<Vec<Member>, NotOpened> {
    let ids: Vec<Id> = databases.iter().map(|joining| joining.id).collect();
    for (at, joining) in databases.iter().enumerate() {
        let judged = match joining.claimed_by {
            _ if ids[..at].contains(&joining.id) => Err(JoinError::Twice),
            Some(first) if first != ids[0] && at == 0 => Err(JoinError::NotFirst),
            Some(first) if first != ids[0] => Err(JoinError::Foreign),
            _ => Ok(()),
        };
        judged.map_err(|error| NotOpened::at(joining.database.url(), error.into()))?;
    }
    let Some(first) = databases.first() else { return Ok(Vec::new()) };
    let of_first = |error: OpenError| NotOpened::at(first.database.url(), error);
    let members = members(&first.database.turns).await.map_err(|error| of_first(error.into()))?;
    check_named(&members, &ids).map_err(of_first)?;
    Ok(members)
}

/// Half of the databases must never be taken for the whole.
pub fn check_named(members: &[Member], named: &[Id]) -> Result<(), OpenError> {
    match members.iter().find(|member| !named.contains(&member.id)) {
        Some(member) => Err(JoinError::Missing(member.address.clone()).into()),
        None => Ok(()),
    }
}

/// A line of the first database's list.
pub struct Member {
    pub id: Id,
    /// Where it was when a node last started: `HOST:PORT/DATABASE`.
    pub address: String,
    pub numbers: Partitions,
}

pub async fn members(first: &Reader) -> Result<Vec<Member>, StoreError> {
    let found = first.query(Sql::ListDatabases, Values::none()).await?;
    let member = |row| {
        let numbers = numbers_of(rows::get(row, 2)?, rows::get(row, 3)?)?;
        Ok(Member { id: rows::hash(row, 0)?, address: rows::get(row, 1)?, numbers })
    };
    found.iter().map(member).collect()
}

/// Refuses one that is not the first of its kind.
pub async fn check_first(database: &Database) -> Result<(), OpenError> {
    match find_secret(&database.turns, FIRST).await? {
        Some(first) if Some(first) != find_secret(&database.turns, OWN).await? => Err(JoinError::NotFirst.into()),
        _ => Ok(()),
    }
}

pub async fn own_id(reader: &Reader) -> Result<Option<Id>, StoreError> {
    find_secret(reader, OWN).await
}

fn fresh_id() -> Id {
    let mut id = [0; 32];
    id.chunks_exact_mut(16).for_each(|half| half.copy_from_slice(uuid::Uuid::new_v4().as_bytes()));
    id
}

async fn find_secret(reader: &Reader, name: &str) -> Result<Option<Id>, StoreError> {
    let found = reader.query(Sql::GetSecret, Values::none().with(format!("secret:{name}"))).await?;
    found.first().map(|row| rows::hash(row, 0)).transpose()
}
