//! The end of an engine, and its limits.

use crate::common::*;
use std::sync::atomic::Ordering;
use wf_engine::{Engine, Options, Refusal};

#[tokio::test]
async fn shutdown_answers_everything_and_loses_nothing() {
    let world = World::new().await;
    let begun = world.stage.begun();
    world.stage.hold();
    let first = world.later(start("order"));
    world.stage.until_begun(begun + 1).await;
    let asked: Vec<_> = (0..30).map(|n| world.later(keyed(&format!("k{n}"), start("order")))).collect();
    let poll = world.later(waiting(60_000, activate("nobody", "w", 1)));
    // In the mailbox or in the turn that is being made.
    while world.engine.queue().0 > 0 || poll.is_finished() {
        tokio::task::yield_now().await;
    }
    let engine = world.engine.clone();
    let stopping = tokio::spawn(async move { engine.shutdown().await });
    world.stage.release();
    stopping.await.unwrap();
    assert!(first.await.unwrap().is_ok());
    let mut started = 1;
    for one in asked {
        match one.await.unwrap() {
            Ok(_) => started += 1,
            Err(Refusal::Unavailable { .. }) => (),
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(text(&poll.await.unwrap().unwrap()), "jobs");
    assert!(matches!(world.ask(start("order")).await, Err(Refusal::Unavailable { .. })));
    assert!(!world.engine.is_ready());
    assert_eq!(world.end().await.count("instance.started"), started, "an answer for each effect");
}

/// A store that never comes back does not hold the process.
#[tokio::test]
async fn shutdown_ends_while_the_partition_is_lost() {
    let world = World::new().await;
    world.stage.fail_opens.store(usize::MAX, Ordering::Relaxed);
    world.stage.fail_next(Fault::UnknownLost);
    assert!(matches!(world.ask(start("order")).await, Err(Refusal::OutcomeUnknown)));
    assert!(matches!(world.ask(start("order")).await, Err(Refusal::Unavailable { .. })));
    assert!(!world.engine.is_ready());
    world.end().await;
}

/// Counts of repeats that cannot be stored at the end are lost, and are not tried for ever.
#[tokio::test]
async fn shutdown_ends_while_the_store_takes_nothing() {
    let world = World::new().await;
    for _ in 0..2 {
        world.ok(keyed("k", start("order"))).await;
    }
    let begun = world.stage.begun();
    world.stage.plan(&[Some(Fault::Unavailable); 1_000]);
    world.engine.shutdown().await;
    assert!(world.stage.begun() < begun + 5, "{}", world.stage.begun());
}

#[tokio::test]
async fn a_partition_that_was_lost_is_taken_when_the_store_comes_back() {
    let world = World::new().await;
    world.stage.fail_opens.store(3, Ordering::Relaxed);
    world.stage.fail_next(Fault::UnknownLost);
    assert!(matches!(world.ask(start("order")).await, Err(Refusal::OutcomeUnknown)));
    while !world.engine.is_ready() {
        tokio::task::yield_now().await;
    }
    world.start("order").await;
    assert_eq!(world.end().await.count("epoch.opened"), 2);
}

/// Ready comes back by itself, without a request.
#[tokio::test]
async fn readiness_comes_back_without_traffic() {
    let world = World::new().await;
    world.stage.plan(&[Some(Fault::Unavailable), Some(Fault::Unavailable), Some(Fault::Unavailable)]);
    assert!(matches!(world.ask(start("order")).await, Err(Refusal::Unavailable { .. })));
    while !world.engine.is_ready() {
        tokio::task::yield_now().await;
    }
    world.start("order").await;
    assert_eq!(world.end().await.count("epoch.opened"), 1, "nothing was lost");
}

#[tokio::test]
async fn an_engine_whose_first_command_cannot_be_stored_does_not_open() {
    for fault in [Fault::Unavailable, Fault::Rejected, Fault::Conflict, Fault::UnknownLost, Fault::Fenced] {
        let stage = Stage::new();
        stage.fail_next(fault);
        assert!(Engine::open(stage.clone(), options()).await.is_err(), "{fault:?}");
        let world = World::open(stage, options()).await;
        world.ok(deploy()).await;
        world.end().await;
    }
}

/// A full queue answers at once and does nothing.
#[tokio::test]
async fn a_full_mailbox_is_overloaded() {
    let world = World::with(Options { mailbox_max: 4, turn_max: 2, ..options() }).await;
    let begun = world.stage.begun();
    world.stage.hold();
    let first = world.later(start("order"));
    world.stage.until_begun(begun + 1).await;
    let mut asked: Vec<_> = (0..20).map(|_| world.later(start("order"))).collect();
    // Two in the turn at hand, four in the mailbox.
    while asked.iter().filter(|one| one.is_finished()).count() < 14 {
        tokio::task::yield_now().await;
    }
    world.stage.release();
    assert!(first.await.unwrap().is_ok());
    let mut overloaded = 0;
    for one in asked.drain(..) {
        match one.await.unwrap() {
            Ok(_) => (),
            Err(Refusal::Overloaded) => overloaded += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(world.end().await.count("instance.started"), 21 - overloaded);
}

/// What is opened next finds the store free.
#[tokio::test]
async fn after_a_shutdown_nobody_holds_the_store() {
    for _ in 0..20 {
        let World { stage, engine } = World::new().await;
        engine.shutdown().await;
        drop(engine);
        assert_eq!(std::sync::Arc::strong_count(&stage), 1);
    }
}

/// The last handle is dropped without a word: the actor ends, and the store is free.
#[tokio::test]
async fn an_engine_that_is_dropped_ends() {
    let world = World::new().await;
    let World { stage, engine } = world;
    drop(engine);
    while std::sync::Arc::strong_count(&stage) > 1 {
        tokio::task::yield_now().await;
    }
}
