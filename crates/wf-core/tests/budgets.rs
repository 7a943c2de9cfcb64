//! More work than one command may do: loops, fan-outs, terminations in slices. What waits between the slices.

use wf_core::rows::{AttachedKind, JobState, Phase, ScopeState, Work};
use wf_core::{Command, Key, Row, RowId};

use crate::common::{World, model};

/// Without checks after every command: they are made once at the end.
fn big(lines: &str) -> World {
    let mut world = World::with(&[("p", lines)]);
    (world.is_cold_too, world.is_checked) = (false, false);
    world
}

const LOOP: &str = "
    start s -> x
    xor x -> y
    xor y -> x if again, default e
    end e";

/// Puts the instance close to its total budget: a million steps are many for a test.
fn age(world: &mut World, instance: Key, steps: u64) {
    let mut root = (*world.scope(instance)).clone();
    let mut own = (**root.instance.as_ref().unwrap()).clone();
    own.steps = steps;
    root.instance = Some(own.into());
    world.replace(RowId::Scope(instance), Some(Row::Scope(root.into())));
}

/// A loop without waiting goes from command to command, and ends in an incident that can be resolved.
#[test]
fn an_endless_loop() {
    let mut world = big(LOOP);
    let instance = world.start("p", "again=true");
    assert!(world.follow_up() && world.follow_up());
    assert_eq!(world.scope(instance).instance.as_ref().unwrap().steps, 3_000);
    age(&mut world, instance, 998_500);
    assert_eq!(world.follow_ups(), 3);
    let incident = world.incidents().remove(0);
    assert_eq!(incident.kind.name(), "STEP_BUDGET_EXCEEDED");
    world.check();
    world.set(instance, None, "again=false").unwrap();
    world.resolve(None).unwrap();
    assert_eq!(world.state(instance), ScopeState::Completed);
    world.check();
}

/// The steps are the instance's, whichever scope the last token of a command was in.
#[test]
fn an_endless_loop_through_a_sub_process() {
    let mut world = big("start s -> c
         sub c -> x {
         start s1 -> e1
         end e1
         }
         xor x -> c if again, default e
         end e");
    let instance = world.start("p", "again=true");
    (0..8).for_each(|_| assert!(world.follow_up()));
    assert_eq!(world.scope(instance).instance.as_ref().unwrap().steps, 9_000);
    world.cancel(instance).unwrap();
    world.follow_ups();
    world.check();
}

/// About a third of the work of one command.
const HARD: &str = "count(for i in 1..50000 return i)";

/// Hard expressions go from command to command like long paths; those of one element cannot be divided.
#[test]
fn hard_expressions() {
    let chain: String = (0..12).map(|n| format!("task t{n} -> t{}\nout r = {HARD}\n", n + 1)).collect();
    let mut world = big(&format!("start s -> t0\n{chain}task t12 -> e\nend e"));
    let instance = world.start("p", "");
    assert_eq!(world.state(instance), ScopeState::Active);
    assert!((2..=5).contains(&world.follow_ups()));
    assert_eq!((world.state(instance), world.incidents().len()), (ScopeState::Completed, 0));

    let outputs: String = (0..20).map(|n| format!("out r{n} = {HARD}\n")).collect();
    let mut world = big(&format!("start s -> t\ntask t -> e\n{outputs}end e"));
    let instance = world.start("p", "");
    let message = &world.incidents()[0].message;
    assert!(message.contains("take more than 4000000 steps together"), "{message}");
    assert_eq!(world.variables(instance), "{}");
    world.check();
}

/// A large variable costs its text where it is read and where it is written, however short the expression.
#[test]
fn copies_of_a_large_variable() {
    let copies = |count: u32| (0..count).map(|n| format!("out r{n} = x\n")).collect::<String>();
    for (count, incidents) in [(3, 0), (20, 1)] {
        let mut world = big(&format!("start s -> t\ntask t -> e\n{}end e", copies(count)));
        world.start("p", &format!("x=\"{}\"", "a".repeat(3_000_000)));
        world.follow_ups();
        assert_eq!(world.incidents().len(), incidents, "{count} copies");
    }
}

/// What is left of a batch after hard mappings is refused item by item, and may be sent again.
#[test]
fn a_batch_of_hard_mappings() {
    use wf_core::outcome::{Outcome, Rejection};
    let mut world = big(&format!("start s -> a\njob a -> e\nout r = {HARD}\nend e"));
    for _ in 0..8 {
        world.start("p", "");
    }
    let mut jobs = world.activate("a", "w", 100);
    for round in 0.. {
        let Ok(Outcome::CompletedMany(results)) = world.complete_many(&jobs) else { panic!() };
        let over: Vec<Key> = results.iter().filter(|(_, result)| result.is_err()).map(|(key, _)| *key).collect();
        assert!(results.iter().all(|(_, result)| matches!(result, Ok(false) | Err(Rejection::OverBudget))));
        assert!(over.len() < jobs.len(), "round {round}");
        jobs.retain(|job| over.contains(&job.job.key));
        if jobs.is_empty() {
            return assert!(round > 0);
        }
    }
}

/// A subscription beside its activity takes thousands of buffered messages, in order and in slices.
#[test]
fn a_flood_of_buffered_messages() {
    let mut world = big("start s -> c
         job c
         boundary more on=c msg=more key=k nonint -> n
         out last = n
         job n");
    (0..2_500).for_each(|n| assert_eq!(world.publish("more", "k", 60_000, &format!("n={n}")), 0));
    let instance = world.start("p", "k=\"k\"");
    assert!(world.jobs(JobState::Ready).len() <= 1_000);
    assert!(world.follow_ups() >= 2);
    assert_eq!(world.jobs(JobState::Ready).len(), 2_501);
    assert!(world.variables(instance).contains("last:2499"));
    world.check();
}

/// Each instance's steps are its own, and counted once: a batch of completions is no loop.
#[test]
fn the_steps_of_a_batch_are_counted_once() {
    let mut world = big("start s -> a
         job a -> t
         task t -> b
         job b");
    let instances: Vec<Key> = (0..300).map(|_| world.start("p", "")).collect();
    let jobs = world.activate("a", "w", 1_000);
    world.complete_many(&jobs).unwrap();
    let steps = |key: &Key| world.scope(*key).instance.as_ref().unwrap().steps;
    assert!(instances.iter().all(|key| steps(key) <= 2), "{:?}", instances.iter().map(steps).max());
    assert_eq!(world.activate("b", "w", 1_000).len(), 300);
}

/// Over the budget a token at a join still counts for its flow.
#[test]
fn a_join_over_the_budget_waits_for_its_flows() {
    let mut world = big("start s -> g
         and g -> a, b
         job a -> j
         job b -> j
         and j -> c
         job c");
    let instance = world.start("p", "");
    age(&mut world, instance, 1_000_000);
    world.work("a", "");
    while !world.incidents().is_empty() {
        world.resolve(None).unwrap();
    }
    assert_eq!(world.activate("c", "w", 1).len(), 0);
    world.work("b", "");
    while !world.incidents().is_empty() {
        world.resolve(None).unwrap();
    }
    world.work("c", "");
    assert_eq!(world.state(instance), ScopeState::Completed);
    world.check();
}

/// A thousand branches, more than one command starts; then all of them come back to one join.
#[test]
fn a_wide_fork_and_join() {
    let names = |separator: &str| (0..1_200).map(|n| format!("t{n}")).collect::<Vec<_>>().join(separator);
    let tasks: String = (0..1_200).map(|n| format!("job t{n} type=t -> j\n")).collect();
    let mut world = big(&format!("start s -> g\nand g -> {}\n{tasks}and j -> e\nend e", names(", ")));
    let instance = world.start("p", "");
    assert_eq!(world.jobs(JobState::Ready).len(), 998);
    world.check();
    assert!(world.follow_ups() >= 1);
    for _ in 0..2 {
        let jobs = world.activate("t", "w", 1_000);
        world.complete_many(&jobs).unwrap();
        world.check();
    }
    world.follow_ups();
    assert_eq!(world.state(instance), ScopeState::Completed);
    world.check();
}

/// 1,100 jobs in a sub-process, made by a boundary event beside a task in it.
const CROWD: &str = "
    start s -> c
    sub c -> e {
    start s1 -> a
    job a
    boundary more on=a msg=more key=k nonint -> b
    job b
    boundary slow on=b timer=PT5S nonint -> n
    job n
    }
    boundary stop on=c msg=stop key=k -> after
    out stopped = by
    boundary late on=c timer=PT60S -> after
    boundary failed on=c error=bad -> after
    job after -> e
    end e";

fn crowd() -> (World, Key) {
    let mut world = big(CROWD);
    let instance = world.start("p", "");
    (0..1_100).for_each(|_| assert_eq!(world.publish("more", "k", 0, ""), 1));
    (world, instance)
}

/// Case #33 in slices: nothing inside is given out, fired or reached; the path starts after the last slice.
#[test]
fn an_interrupting_event_waits_for_the_last_slice() {
    let (mut world, instance) = crowd();
    let leased = world.job("b").job;
    assert_eq!(world.publish("stop", "k", 0, "by=\"me\""), 1);
    let scope = world.sub_scopes()[0];
    assert_eq!(world.state(scope), ScopeState::Terminating);
    world.check();
    // Between the slices.
    assert_eq!(world.activate("b", "w", 1_000).len(), 0);
    assert!(world.complete(&leased, "").is_err());
    assert_eq!(world.publish("more", "k", 0, ""), 0);
    assert_eq!(world.publish("stop", "k", 0, ""), 0);
    let timer = world.rows.values().find_map(|row| match row {
        Row::Timer(timer) if timer.scope == scope => Some(timer.clone()),
        _ => None,
    });
    let timer = timer.unwrap();
    world.now += 5_000;
    assert!(!world.own(Command::FireTimer { timer: timer.key, due: timer.due }));
    assert!(world.set(instance, Some(scope), "x=1").is_err());
    assert!(world.set(instance, None, "x=1").is_ok());
    assert_eq!(world.activate("after", "w", 1).len(), 0);
    assert!(world.follow_up());
    assert_eq!(world.activate("after", "w", 1).len(), 0);
    assert!(world.follow_up() && !world.follow_up());
    assert_eq!(world.variables(instance), "{stopped:\"me\",x:1}");
    world.check();
    world.work("after", "");
    assert_eq!(world.state(instance), ScopeState::Completed);
    world.check();
}

/// Other ways of stopping it come to the same; what comes first wins.
#[test]
fn an_error_a_time_limit_and_a_terminate_end_in_slices() {
    type Stop = fn(&mut World);
    let stops: [Stop; 2] = [
        |world| {
            let job = world.job("a").job;
            world.throw(&job, "bad", "").unwrap();
        },
        |world| {
            world.now += 60_000;
            let Some((timer, due)) = world.rows.values().find_map(|row| match row {
                Row::Timer(timer) if timer.host == timer.root + 1 => Some((timer.key, timer.due)),
                _ => None,
            }) else {
                panic!()
            };
            assert!(world.own(Command::FireTimer { timer, due }));
        },
    ];
    for stop in stops {
        let (mut world, instance) = crowd();
        stop(&mut world);
        world.check();
        assert_eq!(world.follow_ups(), 2);
        world.work("after", "");
        assert_eq!(world.state(instance), ScopeState::Completed);
        world.check();
    }
    let mut world = big(&CROWD.replace("job a\n", "job a -> t\nend t terminate\n"));
    let instance = world.start("p", "");
    (0..1_100).for_each(|_| assert_eq!(world.publish("more", "k", 0, ""), 1));
    world.work("a", "");
    assert_eq!(world.state(instance), ScopeState::Active);
    assert_eq!(world.follow_ups(), 2);
    assert_eq!(world.state(instance), ScopeState::Completed);
    world.check();
}

/// An instance that is canceled while a sub-process of it is being emptied: both end, once.
#[test]
fn cancel_in_slices() {
    for is_stopped_before in [false, true] {
        let (mut world, instance) = crowd();
        if is_stopped_before {
            world.publish("stop", "k", 0, "");
        }
        world.cancel(instance).unwrap();
        assert_eq!(world.state(instance), ScopeState::Terminating);
        world.check();
        while world.follow_up() {
            world.check();
        }
        assert_eq!(world.state(instance), ScopeState::Canceled);
        let trace = world.trace();
        assert_eq!(trace.matches("instance.canceled").count(), 1);
        assert_eq!(trace.matches("completed stop").count(), 0, "{is_stopped_before}");
    }
}

/// A path that would start with a failing mapping must not start in an instance that is being canceled.
#[test]
fn nothing_starts_in_a_scope_that_is_being_terminated() {
    let mut world = big(&CROWD.replace("out stopped = by", "out stopped = assert(by, false)"));
    let instance = world.start("p", "");
    (0..1_100).for_each(|_| assert_eq!(world.publish("more", "k", 0, ""), 1));
    world.publish("stop", "k", 0, "");
    // Its last slice comes before those of the instance.
    world.cancel(instance).unwrap();
    world.follow_ups();
    assert_eq!((world.state(instance), world.incidents().len()), (ScopeState::Canceled, 0));
    world.check();
}

/// A token put off stays in its scope's count; it is no more when the scope is stopped before it goes on.
#[test]
fn tokens_that_were_put_off() {
    let mut world = big(LOOP);
    let instance = world.start("p", "again=true");
    assert_eq!(world.scope(instance).active, 1);
    world.check();
    world.cancel(instance).unwrap();
    assert_eq!(world.state(instance), ScopeState::Canceled);
    assert_eq!(world.follow_ups(), 1);
    world.check();
    assert_eq!(world.count(|row| matches!(row, Row::FollowUp(_))), 0);
}

/// The unique value of an instance that is being canceled is free, and stays with the one that took it.
#[test]
fn a_unique_value_taken_over() {
    let mut world = World::with(&[("p", CROWD)]);
    let first = world.start_unique("p", "order=7", "order").unwrap();
    let twin = world.start_unique("p", "order=7", "order").unwrap();
    assert_eq!((twin.key, twin.existing), (first.key, true));
    (world.is_cold_too, world.is_checked) = (false, false);
    (0..600).for_each(|_| assert_eq!(world.publish("more", "k", 0, ""), 1));
    world.cancel(first.key).unwrap();
    let second = world.start_unique("p", "order=7", "order").unwrap();
    assert!(!second.existing);
    world.follow_ups();
    assert_eq!(world.state(first.key), ScopeState::Canceled);
    let twin = world.start_unique("p", "order=7", "order").unwrap();
    assert_eq!((twin.key, twin.existing), (second.key, true));
    world.check();
}

/// Jobs of a scope that is being emptied hide nothing behind them.
#[test]
fn other_jobs_are_found_behind() {
    let (mut world, instance) = crowd();
    let other = world.start("p", "");
    assert_eq!(world.publish("more", "k", 0, ""), 1);
    world.cancel(instance).unwrap();
    assert_eq!(world.publish("more", "k", 0, ""), 1);
    let jobs = world.activate("b", "w", 1);
    assert_eq!(jobs.iter().map(|job| job.job.root).collect::<Vec<_>>(), [other]);
}

/// What the engine gives up on leaves an incident, and resolve tries it again.
#[test]
fn quarantine() {
    use wf_core::command::Quarantined;
    let mut world = World::with(&[("p", "start s -> c\ncatch c timer=PT10S -> e\nend e"), ("q", LOOP)]);
    let instance = world.start("p", "");
    let timer = world.rows.values().find_map(|row| match row {
        Row::Timer(timer) => Some(timer.key),
        _ => None,
    });
    let what = Quarantined::Timer(timer.unwrap());
    assert!(world.own(Command::Quarantine { what, reason: "it broke".into() }));
    world.advance(20_000);
    assert_eq!(world.state(instance), ScopeState::Active);
    world.resolve(None).unwrap();
    world.advance(0);
    assert_eq!(world.state(instance), ScopeState::Completed);

    world.is_cold_too = false;
    let instance = world.start("q", "again=true");
    let follow_up = world.rows.values().find_map(|row| match row {
        Row::FollowUp(row) if matches!(row.work, Work::Arrive { .. }) => Some(row.key),
        _ => None,
    });
    let what = Quarantined::FollowUp(follow_up.unwrap());
    assert!(world.own(Command::Quarantine { what, reason: "it broke".into() }));
    assert!(!world.own(Command::Quarantine { what, reason: "it broke".into() }));
    assert!(!world.follow_up());
    world.set(instance, None, "again=false").unwrap();
    world.resolve(None).unwrap();
    assert_eq!(world.state(instance), ScopeState::Completed);
}

/// A termination that the engine gives up on: of a sub-process, and of the instance.
#[test]
fn quarantine_of_a_termination() {
    use wf_core::command::Quarantined;
    for is_inner in [true, false] {
        let (mut world, instance) = crowd();
        match is_inner {
            true => assert_eq!(world.publish("stop", "k", 0, ""), 1),
            false => drop(world.cancel(instance).unwrap()),
        }
        let follow_up = world.rows.values().find_map(|row| match row {
            Row::FollowUp(row) => Some(row.key),
            _ => None,
        });
        let what = Quarantined::FollowUp(follow_up.unwrap());
        assert!(world.own(Command::Quarantine { what, reason: "it broke".into() }));
        world.check();
        world.resolve(None).unwrap();
        world.follow_ups();
        if is_inner {
            world.work("after", "");
        }
        assert_eq!(world.incidents().len(), 0);
        assert!(!matches!(world.state(instance), ScopeState::Active | ScopeState::Terminating));
        world.check();
    }
}

/// Retention drops what ended, with what belongs to it, a slice at a time; ids go at their own time.
#[test]
fn purge() {
    let mut world = World::with(&[(
        "p",
        "start s msg=go -> a
         job a -> e
         end e",
    )]);
    for id in ["1", "2", "3"] {
        world.publish_id("go", "", Some(id), 0, "x=1");
    }
    let jobs = world.activate("a", "w", 2);
    for job in &jobs {
        world.step(&job.job, "pay", "1").unwrap();
        world.complete(&job.job, "").unwrap();
    }
    let alive = |world: &World| world.count(|row| !matches!(row, Row::Definition(_) | Row::StartSubscription(_)));
    let purge = |world: &mut World, before| world.own(Command::Purge { before, rows_max: 1 });
    let end = world.now;
    assert!(!purge(&mut world, end - 1));
    assert!(purge(&mut world, end) && purge(&mut world, end) && !purge(&mut world, end));
    // What is left: the third instance with its variable, element and job; and three ids.
    assert_eq!(alive(&world), 4 + 3);
    world.advance(crate::common::DEDUP_MS);
    assert!((0..3).all(|_| purge(&mut world, end)) && !purge(&mut world, end));
    assert_eq!(alive(&world), 4);
}

#[test]
fn attached_rows_of_a_crowd_are_listed() {
    let mut world = World::with(&[("p", CROWD)]);
    world.start("p", "");
    let kinds: Vec<AttachedKind> = world
        .rows
        .values()
        .filter_map(|row| match row {
            Row::Element(element) if element.phase == Phase::Active => Some(element.attached.clone()),
            _ => None,
        })
        .flatten()
        .map(|attached| attached.kind)
        .collect();
    assert_eq!(kinds, [AttachedKind::Subscription, AttachedKind::Timer, AttachedKind::Subscription]);
    assert!(wf_model::compile(model::xml("p", CROWD).as_bytes()).is_ok());
}
