//! Messages: ids, time to live, order, once per process, starts. Numbers are those of the acceptance list.

use expect_test::expect;
use wf_core::rows::ScopeState;
use wf_core::{Outcome, Row};

use crate::common::{DEDUP_MS, World};

/// Waits for `pay` with its `order` as the key.
const WAITING: &str = "
    start s -> r
    receive r msg=pay key==order -> e
    end e";

/// Beside a task, as often as it comes.
const BESIDE: &str = "
    start s -> a
    job a -> e
    boundary b on=a msg=note key==order nonint -> side
    job side -> f
    end f
    end e";

/// Started by `go`.
const STARTED: &str = "
    start s msg=go -> a
    job a -> e
    end e";

fn published(outcome: Outcome) -> (u64, bool, bool, usize) {
    match outcome {
        Outcome::Published { key, duplicate, misuse, correlated } => (key, duplicate, misuse, correlated.len()),
        other => panic!("{other:?}"),
    }
}

/// L5.7, cases #1 to #3: (name, correlation key, id) of a second message, whether it is a repeat, and one of other content.
#[test]
fn a_message_id_is_received_once() {
    let rows = [
        ("pay", "7", Some("m-1"), "", true, false),
        ("pay", "8", Some("m-1"), "", true, true),
        ("pay", "7", Some("m-1"), "x=1", true, true),
        ("pay", "7", Some("m-2"), "", false, false),
        ("bill", "7", Some("m-1"), "", false, false),
        ("pay", "7", Some(""), "", false, false),
        ("pay", "7", None, "", false, false),
    ];
    for (name, key, id, variables, is_repeat, is_misuse) in rows {
        let mut world = World::with(&[("p", WAITING)]);
        let (first, ..) = published(world.publish_id("pay", "7", Some("m-1"), 0, ""));
        world.start("p", "order=7");
        let (second, duplicate, misuse, reached) = published(world.publish_id(name, key, id, 0, variables));
        let case = format!("{name} {key} {id:?}");
        assert_eq!((duplicate, misuse, second == first), (is_repeat, is_misuse, is_repeat), "{case}");
        assert_eq!(reached == 1, !is_repeat && name == "pay", "{case}");
    }
}

/// Case #3: the window is the id's own, whatever the time to live; swept or not.
#[test]
fn a_message_id_is_forgotten_after_its_window() {
    let mut world = World::with(&[("p", WAITING)]);
    let (first, ..) = published(world.publish_id("pay", "7", Some("m-1"), 10, ""));
    world.advance(DEDUP_MS - 1);
    assert_eq!(published(world.publish_id("pay", "7", Some("m-1"), 0, "")), (first, true, false, 0));
    world.advance(1);
    let (second, duplicate, ..) = published(world.publish_id("pay", "7", Some("m-1"), 0, ""));
    assert!(!duplicate && second != first);
}

/// An empty id is none: two of them are two messages, and neither is remembered.
#[test]
fn an_empty_message_id_is_none() {
    let mut world = World::with(&[("p", WAITING)]);
    let (first, ..) = published(world.publish_id("pay", "7", Some(""), 0, ""));
    let (second, duplicate, ..) = published(world.publish_id("pay", "7", Some(""), 0, ""));
    assert!(!duplicate && second != first);
    assert_eq!(world.count(|row| matches!(row, Row::MessageId(_))), 0);
}

/// Case #4: one of two waiting instances, the older, across versions; but every process.
#[test]
fn once_per_process_across_versions() {
    let mut world = World::with(&[("p", WAITING), ("q", WAITING)]);
    let old = world.start("p", "order=7");
    world.deploy_model("p", &format!("{WAITING}\n task unused"));
    let new = world.start("p", "order=7");
    let other = world.start("q", "order=\"7\"");
    assert_eq!(world.publish("pay", "7", 0, ""), 2);
    assert_eq!(
        [old, new, other].map(|key| world.state(key)),
        [ScopeState::Completed, ScopeState::Active, ScopeState::Completed]
    );
    // Buffered, it goes to the one that is left, and never to a third instance of the same process.
    assert_eq!(world.publish("pay", "7", 1_000, ""), 1);
    assert_eq!(world.state(new), ScopeState::Completed);
    let third = world.start("p", "order=7");
    assert_eq!(world.state(third), ScopeState::Active);
}

/// Case #5: first published, first taken; one by each subscription.
#[test]
fn buffered_in_order() {
    let mut world = World::with(&[("p", WAITING)]);
    for number in 1..=2 {
        assert_eq!(world.publish("pay", "7", 1_000, &format!("n={number}")), 0);
    }
    let takers = [1, 2, 3].map(|_| world.start("p", "order=7"));
    assert_eq!(takers.map(|key| world.variables(key)), ["{n:1,order:7}", "{n:2,order:7}", "{order:7}"]);
}

/// Case #6: (time to live, when the instance comes, whether the message was swept, whether it is reached).
#[test]
fn time_to_live() {
    for (ttl_ms, wait_ms, is_swept, is_reached) in
        [(0, 0, false, false), (100, 99, true, true), (100, 100, false, false), (100, 100, true, false)]
    {
        let mut world = World::with(&[("p", WAITING)]);
        world.publish("pay", "7", ttl_ms, "");
        match is_swept {
            true => world.advance(wait_ms),
            false => world.now += wait_ms,
        }
        let instance = world.start("p", "order=7");
        let is_completed = world.state(instance) == ScopeState::Completed;
        assert_eq!(is_completed, is_reached, "{ttl_ms} {wait_ms} {is_swept}");
    }
}

/// Case #7: one message, one side path; two messages, two; buffered or not.
#[test]
fn a_boundary_event_beside_takes_each_message_once() {
    let mut world = World::with(&[("p", BESIDE)]);
    world.publish("note", "7", 1_000, "n=1");
    world.publish("note", "7", 1_000, "n=2");
    world.start("p", "order=7");
    assert_eq!(world.publish("note", "7", 1_000, "n=3"), 1);
    assert_eq!(world.activate("side", "w", 10).len(), 3);
    // A second instance of the process gets none of them.
    world.start("p", "order=7");
    assert_eq!(world.activate("side", "w", 10).len(), 0);
}

/// Case #8: a subscription whose scope is being terminated rejects it; the next one gets it.
#[test]
fn what_one_rejects_the_next_one_gets() {
    let mut world = World::with(&[("p", BESIDE)]);
    (world.is_cold_too, world.is_checked) = (false, false);
    let first = world.start("p", "order=7");
    (0..600).for_each(|_| assert_eq!(world.publish("note", "7", 0, ""), 1));
    let second = world.start("p", "order=7");
    world.cancel(first).unwrap();
    assert_eq!(world.state(first), ScopeState::Terminating);
    let reached = world.publish_id("note", "7", None, 0, "");
    assert!(matches!(reached, Outcome::Published { correlated, .. } if correlated == [second]));
}

/// Cases #9 and #10: one live instance per key, of any version; the buffered message starts the next.
#[test]
fn started_once_per_key() {
    for is_canceled in [false, true] {
        let mut world = World::with(&[("p", STARTED)]);
        assert_eq!(world.publish("go", "7", 0, "n=1"), 1);
        world.deploy_model("p", &format!("{STARTED}\n task unused"));
        assert_eq!(world.publish("go", "7", 1_000, "n=2"), 0);
        assert_eq!(world.publish("go", "7", 0, "n=3"), 0);
        assert_eq!(world.publish("go", "8", 0, "n=4"), 1);
        world.trace();
        let first = world.job("a").job;
        match is_canceled {
            false => drop(world.complete(&first, "").unwrap()),
            true => drop(world.cancel(first.root).unwrap()),
        }
        let next = world.activate("a", "w", 10);
        let started: Vec<String> = next.iter().map(|job| world.variables(job.job.root)).collect();
        assert_eq!(started, ["{n:4}", "{n:2}"], "{is_canceled}");
        let version = world.scope(next[1].job.root).instance.as_ref().unwrap().version;
        assert_eq!(version, 2);
    }
}

/// Without a key nothing ties one message to another: each starts an instance.
#[test]
fn started_each_time_without_a_key() {
    let mut world = World::with(&[("p", STARTED)]);
    assert_eq!([1, 2].map(|_| world.publish("go", "", 0, "")), [1, 1]);
}

/// A version with another start message: the key is released to what the latest version waits for.
#[test]
fn the_next_instance_is_one_of_the_latest_version() {
    let mut world = World::with(&[("p", STARTED)]);
    world.publish("go", "7", 0, "");
    world.deploy_model("p", &STARTED.replace("msg=go", "msg=run"));
    assert_eq!(world.publish("run", "7", 1_000, "n=2"), 0);
    assert_eq!(world.publish("go", "8", 0, ""), 0);
    world.work("a", "");
    let next = world.job("a").job;
    assert_eq!(world.variables(next.root), "{n:2}");
}

/// Case #11: what started an instance does not reach that instance again.
#[test]
fn a_start_message_is_not_taken_by_its_own_instance() {
    let mut world = World::with(&[(
        "p",
        "start s msg=go -> r
         receive r msg=go key==order -> e
         end e",
    )]);
    world.publish("go", "7", 1_000, "order=7");
    expect![[r#"
        message.published go '7'
        instance.started p v1 {order:7}
        element.completed s
        subscription.opened go '7'
        element.activated r
    "#]]
    .assert_eq(&world.trace());
}

/// The answer lists whom this message reached, not whom another message reached on the way.
#[test]
fn the_answer_lists_its_own_instances_only() {
    let mut world = World::with(&[
        (
            "p",
            "start s -> r
         receive r msg=one key==order -> t
         receive t msg=two key==order -> e
         end e",
        ),
        (
            "q",
            "start s -> t
         receive t msg=two key==order -> e
         end e",
        ),
    ]);
    let first = world.start("p", "order=7");
    world.publish("two", "7", 1_000, "");
    let outcome = world.publish_id("one", "7", None, 0, "");
    assert!(matches!(outcome, Outcome::Published { correlated, .. } if correlated == [first]));
}
