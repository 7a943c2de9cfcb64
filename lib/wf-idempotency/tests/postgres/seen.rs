//! P8: a table of what was seen, forgotten by whole partitions.

use crate::{begin, count, crash, waiting_for_a_lock};
use futures_util::future::join_all;
use servers::Database;
use tokio_postgres::Client;
use wf_idempotency::postgres::seen::{KEYS_MAX, Retention, Seen, SeenTable};
use wf_idempotency::postgres::{Error, Now, Table};

const DAY: i64 = 86_400_000;

#[tokio::test]
async fn p8_a_key_is_new_once_also_over_midnight_and_again_when_it_is_forgotten() {
    let (database, table) = messages().await;
    let mut client = servers::connect(database.url()).await;
    let late = 10 * DAY - 1;
    let steps: [(i64, &[&str], &[Seen]); 5] = [
        (late, &["b", "a", "b"], &[Seen::New, Seen::New, Seen::Before { seen_ms: late }]),
        (late + 1, &["a"], &[Seen::Before { seen_ms: late }]),
        (late + 2, &["a", "c"], &[Seen::Before { seen_ms: late }, Seen::New]),
        (late + 2 * DAY - 1, &["a"], &[Seen::Before { seen_ms: late }]),
        (late + 2 * DAY, &["a", "c"], &[Seen::New, Seen::Before { seen_ms: late + 2 }]),
    ];
    for (at, keys, expected) in steps {
        partitions_at(&mut client, &table, at).await;
        assert_eq!(mark(&mut client, &table, keys, at).await.unwrap(), expected, "{keys:?} at {at}");
    }
    assert_eq!(mark(&mut client, &table, &[], late).await.unwrap(), []);
}

#[tokio::test]
async fn p8_partitions_are_made_ahead_once_and_dropped_whole() {
    let (database, table) = messages().await;
    let mut client = servers::connect(database.url()).await;
    let ensure = async |client: &mut Client, ahead, at| {
        let transaction = begin(client).await;
        let made = table.ensure_partitions(&transaction, ahead, Now::At(at)).await.unwrap();
        transaction.commit().await.unwrap();
        made
    };
    assert_eq!(ensure(&mut client, 3, 20 * DAY + 5).await, 4);
    assert_eq!(ensure(&mut client, 4, 21 * DAY).await, 2);
    mark(&mut client, &table, &["a"], 20 * DAY + 5).await.unwrap();
    mark(&mut client, &table, &["b"], 21 * DAY).await.unwrap();
    // A table of somebody else's that looks like a partition, and a partition with a name of its own.
    client
        .batch_execute(
            r#"CREATE TABLE "Seen_0" (); CREATE TABLE other PARTITION OF "Seen" FOR VALUES FROM (-1000) TO (-1)"#,
        )
        .await
        .unwrap();

    let trim = async |client: &mut Client, at| {
        let transaction = begin(client).await;
        let dropped = table.trim(&transaction, Now::At(at)).await.unwrap();
        transaction.commit().await.unwrap();
        dropped
    };
    // Kept for two days: what was seen at the end of day 20 counts until the end of day 22.
    let before = count(&client, TABLES).await;
    assert_eq!(trim(&mut client, 23 * DAY - 1).await, 0);
    assert_eq!(trim(&mut client, 23 * DAY).await, 1);
    assert_eq!(trim(&mut client, 23 * DAY).await, 0);
    assert_eq!(count(&client, TABLES).await, before - 1);
    assert_eq!(count(&client, r#"SELECT count(*) FROM "Seen""#).await, 1);
    assert_eq!(mark(&mut client, &table, &["b"], 22 * DAY).await.unwrap(), [Seen::Before { seen_ms: 21 * DAY }]);

    let error = mark(&mut client, &table, &["c"], 40 * DAY).await.unwrap_err();
    assert!(matches!(error, Error::Database(_)), "no partition for that day: {error}");
}

/// Not even the primary key would stop this one: the two transactions write into two partitions.
#[tokio::test]
async fn p8_of_two_transactions_at_once_one_sees_it_first_also_over_midnight() {
    let (database, table) = messages().await;
    let (mut one, mut other) = (servers::connect(database.url()).await, servers::connect(database.url()).await);
    partitions_at(&mut one, &table, 10 * DAY - 1).await;
    let first = begin(&mut one).await;
    assert_eq!(table.mark_seen(&first, &["k", "x"], Now::At(10 * DAY - 1)).await.unwrap(), [Seen::New; 2]);
    let commit = async {
        waiting_for_a_lock(&database, 1).await;
        first.commit().await.unwrap();
    };
    let second = mark(&mut other, &table, &["y", "k"], 10 * DAY);
    let expected = [Seen::New, Seen::Before { seen_ms: 10 * DAY - 1 }];
    assert_eq!(tokio::join!(second, commit).0.unwrap(), expected);
}

#[tokio::test]
async fn p8_a_crash_before_the_commit_forgets() {
    let (database, table) = messages().await;
    let (mut one, mut other) = (servers::connect(database.url()).await, servers::connect(database.url()).await);
    partitions_at(&mut one, &table, DAY).await;
    let first = begin(&mut one).await;
    assert_eq!(table.mark_seen(&first, &["k"], Now::At(DAY)).await.unwrap(), [Seen::New]);
    let crash = async {
        waiting_for_a_lock(&database, 1).await;
        crash(&database, &first).await;
    };
    assert_eq!(tokio::join!(mark(&mut other, &table, &["k"], DAY), crash).0.unwrap(), [Seen::New]);
}

/// Keys in any order, and no deadlock: they are locked in one.
#[tokio::test]
async fn p8_of_many_at_once_each_key_is_new_to_one() {
    let (database, table) = messages().await;
    let keys: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let one = async |n: usize| {
        let mut client = servers::connect(database.url()).await;
        let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        keys.rotate_left(n);
        mark_with(&mut client, &table, &keys, Now::Database).await.unwrap()
    };
    let answers = join_all((0..10).map(one)).await;
    assert_eq!(answers.iter().flatten().filter(|seen| **seen == Seen::New).count(), keys.len());
}

#[tokio::test]
async fn p8_what_could_not_be_right_is_refused() {
    let (database, table) = messages().await;
    let mut client = servers::connect(database.url()).await;
    let strict = client.build_transaction().isolation_level(tokio_postgres::IsolationLevel::RepeatableRead);
    let strict = strict.start().await.unwrap();
    let refused = table.mark_seen(&strict, &["k"], Now::Database).await.unwrap_err();
    assert!(matches!(&refused, Error::Isolation(level) if level == "repeatable read"), "{refused}");
    drop(strict);

    let many: Vec<String> = (0..=KEYS_MAX).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let refused = mark(&mut client, &table, &many, DAY).await.unwrap_err();
    assert!(matches!(refused, Error::TooManyKeys(count) if count == KEYS_MAX + 1), "{refused}");

    let retention = Retention { keep_ms: DAY, partition_ms: DAY };
    SeenTable::new(&Table::new(&"x".repeat(50)).unwrap(), retention).unwrap_err();
}

#[tokio::test]
async fn p8_two_that_make_partitions_at_once_do_it_once() {
    let (database, table) = messages().await;
    let make = async |_| {
        let mut client = servers::connect(database.url()).await;
        let transaction = begin(&mut client).await;
        let made = table.ensure_partitions(&transaction, 5, Now::At(100 * DAY)).await.unwrap();
        transaction.commit().await.unwrap();
        made
    };
    assert_eq!(join_all((0..4).map(make)).await.into_iter().sum::<usize>(), 6);
}

const TABLES: &str = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";

async fn mark(client: &mut Client, table: &SeenTable, keys: &[&str], at: i64) -> Result<Vec<Seen>, Error> {
    mark_with(client, table, keys, Now::At(at)).await
}

async fn mark_with(client: &mut Client, table: &SeenTable, keys: &[&str], now: Now) -> Result<Vec<Seen>, Error> {
    let transaction = client.transaction().await?;
    let seen = table.mark_seen(&transaction, keys, now).await?;
    transaction.commit().await?;
    Ok(seen)
}

async fn partitions_at(client: &mut Client, table: &SeenTable, at: i64) {
    let transaction = begin(client).await;
    table.ensure_partitions(&transaction, 1, Now::At(at)).await.unwrap();
    transaction.commit().await.unwrap();
}

async fn messages() -> (Database, SeenTable) {
    let database = servers::database().await;
    let mut client = servers::connect(database.url()).await;
    let retention = Retention { keep_ms: 2 * DAY, partition_ms: DAY };
    let table = SeenTable::new(&Table::new("Seen").unwrap(), retention).unwrap();
    for _ in 0..2 {
        let transaction = begin(&mut client).await;
        table.install(&transaction, Now::Database).await.unwrap();
        transaction.commit().await.unwrap();
    }
    (database, table)
}
