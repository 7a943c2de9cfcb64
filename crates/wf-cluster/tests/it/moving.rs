//! Partitions that change hands: nothing is lost, nothing is done twice, and who was fenced acknowledges nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinSet;
use wf_engine::Refusal;

use crate::support::*;

const CLIENTS: usize = 8;

#[tokio::test]
async fn a_request_finds_its_partition_from_any_node() {
    let world = World::new(4);
    let (mut a, mut b) = (world.member("a").await, world.member("b").await);
    world.settle(&mut [&mut a, &mut b]).await;
    world.deploy(&a.node).await;
    for (n, node) in [&a.node, &b.node, &a.node, &b.node].into_iter().enumerate() {
        let partition = n as u16 + 1;
        let started = world.ask_at(node, partition, request(start())).await.unwrap();
        assert_eq!(wf_core::ids::partition_of(keys_in(&started)[0]), partition);
    }
}

/// P6: an owner that was fenced never acknowledges anything, and its successor serves.
#[tokio::test]
async fn a_fenced_owner_acknowledges_nothing() {
    let world = World::new(2);
    let (mut a, mut b) = (world.member("a").await, world.member("b").await);
    world.settle(&mut [&mut a, &mut b]).await;
    world.deploy(&a.node).await;
    let partition = b.serves()[0];
    let fenced = b.node.engines()[0].1.clone();
    world.pass(LEASE_MS);
    world.settle(&mut [&mut a]).await;
    assert_eq!(a.serves(), [1, 2]);
    // It does not know yet: its table says that the partition is its own.
    let before = world.instances();
    let refused = fenced.submit(keyed("k", request(start()))).await;
    assert!(matches!(&refused, Err(Refusal::Unavailable { .. })), "{refused:?}");
    let stale = fenced.submit(request(activate())).await;
    assert!(matches!(&stale, Err(Refusal::Unavailable { .. })), "{stale:?}");
    assert_eq!(world.instances(), before);
    // A request that was caught in it goes on to the successor as soon as that is known.
    let node = b.node.clone();
    let caught = world.ask_at(&node, partition, keyed("k", request(start())));
    let (answered, ()) = tokio::join!(caught, b.look());
    assert!(!answered.unwrap().replayed);
    assert_eq!(world.instances(), before + 1);
    let again = world.ask_at(&a.node, partition, keyed("k", request(start()))).await.unwrap();
    assert!(again.replayed);
}

/// Clients of both nodes start instances under keys while partitions go to and fro.
#[tokio::test(flavor = "multi_thread")]
async fn a_hand_over_under_load_loses_nothing_and_doubles_nothing() {
    let world = Arc::new(World::new(6));
    let (mut a, mut b) = (world.member("a").await, world.member("b").await);
    a.look().await;
    world.deploy(&a.node).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (world, is_over) = (world.clone(), is_over.clone());
        let node = if client % 2 == 0 { a.node.clone() } else { b.node.clone() };
        clients.spawn(async move {
            let mut n = 0;
            while !is_over.load(Ordering::Acquire) {
                n += 1;
                let partition = 1 + ((client + n) % 6) as u16;
                let keyed = || keyed(&format!("{client}-{n}"), request(start()));
                let first = world.ask_at(&node, partition, keyed()).await.unwrap();
                let again = world.ask_at(&node, partition, keyed()).await.unwrap();
                assert_eq!((first.replayed, again.replayed), (false, true));
                assert_eq!(text(&first), text(&again));
            }
            n
        });
    }
    for _ in 0..3 {
        world.settle(&mut [&mut a, &mut b]).await;
        assert_eq!((a.serves().len(), b.serves().len()), (3, 3));
        let mut guest = world.member("guest").await;
        world.settle(&mut [&mut a, &mut b, &mut guest]).await;
        assert_eq!((a.serves().len(), b.serves().len(), guest.serves().len()), (2, 2, 2));
        guest.supervisor.hand_over().await;
    }
    world.settle(&mut [&mut a, &mut b]).await;
    is_over.store(true, Ordering::Release);
    let asked: usize = clients.join_all().await.into_iter().sum();
    assert!(asked > 0);
    assert_eq!(world.instances(), asked);
}

/// Nobody owns it: a request that waits gets the next owner; one that does not is told that nothing was done.
#[tokio::test]
async fn a_partition_without_an_owner_is_waited_for() {
    let world = World::new(2);
    let mut a = world.member("a").await;
    a.look().await;
    world.deploy(&a.node).await;
    a.supervisor.hand_over().await;
    let refused = a.node.submit(1, request(start()), &a.node.impatience()).await;
    assert!(matches!(&refused, Err(Refusal::Unavailable { reason }) if reason.contains("partition 1")), "{refused:?}");
    let mut b = world.member("b").await;
    let node = b.node.clone();
    let late = world.ask_at(&node, 1, request(start()));
    let (answered, ()) = tokio::join!(late, b.look());
    assert!(answered.is_ok(), "{answered:?}");
}
