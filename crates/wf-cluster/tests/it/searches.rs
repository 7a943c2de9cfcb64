//! Activation over several partitions and nodes.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinSet;
use wf_cluster::{Node, Step};
use wf_core::Partitions;
use wf_core::ids::partition_of;

use crate::support::*;

const LONG: Duration = Duration::from_secs(60);

async fn two() -> (Arc<World>, Member, Member) {
    let world = Arc::new(World::new(4));
    let (mut a, mut b) = (world.member("a").await, world.member("b").await);
    world.settle(&mut [&mut a, &mut b]).await;
    world.deploy(&a.node).await;
    (world, a, b)
}

async fn start_at(world: &World, node: &Node, partition: u16) {
    world.ask_at(node, partition, request(start())).await.unwrap();
}

/// L3.1: each job once, wherever it is and whoever asks.
#[tokio::test(flavor = "multi_thread")]
async fn polls_find_the_jobs_of_all_partitions_each_once() {
    let (world, a, b) = two().await;
    for n in 0..40 {
        start_at(&world, &a.node, 1 + n % 4).await;
    }
    let mut workers = JoinSet::new();
    for n in 0..6 {
        let (world, node) = (world.clone(), if n % 2 == 0 { a.node.clone() } else { b.node.clone() });
        workers.spawn(async move {
            let mut found = Vec::new();
            loop {
                match world.poll(&node, Duration::ZERO).await {
                    keys if keys.is_empty() => return found,
                    keys => found.extend(keys),
                }
            }
        });
    }
    let found: Vec<u64> = workers.join_all().await.into_iter().flatten().collect();
    let once: BTreeSet<u64> = found.iter().copied().collect();
    assert_eq!((found.len(), once.len()), (40, 40));
    assert_eq!(once.iter().map(|key| partition_of(*key)).collect::<BTreeSet<_>>(), BTreeSet::from([1, 2, 3, 4]));
}

/// A long poll hears of a job at its own and at the other node's partitions, and of one that comes back.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_is_woken_by_a_job_anywhere() {
    let (world, a, b) = two().await;
    for partition in 1..=4 {
        let (of, node) = (world.clone(), b.node.clone());
        let polling = tokio::spawn(async move { of.poll(&node, LONG).await });
        start_at(&world, &a.node, partition).await;
        let keys = polling.await.unwrap();
        assert_eq!(keys.iter().map(|key| partition_of(*key)).collect::<Vec<_>>(), [partition]);
    }
    assert!(world.poll(&a.node, Duration::ZERO).await.is_empty());
}

/// A word about another node's partition is for those who wait here, not for a node that asks what is here.
#[tokio::test]
async fn a_node_that_asks_swallows_no_word() {
    let (world, a, b) = two().await;
    assert!(world.poll(&a.node, Duration::ZERO).await.is_empty());
    let mut asked = Box::pin(a.node.peek(queue(), LONG));
    assert!(is_pending(&mut asked).await);
    let at_b = b.serves()[0];
    let found = world.poll(&a.node, LONG);
    let (found, ()) = tokio::join!(found, start_at(&world, &b.node, at_b));
    assert_eq!(found.len(), 1);
    assert!(is_pending(&mut asked).await, "nothing is at a");
    start_at(&world, &a.node, a.serves()[0]).await;
    assert_eq!(asked.await, a.serves()[..1]);
}

async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context).is_pending())).await
}

/// Of many that wait each gets one: who was woken wakes the next, also when it gives up.
#[tokio::test(flavor = "multi_thread")]
async fn all_who_wait_are_served() {
    let (world, a, b) = two().await;
    let mut polls = JoinSet::new();
    for n in 0..12 {
        let (world, node) = (world.clone(), if n % 2 == 0 { a.node.clone() } else { b.node.clone() });
        polls.spawn(async move { world.poll(&node, LONG).await });
    }
    // Some that go away before they get anything.
    for _ in 0..4 {
        let mut gone = world.search(&a.node, LONG);
        assert!(tokio::time::timeout(Duration::ZERO, gone.next()).await.is_err() || gone.next().await != Step::Over);
    }
    for n in 0..12 {
        start_at(&world, &a.node, 1 + n % 4).await;
    }
    let found: BTreeSet<u64> = polls.join_all().await.into_iter().flatten().collect();
    assert_eq!(found.len(), 12);
}

/// L1.4: under a key the same jobs come again, wherever the first request found them.
#[tokio::test]
async fn a_keyed_poll_is_repeated_from_any_node() {
    let (world, a, b) = two().await;
    start_at(&world, &a.node, 3).await;
    let ask = |node: Node| {
        let world = world.clone();
        async move {
            let poll = keyed("poll", request(activate()));
            let home = wf_cluster::route::home(&poll, Partitions::of(4));
            let mut search = node.search(queue(), home, Duration::ZERO);
            while let Step::Look(partition) = search.next().await {
                let answered = world.ask_at(&node, partition, poll.clone()).await.unwrap();
                if !keys_in(&answered).is_empty() {
                    return answered;
                }
                search.found_none();
            }
            panic!("nothing is found")
        }
    };
    let first = ask(a.node.clone()).await;
    assert!(!first.replayed);
    for node in [&a.node, &b.node] {
        let again = ask(node.clone()).await;
        assert_eq!((again.replayed, text(&again)), (true, text(&first)));
    }
}

/// What was found empty is not looked at again before something is heard of it.
#[tokio::test]
async fn empty_partitions_are_remembered() {
    let (world, a, _b) = two().await;
    assert!(world.poll(&a.node, Duration::ZERO).await.is_empty());
    let loads = a.handle.counts().loads;
    let mut search = world.search(&a.node, Duration::ZERO);
    assert_eq!(search.next().await, Step::Over);
    assert_eq!(a.handle.counts().loads, loads);
    let own = a.serves()[0];
    start_at(&world, &a.node, own).await;
    let mut search = world.search(&a.node, Duration::ZERO);
    assert_eq!(search.next().await, Step::Look(own));
}
