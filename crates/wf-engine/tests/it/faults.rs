//! A turn fails while the next one is made on top of it: every client hears the truth, every effect exists once.

use crate::common::*;
use std::sync::atomic::Ordering;
use tokio::task::JoinHandle;
use wf_core::Rejection;
use wf_core::outcome::LeaseLost;
use wf_engine::{Answered, Engine, Options, Refusal, Request};

const ALL: [Fault; 6] =
    [Fault::Unavailable, Fault::UnknownApplied, Fault::UnknownLost, Fault::Fenced, Fault::Conflict, Fault::Rejected];

type Asked = JoinHandle<Result<Answered, Refusal>>;

/// One turn in the store's hands, to fail, and the requests of the next, which is made on top of it.
async fn two_turns(world: &World, fault: Fault, first: Vec<Request>, second: Vec<Request>) -> (Vec<Asked>, Vec<Asked>) {
    let begun = world.stage.begun();
    world.stage.hold();
    let filler = world.later(publish("filler", "1", None, 0));
    world.stage.until_begun(begun + 1).await;
    let first = all_taken(world, first).await;
    world.stage.plan(&[None, Some(fault)]);
    world.stage.step(1);
    filler.await.unwrap().unwrap();
    world.stage.until_begun(begun + 2).await;
    let second = all_taken(world, second).await;
    assert!(first.iter().chain(&second).all(|one| !one.is_finished()), "nothing is answered before it is durable");
    world.stage.release();
    (first, second)
}

/// They lie in the actor's hands, in this order.
async fn all_taken(world: &World, requests: Vec<Request>) -> Vec<Asked> {
    let mut asked = Vec::new();
    for request in requests {
        asked.push(world.later(request));
        tokio::task::yield_now().await;
    }
    while world.engine.queue().0 > 0 {
        tokio::task::yield_now().await;
    }
    asked
}

async fn heard(asked: Vec<Asked>) -> Vec<Result<Answered, Refusal>> {
    let mut heard = Vec::new();
    for one in asked {
        heard.push(one.await.unwrap());
    }
    heard
}

#[tokio::test]
async fn l1_6_a_failed_turn_is_answered_truthfully_and_its_repeats_have_one_effect() {
    for fault in ALL {
        let world = World::with(Options { wait_ms: 60_000, ..options() }).await;
        let starts = || (0..6).map(|n| keyed(&format!("k{n}"), start("order")));
        // The next turn sees the failed one's keys and jobs, and asks for what does not exist.
        let after = vec![
            keyed("k0", start("order")),
            keyed("k1", start("paid")),
            start("ghost"),
            keyed("act", activate("a", "w", 3)),
            keyed("n", start("order")),
        ];
        let (first, second) = two_turns(&world, fault, starts().collect(), after).await;
        let first = heard(first).await;
        for answer in &first {
            match (fault, answer) {
                (Fault::Unavailable | Fault::Fenced, Err(Refusal::Unavailable { .. })) => (),
                (Fault::UnknownApplied | Fault::UnknownLost, Err(Refusal::OutcomeUnknown)) => (),
                (Fault::Conflict | Fault::Rejected, Ok(answered)) => assert!(!answered.replayed),
                (_, other) => panic!("{fault:?}: {other:?}"),
            }
        }
        let second = heard(second).await;
        let is_there = matches!(fault, Fault::UnknownApplied | Fault::Conflict | Fault::Rejected);
        assert_eq!(second[0].as_ref().unwrap().replayed, is_there, "{fault:?}: a replay of what is durable");
        match &second[1] {
            Err(Refusal::Conflict) if is_there => (),
            // Nothing of the first request with this key exists: this one is the first.
            Ok(answered) if !is_there => assert!(!answered.replayed),
            other => panic!("{fault:?}: {other:?}"),
        }
        assert!(matches!(second[2], Err(Refusal::Rejected(_))), "{fault:?}: {:?}", second[2]);
        let leased = jobs_in(&text(second[3].as_ref().unwrap())).len();
        assert_eq!(leased, if is_there { 3 } else { 1 }, "{fault:?}: only jobs that exist are leased");
        assert!(!second[4].as_ref().unwrap().replayed);

        let mut repeated = Vec::new();
        for (n, request) in starts().enumerate() {
            match world.ask(request).await {
                Err(Refusal::Conflict) if n == 1 && !is_there => (),
                other => repeated.push(text(&other.unwrap())),
            }
        }
        assert_eq!(repeated[0], text(second[0].as_ref().unwrap()));
        let epochs = if matches!(fault, Fault::Unavailable | Fault::Conflict | Fault::Rejected) { 1 } else { 2 };
        let left = world.end().await;
        assert_eq!((left.count("instance.started"), left.count("epoch.opened")), (7, epochs), "{fault:?}");
    }
}

/// L2.4: whatever must be run again, and be it one by one, keeps its place.
#[tokio::test]
async fn l2_4_what_is_executed_again_keeps_its_order() {
    for fault in [Fault::Conflict, Fault::Rejected] {
        let world = World::new().await;
        let instance = world.start("order").await;
        let set = |value: &str| set_variable(instance, "x", value);
        world.stage.rule(|batch| {
            let is_poison = batch.log.iter().any(|entry| entry.payload.contains("poison"));
            is_poison.then_some(Fault::Rejected)
        });
        let first = vec![set("1"), set("2"), set("\"poison\""), set("3"), set("4")];
        let (first, second) = two_turns(&world, fault, first, vec![set("5"), set("6")]).await;
        let first = heard(first).await;
        assert!(matches!(first[2], Err(Refusal::Internal { .. })), "{:?}", first[2]);
        assert_eq!(first.iter().chain(&heard(second).await).filter(|answer| answer.is_ok()).count(), 6);
        let log = world.stage.inner.log();
        let sets = log.iter().filter(|entry| entry.verb == "set-variables");
        let values: Vec<&str> =
            sets.filter_map(|entry| entry.payload.split("\"x\":").nth(1)).map(|rest| &rest[..1]).collect();
        assert_eq!(values, ["1", "2", "3", "4", "5", "6"], "{fault:?}");
        world.end().await;
    }
}

/// L2.1: a batch that the store finds in the log is loaded and executed again, until it is clear that it never goes in.
#[tokio::test]
async fn l2_1_a_conflict_is_executed_again_and_ends() {
    let world = World::new().await;
    world.stage.plan(&[Some(Fault::Conflict), Some(Fault::Conflict), Some(Fault::Conflict)]);
    world.ok(start("order")).await;
    world.stage.rule(|batch| batch.log.iter().any(|entry| entry.verb == "start-instance").then_some(Fault::Conflict));
    assert!(matches!(world.ask(start("order")).await, Err(Refusal::Internal { .. })));
    world.stage.no_rule();
    assert_eq!(world.end().await.count("instance.started"), 1);
}

/// Where nothing was lost, the run with faults leaves exactly what the run without them leaves.
#[tokio::test]
async fn a_run_with_faults_leaves_what_a_run_without_leaves() {
    async fn run(plan: &[Option<Fault>]) -> whole::Left {
        let world = World::new().await;
        world.stage.plan(plan);
        let stubborn = async |request: Request| loop {
            match world.ask(request.clone()).await {
                Ok(answered) => break text(&answered),
                Err(Refusal::Unavailable { .. }) => (),
                Err(other) => panic!("{other:?}"),
            }
        };
        for n in 0..3 {
            stubborn(keyed(&format!("s{n}"), start("order"))).await;
            stubborn(keyed(&format!("l{n}"), start("late"))).await;
        }
        stubborn(clock(wf_engine::ClockChange::To { now: START + 10_000 })).await;
        for held in jobs_in(&stubborn(keyed("act", activate("a", "w", 2))).await) {
            stubborn(keyed(&format!("c{}", held.0), complete(held))).await;
        }
        stubborn(keyed("p", publish("paid", "1", Some("m"), 5_000))).await;
        stubborn(clock(wf_engine::ClockChange::To { now: START + 20_000 })).await;
        world.end().await
    }
    let calm = run(&[]).await;
    for seed in 0..20_u64 {
        let mut rng = Rng(seed);
        // Never so many conflicts in a row that the store's word is taken for it.
        let faults = [Some(Fault::Unavailable), Some(Fault::Conflict)];
        let plan: Vec<Option<Fault>> = (0..12).flat_map(|_| [*rng.one_of(&faults), None]).collect();
        let stormy = run(&plan[rng.below(2) as usize..]).await;
        assert_eq!(stormy.log, calm.log, "seed {seed}");
        assert!(stormy == calm, "seed {seed}: rows or head differ");
    }
}

/// The first command of the new epoch fails again and again: nothing runs before it is durable.
#[tokio::test]
async fn an_epoch_that_does_not_open_lets_nothing_through() {
    let world = World::new().await;
    world.stage.plan(&[Some(Fault::UnknownLost)]);
    world.stage.plan(&ALL.map(Some));
    assert!(matches!(world.ask(keyed("k", start("order"))).await, Err(Refusal::OutcomeUnknown)));
    while !world.engine.is_ready() {
        match world.ask(keyed("k", start("order"))).await {
            Ok(_) | Err(Refusal::Unavailable { .. }) => tokio::task::yield_now().await,
            Err(other) => panic!("{other:?}"),
        }
    }
    world.ok(keyed("k", start("order"))).await;
    let left = world.end().await;
    assert_eq!(left.count("instance.started"), 1);
    assert_eq!(left.count("epoch.opened"), 3, "one of those in doubt had come through");
}

/// Two owners take the partition from each other; each key has one effect all the same.
#[tokio::test]
async fn two_owners_have_one_effect() {
    let world = World::new().await;
    let other = Engine::open(world.stage.clone(), options()).await.unwrap();
    let mut keys = Vec::new();
    for n in 0..10 {
        let key = format!("k{n}");
        let mut answers = Vec::new();
        while answers.len() < 4 {
            for engine in [&world.engine, &other] {
                match engine.submit(keyed(&key, start("order"))).await {
                    Ok(answered) => answers.push(text(&answered)),
                    Err(Refusal::Unavailable { .. }) => tokio::task::yield_now().await,
                    Err(refusal) => panic!("{refusal:?}"),
                }
            }
        }
        answers.dedup();
        assert_eq!(answers.len(), 1);
        keys.extend(answers);
    }
    keys.dedup();
    assert_eq!(keys.len(), 10);
    other.shutdown().await;
    assert_eq!(world.end().await.count("instance.started"), 10);
}

/// A deposed owner remembers what was: its refusals write nothing, so no commit would stop them.
#[tokio::test]
async fn a_deposed_owner_refuses_nothing_out_of_its_memory() {
    let world = World::new().await;
    world.start("order").await;
    let held = world.activate("a").await[0];
    let other = Engine::open(world.stage.clone(), options()).await.unwrap();
    other.submit(complete(held)).await.unwrap();
    // As far as the first owner knows, the job is held under this lease: another lease would be refused as taken.
    let stale = world.ask(complete((held.0, held.1 + 1))).await;
    assert!(matches!(stale, Err(Refusal::Unavailable { .. })), "{stale:?}");
    let current = world.ask(complete((held.0, held.1 + 1))).await;
    assert!(matches!(current, Err(Refusal::Rejected(Rejection::LeaseLost(LeaseLost::Finished)))), "{current:?}");
    other.shutdown().await;
    world.end().await;
}

/// A poll is part of the turn that makes its job: it hears the truth as well, and the job is not lost.
#[tokio::test]
async fn a_poll_in_a_failed_turn_is_told_so_and_its_job_is_found() {
    for fault in ALL {
        let world = World::new().await;
        let poll = all_taken(&world, vec![waiting(60_000, activate("a", "w", 1))]).await;
        world.stage.fail_next(fault);
        let _ = world.ask(keyed("k", start("order"))).await;
        world.ok(keyed("k", start("order"))).await;
        let mut answer = heard(poll).await.remove(0);
        while let Err(refusal) = answer {
            assert!(matches!(refusal, Refusal::Unavailable { .. } | Refusal::OutcomeUnknown), "{fault:?}: {refusal:?}");
            // Its lease may stand: then it runs out.
            let again = world.later(waiting(60_000, activate("a", "w", 1)));
            world.advance(1_000).await;
            answer = again.await.unwrap();
        }
        assert_eq!(jobs_in(&text(&answer.unwrap())).len(), 1, "{fault:?}");
        world.end().await;
    }
}

/// A store that cannot be read: requests are told so, own work waits, and nobody hammers it.
#[tokio::test]
async fn a_store_that_cannot_be_read_is_not_hammered() {
    let world = World::with(Options { pause_ms: 3_600_000, ..options() }).await;
    world.start("late").await;
    world.stage.fail_loads.store(true, Ordering::Relaxed);
    // Everything is forgotten and must be loaded again.
    world.stage.fail_next(Fault::Conflict);
    assert!(matches!(world.ask(start("order")).await, Err(Refusal::Unavailable { .. })));
    let (loads, commits) = (world.stage.loads.load(Ordering::Relaxed), world.stage.begun());
    for _ in 0..20 {
        assert!(matches!(world.ask(start("order")).await, Err(Refusal::Unavailable { .. })));
    }
    assert_eq!(world.stage.loads.load(Ordering::Relaxed), loads + 20);
    assert_eq!(world.stage.begun(), commits);
    world.stage.fail_loads.store(false, Ordering::Relaxed);
    world.start("order").await;
    world.end().await;
}
