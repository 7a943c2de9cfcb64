//! The schema: migrations forward only, all that are missing in one transaction, under a lock that the transaction holds, so
//! that nodes may start together. Nothing else makes or changes a table. Next: `sql.rs`, the statements over it.

use wf_store::failpoint;

use crate::connect::{ConnectError, Connector, Limits, Purpose, Url, shown};
use crate::connection::Connection;
use crate::sql::{Statements, in_schema};

struct Migration {
    name: &'static str,
    sql: &'static str,
    /// The oldest program, by its schema's version, that still works on what this leaves: an upgrade goes node by node.
    oldest: i32,
}

/// Numbered from 1 without gaps.
const MIGRATIONS: &[Migration] = &[
    Migration { name: "initial", sql: include_str!("../migrations/main/0001_initial.sql"), oldest: 1 },
    Migration { name: "directory", sql: include_str!("../migrations/main/0002_directory.sql"), oldest: 2 },
    Migration { name: "jobs_root", sql: include_str!("../migrations/main/0003_jobs_root.sql"), oldest: 2 },
    Migration { name: "archive", sql: include_str!("../migrations/main/0004_archive.sql"), oldest: 2 },
];

/// The schema that this program reads and writes.
pub const VERSION: i32 = MIGRATIONS.len() as i32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Of the database; 0: there is no store in it.
    pub found: i32,
    /// Of this program.
    pub known: i32,
    /// The oldest program that the database's schema works with.
    pub oldest: i32,
}

impl Versions {
    pub fn is_current(&self) -> bool {
        self.found == self.known
    }
}

#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(
        "the database has schema version {found}, this program needs {known}: run `wf migrate` with a role that may"
    )]
    Older { found: i32, known: i32 },
    #[error(
        "the database has schema version {found}, which works with programs from schema version {oldest} on: this one has {known}"
    )]
    Newer { found: i32, known: i32, oldest: i32 },
    #[error("migrating the database: {0}")]
    Failed(String),
}

impl From<tokio_postgres::Error> for MigrateError {
    fn from(error: tokio_postgres::Error) -> MigrateError {
        MigrateError::Failed(shown(&error))
    }
}

/// Brings the database from whatever version to this program's; what was found before.
pub async fn migrate(url: &str) -> Result<Versions, MigrateError> {
    let mut url = Url::parse(url)?;
    let connection = connect(&mut url, Limits::default()).await?;
    bring_up(&connection, &url.schema).await
}

/// What stands in the database; nothing is changed.
pub async fn check(url: &str) -> Result<Versions, MigrateError> {
    let mut url = Url::parse(url)?;
    let connection = connect(&mut url, Limits::default()).await?;
    versions(&connection, &url.schema).await
}

/// When a store is opened. A schema that is newer than this program is all right where it says so.
pub async fn prepare(url: &mut Url, migrates: bool, limits: Limits) -> Result<(), MigrateError> {
    let connection = connect(url, limits).await?;
    let Versions { found, known, oldest } = versions(&connection, &url.schema).await?;
    if known < oldest {
        return Err(MigrateError::Newer { found, known, oldest });
    }
    if found < known {
        if !migrates {
            return Err(MigrateError::Older { found, known });
        }
        bring_up(&connection, &url.schema).await?;
    }
    failpoint::hit("after-migration");
    Ok(())
}

/// The first connection of all: it finds out whether PgBouncer stands before the server.
async fn connect(url: &mut Url, limits: Limits) -> Result<Connection, MigrateError> {
    // A migration takes as long as it takes.
    let statements = Statements::of_schema(&url.schema);
    let connector = |url: &Url| Connector::new(url, "migration", Purpose::Ledger, limits, statements.clone());
    let connection = match connector(url)?.connect().await {
        Err(error) if error.is_of_a_bouncer() && !url.is_bouncer => {
            url.is_bouncer = true;
            connector(url)?.connect().await?
        }
        connection => connection?,
    };
    let version = connection.client().simple_query("SHOW server_version_num").await?;
    let number = version.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse::<u32>().ok(),
        _ => None,
    });
    match number {
        Some(number) if number < OLDEST_SERVER => Err(ConnectError::TooOld((number / 10_000).to_string()).into()),
        _ => Ok(connection),
    }
}

const OLDEST_SERVER: u32 = 150_000;

async fn versions(connection: &Connection, schema: &str) -> Result<Versions, MigrateError> {
    let client = connection.client();
    let text = |sql: &str| in_schema(sql, schema);
    let stands = client.query_typed(STANDS, &[(&schema, TEXT)]).await?;
    if !stands.first().is_some_and(|row| row.get(0)) {
        return Ok(Versions { found: 0, known: VERSION, oldest: 0 });
    }
    let sql = "SELECT coalesce(max(version), 0), coalesce(max(oldest), 0) FROM onceflow.migration";
    let rows = client.query_typed(&text(sql), &[]).await?;
    let number = |column: usize| rows.first().map_or(0, |row| row.get::<_, i32>(column));
    Ok(Versions { found: number(0), known: VERSION, oldest: number(1) })
}

/// Read out of the catalogue's table, for `to_regclass` asks the session's cache: one that has looked before another node
/// migrated, and then waited for that node's lock, would still be told that there is nothing.
const STANDS: &str =
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'migration')";

const TEXT: tokio_postgres::types::Type = tokio_postgres::types::Type::TEXT;

async fn bring_up(connection: &Connection, schema: &str) -> Result<Versions, MigrateError> {
    begin(connection, schema).await?;
    let found = make_what_is_missing(connection, schema).await?;
    connection.client().batch_execute("COMMIT").await?;
    Ok(found)
}

async fn begin(connection: &Connection, schema: &str) -> Result<(), tokio_postgres::Error> {
    let sql = format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK}, hashtext('{schema}'))");
    connection.client().batch_execute(&sql).await
}

async fn make_what_is_missing(connection: &Connection, schema: &str) -> Result<Versions, MigrateError> {
    let client = connection.client();
    let found = versions(connection, schema).await?;
    if found.found == 0 {
        client.batch_execute(&FIRST.replace("onceflow", schema)).await?;
    }
    for (migration, number) in MIGRATIONS.iter().zip(1..).skip(found.found as usize) {
        client.batch_execute(&in_schema(migration.sql, schema)).await?;
        failpoint::hit("in-migration");
        let sql = "INSERT INTO onceflow.migration (version, name, oldest, applied_at) VALUES ({number}, '{name}', {oldest}, now())";
        let sql = sql.replace("{number}", &number.to_string()).replace("{name}", migration.name);
        client.batch_execute(&in_schema(&sql, schema).replace("{oldest}", &migration.oldest.to_string())).await?;
    }
    Ok(found)
}

/// Of our own kind, with the schema's hash beside it.
const LOCK: i32 = 1_868_785_254;

/// The schema itself may have been made by somebody with more rights.
const FIRST: &str = "DO $$ BEGIN
    IF to_regnamespace('onceflow') IS NULL THEN
        CREATE SCHEMA onceflow;
    END IF;
END $$;
CREATE TABLE onceflow.migration (
    version integer PRIMARY KEY, name text NOT NULL, oldest integer NOT NULL, applied_at timestamptz NOT NULL
)";

#[cfg(test)]
mod tests;
