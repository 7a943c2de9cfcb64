//! Taking whole weeks out of a log, as the schema's owner: what they hold is kept elsewhere by the caller first. Nodes go on
//! meanwhile. Next: `migrations/main/0004_archive.sql`, which drops them.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use wf_core::Millis;
use wf_store::StoreError;

use crate::connection::{Connection, Values};
use crate::join::own_id;
use crate::open::{Database, OpenError, Options};
use crate::reads::{database_error, one};
use crate::rows::{self, sql_partition};
use crate::sql::Sql;

const WEEK_MS: Millis = 7 * 24 * 60 * 60 * 1000;
/// Somebody who reads a log keeps its weeks from being dropped; each wait for the lock holds all writers up for a second.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    Commands,
    Audit,
}

impl Log {
    fn table(self) -> &'static str {
        match self {
            Log::Commands => "command_log",
            Log::Audit => "audit_log",
        }
    }

    fn ends(self) -> Sql {
        match self {
            Log::Commands => Sql::CommandEnds,
            Log::Audit => Sql::AuditEnds,
        }
    }
}

/// A week since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Week(i64);

impl Week {
    /// The first moment behind it.
    pub fn end(self) -> Millis {
        (self.0 + 1) * WEEK_MS
    }
}

/// The last row of a partition that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub partition: u16,
    pub position: u64,
    /// Of an audit: its chain after that row. Otherwise empty.
    pub chain: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("weeks of a log are dropped by its owner only: {0}")]
    NotTheOwner(String),
    #[error("the log is being read, by a proof perhaps, and cannot be dropped meanwhile: run it again later")]
    Busy,
    #[error("the week is gone: somebody else has archived it meanwhile")]
    Gone,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ArchiveError {
    fn of(error: tokio_postgres::Error) -> ArchiveError {
        let said = database_error(&error);
        match error.code() {
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => ArchiveError::NotTheOwner(said.0),
            _ if is_passing(&error) => ArchiveError::Busy,
            _ => ArchiveError::Store(said),
        }
    }
}

/// A database whose logs get shorter.
pub struct Archive {
    connection: Connection,
    /// What no other database has.
    pub id: [u8; 32],
}

impl Archive {
    /// Must be called within a runtime.
    pub async fn open(url: &str) -> Result<Archive, OpenError> {
        let database = Database::connect(Options { migrates: false, ..Options::at(url) }).await?;
        let id = own_id(&database.turns).await?.ok_or_else(|| StoreError("no node has worked on it yet".to_owned()))?;
        Ok(Archive { connection: database.patient().await?, id })
    }

    /// Those that ended before this time, and not within the last day, the oldest first.
    pub async fn weeks(&self, log: Log, before: Millis) -> Result<Vec<Week>, ArchiveError> {
        let values = Values::none().with(log.table()).with(before);
        let found = self.connection.query(Sql::ArchivableWeeks, values).await.map_err(ArchiveError::of)?;
        found.iter().map(|row| Ok(Week(rows::get(row, 0)?))).collect()
    }

    /// What of each partition goes up to this week; nothing of those that are not named.
    pub async fn ends(&self, log: Log, last: Week) -> Result<Vec<End>, StoreError> {
        let found = self.connection.query(log.ends(), Values::none().with(last.end())).await;
        let end = |row| {
            Ok(End { partition: rows::partition(row, 0)?, position: rows::key(row, 1)?, chain: rows::get(row, 2)? })
        };
        found.map_err(|error| database_error(&error))?.iter().map(end).collect()
    }

    /// Drops a week, and any before it. Everything up to these ends is kept elsewhere.
    pub async fn drop(&self, log: Log, week: Week, ends: &[End]) -> Result<(), ArchiveError> {
        let mut dropped = self.try_drop(log, week, ends).await;
        for _ in 1..TRIES {
            if !dropped.as_ref().is_err_and(is_passing) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            dropped = self.try_drop(log, week, ends).await;
        }
        match rows::number::<usize>(one(&dropped.map_err(ArchiveError::of)?)?, 0)? {
            0 => Err(ArchiveError::Gone),
            _ => Ok(()),
        }
    }

    async fn try_drop(
        &self,
        log: Log,
        week: Week,
        ends: &[End],
    ) -> Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
        let partitions: Vec<i16> = ends.iter().map(|end| sql_partition(end.partition)).collect();
        let positions: Vec<i64> = ends.iter().map(|end| end.position as i64).collect();
        let chains: Vec<&[u8]> = ends.iter().map(|end| &*end.chain).collect();
        let values = Values::none().with(log.table()).with(week.0 + 1);
        self.connection.query(Sql::DropWeeks, values.with(partitions).with(positions).with(chains)).await
    }
}

fn is_passing(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| [SqlState::LOCK_NOT_AVAILABLE, SqlState::T_R_DEADLOCK_DETECTED].contains(code))
}
