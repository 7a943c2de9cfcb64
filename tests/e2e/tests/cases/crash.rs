//! L1.6: the process dies at a named point, comes back on its store, and gets the same request again. Exactly one
//! effect, and an answer that tells the truth: fresh where nothing was committed, the first one where it was.
//! One request at a time, so that each answer is known. Everything at once, at every place: `matrix.rs`. Crashes between an
//! outbox and its sink: `scenarios/` (S9).

use std::collections::BTreeMap;

use e2e::api::{Api, Call, jobs_of, text};
use e2e::http::Answer;
use e2e::models::{file, one_task, order};
use e2e::node::{Node, Setup};
use e2e::until;
use serde_json::{Value, json};

use crate::fresh_setup;

/// What the disk holds when the process dies.
#[derive(Clone, Copy, PartialEq)]
enum Left {
    Nothing,
    Everything,
}

#[test]
fn l1_6_death_before_the_commit_leaves_nothing() {
    all_requests("before-commit", Left::Nothing);
}

#[test]
fn l1_6_death_after_the_commit_leaves_the_effect_and_its_answer() {
    all_requests("after-commit", Left::Everything);
}

#[test]
fn l1_6_death_before_the_answer_leaves_the_effect_and_its_answer() {
    all_requests("before-answer", Left::Everything);
}

fn all_requests(point: &str, left: Left) {
    // One turn after the other, so that each hit of a place is known.
    let setup = fresh_setup().one_partition().test_clock();
    let node = setup.start();
    node.api.deploy(&order()).answer().expect(201);
    node.api.deploy(&one_task("one", "work")).answer().expect(201);
    node.api.deploy(&one_task("polled", "poll")).answer().expect(201);
    assert!(node.stop().success());
    start_under_a_key(&setup, point, left);
    start_with_a_unique_value(&setup, point, left);
    completion_of_the_holder(&setup, point, left);
    completion_under_a_key(&setup, point, left);
    message_with_an_id(&setup, point, left);
    activation_under_a_key(&setup, point, left);
}

/// L2.1: the engine's own work (a timer, a lease, a back-off that runs out) is done once, whichever of its commits the
/// process dies at, and by itself once the clock has been set.
#[test]
fn l2_1_death_in_the_engine_s_own_work_does_it_once() {
    let undisturbed = own_work("nowhere", 0);
    assert_eq!(undisturbed["timer.fired"], 1);
    assert_eq!(undisturbed["job.ready"], 2, "an expired lease, and a back-off's end: {undisturbed:?}");
    for point in ["before-commit", "after-commit", "before-answer"] {
        for later in 0..3 {
            assert_eq!(own_work(point, later), undisturbed, "{point}, {later} hits later");
        }
    }
}

/// How often each event happened.
fn own_work(point: &str, later: usize) -> BTreeMap<String, usize> {
    let setup = fresh_setup().one_partition().test_clock();
    let node = setup.start();
    node.api.deploy(&file("tests/corpus/08-order-eventgateway-parallel.bpmn")).answer().expect(201);
    node.api.deploy(&one_task("one", "work")).answer().expect(201);
    node.api.started("ordering-items-workflow", json!({"orderId": "O-1"}));
    for job_type in ["validate-order", "send-payment-notification"] {
        node.api.complete(&node.api.job(job_type, "w"), "w", json!({})).answer().expect(200);
    }
    (0..2).for_each(|n| drop(node.api.started("one", json!({"n": n}))));
    let jobs = node.api.activated("work", "w", 2);
    let failure = json!({"worker": "w", "lease": jobs[1]["lease"], "message": "m", "backoffMs": 20_000});
    node.api.about(&jobs[1], "fail", failure).answer().expect(200);
    assert!(node.stop().success());
    // All of it is due then. A time and no span: the repeat means the same.
    let set_clock = |api: &Api| api.put("/api/v1/clock", json!({"now": "2100-01-01T00:00:00Z"})).send();
    let node = setup.start_armed_later(point, later);
    match set_clock(&node.api) {
        Ok(answer) => drop((answer.expect(200), node.kill())),
        Err(_) => node.dies(),
    }
    let node = setup.start();
    if node.api.events("clock.set") == 0 {
        set_clock(&node.api).unwrap().expect(200);
    }
    until("work that was due", || (node.api.all("/api/v1/jobs?state=READY").len() == 3).then_some(()));
    // Its answer comes after everything that fell due, so nothing more is to come.
    set_clock(&node.api).unwrap().expect(200);
    let mut counts = BTreeMap::new();
    let events = node.api.audit().into_iter().map(|event| text(&event["type"]));
    events.filter(|kind| kind != "clock.set").for_each(|kind| *counts.entry(kind).or_default() += 1);
    counts
}

/// Sends it to a node that dies at the point, then to one that lives. The second answer and the node that gave it.
#[track_caller]
fn twice(setup: &Setup, point: &str, request: impl Fn(&Api) -> Call) -> (Answer, Node) {
    let doomed = setup.start_armed(point);
    let first = request(&doomed.api).send();
    assert!(first.is_err(), "{point}: an answer got out: {first:?}");
    doomed.dies();
    let node = setup.start();
    (request(&node.api).answer(), node)
}

fn start_under_a_key(setup: &Setup, point: &str, left: Left) {
    let before = setup.start().api.events("instance.started");
    let (answer, node) = twice(setup, point, |api| api.start("one", json!({"n": 1})).key("start-1"));
    let key = text(&answer.clone().expect(201).json()["key"]);
    assert_eq!(answer.is_replay(), left == Left::Everything, "{point}");
    let third = node.api.start("one", json!({"n": 1})).key("start-1").answer();
    assert!(third.is_replay() && third.body == answer.body, "{point}");
    assert_eq!(third.header("location"), Some(&*format!("/api/v1/instances/{key}")));
    assert_eq!(node.api.all("/api/v1/instances?variable.n=1").len(), 1, "{point}");
    assert_eq!(node.api.events("instance.started"), before + 1, "{point}");
    let jobs = node.api.all(&format!("/api/v1/jobs?processInstanceKey={key}"));
    assert_eq!(jobs.len(), 1, "{point}: {jobs:?}");
}

/// S4: without a key; the twin is found by its value.
fn start_with_a_unique_value(setup: &Setup, point: &str, left: Left) {
    let body = json!({"processDefinitionId": "one", "variables": {"cart": 7}, "uniquenessKey": "cart"});
    let (answer, node) = twice(setup, point, |api| api.post("/api/v1/instances", body.clone()));
    let is_twin = answer.json()["existing"] == true;
    assert_eq!((answer.status, is_twin), if left == Left::Nothing { (201, false) } else { (200, true) }, "{point}");
    assert_eq!(node.api.all("/api/v1/instances?variable.cart=7").len(), 1, "{point}");
}

/// One instance with its job in a worker's hands.
fn held_job(setup: &Setup, worker: &str) -> Value {
    let node = setup.start();
    node.api.started("one", json!({}));
    let job = node.api.activated("work", worker, 1).remove(0);
    assert!(node.stop().success());
    job
}

/// L3.4: the state knows its holder, no key is needed.
fn completion_of_the_holder(setup: &Setup, point: &str, left: Left) {
    let job = held_job(setup, "w");
    let (answer, node) = twice(setup, point, |api| api.complete(&job, "w", json!({"paid": true})));
    let duplicate = left == Left::Everything;
    assert_eq!(answer.expect(200).json(), json!({"state": "COMPLETED", "duplicate": duplicate}), "{point}");
    completed_once(&node.api, &job);
}

/// L3.4: byte for byte, so a replay says `duplicate: false` as the lost answer did.
fn completion_under_a_key(setup: &Setup, point: &str, left: Left) {
    let job = held_job(setup, "w");
    let (answer, node) = twice(setup, point, |api| api.complete(&job, "w", json!({})).key("complete-1"));
    assert_eq!(answer.is_replay(), left == Left::Everything, "{point}");
    assert_eq!(answer.expect(200).json(), json!({"state": "COMPLETED", "duplicate": false}), "{point}");
    completed_once(&node.api, &job);
}

fn completed_once(api: &Api, job: &Value) {
    let instance = text(&job["processInstanceKey"]);
    assert_eq!(api.state(&instance), "COMPLETED");
    let events = api.all(&format!("/api/v1/audit?instance={instance}"));
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((count("job.completed"), count("instance.completed")), (1, 1), "{events:?}");
}

/// L5.7: the id is enough, no key.
fn message_with_an_id(setup: &Setup, point: &str, left: Left) {
    let node = setup.start();
    let order_id = format!("O-{point}");
    let instance = node.api.started("order", json!({"orderId": order_id, "total": 1}));
    let job = node.api.job("charge-card", "w");
    node.api.complete(&job, "w", json!({})).answer().expect(200);
    assert!(node.stop().success());
    let message = |api: &Api| api.publish("parcel-picked-up", &order_id, "carrier-1", json!({}));
    let (answer, node) = twice(setup, point, message);
    let body = answer.expect(200).json();
    let correlated = if left == Left::Nothing { json!([{"processInstanceKey": instance}]) } else { json!([]) };
    assert_eq!(body["duplicate"], left == Left::Everything, "{point}");
    assert_eq!(body["correlated"], correlated, "{point}");
    assert_eq!(message(&node.api).answer().json()["key"], body["key"], "{point}: another message");
    assert_eq!(node.api.all("/api/v1/jobs?type=send-invoice").len(), 1, "{point}");
    assert_eq!((node.api.events("message.published"), node.api.events("message.correlated")), (1, 1), "{point}");
}

/// L3.1: the same jobs and leases, and the lease that comes back is the one that counts.
fn activation_under_a_key(setup: &Setup, point: &str, left: Left) {
    let node = setup.start();
    (0..3).for_each(|n| drop(node.api.started("polled", json!({"n": n}))));
    assert!(node.stop().success());
    let before = setup.start().api.events("job.activated");
    let (answer, node) = twice(setup, point, |api| api.activate("poll", "w", 2).key("poll-1"));
    assert_eq!(answer.is_replay(), left == Left::Everything, "{point}");
    let jobs = jobs_of(&answer);
    assert_eq!(jobs.len(), 2, "{point}");
    assert_eq!(node.api.events("job.activated"), before + 2, "{point}");
    assert_eq!(node.api.all("/api/v1/jobs?type=poll&state=ACTIVATED").len(), 2, "{point}");
    for job in &jobs {
        node.api.complete(job, "w", json!({})).answer().expect(200);
    }
    assert_eq!(node.api.activated("poll", "other", 10).len(), 1, "{point}");
}
