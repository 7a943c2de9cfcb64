//! Claims of several nodes at once, and of messages that a transaction holds just now. Next: `long_lists.rs`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use servers::Database;
use wf_core::{Key, ids};
use wf_store::conformance::world::{TENANT, World};
use wf_store::{Claim, Mark, MarkResult, OutboxEntry, OutboxId, Store, event_id};
use wf_store_postgres::{Options, PostgresStore};

async fn store(database: &Database, node: &str) -> Arc<dyn Store> {
    let options = Options { node: node.to_owned(), ..Options::at(database.url()) };
    Arc::new(PostgresStore::connect(options).await.unwrap())
}

fn message(partition: u16, position: u64, order_key: Key) -> OutboxEntry {
    OutboxEntry {
        id: OutboxId { partition, position, n: 1, sink: "nats".into() },
        tenant: TENANT.into(),
        order_key,
        topic: "wf.instance.started".into(),
        event_id: event_id(partition, position, 1).into(),
        envelope: "{}".into(),
        created_at: 0,
    }
}

async fn send(store: &Arc<dyn Store>, partition: u16, order_keys: &[Key]) {
    let mut world = World::open_at(store.clone(), partition).await.unwrap();
    let entries = (1..).zip(order_keys).map(|(position, order_key)| message(partition, position, *order_key)).collect();
    world.turn(|batch| batch.outbox = entries).await.unwrap();
}

fn claim(owner: u8, limit: usize) -> Claim {
    Claim { sink: "nats".into(), owner: [owner; 16], now: 0, lease_ms: 100, limit, dead_pass: false }
}

async fn claimed(store: &Arc<dyn Store>, owner: u8) -> Vec<u64> {
    let rows = store.claim_outbox(claim(owner, 10)).await.unwrap();
    rows.into_iter().map(|row| row.entry.id.position).collect()
}

/// L3.3: it is neither taken nor waited for, and nothing passes it.
#[tokio::test(flavor = "multi_thread")]
async fn l3_3_a_locked_message_bars_those_behind_it() {
    let database = servers::database().await;
    let store = store(&database, "a").await;
    send(&store, 1, &[7, 7, 8, 8]).await;
    let holder = servers::connect(database.url()).await;
    holder.batch_execute("BEGIN; SELECT 1 FROM onceflow.outbox WHERE position = 1 FOR UPDATE").await.unwrap();
    assert_eq!(claimed(&store, 1).await, [3], "of the other order key alone");
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(claimed(&store, 2).await, [1]);
}

/// L3.3, C2: each message is claimed once, and only when all before it are shipped.
#[tokio::test(flavor = "multi_thread")]
async fn several_nodes_ship_in_order_and_once() {
    let database = servers::database().await;
    let first = store(&database, "a").await;
    for partition in [1, 2] {
        let order_keys: Vec<Key> = (0..100).map(|n| ids::key(partition, n * n % 7)).collect();
        send(&first, partition, &order_keys).await;
    }
    let shipped: Arc<Mutex<Vec<OutboxEntry>>> = Arc::default();
    let mut shippers = tokio::task::JoinSet::new();
    for owner in 1..=4 {
        let store = store(&database, &format!("node-{owner}")).await;
        shippers.spawn(ship_all(store, owner, shipped.clone()));
    }
    shippers.join_all().await;
    let shipped = shipped.lock().unwrap();
    assert_eq!(shipped.len(), 200);
    let mut of_key: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
    for entry in shipped.iter() {
        of_key.entry(entry.order_key).or_default().push(entry.id.position);
    }
    for (key, positions) in of_key {
        assert!(positions.is_sorted_by(|one, next| one < next), "{key}: {positions:?}");
    }
}

/// Until all are shipped, whoever did it.
async fn ship_all(store: Arc<dyn Store>, owner: u8, shipped: Arc<Mutex<Vec<OutboxEntry>>>) {
    while shipped.lock().unwrap().len() < 200 {
        let rows = store.claim_outbox(claim(owner, 3)).await.unwrap();
        let marks = rows.iter().map(|row| {
            let id = row.entry.id.clone();
            Mark { id, owner: [owner; 16], result: MarkResult::Shipped { at: 1 } }
        });
        let marks: Vec<Mark> = marks.collect();
        shipped.lock().unwrap().extend(rows.into_iter().map(|row| row.entry));
        store.mark_outbox(marks).await.unwrap();
    }
}

/// 30,000 behind a dead letter, more than one statement looks through; two that may go, before and behind them.
const BARRED: &str = "
INSERT INTO onceflow.outbox (partition, position, n, sink, tenant, order_key, topic, event_id, created_at, envelope, state,
                             attempts, retry_at, shipped_at, claim_until)
SELECT 1, g, 1, 'nats', 'acme', 1, 't', 'ev-1-' || g, 0, ''::bytea,
       CASE WHEN g = 10 THEN 'dead' ELSE 'pending' END, 0, 0, 0, 0
FROM generate_series(10, 30010) AS g
UNION ALL
SELECT 1, g, 1, 'nats', 'acme', g, 't', 'ev-1-' || g, 0, ''::bytea, 'pending', 0, CASE WHEN g = 3 THEN 9 ELSE 0 END, 0, 0
FROM unnest('{3, 60000}'::int8[]) AS g";

#[tokio::test(flavor = "multi_thread")]
async fn many_barred_ones_keep_no_other_waiting() {
    let database = servers::database().await;
    let store = store(&database, "a").await;
    database.execute(BARRED);
    assert_eq!(claimed(&store, 1).await, [60_000], "behind them");
    let mut found = Vec::new();
    for _ in 0..3 {
        let rows = store.claim_outbox(Claim { now: 9, ..claim(2, 10) }).await.unwrap();
        found.extend(rows.into_iter().map(|row| row.entry.id.position));
    }
    assert_eq!(found, [3], "before them, once its time has come");
    let passing = Claim { dead_pass: true, ..claim(3, 3) };
    let rows = store.claim_outbox(passing).await.unwrap();
    assert_eq!(rows.into_iter().map(|row| row.entry.id.position).collect::<Vec<_>>(), [11], "one of an order key");
}
