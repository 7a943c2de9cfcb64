//! The schema as a whole. Next: `plans.rs`, every statement over it; `tests/it/schema.rs`, which upgrades and restricts.

use std::sync::Arc;

use servers::Database;

use super::*;
use crate::sql::{ALL, FILES, RUNS, Sql};

async fn connected(url: &str, schema: &str, purpose: Purpose) -> Connection {
    let url = Url::parse(&format!("{url}?schema={schema}")).unwrap();
    let statements = Statements::of_schema(&url.schema);
    Connector::new(&url, "test", purpose, Limits::default(), statements).unwrap().connect().await.unwrap()
}

async fn migrated() -> (Database, Connection) {
    let database = servers::database().await;
    migrate(database.url()).await.unwrap();
    let connection = connected(database.url(), "onceflow", Purpose::Turns).await;
    (database, connection)
}

fn schema(database: &Database) -> String {
    let rows = database.execute(include_str!("dump.sql"));
    rows.into_iter().flatten().map(|text| text + ";\n\n").collect::<String>().trim_end().to_owned() + "\n"
}

/// The session's cache says that there is no schema: it looked before, and what it waits for made one.
#[tokio::test]
async fn one_that_waited_for_another_ones_migration_sees_it() {
    let database = servers::database().await;
    let (first, second) = (
        connected(database.url(), "onceflow", Purpose::Ledger).await,
        connected(database.url(), "onceflow", Purpose::Ledger).await,
    );
    assert_eq!(versions(&second, "onceflow").await.unwrap().found, 0);
    begin(&first, "onceflow").await.unwrap();
    let waits = tokio::spawn(async move { bring_up(&second, "onceflow").await });
    let waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    while !waits.is_finished() && database.execute(waiting).is_empty() {
        tokio::task::yield_now().await;
    }
    // So little that the server does not call its sessions to catch up, as it may while all tables are made.
    let made = format!("{FIRST}; INSERT INTO onceflow.migration SELECT {VERSION}, 'all', 1, now(); COMMIT");
    first.client().batch_execute(&made).await.unwrap();
    assert!(waits.await.unwrap().unwrap().is_current());
}

/// `schema.sql` is what a reader looks at, whatever the migrations went through. `UPDATE_EXPECT=1` writes it.
#[tokio::test]
async fn the_migrated_schema_is_the_golden_one() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema.sql");
    let (database, _) = migrated().await;
    let migrated = schema(&database);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&golden, &migrated).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&golden).unwrap(), migrated);
    let fresh = servers::database().await;
    fresh.execute(&format!("CREATE SCHEMA onceflow;\n{migrated}"));
    assert_eq!(schema(&fresh), migrated);
}

#[tokio::test]
async fn every_statement_prepares_with_the_types_that_it_says() {
    let (_database, connection) = migrated().await;
    for (sql, name) in ALL {
        let text = connection.statements().sql(*sql);
        let prepared = connection.client().prepare(text).await;
        let statement = prepared.unwrap_or_else(|error| panic!("{name}: {}", shown(&error)));
        assert_eq!(statement.params(), connection.statements().types(*sql), "{name}");
    }
    let blocks: usize = FILES.iter().map(|file| file.matches("-- name: ").count()).sum();
    assert_eq!(blocks, ALL.len() - RUNS.len(), "a block of a .sql file is not listed in sql.rs");
}

#[tokio::test]
async fn another_name_of_the_schema_will_do() {
    let database = servers::database().await;
    let url = format!("{}?schema=flow_2", database.url());
    migrate(&url).await.unwrap();
    let connection = connected(database.url(), "flow_2", Purpose::Turns).await;
    for (sql, name) in ALL {
        let prepared = connection.prepare(&[*sql]).await;
        prepared.unwrap_or_else(|error| panic!("{name}: {}", shown(&error)));
    }
    let others = database.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'onceflow'");
    assert_eq!(others, [["0"]]);
    let today = connection.query(Sql::MakeTimePartitions, crate::connection::Values::none().with(1_790_000_000_000i64));
    assert_eq!(today.await.unwrap()[0].get::<_, i64>(0), 16);
}

/// Every part that fails a transaction by itself does so in its run too.
#[test]
fn runs_make_the_checks_of_their_parts() {
    let statements = Statements::of_schema("onceflow");
    for (run, parts) in RUNS {
        let checked = parts.iter().filter(|part| statements.sql(**part).contains("onceflow.fail(")).count();
        let text = statements.sql(*run);
        assert_eq!(text.matches("(SELECT CASE WHEN count(*) = cardinality(").count(), checked, "{text}");
    }
}

/// L6.1: nothing of the program changes a log.
#[test]
fn l6_1_no_statement_changes_a_log() {
    let statements = Arc::clone(&Statements::of_schema("onceflow"));
    for (sql, name) in ALL {
        let text = statements.sql(*sql).to_uppercase();
        for log in ["COMMAND_LOG", "AUDIT_LOG"] {
            for verb in ["UPDATE", "DELETE FROM", "TRUNCATE", "DROP TABLE", "MERGE INTO"] {
                assert!(!text.contains(&format!("{verb} ONCEFLOW.{log}")), "{name} touches {log}");
            }
        }
    }
}
