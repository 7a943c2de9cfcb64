//! Several nodes on one database: who owns what, and who is fenced. Next: `turns.rs`.

use wf_store::conformance::world::ending;
use wf_store::{Batch, Cluster, Heard, InboxId, Members, Sent, Store};
use wf_store_postgres::{Options, PostgresStore};

use crate::{fence, node, turn};

async fn joined(url: &str, name: &str) -> PostgresStore {
    let store = node(url, name).await;
    store.join().await.unwrap();
    store
}

fn owner(members: &Members, partition: u16) -> Option<&str> {
    members.owner(partition).map(|node| node.name.as_str())
}

#[tokio::test]
async fn a_living_owner_keeps_its_partition_until_it_gives_it_up() {
    let database = servers::database().await;
    let (a, b) = (joined(database.url(), "a").await, joined(database.url(), "b").await);
    let of_a = fence(&a, 1).await;
    let refused = b.open(1).await.unwrap_err().0;
    assert_eq!(refused, "partition 1 belongs to the node a");
    b.release(1).await.unwrap();
    assert_eq!(owner(&b.members().await.unwrap(), 1), Some("a"));

    a.release(1).await.unwrap();
    assert_eq!(owner(&b.members().await.unwrap(), 1), None);
    let of_b = fence(&b, 1).await;
    assert_eq!(of_b.epoch, of_a.epoch + 1);
    assert_eq!(ending(&a.commit(turn(of_a).into()).await), "fenced");
    assert_eq!(ending(&a.check_fence(of_a).await), "fenced");
    b.commit(turn(of_b).into()).await.unwrap();
    assert_eq!(b.open(99).await.unwrap_err().0, "there is no partition 99");
}

#[tokio::test]
async fn a_dead_nodes_partitions_are_free_and_it_comes_back_without_them() {
    let database = servers::database().await;
    let (a, b) = (joined(database.url(), "a").await, joined(database.url(), "b").await);
    let of_a = fence(&a, 1).await;
    fence(&a, 2).await;
    database.execute("UPDATE onceflow.node SET lease_until = 0 WHERE name = 'a'");
    // Nobody has struck it off yet: it counts as dead all the same.
    let of_b = fence(&b, 1).await;
    let members = b.renew().await.unwrap();
    assert_eq!(members.nodes.iter().map(|node| &*node.name).collect::<Vec<_>>(), ["b"]);
    assert_eq!((owner(&members, 1), owner(&members, 2)), (Some("b"), None));
    assert_eq!(database.execute("SELECT count(*) FROM onceflow.partition WHERE owner IS NOT NULL"), [["1"]]);

    let members = a.renew().await.unwrap();
    assert_eq!(members.nodes.len(), 2);
    assert_eq!((owner(&members, 1), owner(&members, 2)), (Some("b"), None));
    assert_eq!(ending(&a.commit(turn(of_a).into()).await), "fenced");
    b.commit(turn(of_b).into()).await.unwrap();
}

#[tokio::test]
async fn another_run_of_the_same_name_takes_its_place_at_once() {
    let database = servers::database().await;
    let first = joined(database.url(), "a").await;
    let of_first = fence(&first, 1).await;
    let second = node(database.url(), "a").await;
    assert_ne!(first.me(), second.me());
    second.join().await.unwrap();
    let members = second.members().await.unwrap();
    assert_eq!(members.nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [second.me()]);
    assert_eq!(owner(&members, 1), None);
    fence(&second, 1).await;
    assert_eq!(ending(&first.commit(turn(of_first).into()).await), "fenced");
}

#[tokio::test]
async fn members_are_told_as_they_are() {
    let database = servers::database().await;
    let options = |name: &str| Options {
        node: name.to_owned(),
        address: format!("http://{name}:8080"),
        version: "9.9.9".to_owned(),
        partitions: 2,
        ..Options::at(database.url())
    };
    let a = PostgresStore::connect(options("a")).await.unwrap();
    a.join().await.unwrap();
    let of_a = fence(&a, 2).await;
    a.commit(turn(of_a).into()).await.unwrap();
    let members = a.renew().await.unwrap();
    let me = &members.nodes[0];
    assert_eq!((me.id, &*me.name, &*me.address, &*me.version), (a.me(), "a", "http://a:8080", "9.9.9"));
    assert!((1..=6000).contains(&me.lease_left_ms), "{}", me.lease_left_ms);
    assert!(me.joined_at <= members.now);
    let partitions: Vec<_> =
        members.partitions.iter().map(|row| (row.partition, row.epoch, row.position, row.owner)).collect();
    assert_eq!(partitions, [(1, 0, 0, None), (2, 1, 1, Some(a.me()))]);
    a.leave().await.unwrap();
    let members = a.members().await.unwrap();
    assert!(members.nodes.is_empty() && members.partitions.iter().all(|row| row.owner.is_none()));
}

/// L4: what an earlier owner has under way is decided before the partition stands anywhere else.
#[tokio::test(flavor = "multi_thread")]
async fn a_take_over_waits_for_a_transaction_that_is_dying() {
    let database = servers::database().await;
    let store = std::sync::Arc::new(node(database.url(), "a").await);
    let dying = servers::connect(database.url()).await;
    dying.batch_execute("BEGIN; UPDATE onceflow.partition SET last_position = 7 WHERE id = 1").await.unwrap();
    let opening = tokio::spawn({
        let store = store.clone();
        async move { fence(&store, 1).await }
    });
    crate::waiting(&database, 1).await;
    dying.batch_execute("COMMIT").await.unwrap();
    assert_eq!(opening.await.unwrap().new_position, 7);
}

/// What goes from one partition to another is heard by the other node, once it is committed, and by nobody who sent it.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_hears_what_another_one_sends_and_takes() {
    let database = servers::database().await;
    let (a, b) = (joined(database.url(), "a").await, joined(database.url(), "b").await);
    for node in [&a, &b] {
        assert_eq!(node.renew().await.unwrap().nodes.len(), 2);
    }
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%' AND state = 'idle'";
    while database.execute(listening) != [["2"]] {
        tokio::task::yield_now().await;
    }
    let (of_a, of_b) = (fence(&a, 1).await, fence(&b, 2).await);
    let id = InboxId { source: 1, position: of_a.new_position + 1, n: 1 };
    let sent = Sent { target: 2, id, time: crate::NOW, payload: "{}".to_owned() };
    a.commit(Batch { sent: vec![sent], ..turn(of_a) }.into()).await.unwrap();
    assert_eq!(b.heard().await, Heard::Sent(2));
    b.commit(Batch { taken: vec![id], ..turn(of_b) }.into()).await.unwrap();
    assert_eq!(a.heard().await, Heard::Taken, "and not what it sent itself");
    // A connection that is lost is made again.
    database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'");
    while database.execute(listening) != [["2"]] {
        tokio::task::yield_now().await;
    }
    let of_a = a.open(1).await.unwrap().fence;
    let id = InboxId { source: 1, position: of_a.new_position + 1, n: 1 };
    let sent = Sent { target: 3, id, time: crate::NOW, payload: "{}".to_owned() };
    a.commit(Batch { sent: vec![sent], ..turn(of_a) }.into()).await.unwrap();
    assert_eq!(b.heard().await, Heard::Sent(3));
}
