//! Fair shares: who takes and who gives, as a table and with real nodes.

use std::collections::BTreeSet;

use wf_cluster::ownership::{Plan, View, plan};
use wf_store::{Members, Node, NodeId, Ownership};

use crate::support::*;

fn id(name: char) -> NodeId {
    [name as u8; 16]
}

/// `"aabb.-"`: who owns partition 1, 2, …; a dot is nobody.
fn members(living: &str, owners: &str) -> Members {
    let node = |name: char| Node { id: id(name), name: name.to_string(), ..Node::default() };
    let row = |(partition, owner): (u16, char)| Ownership {
        partition,
        epoch: 1,
        position: 0,
        owner: (owner != '.').then(|| id(owner)),
    };
    Members {
        nodes: living.chars().map(node).collect(),
        partitions: (1..).zip(owners.chars()).map(row).collect(),
        now: 0,
    }
}

#[test]
fn shares_are_fair() {
    // Me, the living, who owns what; what I take, what I give.
    type Case<'c> = (char, &'c str, &'c str, &'c [u16], &'c [u16]);
    let table: &[Case<'_>] = &[
        ('a', "a", "........", &[1, 2, 3, 4, 5, 6, 7, 8], &[]),
        ('a', "ab", "........", &[1, 2, 3, 4], &[]),
        ('b', "ab", "........", &[5, 6, 7, 8], &[]),
        ('a', "ab", "aaaaaaaa", &[], &[5, 6, 7, 8]),
        ('b', "ab", "aaaaaaaa", &[], &[]),
        ('b', "ab", "aaaa....", &[5, 6, 7, 8], &[]),
        // While something is free nobody gives.
        ('a', "ab", "aaaaaa..", &[], &[]),
        // Three nodes: the two with most keep the odd ones.
        ('a', "abc", "aaaabbbb", &[], &[4]),
        ('b', "abc", "aaaabbbb", &[], &[8]),
        ('c', "abc", "aaa.bbb.", &[4, 8], &[]),
        ('a', "abc", "aaabbbcc", &[], &[]),
        // More nodes than partitions: nobody lacks anything.
        ('c', "abc", "ab", &[], &[]),
        ('a', "abc", "aa", &[], &[]),
        // One that is not in the list does nothing.
        ('d', "abc", "........", &[], &[]),
    ];
    for (me, living, owners, take, give) in table {
        let members = members(living, owners);
        let mine: BTreeSet<u16> =
            members.partitions.iter().filter(|row| row.owner == Some(id(*me))).map(|row| row.partition).collect();
        let orphans = BTreeSet::new();
        let view =
            View { me: id(*me), members: &members, mine: &mine, orphans: &orphans, may_take: true, may_give: true };
        let mut found = plan(&view);
        found.take.sort_unstable();
        found.give.sort_unstable();
        assert_eq!(
            found,
            Plan { take: take.to_vec(), give: give.to_vec(), release: vec![] },
            "{me} among {living}: {owners}"
        );
        let view = View { may_take: false, may_give: false, ..view };
        assert_eq!(plan(&view), Plan::default(), "{me} may do nothing");
    }
}

/// Whoever's turn it is does not take it: anybody does.
#[test]
fn an_orphan_is_taken_by_whoever_sees_it() {
    let members = members("ab", "aaaa....");
    let (mine, orphans) = (BTreeSet::from([1, 2, 3, 4]), BTreeSet::from([6]));
    let view = View { me: id('a'), members: &members, mine: &mine, orphans: &orphans, may_take: true, may_give: true };
    assert_eq!(plan(&view), Plan { take: vec![6], ..Plan::default() });
}

/// A node that could not see the store for a while has stopped its engines, and the list still says that it owns theirs. It
/// takes them up again as far as its share goes, and lets go of the rest: nobody else could take them.
#[test]
fn own_partitions_without_an_engine_are_taken_up_or_let_go() {
    let orphans = BTreeSet::new();
    for (owners, mine, take, release) in [
        ("aaaabbbb", vec![], vec![1, 2, 3, 4], vec![]),
        ("aaaabbbb", vec![1, 2], vec![3, 4], vec![]),
        // It has taken the other one's meanwhile, so that there is no room for its own.
        ("aaaaaaaa", vec![5, 6, 7, 8], vec![], vec![1, 2, 3, 4]),
    ] {
        let members = members("ab", owners);
        let mine: BTreeSet<u16> = mine.into_iter().collect();
        let view =
            View { me: id('a'), members: &members, mine: &mine, orphans: &orphans, may_take: true, may_give: true };
        let mut found = plan(&view);
        found.take.sort_unstable();
        assert_eq!(found, Plan { take, give: vec![], release }, "{owners}, {mine:?}");
    }
}

#[tokio::test]
async fn nodes_that_join_and_leave_get_and_give_their_shares() {
    let world = World::new(8);
    let mut a = world.member("a").await;
    a.look().await;
    assert_eq!(a.serves().len(), 8, "alone it takes all at its first look");
    let mut b = world.member("b").await;
    world.settle(&mut [&mut a, &mut b]).await;
    assert_eq!((a.serves().len(), b.serves().len()), (4, 4));
    let mut c = world.member("c").await;
    world.settle(&mut [&mut a, &mut b, &mut c]).await;
    let mut shares = [a.serves().len(), b.serves().len(), c.serves().len()];
    shares.sort_unstable();
    assert_eq!(shares, [2, 3, 3]);
    // What the table says is what is served, by one node each.
    for member in [&a, &b, &c] {
        assert_eq!(member.owned().await, member.serves());
    }
    c.supervisor.hand_over().await;
    assert!(c.serves().is_empty());
    world.settle(&mut [&mut a, &mut b]).await;
    assert_eq!((a.serves().len(), b.serves().len()), (4, 4));
    assert_eq!(a.node.members().await.unwrap().nodes.len(), 2, "it left the list");
}

#[tokio::test]
async fn a_crashed_nodes_partitions_are_taken_when_its_lease_is_over() {
    let world = World::new(8);
    let (mut a, mut b) = (world.member("a").await, world.member("b").await);
    world.settle(&mut [&mut a, &mut b]).await;
    // From now on b says nothing.
    world.pass(LEASE_MS - 1);
    a.look().await;
    assert_eq!(a.serves().len(), 4, "its lease still lasts");
    world.pass(1);
    world.settle(&mut [&mut a]).await;
    assert_eq!(a.serves().len(), 8);
    // It comes back to itself: what it has is lost, it enters again and gets its share.
    world.settle(&mut [&mut b, &mut a]).await;
    assert_eq!((a.serves().len(), b.serves().len()), (4, 4));
}

/// Who cannot see the store for longer than its lease serves nothing, so that nobody waits there for answers that would be
/// fenced; it takes its own again when it sees.
#[tokio::test]
async fn a_node_that_sees_nothing_serves_nothing_after_its_lease() {
    let world = World::new(2);
    let mut a = world.anxious_member("a").await;
    world.settle(&mut [&mut a]).await;
    assert_eq!(a.serves().len(), 2);
    a.handle.cut_off(true);
    a.look().await;
    assert_eq!(a.serves().len(), 0);
    a.handle.cut_off(false);
    world.settle(&mut [&mut a]).await;
    assert_eq!(a.serves().len(), 2);
}

/// Another run of the same name takes its partitions back at once.
#[tokio::test]
async fn a_restarted_node_takes_its_own_back() {
    let world = World::new(4);
    let (mut a, mut b) = (world.member("a").await, world.member("b").await);
    world.settle(&mut [&mut a, &mut b]).await;
    let before = b.owned().await;
    let mut again = world.member("b").await;
    again.look().await;
    assert_eq!(again.serves(), before);
    a.look().await;
    assert_eq!(a.serves().len(), 2);
}

#[tokio::test]
async fn a_wrong_clock_takes_nothing_and_says_so() {
    let world = World::new(4);
    let (mut a, mut wrong) = (world.member("a").await, world.member_with_clock("wrong", -1_001).await);
    world.settle(&mut [&mut wrong, &mut a]).await;
    assert_eq!((a.serves().len(), wrong.serves().len()), (4, 0));
    let readiness = wrong.node.readiness();
    assert!(!readiness.is_ready && readiness.reason.unwrap().contains("clock"));
    assert!(a.node.readiness().is_ready);
    let (mut right, _) = (world.member_with_clock("right", 1_000).await, wrong);
    world.settle(&mut [&mut right, &mut a]).await;
    assert_eq!((a.serves().len(), right.serves().len()), (2, 2));
}

/// More nodes than partitions: who owns nothing is ready as long as others do.
#[tokio::test]
async fn a_node_without_partitions_relies_on_the_owners() {
    let world = World::new(1);
    let (mut a, mut b) = (world.member("a").await, world.member("b").await);
    assert!(!a.node.readiness().is_ready, "it has not joined");
    world.settle(&mut [&mut a, &mut b]).await;
    let readiness = b.node.readiness();
    assert!(readiness.is_ready, "{readiness:?}");
    assert_eq!(readiness.relies_on.len(), 1);
    assert_eq!(readiness.partitions[0].state, "owned by a");
    assert_eq!(a.node.readiness().partitions[0].state, "open");
}
