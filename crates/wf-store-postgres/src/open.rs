//! What makes a store: the database's schema brought to this program's version, its partitions made once, and connections
//! for turns and for lists. Next: `store.rs`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio_postgres::Row;
use wf_core::Partitions;
use wf_store::{NodeId, StoreError};

use crate::combiner::{APART_MAX, Combiner};
use crate::commit::{Committer, Voice};
use crate::connect::{ConnectError, Connector, Limits, Purpose, Url, address_of};
use crate::connection::{Connection, Values};
use crate::join::{self, JoinError};
use crate::keys::KnownKeys;
use crate::listen::Ear;
use crate::migrate::{self, MigrateError};
use crate::outbox::Windows;
use crate::pool::Pool;
use crate::reads::{Reader, one};
use crate::rows;
use crate::sql::{Sql, Statements};

#[derive(Clone, Debug)]
pub struct Options {
    /// `postgres://user:password@host/database`, see `connect.rs` for what may follow.
    pub url: String,
    /// Under which the other nodes know this one. An earlier run of the same name is replaced.
    pub node: String,
    /// Where other nodes reach this one: `http://host:port`.
    pub address: String,
    pub version: String,
    /// How many partitions a store that is made now gets: 1 to 4,095. One that stands keeps its own.
    pub partitions: u16,
    /// How long a node is believed to live without a sign of life.
    pub lease: Duration,
    /// Whether an older schema is brought to this program's version, if the role may do that. Otherwise it is refused.
    pub migrates: bool,
    /// Transactions of turns that are under way at once.
    pub writers: usize,
    /// Connections for what turns load.
    pub loaders: usize,
    /// Connections for lists and details.
    pub readers: usize,
    /// How long a connection is waited for.
    pub wait_max: Duration,
    pub limits: Limits,
}

impl Options {
    pub fn at(url: impl Into<String>) -> Options {
        Options {
            url: url.into(),
            node: "node-1".to_owned(),
            address: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            partitions: 8,
            lease: Duration::from_secs(6),
            migrates: true,
            writers: 2,
            loaders: 8,
            readers: 4,
            wait_max: Duration::from_secs(5),
            limits: Limits::default(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error("a store has 1 to {last} partitions, not {0}", last = Partitions::LAST)]
    Partitions(u16),
}

/// Why a node does not start, and at which database.
#[derive(Debug, thiserror::Error)]
#[error("failed to open the store at {address}: {error}")]
pub struct NotOpened {
    pub address: String,
    pub error: OpenError,
}

impl NotOpened {
    pub(crate) fn at(url: &str, error: OpenError) -> NotOpened {
        NotOpened { address: address_of(url), error }
    }
}

pub struct PostgresStore {
    pub(crate) options: Options,
    pub(crate) me: NodeId,
    pub(crate) partitions: Partitions,
    pub(crate) combiner: Combiner,
    /// What turns load, and single rows beside them.
    pub(crate) turns: Reader,
    pub(crate) keys: KnownKeys,
    pub(crate) lists: Reader,
    pub(crate) ledgers: Arc<Connector>,
    pub(crate) windows: Windows,
    /// Its tenants are not all that there are.
    pub(crate) is_shared: bool,
    pub(crate) ear: Ear,
    /// Other nodes are in the list, as far as is known: they are told of what is sent.
    pub(crate) has_company: Arc<AtomicBool>,
}

/// A database whose schema is this program's, and connections to it: a store once its partitions are there.
pub(crate) struct Database {
    options: Options,
    for_turns: Arc<Connector>,
    pub turns: Reader,
    lists: Reader,
    ledgers: Arc<Connector>,
    is_bouncer: bool,
    /// Of notes to other nodes: the schema's name.
    channel: String,
}

impl PostgresStore {
    /// A store of its own. Must be called within a runtime: connections are driven by tasks of it.
    pub async fn connect(options: Options) -> Result<PostgresStore, OpenError> {
        let database = Database::connect(options).await?;
        join::claim_alone(&database).await?;
        let count = database.count();
        let numbers = Partitions::run(1, count).ok_or(OpenError::Partitions(count))?;
        database.open(numbers, false).await
    }
}

impl Database {
    pub async fn connect(options: Options) -> Result<Database, OpenError> {
        let mut url = Url::parse(&options.url)?;
        migrate::prepare(&mut url, options.migrates, options.limits).await?;
        if url.is_bouncer {
            tracing::info!(
                "through PgBouncer: no statement is kept, and nobody is notified; what other nodes send is polled for"
            );
        }
        let statements = Statements::of_schema(&url.schema);
        let connector = |purpose| -> Result<Arc<Connector>, ConnectError> {
            Connector::new(&url, &options.node, purpose, options.limits, statements.clone()).map(Arc::new)
        };
        let for_turns = connector(Purpose::Turns)?;
        let reader = |connector: &Arc<Connector>, size, limit| {
            Reader::new(Pool::new(connector.clone(), size, options.wait_max), limit + options.limits.silence)
        };
        let turns = reader(&for_turns, options.loaders, options.limits.statement);
        let lists = reader(&connector(Purpose::Reads)?, options.readers, options.limits.list);
        let ledgers = connector(Purpose::Ledger)?;
        Ok(Database { for_turns, turns, lists, ledgers, is_bouncer: url.is_bouncer, channel: url.schema, options })
    }

    pub fn url(&self) -> &str {
        &self.options.url
    }

    /// For people.
    pub fn address(&self) -> String {
        address_of(&self.options.url)
    }

    /// Of partitions, where there is no store yet.
    pub fn count(&self) -> u16 {
        self.options.partitions
    }

    /// A connection on which things may take the time that they take.
    pub async fn patient(&self) -> Result<Connection, ConnectError> {
        self.ledgers.connect().await
    }

    /// `None`: no store was made in it yet.
    pub async fn partitions(&self) -> Result<Option<Partitions>, StoreError> {
        let rows = self.turns.query(Sql::CountPartitions, Values::none()).await?;
        partitions_of(one(&rows)?)
    }

    /// `wanted`: where there is no store yet.
    pub async fn open(self, wanted: Partitions, is_shared: bool) -> Result<PostgresStore, OpenError> {
        let partitions = self.make_partitions(wanted).await?;
        let options = self.options;
        let me = *uuid::Uuid::new_v4().as_bytes();
        let has_company = Arc::new(AtomicBool::new(false));
        let ear = match self.is_bouncer {
            true => Ear::deaf(),
            false => Ear::listen(self.ledgers.clone(), &self.channel, me),
        };
        let pool = Pool::new(self.for_turns, options.writers + APART_MAX, options.wait_max);
        let voice = Voice { me, channel: self.channel, has_company: has_company.clone() };
        let store = PostgresStore {
            me,
            partitions,
            combiner: Combiner::spawn(Committer::new(pool, options.limits, voice), options.writers),
            ear,
            has_company,
            keys: KnownKeys::spawn(self.turns.clone()),
            turns: self.turns,
            lists: self.lists,
            ledgers: self.ledgers,
            windows: Windows::default(),
            is_shared,
            options,
        };
        store.make_time_partitions().await?;
        Ok(store)
    }

    async fn make_partitions(&self, wanted: Partitions) -> Result<Partitions, StoreError> {
        if let Some(standing) = self.partitions().await? {
            return Ok(standing);
        }
        let ends = Values::none().with(i32::from(wanted.first())).with(i32::from(wanted.last()));
        // Two nodes that do it at once: one of them waits for the other and finds the rows there.
        let made = self.turns.write(vec![(Sql::MakePartitions, ends)]).await;
        match self.partitions().await? {
            Some(standing) => Ok(standing),
            None => Err(made.err().unwrap_or_else(|| StoreError("the store has no partitions".to_owned()))),
        }
    }
}

/// `None`: there are none.
pub fn partitions_of(row: &Row) -> Result<Option<Partitions>, StoreError> {
    match rows::get(row, 1)? {
        0 => Ok(None),
        count => numbers_of(rows::get(row, 0)?, count).map(Some),
    }
}

pub fn numbers_of(first: i32, count: i32) -> Result<Partitions, StoreError> {
    let numbers = u16::try_from(first).ok().zip(u16::try_from(count).ok());
    let numbers = numbers.and_then(|(first, count)| Partitions::run(first, count));
    numbers.ok_or_else(|| StoreError(format!("there are no {count} partitions from number {first} on")))
}
