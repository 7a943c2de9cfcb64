//! The servers themselves: they start, they end, they come back, and the line is cut where it was told.

use servers::{Cluster, Database, Line, Options, PgBouncer, Proxy, connect, database};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use tokio_postgres::NoTls;

#[tokio::test]
async fn each_database_is_empty_and_of_its_own() {
    let (one, other) = (database().await, database().await);
    one.execute("CREATE TABLE t (n int); INSERT INTO t VALUES (1)");
    assert_eq!(one.execute("SELECT n FROM t"), [["1"]]);
    assert_eq!(other.execute("SELECT count(*) FROM pg_tables WHERE tablename = 't'"), [["0"]]);
    let copy = Database::copy_of(&one);
    assert_eq!(copy.execute("SELECT n FROM t"), [["1"]]);
    let client = connect(one.url()).await;
    assert_eq!(client.query_one("SELECT n FROM t", &[]).await.unwrap().get::<_, i32>(0), 1);
}

#[test]
fn a_killed_cluster_comes_back_with_what_it_committed() {
    let cluster = Cluster::start();
    let url = cluster.create_database(None);
    servers::execute(&url, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)");
    let first = cluster.pid();
    cluster.kill9();
    assert_eq!(cluster.pid(), None);
    cluster.restart();
    assert_ne!(cluster.pid(), first);
    assert_eq!(servers::execute(&url, "SELECT n FROM t"), [["1"]]);

    let folder = cluster.writable_folder("copy");
    cluster.basebackup(&folder);
    servers::execute(&url, "UPDATE t SET n = 2");
    let copy = Cluster::start_from(&folder);
    let database = url.rsplit('/').next().unwrap();
    assert_eq!(copy.execute_in(database, "SELECT n FROM t"), [["1"]]);
    copy.stop_fast();
    cluster.stop_fast();
    assert!(cluster.log().contains("database system is shut down"));
}

/// As an administrator does it who knows nothing of tests.
#[test]
fn a_cluster_is_stopped_put_back_and_started_by_hand() {
    let cluster = Cluster::start();
    cluster.stands_alone();
    let url = cluster.create_database(None);
    servers::execute(&url, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)");
    let folder = cluster.writable_folder("administrator");
    cluster.shell(&folder, "pg_basebackup --pgdata backup --checkpoint=fast");
    servers::execute(&url, "UPDATE t SET n = 2");
    cluster.shell(
        &folder,
        "pg_ctl stop --mode=fast; mv $PGDATA lost; cp -a backup $PGDATA; pg_ctl start --wait --log server.log",
    );
    assert_eq!(servers::execute(&url, "SELECT n FROM t"), [["1"]]);
}

#[tokio::test]
async fn a_paused_cluster_answers_when_it_goes_on() {
    let cluster = Cluster::start();
    let client = connect(&cluster.url("postgres")).await;
    cluster.pause();
    let answer = tokio::spawn(async move { client.query_one("SELECT 1", &[]).await.map(|row| row.get::<_, i32>(0)) });
    tokio::task::yield_now().await;
    assert!(!answer.is_finished());
    cluster.resume();
    assert_eq!(answer.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn passwords_and_tls_are_asked_for() {
    let cluster = Options::default().password("correct horse").tls().start();
    assert!(cluster.certificate().unwrap().contains("BEGIN CERTIFICATE"));
    assert_eq!(cluster.execute("SHOW ssl"), [["on"]]);
    assert!(cluster.url("d").ends_with("/d?sslmode=require"), "{}", cluster.url("d"));
    let plain = cluster.url("postgres").replace("require", "disable").replace("correct horse", "correct%20horse");
    let refused = tokio_postgres::connect(&plain, NoTls).await.err().unwrap();
    assert!(format!("{refused:?}").contains("no encryption"), "{refused:?}");

    let cluster = Options::default().password("secret").start();
    connect(&cluster.url("postgres")).await;
    assert!(tokio_postgres::connect(&cluster.url("postgres").replace("secret", "guess"), NoTls).await.is_err());
    let bouncer = PgBouncer::start(&cluster);
    connect(&bouncer.url("postgres")).await;
}

/// The trap of transaction mode: what a session set is another session's.
#[tokio::test]
async fn pgbouncer_gives_each_transaction_any_connection() {
    let cluster = Cluster::start();
    let bouncer = PgBouncer::start(&cluster);
    let (one, other) = (connect(&bouncer.url("postgres")).await, connect(&bouncer.url("postgres")).await);
    let pid = "SELECT pg_backend_pid()";
    one.batch_execute("BEGIN").await.unwrap();
    other.batch_execute("BEGIN").await.unwrap();
    let of = |messages: Vec<tokio_postgres::SimpleQueryMessage>| {
        messages.iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
    };
    let (first, second) = (of(one.simple_query(pid).await.unwrap()), of(other.simple_query(pid).await.unwrap()));
    assert_ne!(first, second);
    other.batch_execute("COMMIT").await.unwrap();
    let third = connect(&bouncer.url("postgres")).await;
    assert_eq!(of(third.simple_query(pid).await.unwrap()), second, "{}", bouncer.log());
}

#[tokio::test]
async fn a_line_is_cut_on_either_side_of_a_commit() {
    let cluster = Cluster::start();
    let url = cluster.create_database(None);
    servers::execute(&url, "CREATE TABLE t (n int)");
    let proxy = Proxy::to(&cluster.address());

    proxy.cut_after(b"COMMIT");
    insert(&proxy.through(&url), 1).await.unwrap_err();
    proxy.cut_before(b"COMMIT");
    insert(&proxy.through(&url), 2).await.unwrap_err();
    proxy.cut_at_answer(b"COMMIT", b"COMMIT");
    insert(&proxy.through(&url), 3).await.unwrap_err();
    insert(&proxy.through(&url), 4).await.unwrap();

    proxy.wait_for_trapped(3);
    assert_eq!(servers::execute(&url, "SELECT n FROM t ORDER BY n"), [["1"], ["3"], ["4"]]);
    assert_eq!(proxy.accepted(), 4);
}

#[tokio::test]
async fn a_line_holds_back_and_delivers_or_is_cut() {
    let cluster = Cluster::start();
    let proxy = Proxy::to(&cluster.address());
    let client = connect(&proxy.through(&cluster.url("postgres"))).await;
    assert_eq!(proxy.open(), 1);

    proxy.set(Line::BlackHole);
    let held = async { client.query_one("SELECT 1", &[]).await.unwrap().get::<_, i32>(0) };
    let opened = async { proxy.set(Line::Pass) };
    assert_eq!(tokio::join!(held, opened).0, 1);

    proxy.set(Line::Refuse);
    assert!(tokio_postgres::connect(&proxy.through(&cluster.url("postgres")), NoTls).await.is_err());
    client.simple_query("SELECT 1").await.unwrap();
    proxy.cut();
    client.simple_query("SELECT 1").await.unwrap_err();
}

async fn insert(url: &str, n: i32) -> Result<(), tokio_postgres::Error> {
    let mut client = connect(url).await;
    let transaction = client.transaction().await?;
    transaction.execute("INSERT INTO t VALUES ($1)", &[&n]).await?;
    transaction.commit().await
}

/// However a test ends: here its process is killed, and nothing of it can clean up.
#[test]
fn a_server_ends_with_the_process_that_started_it() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shared-postgres"));
    let mut owner = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(owner.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let folder = servers::execute(&format!("{}/postgres", url.trim()), "SHOW data_directory").remove(0).remove(0);
    owner.kill().unwrap();
    owner.wait().unwrap();
    let is_gone = || !Path::new(&folder).exists();
    let mut looks = std::iter::repeat_with(is_gone).inspect(|_| std::thread::yield_now());
    assert!(looks.any(|gone| gone));
}
