//! L3.6: leases on a table of one's own.

use crate::{begin, count, crash, text, waiting_for_a_lock};
use futures_util::future::join_all;
use servers::{Cluster, Database, PgBouncer};
use std::collections::HashSet;
use wf_idempotency::postgres::queue::{Lease, Leased, Queue, Settled};
use wf_idempotency::postgres::{Column, Now, Table};

#[tokio::test]
async fn l3_6_the_highest_priority_is_leased_first_and_then_the_lowest_key() {
    let (database, queue) = tasks().await;
    let client = servers::connect(database.url()).await;
    for (key, priority) in [("c", 0), ("b", 5), ("a", 0), ("d", 5)] {
        assert!(queue.enqueue(&client, key, r#"{"n": 1}"#, priority).await.unwrap());
    }
    assert!(!queue.enqueue(&client, "a", "null", 9).await.unwrap(), "there already, and unchanged");
    let first = queue.lease(&client, "w", 3, 1_000, Now::At(10)).await.unwrap();
    assert_eq!(keys(&first), ["b", "d", "a"]);
    assert_eq!(first[0].until_ms, 1_010);
    assert_eq!(first[0].lease, Lease { key: "b".into(), holder: "w".into(), number: 1 });
    assert_eq!(keys(&queue.lease(&client, "v", 3, 1_000, Now::At(11)).await.unwrap()), ["c"]);
    assert_eq!(text(&client, "SELECT payload::text FROM tasks WHERE key = 'a'").await, r#"{"n": 1}"#);
}

/// (what a worker does, when, what it is told); the lease of worker `w` is number 1 and lasts from 0 until 100.
#[tokio::test]
async fn l3_6_only_the_holder_within_its_lease_changes_anything() {
    enum Say {
        Complete,
        Fail(Option<i64>),
        Extend(i64),
        /// Another worker takes what is free.
        Take(usize),
    }
    use Say::*;
    let stories: &[&[(Say, i64, Settled)]] = &[
        &[(Complete, 99, Settled::Done), (Complete, 100, Settled::Duplicate), (Fail(None), 100, Settled::LeaseLost)],
        &[(Complete, 100, Settled::LeaseLost)],
        &[(Extend(100), 99, Settled::Done), (Complete, 198, Settled::Done), (Extend(9), 198, Settled::LeaseLost)],
        &[(Extend(100), 100, Settled::LeaseLost)],
        &[(Take(0), 99, Settled::Done), (Take(1), 100, Settled::Done), (Complete, 101, Settled::LeaseLost)],
        &[(Fail(None), 50, Settled::Done), (Fail(None), 60, Settled::Duplicate), (Take(0), 200, Settled::Done)],
        &[
            (Fail(Some(10)), 50, Settled::Done),
            (Fail(Some(10)), 51, Settled::Duplicate),
            (Complete, 52, Settled::LeaseLost),
            (Take(0), 59, Settled::Done),
            (Take(1), 60, Settled::Done),
            (Fail(Some(10)), 61, Settled::LeaseLost),
        ],
    ];
    for (story, steps) in stories.iter().enumerate() {
        let (database, queue) = tasks().await;
        let client = servers::connect(database.url()).await;
        queue.enqueue(&client, "k", "null", 0).await.unwrap();
        let lease = queue.lease(&client, "w", 1, 100, Now::At(0)).await.unwrap().remove(0).lease;
        for (step, (say, at, expected)) in steps.iter().enumerate() {
            let now = Now::At(*at);
            let told = match say {
                Complete => queue.complete(&client, &lease, now).await.unwrap(),
                Fail(retry_after_ms) => queue.fail(&client, &lease, *retry_after_ms, now).await.unwrap(),
                Extend(for_ms) => queue.extend(&client, &lease, *for_ms, now).await.unwrap(),
                Take(taken) => {
                    assert_eq!(queue.lease(&client, "v", 1, 100, now).await.unwrap().len(), *taken, "story {story}");
                    Settled::Done
                }
            };
            assert_eq!(told, *expected, "story {story}, step {step}");
        }
    }
}

/// The name alone is no fence: a worker's old attempt must not settle its own new lease.
#[tokio::test]
async fn l3_6_an_old_lease_of_the_same_worker_is_lost() {
    let (database, queue) = tasks().await;
    let client = servers::connect(database.url()).await;
    queue.enqueue(&client, "k", "null", 0).await.unwrap();
    let old = queue.lease(&client, "w", 1, 100, Now::At(0)).await.unwrap().remove(0).lease;
    let new = queue.lease(&client, "w", 1, 100, Now::At(100)).await.unwrap().remove(0).lease;
    assert_eq!((old.number, new.number), (1, 2));
    assert_eq!(queue.complete(&client, &old, Now::At(101)).await.unwrap(), Settled::LeaseLost);
    assert_eq!(queue.complete(&client, &new, Now::At(101)).await.unwrap(), Settled::Done);
    assert_eq!(queue.complete(&client, &old, Now::At(101)).await.unwrap(), Settled::LeaseLost);
    let gone = Lease { key: "never".into(), ..new };
    assert_eq!(queue.complete(&client, &gone, Now::At(101)).await.unwrap(), Settled::Missing);
}

/// An open transaction's rows are passed by; when it crashes they are free at once, when it commits they are taken.
#[tokio::test]
async fn l3_6_two_that_lease_at_once_get_different_rows_and_wait_for_nobody() {
    let (database, queue) = tasks().await;
    let (mut one, other) = (servers::connect(database.url()).await, servers::connect(database.url()).await);
    for key in ["a", "b", "c"] {
        queue.enqueue(&other, key, "null", 0).await.unwrap();
    }
    let first = begin(&mut one).await;
    assert_eq!(keys(&queue.lease(&first, "w", 1, 60_000, Now::Database).await.unwrap()), ["a"]);
    assert_eq!(keys(&queue.lease(&other, "v", 1, 60_000, Now::Database).await.unwrap()), ["b"]);
    crash(&database, &first).await;
    // Until the server has cleaned up, the row is locked, and passed by.
    let mut free = Vec::new();
    while free.len() < 2 {
        free.extend(keys(&queue.lease(&other, "v", 2, 60_000, Now::Database).await.unwrap()));
    }
    free.sort();
    assert_eq!(free, ["a", "c"]);
}

#[tokio::test]
async fn l3_6_of_many_workers_each_row_goes_to_one() {
    let (database, queue) = tasks().await;
    let client = servers::connect(database.url()).await;
    for n in 0..50 {
        queue.enqueue(&client, &format!("{n:02}"), "null", n % 3).await.unwrap();
    }
    let work = async |worker: i32| {
        let client = servers::connect(database.url()).await;
        let mut mine = Vec::new();
        // Locked rows are passed by, so an empty answer does not say that nothing is left.
        while count(&client, "SELECT count(*) FROM tasks WHERE lease_state <> 'done'").await > 0 {
            for leased in queue.lease(&client, &worker.to_string(), 3, 600_000, Now::Database).await.unwrap() {
                assert_eq!(queue.complete(&client, &leased.lease, Now::Database).await.unwrap(), Settled::Done);
                mine.push(leased.lease.key);
            }
        }
        mine
    };
    let done = join_all((0..6).map(work)).await.concat();
    assert_eq!((done.len(), done.iter().collect::<HashSet<_>>().len()), (50, 50));
}

/// The effect and the completion commit together; who is late rolls both back. Its clock still shows the time of its
/// lease, and another is just taking the row: it waits for that one, and the number is what stops it.
#[tokio::test]
async fn l3_6_a_late_worker_rolls_its_effect_back() {
    let (database, queue) = tasks().await;
    let (mut late, mut quick) = (servers::connect(database.url()).await, servers::connect(database.url()).await);
    late.batch_execute("CREATE TABLE effect (worker text)").await.unwrap();
    queue.enqueue(&late, "k", "null", 0).await.unwrap();
    let old = queue.lease(&late, "late", 1, 100, Now::At(0)).await.unwrap().remove(0).lease;
    let taking = begin(&mut quick).await;
    let new = queue.lease(&taking, "quick", 1, 100, Now::At(100)).await.unwrap().remove(0).lease;
    let first = async {
        let first = begin(&mut late).await;
        first.batch_execute("INSERT INTO effect VALUES ('late')").await.unwrap();
        queue.complete(&first, &old, Now::At(99)).await.unwrap()
    };
    let commit = async {
        waiting_for_a_lock(&database, 1).await;
        taking.commit().await.unwrap();
    };
    assert_eq!(tokio::join!(first, commit).0, Settled::LeaseLost);

    let second = begin(&mut quick).await;
    second.batch_execute("INSERT INTO effect VALUES ('quick')").await.unwrap();
    assert_eq!(queue.complete(&second, &new, Now::At(110)).await.unwrap(), Settled::Done);
    assert_eq!(
        queue.lease(&late, "late", 1, 100, Now::At(300)).await.unwrap().len(),
        0,
        "passed by: it is being settled"
    );
    second.commit().await.unwrap();
    assert_eq!(text(&late, "SELECT string_agg(worker, ',') FROM effect").await, "quick");
}

/// A table that exists, with a key of its own type: its rows are ready from the moment on, and its columns come along.
#[tokio::test]
async fn l3_6_a_table_of_ones_own_gets_the_columns() {
    let database = servers::database().await;
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.\"Mail\" (no bigint PRIMARY KEY, address text);
         INSERT INTO shop.\"Mail\" VALUES (9, 'nine@example.org'), (10, 'ten@example.org')",
    );
    let client = servers::connect(database.url()).await;
    let queue = Queue::new(&Table::in_schema("shop", "Mail").unwrap(), &Column::new("no").unwrap()).unwrap();
    queue.install_on(&client).await.unwrap();
    queue.install_on(&client).await.unwrap();
    let leased = queue.lease(&client, "w", 10, 1_000, Now::Database).await.unwrap();
    assert_eq!(keys(&leased), ["9", "10"], "as numbers, not as texts");
    assert_eq!(leased[0].row.get::<_, &str>("address"), "nine@example.org");
    assert_eq!(queue.complete(&client, &leased[0].lease, Now::Database).await.unwrap(), Settled::Done);
    assert_eq!(queue.fail(&client, &leased[1].lease, None, Now::Database).await.unwrap(), Settled::Done);
    assert_eq!(queue.forget(&client, 60_000, 10, Now::Database).await.unwrap(), 0);
    assert_eq!(queue.forget(&client, 0, 1, Now::Database).await.unwrap(), 1);
    assert_eq!(queue.forget(&client, 0, 10, Now::Database).await.unwrap(), 1);
}

#[tokio::test]
async fn l3_6_works_behind_pgbouncer_in_transaction_mode() {
    let cluster = Cluster::start();
    let bouncer = PgBouncer::start(&cluster);
    let queue = queue();
    queue.install(&servers::connect(&bouncer.url("postgres")).await).await.unwrap();
    let work = async |n: i32| {
        let client = servers::connect(&bouncer.url("postgres")).await;
        queue.enqueue(&client, &n.to_string(), "{}", 0).await.unwrap();
        queue.lease(&client, &n.to_string(), 10, 60_000, Now::Database).await.unwrap().len()
    };
    let leased: usize = join_all((0..8).map(work)).await.into_iter().sum();
    let rest = servers::connect(&bouncer.url("postgres")).await;
    let left = queue.lease(&rest, "last", 10, 60_000, Now::Database).await.unwrap().len();
    assert_eq!(leased + left, 8);
}

fn keys(leased: &[Leased]) -> Vec<String> {
    leased.iter().map(|one| one.lease.key.clone()).collect()
}

fn queue() -> Queue {
    Queue::new(&Table::new("tasks").unwrap(), &Column::new("key").unwrap()).unwrap()
}

async fn tasks() -> (Database, Queue) {
    let (database, queue) = (servers::database().await, queue());
    queue.install(&servers::connect(database.url()).await).await.unwrap();
    (database, queue)
}
