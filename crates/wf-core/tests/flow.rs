//! Tokens: gateways, events, sub-processes, ends. Numbers are those of the acceptance list.

use expect_test::expect;
use wf_core::rows::ScopeState;
use wf_core::{Command, Outcome, Rejection};

use crate::common::World;

fn world(lines: &str) -> World {
    World::with(&[("p", lines)])
}

/// Case #29: two tokens on one flow do not fire the join; the second waits for the next round.
#[test]
fn a_join_counts_flows() {
    let mut world = world(
        "start s -> g
         and g -> a, b, c
         job a -> m
         job b -> m
         xor m -> j
         job c -> j
         and j -> d
         job d",
    );
    let instance = world.start("p", "");
    world.work("a", "");
    world.work("b", "");
    assert_eq!(world.activate("d", "w", 9).len(), 0);
    assert_eq!(world.scope(instance).joins.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [2]);
    world.work("c", "");
    world.work("d", "");
    // The token left over waits for ever; it keeps the instance alive.
    assert_eq!((world.state(instance), world.scope(instance).active), (ScopeState::Active, 1));
    world.cancel(instance).unwrap();
    assert_eq!(world.state(instance), ScopeState::Canceled);
}

/// A join in a loop: each round needs all its flows again.
#[test]
fn a_join_fires_once_a_round() {
    let mut world = world(
        "start s -> x
         xor x -> g
         and g -> a, b
         job a -> j
         job b -> j
         and j -> y
         xor y -> x if n < 2, default e
         end e",
    );
    let instance = world.start("p", "n=0");
    for round in 1..=2 {
        world.work("b", &format!("n={round}"));
        assert_eq!(world.activate("b", "w", 1).len(), 0, "round {round}");
        world.work("a", "");
    }
    assert_eq!(world.state(instance), ScopeState::Completed);
}

/// Several flows out of an activity are taken together; a path without end event ends by itself.
#[test]
fn an_implicit_fork_and_end() {
    let mut world = world(
        "start s -> a
         job a -> b, c
         job b
         task c",
    );
    let instance = world.start("p", "");
    world.work("a", "");
    assert_eq!(world.state(instance), ScopeState::Active);
    world.work("b", "");
    assert_eq!(world.state(instance), ScopeState::Completed);
    expect![[r#"
        instance.started p v1 {}
        element.completed s
        job.created a a
        job.activated a w
        job.completed a
        job.created b b
        element.completed c
        job.activated b w
        job.completed b
        instance.completed p
    "#]]
    .assert_eq(&world.trace());
}

/// Conditions in the order of the file, the default last and not evaluated.
#[test]
fn an_exclusive_gateway_takes_the_first() {
    let lines = "
        start s -> x
        xor x -> a if n > 1, b if n > 0, default c
        job a
        job b
        job c";
    for (n, taken) in [(2, "a"), (1, "b"), (0, "c")] {
        let mut world = world(lines);
        world.start("p", &format!("n={n}"));
        world.work(taken, "");
    }
}

/// Case #31: nothing holds, or is no boolean: an incident; resolved when the variables are right.
#[test]
fn an_exclusive_gateway_without_a_match() {
    for broken in ["n=0", "n=null", "n=\"a\"", ""] {
        let mut world = world(
            "start s -> x
             xor x -> a if n > 1, b if n > 5
             job a -> e
             job b -> e
             end e",
        );
        let instance = world.start("p", broken);
        assert_eq!(world.incidents()[0].kind.name(), "CONDITION_ERROR", "{broken}");
        let first = world.incidents()[0].key;
        world.resolve(None).unwrap();
        assert_ne!(world.incidents()[0].key, first, "{broken}: tried again, an incident of its own");
        world.set(instance, None, "n=2").unwrap();
        world.resolve(None).unwrap();
        world.work("a", "");
        assert_eq!(world.state(instance), ScopeState::Completed);
    }
}

/// Case #32: the first event wins; equal timers and messages still give one branch.
#[test]
fn an_event_gateway_takes_one_branch() {
    let lines = "
        start s -> g
        events g -> m, n, t, u
        catch m msg=one key=k -> a
        catch n msg=two key=k -> b
        catch t timer=PT10S -> c
        catch u timer=PT10S -> d
        job a
        job b
        job c
        job d";
    let run = |script: &dyn Fn(&mut World)| {
        let mut world = world(lines);
        let instance = world.start("p", "");
        script(&mut world);
        world.advance(60_000);
        world.publish("one", "k", 0, "");
        let taken: Vec<&str> =
            ["a", "b", "c", "d"].into_iter().filter(|job| !world.activate(job, "w", 9).is_empty()).collect();
        assert_eq!((taken.len(), world.scope(instance).active), (1, 1));
        taken[0].to_owned()
    };
    assert_eq!(run(&|world| drop(world.publish_id("one", "k", None, 0, ""))), "a");
    assert_eq!(run(&|world| drop(world.publish_id("two", "k", None, 0, ""))), "b");
    assert_eq!(run(&|world| world.advance(10_000)), "c");
    // A late message and a due timer: what comes first in the log.
    assert_eq!(
        run(&|world| {
            world.now += 10_000;
            world.publish("two", "k", 0, "");
        }),
        "b"
    );
}

/// Case #32: both messages are buffered; the gateway takes one and the other stays.
#[test]
fn an_event_gateway_takes_one_buffered_message() {
    let mut world = world(
        "start s -> g
         events g -> m, n
         catch m msg=one key=k -> e
         catch n msg=two key=k -> e
         end e",
    );
    world.publish("two", "k", 1_000, "x=2");
    world.publish("one", "k", 1_000, "x=1");
    world.trace();
    world.start("p", "");
    expect![[r#"
        instance.started p v1 {}
        element.completed s
        subscription.opened one 'k'
        subscription.opened two 'k'
        element.activated g
        message.correlated one to m
        subscription.closed one
        subscription.closed two
        element.completed g
        variables.set {x:1}
        element.completed m
        element.completed e
        instance.completed p
    "#]]
    .assert_eq(&world.trace());
    // The message that was left over is taken by the next instance.
    let next = world.start("p", "");
    assert_eq!(world.variables(next), "{x:2}");
}

/// Case #33: the subtree ends, then the path starts; nested twice, with a timer at each level.
#[test]
fn an_interrupted_sub_process_ends_first() {
    let lines = "
        start s -> outer
        sub outer -> e {
        start s1 -> inner
        sub inner -> e1 {
        start s2 -> g
        and g -> a, r
        job a
        receive r msg=go key=k
        }
        boundary b1 on=inner timer=PT20S -> late
        job late -> e1
        end e1
        }
        boundary b on=outer timer=PT10S -> over
        job over -> e
        end e";
    let mut outer_first = world(lines);
    let instance = outer_first.start("p", "");
    outer_first.trace();
    outer_first.advance(10_000);
    expect![[r#"
        timer.fired b
        job.canceled a
        element.terminated a
        subscription.closed go
        element.terminated r
        timer.canceled b1
        element.terminated inner
        element.terminated outer
        element.completed b
        job.created over over
    "#]]
    .assert_eq(&outer_first.trace());
    assert_eq!(outer_first.publish("go", "k", 0, ""), 0);
    outer_first.work("over", "");
    assert_eq!(outer_first.state(instance), ScopeState::Completed);

    let mut inner_first = world(&lines.replace("PT10S", "PT30S"));
    let instance = inner_first.start("p", "");
    inner_first.trace();
    inner_first.advance(20_000);
    expect![[r#"
        timer.fired b1
        job.canceled a
        element.terminated a
        subscription.closed go
        element.terminated r
        element.terminated inner
        element.completed b1
        job.created late late
    "#]]
    .assert_eq(&inner_first.trace());
    inner_first.work("late", "");
    assert_eq!(inner_first.state(instance), ScopeState::Completed);
}

/// A boundary event beside a sub-process: the sub-process goes on, and the instance waits for both paths.
#[test]
fn beside_a_sub_process() {
    let mut world = world(
        "start s -> c
         sub c -> e {
         start s1 -> a
         job a
         }
         boundary b on=c msg=note key=k nonint -> side
         job side
         end e",
    );
    let instance = world.start("p", "");
    assert_eq!([1, 2].map(|_| world.publish("note", "k", 0, "")), [1, 1]);
    world.work("a", "");
    assert_eq!(world.publish("note", "k", 0, ""), 0);
    world.work("side", "");
    assert_eq!(world.state(instance), ScopeState::Active);
    world.work("side", "");
    assert_eq!(world.state(instance), ScopeState::Completed);
}

/// Case #39: only its own scope ends; the instance completes, it is not canceled.
#[test]
fn a_terminate_end() {
    let mut inner = world(
        "start s -> g
         and g -> c, b
         sub c -> e {
         start s1 -> g1
         and g1 -> a, a1
         job a -> t
         job a1
         end t terminate
         }
         job b -> e
         end e",
    );
    let instance = inner.start("p", "");
    inner.trace();
    inner.work("a", "");
    expect![[r#"
        job.activated a w
        job.completed a
        element.completed t
        job.canceled a1
        element.terminated a1
        element.completed c
        element.completed e
    "#]]
    .assert_eq(&inner.trace());
    inner.work("b", "");
    assert_eq!(inner.state(instance), ScopeState::Completed);

    let mut root = world(
        "start s -> g
         and g -> a, b, c
         job a -> t
         end t terminate
         job b
         sub c {
         start s1 -> r
         receive r msg=go key=k
         }",
    );
    let instance = root.start("p", "");
    root.trace();
    root.work("a", "");
    expect![[r#"
        job.activated a w
        job.completed a
        element.completed t
        job.canceled b
        element.terminated b
        subscription.closed go
        element.terminated r
        element.terminated c
        instance.completed p
    "#]]
    .assert_eq(&root.trace());
    assert_eq!(root.state(instance), ScopeState::Completed);
}

/// Cases #28 and #36: once; what falls due later changes nothing.
#[test]
fn cancel() {
    let mut world = world(
        "start s -> g
         and g -> a, t, c
         job a
         catch t timer=PT10S
         sub c {
         start s1 -> r
         receive r msg=go key=k
         }",
    );
    let instance = world.start("p", "");
    let timer = world.rows.values().find_map(|row| match row {
        wf_core::Row::Timer(timer) => Some(timer.clone()),
        _ => None,
    });
    let timer = timer.unwrap();
    world.trace();
    assert_eq!(world.cancel(instance), Ok(Outcome::Canceled { instance }));
    expect![[r#"
        job.canceled a
        element.terminated a
        timer.canceled t
        element.terminated t
        subscription.closed go
        element.terminated r
        element.terminated c
        instance.canceled p
    "#]]
    .assert_eq(&world.trace());
    assert_eq!(world.cancel(instance), Err(Rejection::InstanceFinished));
    assert_eq!(world.set(instance, None, "x=1"), Err(Rejection::InstanceFinished));
    world.now += 10_000;
    assert!(!world.own(Command::FireTimer { timer: timer.key, due: timer.due }));
    world.tenant = "other".into();
    assert!(matches!(world.cancel(instance), Err(Rejection::NotFound(_))));
}

/// Two errors of one sub-process in one command: the first wins, and nothing else of it happens.
#[test]
fn a_stopped_scope_takes_no_more_steps() {
    let mut world = world(
        "start s -> c
         sub c -> e {
         start s1 -> a
         job a -> inner, t
         task t -> x1
         end x1 error=first
         sub inner {
         start s2 -> x2
         end x2 error=second
         }
         }
         boundary b1 on=c error=first -> one
         boundary b2 on=c error=second -> two
         job one -> e
         job two -> e
         end e",
    );
    let instance = world.start("p", "");
    world.trace();
    world.work("a", "");
    expect![[r#"
        job.activated a w
        job.completed a
        element.activated inner
        element.completed t
        element.completed s2
        element.completed x1
        element.terminated inner
        element.terminated c
        element.completed b1
        job.created one one
    "#]]
    .assert_eq(&world.trace());
    world.work("one", "");
    assert_eq!(world.state(instance), ScopeState::Completed);
}
