//! Ways to the database: through PgBouncer, encrypted, with the settings that make a commit durable. Next: `schema.rs`.

use std::sync::Arc;

use servers::{Cluster, Database, PgBouncer};
use tokio::sync::oneshot;
use wf_core::{Need, RowId};
use wf_store::{Cluster as _, Needs, RecordId, Store};
use wf_store_postgres::{Options, PostgresStore, check, migrate};

use crate::{fence, node, store, turn};

#[tokio::test(flavor = "multi_thread")]
async fn pgbouncer_is_noticed() {
    let cluster = Cluster::start();
    let bouncer = PgBouncer::start(&cluster);
    let url = bouncer.url("postgres");
    migrate(&url).await.unwrap();
    assert!(check(&url).await.unwrap().is_current());
    let (a, b) = (node(&url, "a").await, node(&url, "b").await);
    a.join().await.unwrap();
    b.join().await.unwrap();
    let (mut of_a, mut of_b) = (fence(&a, 1).await, fence(&b, 2).await);
    // Their transactions share connections.
    for _ in 0..10 {
        let (one, other) = (turn(of_a), turn(of_b));
        (of_a, of_b) = (one.fence, other.fence);
        let (one, other) = tokio::join!(a.commit(one.into()), b.commit(other.into()));
        one.unwrap();
        other.unwrap();
    }
    assert_eq!(cluster.execute("SELECT count(*) FROM onceflow.command_log"), [["20"]]);
}

#[tokio::test]
async fn certificates_are_checked_as_far_as_asked() {
    let cluster = servers::Options::default().password("secret").tls().start();
    let folder = tempfile::tempdir().unwrap();
    let (right, wrong) = (folder.path().join("right.pem"), folder.path().join("wrong.pem"));
    std::fs::write(&right, cluster.certificate().unwrap()).unwrap();
    let other = servers::Options::default().tls().start();
    std::fs::write(&wrong, other.certificate().unwrap()).unwrap();
    let base = cluster.url("postgres");
    let base = base.split('?').next().unwrap();
    let localhost = base.replace("127.0.0.1", "localhost");
    let (right, wrong) = (right.display(), wrong.display());
    for (url, is_let_in) in [
        (format!("{base}?sslmode=disable"), false),
        (base.to_owned(), true),
        (format!("{base}?sslmode=require"), true),
        (format!("{base}?sslmode=require&sslrootcert={wrong}"), false),
        (format!("{base}?sslmode=verify-ca&sslrootcert={right}"), true),
        (format!("{base}?sslmode=verify-full&sslrootcert={right}"), true),
        (format!("{localhost}?sslmode=verify-full&sslrootcert={right}"), true),
        (format!("{base}?sslmode=verify-full&sslrootcert={wrong}"), false),
        // The system's roots do not know it.
        (format!("{base}?sslmode=verify-full"), false),
    ] {
        let checked = check(&url).await;
        assert_eq!(checked.is_ok(), is_let_in, "{url}: {checked:?}");
    }
    let encrypted = PostgresStore::connect(Options::at(format!("{base}?sslmode=require"))).await.unwrap();
    encrypted.commit(turn(fence(&encrypted, 1).await).into()).await.unwrap();
    let sessions = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                    WHERE application_name = 'onceflow node-1'";
    assert_eq!(cluster.execute(sessions), [["t"]]);
}

/// What the sessions of turns have, asked by a trigger of theirs.
fn settings_of_turns(database: &Database) -> Vec<String> {
    database.execute("SELECT * FROM seen").remove(0)
}

/// P1: a commit that is answered is on the disk, whatever the database's or the role's default is; a stronger one stays.
#[tokio::test]
async fn a_turns_commit_is_durable() {
    for (default, want) in [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")] {
        let database = servers::database().await;
        database.execute(&format!("ALTER DATABASE {} SET synchronous_commit = {default}", database.name()));
        let store = store(database.url()).await;
        database.execute(
            "CREATE TABLE seen AS SELECT ''::text AS synchronous, ''::text AS silence WHERE false;
             CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO seen VALUES (current_setting('synchronous_commit'),
                                          current_setting('idle_in_transaction_session_timeout'));
                 RETURN NEW;
             END $$;
             CREATE TRIGGER see BEFORE INSERT ON onceflow.variable FOR EACH ROW EXECUTE FUNCTION see()",
        );
        store.commit(turn(fence(&store, 1).await).into()).await.unwrap();
        assert_eq!(settings_of_turns(&database), [want, "5s"], "{default}");
    }
}

#[tokio::test]
async fn a_url_that_cannot_be_meant_is_refused_without_its_password() {
    for url in [
        "mysql://u:hidden@h/d",
        "postgres://u:hidden@h/d?sslmode=perhaps",
        "postgres://u:hidden@h/d?schema=a\"b",
        "postgres://u:hidden@h:port/d",
        "postgres://u:hidden@h/d?nonsense=1",
    ] {
        let error = check(url).await.unwrap_err().to_string();
        assert!(!error.contains("hidden"), "{error}");
    }
}

/// An engine's actor has a runtime of its own, which ends when its partition moves: a connection that it had made, and that
/// somebody else is using by then, goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_outlives_the_runtime_that_asked_for_it() {
    let database = servers::database().await;
    let store = Arc::new(store(database.url()).await);
    let lock = servers::connect(database.url()).await;
    lock.batch_execute("BEGIN; LOCK TABLE onceflow.timer").await.unwrap();
    let load = || {
        let store = store.clone();
        let needs = Needs { core: [Need::Row(RowId::Timer(1))].into(), ..Needs::of(1) };
        tokio::spawn(async move { store.load(needs).await })
    };
    // The connection that is there already is busy: the actor has to make one.
    let first = load();
    until_waiting(&lock, 1).await;
    let (made, is_made) = oneshot::channel();
    let (end, is_over) = oneshot::channel::<()>();
    let of_actor = store.clone();
    let actor = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            of_actor.record(RecordId { tenant: "t".into(), key: "k".into() }).await.unwrap();
            made.send(()).unwrap();
            let _ = is_over.await;
        });
    });
    is_made.await.unwrap();
    let second = load();
    until_waiting(&lock, 2).await;
    drop(end);
    actor.join().unwrap();
    lock.batch_execute("COMMIT").await.unwrap();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
}

async fn until_waiting(client: &tokio_postgres::Client, count: i64) {
    let waiting = "SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
                   WHERE d.datname = current_database() AND NOT l.granted";
    while client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) < count {
        tokio::task::yield_now().await;
    }
}

/// No server encrypts on a Unix socket, and the folder is no host's name.
#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_will_do() {
    let database = servers::database().await;
    let at = |name: &str| database.execute(&format!("SELECT current_setting('{name}')"))[0][0].clone();
    let (folder, port) = (at("unix_socket_directories"), at("port"));
    let user = database.execute("SELECT current_user")[0][0].clone();
    let url = format!("postgres://{user}@/{}?host={folder}&port={port}", database.name());
    assert_eq!(store(&url).await.partitions(), wf_core::Partitions::of(8));
}
