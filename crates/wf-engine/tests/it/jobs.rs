//! L3: a job is leased to one worker at a time; polls wait for jobs.

use std::time::Duration;

use crate::common::*;
use wf_core::outcome::LeaseLost;
use wf_core::rows::JobState;
use wf_core::{Command, Outcome, Rejection};
use wf_engine::Refusal;

fn lost(result: Result<wf_engine::Answered, Refusal>) -> LeaseLost {
    match result {
        Err(Refusal::Rejected(Rejection::LeaseLost(reason))) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn l3_1_concurrent_workers_never_get_the_same_job() {
    let world = World::new().await;
    for _ in 0..10 {
        world.start("order").await;
    }
    let polls: Vec<_> = (0..20).map(|_| world.later(activate("a", "w", 1))).collect();
    let mut jobs = Vec::new();
    for poll in polls {
        jobs.extend(jobs_in(&text(&poll.await.unwrap().unwrap())));
    }
    assert_eq!(jobs.len(), 10);
    assert!(jobs.is_sorted_by_key(|(key, _)| *key), "priority, then key");
    assert_eq!(world.end().await.count("job.activated"), 10);
}

#[tokio::test]
async fn l3_2_l3_3_past_its_deadline_a_job_goes_to_another_worker_and_the_late_one_is_told() {
    let world = World::new().await;
    world.start("order").await;
    let first = world.activate("a").await[0];
    assert!(world.activate("a").await.is_empty());
    world.advance(999).await;
    world.ok(ask(Command::ExtendLease { holder: holder(first), lease_ms: 2_000 })).await;
    world.advance(1_999).await;
    assert!(world.activate("a").await.is_empty(), "it was extended");
    world.advance(1).await;
    assert_eq!(lost(world.ask(complete(first)).await), LeaseLost::Expired);
    let second = world.activate("a").await[0];
    assert_eq!(first.0, second.0);
    assert!(second.1 > first.1, "another lease");
    assert_eq!(lost(world.ask(complete(first)).await), LeaseLost::Taken);
    world.ok(complete(second)).await;
    assert_eq!(lost(world.ask(complete(first)).await), LeaseLost::Finished);
    assert_eq!(world.end().await.count("job.lease-expired"), 1);
}

#[tokio::test]
async fn l3_4_the_holder_that_repeats_its_completion_is_told_so() {
    let world = World::new().await;
    world.start("order").await;
    let held = world.activate("a").await[0];
    assert!(world.ok(complete(held)).await.contains("duplicate: false"));
    assert!(world.ok(complete(held)).await.contains("duplicate: true"));
    // By key: the same bytes.
    let held = world.activate("b").await[0];
    let first = world.ok(keyed("k", complete(held))).await;
    assert_eq!(world.ok(keyed("k", complete(held))).await, first);
    let left = world.end().await;
    assert_eq!((left.count("job.completed"), left.count("instance.completed")), (2, 1));
}

#[tokio::test]
async fn l3_5_failures_wait_then_end_in_an_incident() {
    let world = World::new().await;
    world.start("order").await;
    for _ in 0..2 {
        let held = world.activate("a").await[0];
        world.ok(fail(held, 500)).await;
        assert!(world.activate("a").await.is_empty(), "it backs off");
        world.advance(500).await;
    }
    let held = world.activate("a").await[0];
    assert!(world.ok(fail(held, 500)).await.contains("Failed { state: Failed, retries: 0"));
    let left = world.end().await;
    assert_eq!((left.count("job.failed"), left.count("incident.created")), (3, 1));
}

#[tokio::test]
async fn l2_4_concurrent_writers_are_totally_ordered() {
    let world = World::new().await;
    let instance = world.start("order").await;
    let writers: Vec<_> = (0..50).map(|n| world.later(set_variable(instance, "x", &n.to_string()))).collect();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    let last = world.stage.inner.log().last().unwrap().payload.clone();
    let left = world.end().await;
    assert_eq!(left.count("variables.set"), 50, "no write is lost between two others");
    let value = left.rows.iter().find_map(|row| match row {
        wf_core::Row::Variable(variable) if &*variable.name == "x" => Some(variable.value.to_string()),
        _ => None,
    });
    assert!(last.contains(&format!("\"x\":{}", value.unwrap())), "the last one stands: {last}");
}

#[tokio::test]
async fn a_keyed_activation_gives_the_same_jobs_and_leases_again() {
    let world = World::new().await;
    for _ in 0..3 {
        world.start("order").await;
    }
    let first = world.ok(keyed("k", activate("a", "w", 2))).await;
    assert_eq!(world.ok(keyed("k", activate("a", "w", 2))).await, first);
    let world = world.restart().await;
    assert_eq!(world.ok(keyed("k", activate("a", "w", 2))).await, first);
    assert_eq!(world.end().await.count("job.activated"), 2);
}

#[tokio::test]
async fn an_empty_poll_stores_nothing_and_leaves_its_key_free() {
    let world = World::new().await;
    let begun = world.stage.begun();
    for request in [activate("a", "w", 1), keyed("k", activate("a", "w", 1)), keyed("k", activate("a", "w", 1))] {
        assert_eq!(world.ok(request).await, "jobs");
    }
    assert_eq!(world.stage.begun(), begun);
    world.start("order").await;
    assert_eq!(jobs_in(&world.ok(keyed("k", activate("a", "w", 1))).await).len(), 1);
    world.end().await;
}

#[tokio::test]
async fn a_long_poll_is_served_in_the_turn_that_makes_its_job() {
    let world = World::new().await;
    world.start("order").await;
    let held = world.activate("a").await[0];
    let poll = world.later(waiting(60_000, activate("b", "w", 1)));
    let keyed_poll = world.later(waiting(60_000, keyed("p", activate("b", "w", 1))));
    parked(&world, 2).await;
    let begun = world.stage.begun();
    world.ok(complete(held)).await;
    assert_eq!(jobs_in(&text(&poll.await.unwrap().unwrap())).len(), 1);
    assert_eq!(world.stage.begun(), begun + 1, "one commit for both");
    assert!(!keyed_poll.is_finished(), "there was one job");
    world.start("order").await;
    let held = world.activate("a").await[0];
    world.ok(complete(held)).await;
    let first = text(&keyed_poll.await.unwrap().unwrap());
    assert_eq!(world.ok(keyed("p", activate("b", "w", 1))).await, first);
    world.end().await;
}

/// Until the actor has looked at so many polls: each asks for the range at least once, and a later request follows them.
async fn parked(world: &World, polls: usize) {
    for _ in 0..polls {
        tokio::task::yield_now().await;
    }
    while world.engine.queue().0 > 0 {
        tokio::task::yield_now().await;
    }
    // The mailbox is in order: what was sent before this is parked when this is answered.
    assert_eq!(world.ok(activate("nobody", "w", 1)).await, "jobs");
}

#[tokio::test]
async fn a_poll_whose_client_went_away_leases_nothing() {
    let world = World::new().await;
    let gone = world.later(waiting(60_000, activate("a", "w", 1)));
    let stays = world.later(waiting(60_000, activate("a", "v", 1)));
    parked(&world, 2).await;
    gone.abort();
    assert!(gone.await.is_err());
    world.start("order").await;
    assert_eq!(jobs_in(&text(&stays.await.unwrap().unwrap())).len(), 1);
    assert_eq!(world.end().await.count("job.activated"), 1);
}

#[tokio::test]
async fn a_long_poll_ends_empty_when_its_time_is_over() {
    let world = World::new().await;
    let poll = world.ask(waiting(30, activate("a", "w", 1)));
    let answer = tokio::time::timeout(Duration::from_secs(20), poll).await.unwrap().unwrap();
    assert_eq!(text(&answer), "jobs");
    world.end().await;
}

#[tokio::test]
async fn polls_are_bounded() {
    let world = World::with(wf_engine::Options { mailbox_max: 3, ..options() }).await;
    let polls: Vec<_> = (0..3).map(|_| world.later(waiting(60_000, activate("a", "w", 1)))).collect();
    parked(&world, 3).await;
    assert!(matches!(world.ask(waiting(60_000, activate("a", "w", 1))).await, Err(Refusal::Overloaded)));
    world.engine.shutdown().await;
    for poll in polls {
        assert_eq!(text(&poll.await.unwrap().unwrap()), "jobs");
    }
}

#[tokio::test]
async fn a_job_that_falls_ready_by_the_clock_wakes_a_poll() {
    let world = World::new().await;
    world.start("late").await;
    let poll = world.later(waiting(60_000, activate("d", "w", 1)));
    parked(&world, 1).await;
    world.advance(10_000).await;
    assert_eq!(jobs_in(&text(&poll.await.unwrap().unwrap())).len(), 1);
    // And when its lease runs out, the next.
    let poll = world.later(waiting(60_000, activate("d", "w", 1)));
    parked(&world, 1).await;
    world.advance(1_000).await;
    assert_eq!(jobs_in(&text(&poll.await.unwrap().unwrap())).len(), 1);
    world.end().await;
}

/// A command begins anew after each load: one that reads hundreds of variables must not load hundreds of times.
#[tokio::test]
async fn hundreds_of_variables_are_few_loads() {
    const PATHS: usize = 300;
    let scripts: String = (0..PATHS)
        .map(|n| {
            let flow = format!(r#"<sequenceFlow id="f{n}" sourceRef="x{n}" targetRef="x{}"/>"#, n + 1);
            let script = format!(r#"<zeebe:script expression="=v{n}" resultVariable="r"/>"#);
            format!(r#"{flow}<scriptTask id="x{}"><extensionElements>{script}</extensionElements></scriptTask>"#, n + 1)
        })
        .collect();
    let xml = format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0">
        <process id="long" isExecutable="true"><startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="x0"/>
        <serviceTask id="x0"><extensionElements><zeebe:taskDefinition type="a"/></extensionElements></serviceTask>
        {scripts}</process></definitions>"#
    );
    let world = World::new().await;
    world.ok(deploy_xml(&xml)).await;
    let mut variables: Vec<_> = (0..3_000).map(|n| (format!("v{n}").into(), "1".into())).collect();
    variables.sort();
    world.ok(start_with("long", variables)).await;
    let job = world.activate("a").await[0];
    let world = world.restart().await;
    let loads = || world.stage.loads.load(std::sync::atomic::Ordering::Relaxed);
    let before = loads();
    world.ok(complete(job)).await;
    assert!(loads() - before < 30, "{} loads to complete", loads() - before);
}

#[test]
fn outcomes_name_their_state() {
    let failed = Outcome::Failed { state: JobState::Failed, retries: 0, incident: None };
    assert!(format!("{failed:?}").starts_with("Failed { state: Failed, retries: 0"));
}
