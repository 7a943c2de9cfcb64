//! What an error, a cut line or an ended session says about a turn, and that it tells the truth. Next: `connections.rs`.

use std::sync::Arc;

use servers::{Database, Line, Proxy};
use wf_store::conformance::world::ending;
use wf_store::{CommitError, Store};
use wf_store_postgres::{Options, PostgresStore};

use crate::{fence, store, turn};

fn through_a_proxy(database: &Database) -> (Proxy, String) {
    let host = database.url().split(['@', '/']).find(|part| part.contains("127.0.0.1")).unwrap();
    let proxy = Proxy::to(host);
    let url = proxy.through(database.url());
    (proxy, url)
}

/// F2: the line is cut when COMMIT was answered, or before it came: both times nobody knows, and the partition's row does.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_cut_in_commit_leaves_an_honest_unknown() {
    let database = servers::database().await;
    let (proxy, url) = through_a_proxy(&database);
    let store = store(&url).await;
    let batch = turn(fence(&store, 1).await);

    proxy.cut_at_answer(b"COMMIT", b"COMMIT");
    assert_eq!(ending(&store.commit(batch.clone().into()).await), "unknown");
    let opened = fence(&store, 1).await;
    assert_eq!(opened.new_position, batch.fence.new_position, "it stands");

    let batch = turn(opened);
    proxy.cut_before(b"COMMIT");
    assert_eq!(ending(&store.commit(batch.clone().into()).await), "unknown");
    let opened = fence(&store, 1).await;
    assert_eq!(opened.new_position, batch.fence.old_position, "it does not stand");

    store.commit(turn(opened).into()).await.unwrap();
    proxy.wait_for_trapped(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_not_reached_is_unavailable() {
    let database = servers::database().await;
    let (proxy, url) = through_a_proxy(&database);
    let store = store(&url).await;
    let batch = turn(fence(&store, 1).await);
    proxy.set(Line::Refuse);
    proxy.cut();
    assert_eq!(ending(&store.commit(batch.clone().into()).await), "unavailable");
    store.load(wf_store::Needs { commands: [[1; 16]].into(), ..wf_store::Needs::of(1) }).await.unwrap_err();
    assert_eq!(ending(&store.check_fence(batch.fence).await), "unavailable");
    proxy.set(Line::Pass);
    store.commit(batch.into()).await.unwrap();
}

/// A look for keys is everybody's: where its connection hangs it is made on another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_hangs_keeps_no_key_waiting() {
    let database = servers::database().await;
    let (proxy, url) = through_a_proxy(&database);
    let store = store(&url).await;
    let id = wf_store::RecordId { tenant: "acme".into(), key: "k".into() };
    let load = || store.load(wf_store::Needs { records: [id.clone()].into(), ..wf_store::Needs::of(1) });
    load().await.unwrap();
    proxy.hang();
    // By itself it would be given up after twenty seconds.
    assert_eq!(load().await.unwrap().records.len(), 1);
}

/// Every insert of a variable runs this, and counts how often it was tried.
fn sabotage(database: &Database, plpgsql: &str) {
    database.execute(&format!(
        "CREATE SEQUENCE IF NOT EXISTS tries;
         CREATE OR REPLACE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM nextval('tries'); {plpgsql}; RETURN NEW; END $$;
         DROP TRIGGER IF EXISTS sabotage ON onceflow.variable;
         CREATE TRIGGER sabotage BEFORE INSERT ON onceflow.variable FOR EACH ROW EXECUTE FUNCTION sabotage();
         ALTER SEQUENCE tries RESTART"
    ));
}

fn tries(database: &Database) -> String {
    database.execute("SELECT last_value FROM tries").remove(0).remove(0)
}

/// What the server answers, what it means for the turn, and how often it is tried.
#[tokio::test]
async fn an_error_says_what_became_of_its_turn() {
    let database = servers::database().await;
    let store = store(database.url()).await;
    let opened = fence(&store, 1).await;
    for (code, want, tried) in [
        ("23505", "conflict", "1"),
        ("21000", "conflict", "1"),
        ("40001", "conflict", "4"),
        ("40P01", "conflict", "4"),
        ("22003", "rejected", "1"),
        ("23514", "rejected", "1"),
        ("54000", "rejected", "1"),
        // Disk full, out of memory, cancelled, a lock not had in time (tried again apart), read-only after a fail-over.
        ("53100", "unavailable", "1"),
        ("53200", "unavailable", "1"),
        ("57014", "unavailable", "1"),
        ("55P03", "unavailable", "2"),
        ("25006", "unavailable", "1"),
        ("OF001", "fenced", "1"),
    ] {
        sabotage(&database, &format!("RAISE EXCEPTION 'sabotage' USING ERRCODE = '{code}'"));
        assert_eq!(ending(&store.commit(turn(opened).into()).await), want, "{code}");
        assert_eq!(tries(&database), tried, "{code}");
    }
    // The default partition no longer takes a row whose own partition another node has made meanwhile.
    let moved =
        r#"RAISE EXCEPTION 'new row for relation "x_default" violates partition constraint' USING ERRCODE = '23514'"#;
    sabotage(&database, moved);
    assert_eq!((ending(&store.commit(turn(opened).into()).await), tries(&database)), ("conflict", "4".to_owned()));
    // A session that the server ends before COMMIT: nothing of it stands, and that is known.
    sabotage(&database, "PERFORM pg_terminate_backend(pg_backend_pid())");
    assert_eq!(ending(&store.commit(turn(opened).into()).await), "unavailable");
    database.execute("DROP TRIGGER sabotage ON onceflow.variable");
    store.commit(turn(opened).into()).await.unwrap();
}

/// A deadlock with somebody else's transaction, of which ours is the victim, is begun again inside.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_is_begun_again() {
    let database = servers::database().await;
    let store = store(database.url()).await;
    let mut batch = turn(fence(&store, 1).await);
    batch.rows.push(crate::inserted(crate::unique(1)));
    let other = servers::connect(database.url()).await;
    let insert =
        "INSERT INTO onceflow.uniqueness VALUES ('acme', 'order', 'id', decode(repeat('07', 16), 'hex'), 2, 1)";
    other.batch_execute(&format!("SET deadlock_timeout = '1h'; BEGIN; {insert}")).await.unwrap();
    let commit = store.commit(batch.into());
    crate::waiting(&database, 1).await;
    other.batch_execute("UPDATE onceflow.partition SET owner = owner WHERE id = 1").await.unwrap();
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(ending(&commit.await), "committed");
}

/// A lock that somebody holds for long: the turn is given up, and nothing of it stands.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_held_for_long_makes_a_turn_unavailable() {
    let database = servers::database().await;
    let mut options = Options::at(database.url());
    options.limits.statement = std::time::Duration::from_secs(3);
    let store = PostgresStore::connect(options).await.unwrap();
    let opened = fence(&store, 1).await;
    let holder = servers::connect(database.url()).await;
    holder.batch_execute("BEGIN; SELECT 1 FROM onceflow.partition WHERE id = 1 FOR UPDATE").await.unwrap();
    assert_eq!(ending(&store.commit(turn(opened).into()).await), "unavailable");
    holder.batch_execute("ROLLBACK").await.unwrap();
    store.commit(turn(opened).into()).await.unwrap();
}

/// Trap: what was polled once and dropped is still executed. Its connection is not used again.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_call_takes_its_connection_with_it() {
    let database = servers::database().await;
    let one = Options { loaders: 1, ..Options::at(database.url()) };
    let store = Arc::new(PostgresStore::connect(one).await.unwrap());
    let holder = servers::connect(database.url()).await;
    holder.batch_execute("BEGIN; SELECT 1 FROM onceflow.partition WHERE id = 1 FOR UPDATE").await.unwrap();
    {
        let opening = store.open(1);
        tokio::pin!(opening);
        tokio::select! {
            _ = &mut opening => panic!("it is locked"),
            () = crate::waiting(&database, 1) => (),
        }
    }
    // The only place in the pool is free, although the old session still waits.
    assert_eq!(ending(&store.check_fence(fence(&store, 2).await).await), "committed");
    holder.batch_execute("ROLLBACK").await.unwrap();
    fence(&store, 1).await;
}

#[tokio::test]
async fn a_commit_that_nobody_waits_for_is_done() {
    let database = servers::database().await;
    let store = store(database.url()).await;
    let batch = turn(fence(&store, 1).await);
    drop(store.commit(batch.clone().into()));
    // The next one of the same partition comes after it.
    store.commit(turn(batch.fence).into()).await.unwrap();
    assert_eq!(fence(&store, 1).await.new_position, 2);
}

#[tokio::test]
async fn a_full_pool_is_said_so() {
    let database = servers::database().await;
    let wait_max = std::time::Duration::from_millis(50);
    let one = Options { loaders: 1, wait_max, ..Options::at(database.url()) };
    let store = PostgresStore::connect(one).await.unwrap();
    let holder = servers::connect(database.url()).await;
    holder.batch_execute("BEGIN; SELECT 1 FROM onceflow.partition WHERE id = 1 FOR UPDATE").await.unwrap();
    let opening = store.open(1);
    tokio::pin!(opening);
    tokio::select! {
        _ = &mut opening => panic!("it is locked"),
        () = crate::waiting(&database, 1) => (),
    }
    let refused = store.check_fence(wf_store::Fence { partition: 2, ..wf_store::Fence::default() }).await;
    assert!(matches!(&refused, Err(CommitError::Unavailable(text)) if text.contains("was free")), "{refused:?}");
    holder.batch_execute("ROLLBACK").await.unwrap();
    opening.await.unwrap();
}
