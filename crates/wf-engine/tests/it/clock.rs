//! The test clock: it stands until it is set, and is answered when all that fell due is durable.

use crate::common::*;
use wf_engine::{ClockChange, ClockMode, ClockRefusal, Options, Refusal};

#[tokio::test]
async fn an_advance_is_answered_after_everything_due_and_what_that_caused() {
    let world = World::new().await;
    for _ in 0..300 {
        world.start("late").await;
    }
    world.ok(publish("x", "1", None, 9_000)).await;
    world.advance(9_999).await;
    assert!(world.activate("d").await.is_empty());
    world.advance(1).await;
    let fired = world.stage.inner.log().iter().filter(|entry| entry.verb == "fire-timer").count();
    assert_eq!(fired, 300, "more than one slice");
    world.end().await;
}

/// Under load no moment comes at which nothing is committed.
#[tokio::test]
async fn an_advance_is_answered_under_load() {
    let world = World::new().await;
    world.start("late").await;
    let engine = world.engine.clone();
    let load = tokio::spawn(async move {
        loop {
            engine.submit(publish("x", "1", None, 0)).await.unwrap();
        }
    });
    for _ in 0..20 {
        world.advance(1_000).await;
    }
    load.abort();
    assert_eq!(world.end().await.count("timer.fired"), 1);
}

#[tokio::test]
async fn it_goes_forward_only_and_survives_a_restart() {
    let world = World::new().await;
    world.ok(clock(ClockChange::To { now: START + 500 })).await;
    let past = world.ask(clock(ClockChange::To { now: START + 499 })).await;
    assert!(matches!(past, Err(Refusal::Clock(ClockRefusal::Past))));
    let world = world.restart().await;
    assert_eq!(world.engine.now(), START + 500);
    world.ok(clock(ClockChange::Thaw)).await;
    let world = world.restart().await;
    assert!(world.engine.now() >= START + 500);
    world.end().await;
}

#[tokio::test]
async fn a_real_clock_is_not_set() {
    let world = World::with(Options { clock: ClockMode::System, ..options() }).await;
    let refused = world.ask(clock(ClockChange::Advance { ms: 1 })).await;
    assert!(matches!(refused, Err(Refusal::Clock(ClockRefusal::NoTestClock))));
    world.engine.shutdown().await;
}

/// A turn that sets the clock fails: the clock stands where it stood, and the change is made once.
#[tokio::test]
async fn a_failed_turn_sets_the_clock_back() {
    for (fault, comes_true) in [
        (Fault::Unavailable, false),
        (Fault::Conflict, true),
        (Fault::Rejected, true),
        (Fault::Fenced, false),
        (Fault::UnknownLost, false),
        (Fault::UnknownApplied, true),
    ] {
        let world = World::new().await;
        world.start("late").await;
        world.stage.fail_next(fault);
        let answer = world.ask(clock(ClockChange::Advance { ms: 10_000 })).await;
        let is_told = matches!(fault, Fault::Conflict | Fault::Rejected);
        assert_eq!(answer.is_ok(), is_told, "{fault:?}: {answer:?}");
        // One more request: whatever was under way is done.
        world.ok(publish("x", "1", None, 0)).await;
        let now = if comes_true { START + 10_000 } else { START };
        assert_eq!(world.engine.now(), now, "{fault:?}");
        world.ok(clock(ClockChange::To { now: START + 10_000 })).await;
        assert_eq!(world.end().await.count("timer.fired"), 1, "{fault:?}");
    }
}

/// Retention: what ended long enough ago goes, in as many slices as it takes.
#[tokio::test]
async fn what_is_kept_long_enough_is_dropped() {
    let world = World::with(Options { finished_ms: 60_000, ..options() }).await;
    for _ in 0..1_100 {
        let key = world.start("order").await;
        world.ok(cancel(key)).await;
    }
    world.advance(60_000).await;
    let rows = world.stage.inner.rows();
    let kept = rows.iter().filter(|row| !matches!(row, wf_core::Row::Definition(_))).count();
    assert_eq!(kept, 0);
    world.end().await;
}

/// A hundred rows that go must not be a hundred loads: requests wait meanwhile.
#[tokio::test]
async fn p4_retention_of_hundreds_is_few_loads() {
    const INSTANCES: usize = 400;
    let short = Options { finished_ms: 60_000, ..options() };
    let world = World::with(short.clone()).await;
    for _ in 0..INSTANCES {
        world.start("order").await;
    }
    for job_type in ["a", "b"] {
        for held in jobs_in(&world.ok(activate(job_type, "w", INSTANCES as u32)).await) {
            world.ok(complete(held)).await;
        }
    }
    world.engine.shutdown().await;
    let world = World::open(Stage::over(world.stage.inner.clone()), short).await;
    let loads = || world.stage.loads.load(std::sync::atomic::Ordering::Relaxed);
    let before = loads();
    world.advance(60_000).await;
    let (loads, slices) = (loads() - before, INSTANCES / 100);
    assert!(loads <= 10 * slices, "{loads} loads for {slices} slices");
    let left = world.end().await.rows;
    assert!(left.iter().all(|row| matches!(row, wf_core::Row::Definition(_))), "{left:?}");
}
