//! The schema comes about once, however many want it, and its logs stay as they were written. Next: the code.

use servers::Database;
use wf_core::Partitions;
use wf_store::Store;
use wf_store_postgres::{MigrateError, OpenError, Options, PostgresStore, check, migrate};

use crate::{fence, store, turn};

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_together_migrate_once() {
    let database = servers::database().await;
    let starts = (1..=6).map(|n| {
        let options = Options { node: format!("n-{n}"), ..Options::at(database.url()) };
        tokio::spawn(async move { PostgresStore::connect(options).await.map(|store| store.partitions()) })
    });
    for start in starts.collect::<Vec<_>>() {
        assert_eq!(start.await.unwrap().unwrap(), Partitions::of(8));
    }
    let known = check(database.url()).await.unwrap().known;
    assert_eq!(
        database.execute("SELECT count(*), max(version) FROM onceflow.migration"),
        [[known.to_string(), known.to_string()]]
    );
    let partitions = database.execute("SELECT count(*) FROM onceflow.partition");
    assert_eq!(partitions, [["8"]]);
}

#[tokio::test]
async fn a_check_changes_nothing_and_tells_both_versions() {
    let database = servers::database().await;
    let before = check(database.url()).await.unwrap();
    assert_eq!((before.found, before.is_current()), (0, false));
    assert_eq!(database.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'onceflow'"), [["0"]]);
    assert_eq!(migrate(database.url()).await.unwrap().found, 0);
    assert!(check(database.url()).await.unwrap().is_current());
    assert!(migrate(database.url()).await.unwrap().is_current());
}

#[tokio::test]
async fn an_older_or_foreign_schema_is_refused_by_name() {
    let database = servers::database().await;
    let careful = Options { migrates: false, ..Options::at(database.url()) };
    let refused = PostgresStore::connect(careful).await.err().unwrap();
    assert!(matches!(refused, OpenError::Migrate(MigrateError::Older { found: 0, .. })), "{refused}");
    migrate(database.url()).await.unwrap();
    // A later program has been here: first one that leaves this program working, then one that does not.
    database.execute("INSERT INTO onceflow.migration VALUES (1001, 'later', 1, now())");
    PostgresStore::connect(Options::at(database.url())).await.unwrap();
    database.execute("INSERT INTO onceflow.migration VALUES (1002, 'much later', 1000, now())");
    let refused = PostgresStore::connect(Options::at(database.url())).await.err().unwrap();
    assert!(matches!(refused, OpenError::Migrate(MigrateError::Newer { found: 1002, .. })), "{refused}");
}

#[tokio::test]
async fn a_store_keeps_its_number_of_partitions() {
    let database = servers::database().await;
    let of = |partitions| Options { partitions, ..Options::at(database.url()) };
    assert_eq!(PostgresStore::connect(of(3)).await.unwrap().partitions().count(), 3);
    assert_eq!(PostgresStore::connect(of(5)).await.unwrap().partitions().count(), 3);
    let fresh = servers::database().await;
    let none = Options { partitions: 0, ..Options::at(fresh.url()) };
    assert!(matches!(PostgresStore::connect(none).await.err().unwrap(), OpenError::Partitions(0)));
}

/// As whom, what, and the code that refuses it.
async fn refused(database: &Database, url: &str, statements: &[&str], code: &str) {
    let client = servers::connect(url).await;
    for statement in statements {
        let result = client.batch_execute(statement).await;
        let error = result.err().unwrap_or_else(|| panic!("{statement} is allowed"));
        assert_eq!(error.code().map(|code| code.code()), Some(code), "{statement}: {error:?}");
    }
    let logs = "SELECT (SELECT count(*) FROM onceflow.command_log), (SELECT count(*) FROM onceflow.audit_log)";
    assert_eq!(database.execute(logs), [["1", "1"]]);
}

/// L6.1: append-only, whoever writes: also the owner, in the parent and in each time partition.
#[tokio::test]
async fn l6_1_logs_take_no_change() {
    let database = servers::database().await;
    let store = store(database.url()).await;
    store.commit(turn(fence(&store, 1).await).into()).await.unwrap();
    let parts = "SELECT DISTINCT tableoid::regclass FROM onceflow.command_log \
                 UNION SELECT DISTINCT tableoid::regclass FROM onceflow.audit_log";
    let parts: Vec<String> = database.execute(parts).into_iter().flatten().collect();
    assert_eq!(parts.len(), 2);
    for log in ["onceflow.command_log", "onceflow.audit_log"].into_iter().map(str::to_owned).chain(parts) {
        let update = format!("UPDATE {log} SET tenant = 'x'");
        let delete = format!("DELETE FROM {log}");
        let truncate = format!("TRUNCATE {log}");
        refused(&database, database.url(), &[&update, &delete, &truncate], "OF003").await;
    }
}

/// The shipped `roles.sql`: enough to run a store, too little to touch a log or the schema.
#[tokio::test]
async fn a_role_with_the_least_rights_runs_the_store() {
    let database = servers::database().await;
    migrate(database.url()).await.unwrap();
    database.execute(include_str!("../../roles.sql"));
    let role = format!("node_{}", database.name());
    database.execute(&format!("CREATE ROLE {role} LOGIN PASSWORD 'secret' IN ROLE onceflow_app"));
    let url = database.url().replacen("postgres://postgres", &format!("postgres://{role}:secret"), 1);

    let store = PostgresStore::connect(Options { migrates: false, ..Options::at(&url) }).await.unwrap();
    store.commit(turn(fence(&store, 1).await).into()).await.unwrap();
    store.sweep(crate::NOW, 10).await.unwrap();
    store.secret("mac", [1; 32]).await.unwrap();
    let cluster = store.cluster().unwrap();
    cluster.join().await.unwrap();
    assert_eq!(cluster.renew().await.unwrap().nodes.len(), 1);

    let changes = [
        "UPDATE onceflow.command_log SET tenant = 'x'",
        "DELETE FROM onceflow.command_log",
        "TRUNCATE onceflow.command_log",
        "UPDATE onceflow.audit_log SET tenant = 'x'",
        "DELETE FROM onceflow.audit_log",
        "TRUNCATE onceflow.audit_log",
        "DELETE FROM onceflow.audit_log_default",
        "ALTER TABLE onceflow.audit_log DISABLE TRIGGER ALL",
        "DROP TABLE onceflow.audit_log",
        "CREATE TABLE onceflow.mine (n int)",
        "INSERT INTO onceflow.migration VALUES (99, 'mine', 99, now())",
        "UPDATE onceflow.meta SET value = ''",
        "DELETE FROM onceflow.database",
        "UPDATE onceflow.tenant SET name = ''",
        "DELETE FROM onceflow.tenant",
        "SELECT onceflow.make_time_partition('meta', 'x', '1', '2', false)",
    ];
    refused(&database, &url, &changes, "42501").await;
    database.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

/// Answers leave by whole days, behind the partition that is furthest behind; logs stay.
#[tokio::test]
async fn time_partitions_are_made_ahead_and_dropped_behind() {
    let database = servers::database().await;
    let store = store(database.url()).await;
    let parts = |like: &str| {
        let sql = format!("SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ '^{like}[0-9]+$'");
        database.execute(&sql)
    };
    assert_eq!(parts("command_log_w"), [["3"]]);
    assert_eq!(parts("audit_log_w"), [["3"]]);
    assert_eq!(parts("idempotency_answer_d"), [["10"]]);
    database.execute("SELECT onceflow.make_time_partitions(1790000000000)");
    assert_eq!(parts("idempotency_answer_d"), [["20"]]);
    // Nothing is dropped while one partition has not come so far.
    let late = 1_790_000_000_000i64 + 30 * 86_400_000;
    database.execute(&format!("UPDATE onceflow.partition SET last_time = {late} WHERE id <> 3"));
    store.sweep(late, 10).await.unwrap();
    assert_eq!(parts("idempotency_answer_d"), [["20"]]);
    database.execute(&format!("UPDATE onceflow.partition SET last_time = {late}"));
    store.sweep(late, 10).await.unwrap();
    let left = database.execute("SELECT count(*) FROM pg_class WHERE relname = 'idempotency_answer_d20717'");
    assert_eq!(left, [["0"]]);
    assert_eq!(parts("command_log_w"), [["6"]]);
}
