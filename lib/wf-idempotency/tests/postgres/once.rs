//! P1: a UNIQUE key, and a request that happens once.

use crate::{begin, count, crash, text, waiting_for_a_lock};
use bytes::Bytes;
use futures_util::future::join_all;
use servers::{Cluster, Database, PgBouncer, Proxy};
use tokio_postgres::{Client, Transaction};
use wf_idempotency::postgres::once::{Once, OnceTable, Request};
use wf_idempotency::postgres::{Error, Now, Table};
use wf_idempotency::{Answer, Fingerprint, MacKey, fingerprint};

#[tokio::test]
async fn p1_a_repeat_gets_the_first_answer_and_another_payload_a_mismatch() {
    let (database, table) = payments().await;
    let mut client = servers::connect(database.url()).await;
    let (ten, twenty) = ([(1, payload("10"))], [(1, payload("20"))]);
    let first = pay(&mut client, &table, &request("k", &ten), Now::Database).await.unwrap();
    assert_eq!(first, Once::New);
    assert_eq!(pay(&mut client, &table, &request("k", &ten), Now::Database).await.unwrap(), Once::Repeat(created("1")));
    assert_eq!(pay(&mut client, &table, &request("k", &twenty), Now::Database).await.unwrap(), Once::Mismatch);
    let elsewhere = Request { scope: "other", ..request("k", &ten) };
    assert_eq!(pay(&mut client, &table, &elsewhere, Now::Database).await.unwrap(), Once::New);
    assert_eq!(count(&client, "SELECT count(*) FROM payment").await, 2);
}

#[tokio::test]
async fn p1_an_answer_that_was_not_left_is_204_and_an_own_repeat_in_the_transaction_is_one() {
    let (database, table) = payments().await;
    let mut client = servers::connect(database.url()).await;
    let fingerprints = [(1, payload("10"))];
    let transaction = begin(&mut client).await;
    let once = async || table.once(&transaction, &request("k", &fingerprints), Now::Database).await.unwrap();
    assert_eq!(once().await, Once::New);
    let nothing = Answer { status: 204, headers: Vec::new(), body: Bytes::new() };
    assert_eq!(once().await, Once::Repeat(nothing));
}

#[tokio::test]
async fn p1_a_repeat_waits_for_the_first_and_replays() {
    let (database, table) = payments().await;
    let (mut one, mut other) = (servers::connect(database.url()).await, servers::connect(database.url()).await);
    let fingerprints = [(1, payload("10"))];
    let request = request("k", &fingerprints);
    let first = begin(&mut one).await;
    assert_eq!(run(&first, &table, &request, Now::Database).await.unwrap(), Once::New);
    let commit = async {
        waiting_for_a_lock(&database, 1).await;
        first.commit().await.unwrap();
    };
    let repeat = pay(&mut other, &table, &request, Now::Database);
    assert_eq!(tokio::join!(repeat, commit).0.unwrap(), Once::Repeat(created("1")));
    assert_eq!(count(&other, "SELECT count(*) FROM payment").await, 1);
}

/// Half done is not done: the connection goes before its commit, and the repeat that waited does it.
#[tokio::test]
async fn p1_a_crash_before_the_commit_leaves_nothing_behind() {
    let (database, table) = payments().await;
    let (mut one, mut other) = (servers::connect(database.url()).await, servers::connect(database.url()).await);
    let fingerprints = [(1, payload("10"))];
    let request = request("k", &fingerprints);
    let first = begin(&mut one).await;
    assert_eq!(run(&first, &table, &request, Now::Database).await.unwrap(), Once::New);
    let crash = async {
        waiting_for_a_lock(&database, 1).await;
        crash(&database, &first).await;
    };
    assert_eq!(tokio::join!(pay(&mut other, &table, &request, Now::Database), crash).0.unwrap(), Once::New);
    assert_eq!(count(&other, "SELECT count(*) FROM payment").await, 1);
}

/// The client does not know whether its COMMIT arrived: on either side of it the repeat does right.
#[tokio::test]
async fn p1_a_line_cut_at_the_commit_is_answered_by_a_repeat() {
    let cluster = Cluster::start();
    let (url, table) = (cluster.create_database(None), table());
    let mut client = servers::connect(&url).await;
    install(&client, &table).await;
    let proxy = Proxy::to(&cluster.address());
    let fingerprints = [(1, payload("10"))];
    let cut = async |key| {
        let mut behind = servers::connect(&proxy.through(&url)).await;
        pay(&mut behind, &table, &request(key, &fingerprints), Now::Database).await.unwrap_err();
    };
    proxy.cut_after(b"COMMIT");
    cut("done").await;
    proxy.cut_before(b"COMMIT");
    cut("undone").await;
    let repeat = pay(&mut client, &table, &request("done", &fingerprints), Now::Database).await.unwrap();
    assert_eq!(repeat, Once::Repeat(created("1")));
    assert_eq!(pay(&mut client, &table, &request("undone", &fingerprints), Now::Database).await.unwrap(), Once::New);
    assert_eq!(count(&client, "SELECT count(*) FROM payment").await, 2);
}

#[tokio::test]
async fn p1_of_sixteen_at_once_one_pays() {
    let (database, table) = payments().await;
    let one = async |_| {
        let mut client = servers::connect(database.url()).await;
        let fingerprints = [(1, payload("10"))];
        pay(&mut client, &table, &request("k", &fingerprints), Now::Database).await.unwrap()
    };
    let answers = join_all((0..16).map(one)).await;
    assert_eq!(answers.iter().filter(|answer| **answer == Once::New).count(), 1);
    assert_eq!(answers.iter().filter(|answer| **answer == Once::Repeat(created("1"))).count(), 15);
}

#[tokio::test]
async fn p1_an_expired_key_is_new_again_and_swept() {
    let (database, table) = payments().await;
    let mut client = servers::connect(database.url()).await;
    let (ten, twenty) = ([(1, payload("10"))], [(1, payload("20"))]);
    let kept = |fingerprints| Request { keep_ms: 100, ..request("k", fingerprints) };
    let table = &table;
    let pay_at = async |client: &mut Client, fingerprints, ms| {
        pay(client, table, &kept(fingerprints), Now::At(ms)).await.unwrap()
    };
    assert_eq!(pay_at(&mut client, &ten, 1_000).await, Once::New);
    assert_eq!(pay_at(&mut client, &twenty, 1_099).await, Once::Mismatch);
    assert_eq!(table.sweep(&client, 10, Now::At(1_099)).await.unwrap(), 0);
    assert_eq!(pay_at(&mut client, &twenty, 1_100).await, Once::New);
    assert_eq!(pay_at(&mut client, &twenty, 1_199).await, Once::Repeat(created("2")));
    assert_eq!(table.sweep(&client, 10, Now::At(1_200)).await.unwrap(), 1);
}

#[tokio::test]
async fn p1_secrets_change_while_records_live() {
    let (database, table) = payments().await;
    let mut client = servers::connect(database.url()).await;
    let old = (1, payload("10"));
    let new = (2, fingerprint(&MacKey::new(2, [2; 32]), "POST", "/payments", "text/plain", b"10"));
    assert_eq!(pay(&mut client, &table, &request("k", &[old]), Now::Database).await.unwrap(), Once::New);
    let both = pay(&mut client, &table, &request("k", &[new, old]), Now::Database).await.unwrap();
    assert_eq!(both, Once::Repeat(created("1")));
    let forgotten = pay(&mut client, &table, &request("k", &[new]), Now::Database).await.unwrap_err();
    assert!(matches!(forgotten, Error::UnknownMacKey(1)), "{forgotten}");
}

#[tokio::test]
async fn p1_a_caller_may_refuse_to_wait_or_ask_for_a_stricter_level() {
    let (database, table) = payments().await;
    let (mut one, mut other) = (servers::connect(database.url()).await, servers::connect(database.url()).await);
    let fingerprints = [(1, payload("10"))];
    let request = request("k", &fingerprints);
    let first = begin(&mut one).await;
    run(&first, &table, &request, Now::Database).await.unwrap();

    let impatient = begin(&mut other).await;
    impatient.batch_execute("SET LOCAL lock_timeout = '1ms'").await.unwrap();
    let busy = run(&impatient, &table, &request, Now::Database).await.unwrap_err();
    assert!(busy.is_busy() && !busy.is_retryable(), "{busy}");
    drop(impatient);

    let strict = begin(&mut other).await;
    strict.batch_execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SELECT 1").await.unwrap();
    let commit = async {
        waiting_for_a_lock(&database, 1).await;
        first.commit().await.unwrap();
    };
    let lost = tokio::join!(run(&strict, &table, &request, Now::Database), commit).0.unwrap_err();
    assert!(lost.is_retryable() && !lost.is_busy(), "{lost}");
}

#[tokio::test]
async fn p1_works_behind_pgbouncer_in_transaction_mode() {
    let cluster = Cluster::start();
    let (bouncer, table) = (PgBouncer::start(&cluster), table());
    install(&servers::connect(&bouncer.url("postgres")).await, &table).await;
    let one = async |_| {
        let mut client = servers::connect(&bouncer.url("postgres")).await;
        let fingerprints = [(1, payload("10"))];
        pay(&mut client, &table, &request("k", &fingerprints), Now::Database).await.unwrap()
    };
    let answers = join_all((0..8).map(one)).await;
    assert_eq!(answers.iter().filter(|answer| **answer == Once::New).count(), 1);
}

/// A transaction as a service has it: the effect and its record together.
async fn pay(client: &mut Client, table: &OnceTable, request: &Request<'_>, now: Now) -> Result<Once, Error> {
    let transaction = client.transaction().await?;
    let once = run(&transaction, table, request, now).await?;
    transaction.commit().await?;
    Ok(once)
}

async fn run(transaction: &Transaction<'_>, table: &OnceTable, request: &Request<'_>, now: Now) -> Result<Once, Error> {
    let once = table.once(transaction, request, now).await?;
    if once == Once::New {
        // Without a prepared statement, which a pool in transaction mode does not keep.
        let row = transaction.query_typed_one("INSERT INTO payment DEFAULT VALUES RETURNING id::text", &[]).await?;
        table.answer(transaction, request, &created(row.get(0))).await?;
    }
    Ok(once)
}

fn created(id: &str) -> Answer {
    Answer::new(201, [("Location", format!("/payments/{id}").as_str())], Bytes::from_static(b"{\"a\": \0\xff}"))
}

fn payload(amount: &str) -> Fingerprint {
    fingerprint(&MacKey::new(1, [1; 32]), "POST", "/payments", "text/plain", amount.as_bytes())
}

fn request<'a>(key: &'a str, fingerprints: &'a [(u32, Fingerprint)]) -> Request<'a> {
    Request { scope: "tenant", key, fingerprints, keep_ms: 60_000 }
}

fn table() -> OnceTable {
    OnceTable::new(&Table::in_schema("public", "Idempotency").unwrap()).unwrap()
}

async fn install(client: &Client, table: &OnceTable) {
    table.install(client).await.unwrap();
    table.install(client).await.unwrap();
    client.batch_execute("CREATE TABLE payment (id int GENERATED ALWAYS AS IDENTITY)").await.unwrap();
}

async fn payments() -> (Database, OnceTable) {
    let (database, table) = (servers::database().await, table());
    let client = servers::connect(database.url()).await;
    install(&client, &table).await;
    assert_eq!(text(&client, "SELECT current_setting('transaction_isolation')").await, "read committed");
    (database, table)
}
