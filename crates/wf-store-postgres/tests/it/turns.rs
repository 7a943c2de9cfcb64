//! Turns of several partitions: together where they wait together, and no one pays for another. Next: `faults.rs`.

use std::sync::Arc;

use servers::Database;
use wf_core::RowId;
use wf_core::rows::Stored;
use wf_idempotency::Fingerprint;
use wf_idempotency::record::{Answer, Record, State};
use wf_store::conformance::samples;
use wf_store::conformance::world::ending;
use wf_store::*;
use wf_store_postgres::{Options, PostgresStore};

use crate::{NOW, change, fence, inserted, message_id, store, turn, unique};

/// One transaction at a time: what comes meanwhile waits together.
async fn narrow(database: &Database) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::connect(Options { writers: 1, ..Options::at(database.url()) }).await.unwrap())
}

/// Commits them while partition 8 is held back, so that they wait together; how each ended.
async fn together(database: &Database, store: &Arc<PostgresStore>, batches: Vec<Batch>) -> Vec<&'static str> {
    let holder = servers::connect(database.url()).await;
    let first = turn(fence(store, 8).await);
    holder.batch_execute("BEGIN; SELECT 1 FROM onceflow.partition WHERE id = 8 FOR UPDATE").await.unwrap();
    let first = store.commit(first.into());
    let first = std::pin::pin!(first);
    // A commit is on its way from when it is asked for.
    crate::waiting(database, 1).await;
    let commits: Vec<_> = batches.into_iter().map(|batch| store.commit(batch.into())).collect();
    holder.batch_execute("COMMIT").await.unwrap();
    assert_eq!(ending(&first.await), "committed");
    let mut endings = Vec::new();
    for commit in commits {
        endings.push(ending(&commit.await));
    }
    endings
}

/// Transactions that wrote the log of these partitions.
fn transactions(database: &Database) -> Vec<Vec<String>> {
    database.execute("SELECT count(DISTINCT xmin::text), count(*) FROM onceflow.command_log WHERE partition < 8")
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_that_wait_together_are_one_transaction() {
    let database = servers::database().await;
    let store = narrow(&database).await;
    let mut batches = Vec::new();
    for partition in 1..=7 {
        batches.push(turn(fence(&store, partition).await));
    }
    // Of one partition, one after the other, in their order.
    let second = turn(batches[0].fence);
    batches.push(second);
    assert_eq!(together(&database, &store, batches).await, ["committed"; 8]);
    assert_eq!(transactions(&database), [["2", "8"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_poisoned_turn_leaves_the_others_alone() {
    let database = servers::database().await;
    let store = narrow(&database).await;
    let mut batches = Vec::new();
    for partition in 1..=7 {
        batches.push(turn(fence(&store, partition).await));
    }
    // A row that is there already; somebody else's epoch; a character that no text may hold.
    let twice = batches[1].rows[0].clone();
    batches[1].rows.push(twice);
    batches[3].fence.epoch += 1;
    batches[5].audit[0].actor = "\0".into();
    let endings = together(&database, &store, batches).await;
    assert_eq!(endings, ["committed", "conflict", "committed", "fenced", "committed", "rejected", "committed"]);
    assert_eq!(database.execute("SELECT last_position FROM onceflow.partition WHERE id = 2"), [["0"]]);
    assert_eq!(transactions(&database), [["4", "4"]]);
}

/// Somebody's long transaction holds up the turns that need what it holds, and no others.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_holds_up_nobody_else() {
    let database = servers::database().await;
    let store = narrow(&database).await;
    let mut batches = Vec::new();
    for partition in 1..=7 {
        batches.push(turn(fence(&store, partition).await));
    }
    let holder = servers::connect(database.url()).await;
    holder.batch_execute("BEGIN; SELECT 1 FROM onceflow.partition WHERE id IN (2, 5) FOR UPDATE").await.unwrap();
    let mut commits: Vec<_> = batches.into_iter().map(|batch| store.commit(batch.into())).collect();
    for free in [6, 5, 3, 2, 0] {
        assert_eq!(ending(&commits.remove(free).await), "committed");
    }
    crate::waiting(&database, 2).await;
    holder.batch_execute("COMMIT").await.unwrap();
    for held in commits {
        assert_eq!(ending(&held.await), "committed");
    }
}

/// L1.3: two requests under one key that came to two partitions: one of them is executed again and finds the other's record.
#[tokio::test(flavor = "multi_thread")]
async fn one_key_in_two_partitions_is_one_record() {
    let database = servers::database().await;
    let store = narrow(&database).await;
    let record = |body: &'static [u8]| {
        let state = State::Completed(Answer { status: 201, headers: Vec::new(), body: body.into() });
        RecordEntry {
            id: RecordId { tenant: "acme".into(), key: "k-1".into() },
            key_hash: [1; 16],
            route: "POST /x",
            record: Arc::new(Record {
                fingerprint: Fingerprint([2; 32]),
                mac_key_id: 1,
                created_ms: NOW,
                expires_ms: NOW + 1000,
                state,
            }),
        }
    };
    let (mut one, mut other) = (turn(fence(&store, 1).await), turn(fence(&store, 2).await));
    one.records = vec![record(b"one")];
    other.records = vec![record(b"other")];
    let mut endings = together(&database, &store, vec![one, other]).await;
    endings.sort_unstable();
    assert_eq!(endings, ["committed", "conflict"]);
    let kept = store.record(record(b"").id).await.unwrap().unwrap();
    let logged = database.execute("SELECT partition FROM onceflow.command_log WHERE partition < 8");
    let body: &[u8] = if logged == [["1"]] { b"one" } else { b"other" };
    assert!(matches!(&kept.state, State::Completed(answer) if answer.body == body), "{kept:?}");
}

#[tokio::test]
async fn a_unique_value_is_unique_over_partitions() {
    let database = servers::database().await;
    let store = store(database.url()).await;
    let (mut one, mut other) = (turn(fence(&store, 1).await), turn(fence(&store, 2).await));
    one.rows.push(inserted(unique(1)));
    other.rows.push(inserted(unique(2)));
    store.commit(one.clone().into()).await.unwrap();
    assert_eq!(ending(&store.commit(other.clone().into()).await), "conflict");
    // Given up, it is free.
    let mut ended = turn(one.fence);
    ended.rows = vec![Change { id: unique(1).id(), existed: true, new: None }];
    store.commit(ended.into()).await.unwrap();
    store.commit(other.into()).await.unwrap();
}

#[tokio::test]
async fn a_message_id_is_received_once_over_partitions() {
    let database = servers::database().await;
    let store = store(database.url()).await;
    let (mut one, mut other) = (turn(fence(&store, 1).await), turn(fence(&store, 2).await));
    one.rows.push(inserted(message_id(1, NOW + 10)));
    other.rows.push(inserted(message_id(2, NOW + 99)));
    store.commit(one.clone().into()).await.unwrap();
    assert_eq!(ending(&store.commit(other.clone().into()).await), "conflict");

    let asked = |partition| Needs { received_elsewhere: [message_id(0, 0).id()].into(), ..Needs::of(partition) };
    let loaded = store.load(asked(2)).await.unwrap().received_elsewhere;
    assert_eq!(loaded, [(message_id(0, 0).id(), Some(message_id(1, NOW + 10).into()))]);
    assert_eq!(store.load(asked(1)).await.unwrap().received_elsewhere, [(message_id(0, 0).id(), None)]);

    // Its time is over, wherever its row still stands.
    other.head.last_time = NOW + 10;
    store.commit(other.into()).await.unwrap();
    let mut swept = turn(one.fence);
    swept.rows = vec![Change { id: message_id(1, 0).id(), existed: true, new: None }];
    store.commit(swept.into()).await.unwrap();
    let loaded = store.load(asked(1)).await.unwrap().received_elsewhere;
    assert_eq!(loaded, [(message_id(0, 0).id(), Some(message_id(2, NOW + 99).into()))]);
}

#[tokio::test]
async fn what_is_sent_is_taken_once() {
    let database = servers::database().await;
    let store = store(database.url()).await;
    let mut one = turn(fence(&store, 1).await);
    let sent = |target, n| {
        let id = InboxId { source: 1, position: one.fence.new_position, n };
        Sent { target, id, time: NOW, payload: format!("{{\"n\":{n}}}") }
    };
    let all = vec![sent(2, 1), sent(3, 2), sent(2, 10)];
    one.sent = all.clone();
    store.commit(one.clone().into()).await.unwrap();
    assert_eq!(store.inbox(2, 10).await.unwrap(), [all[0].clone(), all[2].clone()]);
    assert_eq!(store.inbox(2, 1).await.unwrap(), [all[0].clone()]);
    assert_eq!(store.inbox(1, 10).await.unwrap(), []);
    assert_eq!(store.undelivered(1, vec![1, 2]).await.unwrap(), [1]);

    let mut two = turn(fence(&store, 2).await);
    two.taken = vec![all[0].id, all[2].id];
    store.commit(two.clone().into()).await.unwrap();
    assert_eq!(store.inbox(2, 10).await.unwrap(), []);
    assert_eq!(store.undelivered(1, vec![1]).await.unwrap(), [1]);
    let mut again = turn(two.fence);
    again.taken = vec![all[0].id];
    assert_eq!(ending(&store.commit(again.into()).await), "conflict");
    // A partition takes what was sent to it, nobody else.
    let mut stranger = turn(two.fence);
    stranger.taken = vec![all[1].id];
    assert_eq!(ending(&store.commit(stranger.into()).await), "conflict");
    let mut three = turn(fence(&store, 3).await);
    three.taken = vec![all[1].id];
    store.commit(three.into()).await.unwrap();
    assert!(store.undelivered(1, vec![1]).await.unwrap().is_empty());
}

/// Copies of definitions, and of subscriptions, have one key in all partitions; each partition has its own row.
#[tokio::test]
async fn rows_of_one_key_stand_in_each_partition() {
    let database = servers::database().await;
    let store = store(database.url()).await;
    let variable = |value: &str| wf_core::rows::Variable { scope: 1, name: "n".into(), value: value.into() };
    let id = RowId::Variable { scope: 1, name: "n".into() };
    let (one, two) = (turn(fence(&store, 1).await), turn(fence(&store, 2).await));
    store.commit(one.clone().into()).await.unwrap();
    store.commit(two.clone().into()).await.unwrap();
    let mut changed = turn(two.fence);
    changed.rows = vec![change(variable("7"), true)];
    store.commit(changed.into()).await.unwrap();
    for (partition, value) in [(1, "1"), (2, "7"), (3, "")] {
        let needs = Needs { core: [wf_core::Need::Row(id.clone())].into(), ..Needs::of(partition) };
        let want = (!value.is_empty()).then(|| wf_core::rows::Variable::wrap(variable(value).into()));
        assert_eq!(store.load(needs).await.unwrap().rows, [(id.clone(), want)]);
    }
}

/// The fence stands in one statement with log and audit: it is what a deposed owner is told, whatever else is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_deposed_owner_is_told_so_before_anything_else() {
    let database = servers::database().await;
    let store = narrow(&database).await;
    let first = turn(fence(&store, 1).await);
    store.commit(first.clone().into()).await.unwrap();
    let mut again = first;
    again.fence.epoch += 1;
    // Its command's id and its position stand in the log.
    assert_eq!(ending(&store.commit(again.into()).await), "fenced");
}

/// Each part of the statement that ends a task looks for its own row.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_does_not_end_where_a_part_of_it_is_gone() {
    let database = servers::database().await;
    let store = narrow(&database).await;
    let (scope, element, job) = (samples::root(1), samples::element(1, 2), samples::job(3));
    let ends = || {
        let gone = Change { id: element.id(), existed: true, new: None };
        vec![gone, change(scope.clone(), true), change(job.clone(), true)]
    };
    let begins = || vec![inserted(element.clone()), inserted(scope.clone()), inserted(job.clone())];
    let mut at = fence(&store, 1).await;
    for missing in [Some(0), Some(1), Some(2), None] {
        let mut begun = begins();
        missing.into_iter().for_each(|part| drop(begun.remove(part)));
        let first = Batch { rows: begun, ..turn(at) };
        at = first.fence;
        store.commit(first.into()).await.unwrap();
        let second = Batch { rows: ends(), ..turn(at) };
        let wanted = if missing.is_some() { "conflict" } else { "committed" };
        assert_eq!(ending(&store.commit(second.into()).await), wanted, "without part {missing:?}");
        database.execute("DELETE FROM onceflow.scope; DELETE FROM onceflow.element; DELETE FROM onceflow.jobs");
    }
}
