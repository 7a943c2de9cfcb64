//! One poisoned command stops itself alone.

use crate::common::*;
use std::sync::atomic::Ordering;
use wf_core::Command;
use wf_engine::{Options, Refusal};

/// Variables or messages of this name are poison.
fn inspect(command: &Command) {
    let is_poison = match command {
        Command::StartInstance { variables, .. } => variables.iter().any(|(name, _)| &**name == "poison"),
        Command::FireTimer { .. } | Command::ExpireLease { .. } => true,
        _ => false,
    };
    assert!(!is_poison, "poison");
}

fn poisoned() -> wf_engine::Request {
    start_with("order", vec![("poison".into(), "1".into())])
}

#[tokio::test]
async fn a_command_that_panics_is_refused_alone() {
    let world = World::with(Options { inspect: Some(inspect), ..options() }).await;
    let begun = world.stage.begun();
    world.stage.hold();
    let first = world.later(start("order"));
    world.stage.until_begun(begun + 1).await;
    let mut turn: Vec<_> = (0..5).map(|n| world.later(keyed(&format!("k{n}"), start("order")))).collect();
    turn.insert(2, world.later(keyed("bad", poisoned())));
    world.stage.release();
    first.await.unwrap().unwrap();
    for (n, one) in turn.into_iter().enumerate() {
        match one.await.unwrap() {
            Err(Refusal::Internal { error_id }) if n == 2 => assert!(!error_id.is_empty()),
            other => assert!(n != 2 && other.is_ok(), "{n}: {other:?}"),
        }
    }
    // The key is free: a later retry with it is safe.
    assert!(!world.ask(keyed("bad", start("order"))).await.unwrap().replayed);
    assert_eq!(world.end().await.count("instance.started"), 7);
}

#[tokio::test]
async fn a_door_that_panics_over_an_answer_changes_nothing() {
    let world = World::new().await;
    let broken = wf_engine::Request { render: |_| panic!("no answer"), ..keyed("k", start("order")) };
    assert!(matches!(world.ask(broken).await, Err(Refusal::Internal { .. })));
    assert_eq!(world.end().await.count("instance.started"), 0);
}

/// A timer that panics leaves an incident; an expiry that panics is given up. Neither is tried for ever.
#[tokio::test]
async fn an_own_command_that_panics_is_put_aside() {
    let world = World::with(Options { inspect: Some(inspect), ..options() }).await;
    world.start("late").await;
    world.start("order").await;
    world.activate("a").await;
    world.advance(10_000).await;
    world.start("order").await;
    world.advance(10_000).await;
    let loads = world.stage.loads.load(Ordering::Relaxed);
    world.start("order").await;
    assert!(world.stage.loads.load(Ordering::Relaxed) <= loads + 1, "nobody looks at them any more");
    let left = world.end().await;
    assert_eq!((left.count("command.quarantined"), left.count("incident.created")), (1, 1));
    assert_eq!((left.count("timer.fired"), left.count("job.lease-expired")), (0, 0));
}

/// The store refuses one command of a turn of many, while the next turn is made on top of it.
#[tokio::test]
async fn a_command_that_cannot_be_stored_is_refused_alone() {
    for fault in [Fault::Rejected, Fault::Conflict] {
        let world = World::new().await;
        world.stage.rule(move |batch| batch.log.iter().any(|entry| entry.payload.contains("poison")).then_some(fault));
        let begun = world.stage.begun();
        world.stage.hold();
        let first = world.later(start("order"));
        world.stage.until_begun(begun + 1).await;
        let mut turn: Vec<_> = (0..8).map(|n| world.later(keyed(&format!("k{n}"), start("order")))).collect();
        turn.insert(3, world.later(keyed("bad", poisoned())));
        world.stage.step(1);
        world.stage.until_begun(begun + 2).await;
        let next: Vec<_> = (0..3).map(|n| world.later(keyed(&format!("n{n}"), start("order")))).collect();
        tokio::task::yield_now().await;
        world.stage.release();
        first.await.unwrap().unwrap();
        for (n, one) in turn.into_iter().enumerate() {
            match one.await.unwrap() {
                Err(Refusal::Internal { .. }) if n == 3 => (),
                other => assert!(n != 3 && other.is_ok(), "{fault:?} {n}: {other:?}"),
            }
        }
        for one in next {
            one.await.unwrap().unwrap();
        }
        // The same answers again; the offender may be repaired under the same key.
        world.stage.no_rule();
        assert!(world.ask(keyed("k0", start("order"))).await.unwrap().replayed);
        assert!(!world.ask(keyed("bad", poisoned())).await.unwrap().replayed);
        assert_eq!(world.end().await.count("instance.started"), 13, "{fault:?}");
    }
}

/// So with the engine's own: a timer whose firing cannot be stored becomes an incident, its neighbours fire.
#[tokio::test]
async fn an_own_command_that_cannot_be_stored_is_put_aside() {
    let world = World::new().await;
    for _ in 0..3 {
        world.start("late").await;
    }
    let timers: Vec<u64> = world
        .stage
        .inner
        .rows()
        .iter()
        .filter_map(|row| match row {
            wf_core::Row::Timer(timer) => Some(timer.key),
            _ => None,
        })
        .collect();
    let poison = timers[1].to_string();
    world.stage.rule(move |batch| {
        let is_poison = batch.log.iter().any(|entry| entry.verb == "fire-timer" && entry.payload.contains(&poison));
        is_poison.then_some(Fault::Rejected)
    });
    world.advance(10_000).await;
    let left = world.end().await;
    assert_eq!((left.count("timer.fired"), left.count("command.quarantined")), (2, 1));
}

/// L2.1: what the log knows already is dropped before it is executed, and not asked for again and again.
#[tokio::test]
async fn l2_1_own_commands_that_the_log_knows_are_dropped() {
    let world = World::new().await;
    world.start("late").await;
    world.stage.knows_all.store(true, Ordering::Relaxed);
    world.advance(10_000).await;
    world.start("order").await;
    let loads = world.stage.loads.load(Ordering::Relaxed);
    world.start("order").await;
    assert_eq!(world.stage.loads.load(Ordering::Relaxed), loads);
    assert_eq!(world.end().await.count("timer.fired"), 0);
}
