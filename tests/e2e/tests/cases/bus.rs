//! L5.1-L5.3, L5.5: events leave once, in order, and only if they happened. A real NATS server and a real HTTP receiver
//! stand at the other end. A crash between shipping and marking, and dead letters: `scenarios/` (S9, S3).

use std::collections::BTreeSet;

use e2e::api::{Api, text};
use e2e::models::one_task;
use e2e::nats::Nats;
use e2e::node::{Node, Setup};
use e2e::until;
use serde_json::{Value, json};

use e2e::receiver::Receiver;
use e2e::stream::{Message, all_shipped, kinds_of, sink, stream};

use crate::fresh_setup;

const PUBLISHED: [&str; 3] = ["instance.started", "job.completed", "instance.completed"];

#[test]
fn l5_3_each_event_is_in_the_stream_once_and_in_order() {
    let nats = Nats::start();
    let setup = to_nats(&nats.url());
    let node = prepared(&setup);
    let start = |n: u32| node.api.start("one", json!({"n": n})).key(if n == 0 { "first" } else { "other" });
    let instances = [0, 1].map(|n| text(&start(n).answer().expect(201).json()["key"]));
    refused(&node.api);
    let jobs = node.api.activated("work", "w", 10);
    jobs.iter().for_each(|job| drop(node.api.complete(job, "w", json!({})).answer().expect(200)));
    all_shipped(&node.api);
    let messages = stream(&nats.url());
    assert_eq!(messages.len(), instances.len() * PUBLISHED.len(), "no ghosts, nothing twice: {messages:?}");
    for instance in &instances {
        in_order(&messages, instance);
    }
    let from_audit: BTreeSet<String> = node.api.audit().iter().filter(|event| is_published(event)).map(id_of).collect();
    let shipped: BTreeSet<String> = messages.iter().map(|message| message.id.clone()).collect();
    assert_eq!(shipped, from_audit, "published if and only if committed");
    let first = &messages[0];
    assert_eq!(first.subject, "wf.default.wf.instance.started");
    assert_eq!((&first.event["specversion"], &first.event["tenantid"]), (&json!("1.0"), &json!("default")));
    assert_eq!(first.event["data"]["processDefinitionId"], "one");
    assert_eq!(node.api.metric("wf_outbox_dedup_drops_total"), 0.0);
}

fn is_published(event: &Value) -> bool {
    PUBLISHED.iter().any(|kind| event["type"] == *kind)
}

fn id_of(event: &Value) -> String {
    text(&event["eventId"])
}

/// L5.1: what was refused leaves nothing behind.
fn refused(api: &Api) {
    api.start("nobody", json!({})).answer().expect_problem(404, "definition-not-found");
    api.start("one", json!([])).answer().expect_problem(400, "validation");
    let unique = json!({"processDefinitionId": "one", "variables": {}, "uniquenessKey": "missing"});
    api.post("/api/v1/instances", unique).answer().expect_problem(400, "validation");
    api.start("one", json!({"n": 100})).key("first").answer().expect_problem(409, "idempotency-conflict");
}

#[test]
fn l5_1_a_death_before_the_commit_publishes_nothing() {
    let nats = Nats::start();
    let setup = to_nats(&nats.url());
    prepared(&setup).kill();
    let doomed = setup.start_armed("before-commit");
    assert!(doomed.api.start("one", json!({})).send().is_err());
    doomed.dies();
    let node = setup.start();
    node.api.started("one", json!({}));
    all_shipped(&node.api);
    assert_eq!(stream(&nats.url()).len(), 1, "only the one that was committed");
}

/// L5.2: a broker that is down delays, and changes neither order nor number.
#[test]
fn l5_2_a_broker_that_comes_later_and_goes_again_gets_everything_once_in_order() {
    let mut nats = Nats::start();
    nats.kill();
    let setup = to_nats(&nats.url());
    let node = prepared(&setup);
    let first = whole_instance(&node);
    assert_eq!(node.api.all("/api/v1/outbox?state=pending").len(), PUBLISHED.len());
    nats.restart();
    all_shipped(&node.api);
    in_order(&stream(&nats.url()), &first);
    nats.kill();
    let second = whole_instance(&node);
    nats.restart();
    all_shipped(&node.api);
    let messages = stream(&nats.url());
    assert_eq!(messages.len(), 2 * PUBLISHED.len());
    in_order(&messages, &first);
    in_order(&messages, &second);
    assert!(node.stop().success());
}

/// L5.2: what the broker will never take is a dead letter of its own instance; the others go on.
#[test]
fn l5_2_an_event_that_is_too_big_for_the_broker_stops_its_own_instance_only() {
    let nats = Nats::start();
    let node = prepared(&to_nats(&nats.url()));
    let big = node.api.started("one", json!({"ballast": "x".repeat(2 << 20)}));
    let small = node.api.started("one", json!({}));
    for job in node.api.activated("work", "w", 2) {
        node.api.complete(&job, "w", json!({})).answer().expect(200);
    }
    let dead = until("dead letter", || node.api.all("/api/v1/outbox?state=dead").pop());
    assert_eq!(dead["topic"], "wf.instance.started");
    until("the other one's events", || (stream(&nats.url()).len() == PUBLISHED.len()).then_some(()));
    in_order(&stream(&nats.url()), &small);
    assert_eq!(node.api.all("/api/v1/outbox?state=pending").len(), PUBLISHED.len() - 1);
    assert_eq!(node.api.metric("wf_outbox_dead_total{sink=\"bus\"}"), 1.0);
    assert_eq!(node.api.state(&big), "COMPLETED", "the process itself does not wait for a broker");
}

/// L5.5, and S9 for a webhook: signed, the id the same over a crash, the body frozen.
#[test]
fn l5_5_a_webhook_is_signed_and_keeps_its_id_over_a_crash() {
    let receiver = Receiver::start(|_| 204);
    let setup = fresh_setup().config(&webhook(&receiver.url(), ""));
    prepared(&setup).kill();
    let doomed = setup.start_armed("after-ship");
    let _ = doomed.api.start("one", json!({})).key("once").send();
    doomed.dies();
    let node = setup.start();
    all_shipped(&node.api);
    let deliveries = receiver.deliveries();
    assert_eq!(deliveries.len(), 2, "{deliveries:?}");
    let [one, two] = [&deliveries[0], &deliveries[1]];
    assert_eq!((one.header("webhook-id"), &one.body), (two.header("webhook-id"), &two.body));
    for delivery in [one, two] {
        let id = delivery.header("webhook-id");
        assert!(delivery.is_signed_with(SECRET), "{delivery:?}");
        assert_eq!(delivery.header("idempotency-key"), format!("\"{id}\""));
        assert_eq!(delivery.header("content-type"), "application/cloudevents+json");
        assert_eq!(delivery.json()["id"], id);
    }
    let row = &node.api.all("/api/v1/outbox")[0];
    assert_eq!((&row["dedupKey"], &row["state"]), (&json!(one.header("webhook-id")), &json!("shipped")));
}

/// L5.2: a 503 is tried again after its back-off, on the engine's clock, under the same id.
#[test]
fn l5_2_a_receiver_that_fails_gets_the_same_id_again() {
    let receiver = Receiver::start(|count| if count == 1 { 503 } else { 200 });
    let node = prepared(&fresh_setup().config(&webhook(&receiver.url(), "")).test_clock());
    node.api.started("one", json!({}));
    until("attempt", || (node.api.all("/api/v1/outbox")[0]["attempts"] == 1).then_some(()));
    let row = &node.api.all("/api/v1/outbox?state=pending")[0];
    assert!(text(&row["lastError"]).contains("503"), "{row}");
    node.api.advance(2_000);
    all_shipped(&node.api);
    let ids: Vec<String> = receiver.deliveries().iter().map(|delivery| delivery.header("webhook-id")).collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn webhook(url: &str, more: &str) -> String {
    format!("[[sink]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{url}\"\nsecret = \"{SECRET}\"\n{more}\n")
}

fn to_nats(url: &str) -> Setup {
    fresh_setup().config(&sink(url, r#"["instance.started", "job.completed", "instance.completed"]"#))
}

fn prepared(setup: &Setup) -> Node {
    let node = setup.start();
    node.api.deploy(&one_task("one", "work")).answer().expect(201);
    node
}

fn whole_instance(node: &Node) -> String {
    let instance = node.api.started("one", json!({}));
    let job = node.api.job("work", "w");
    node.api.complete(&job, "w", json!({})).answer().expect(200);
    instance
}

/// One instance's events: each id once, types in the order in which they happened.
#[track_caller]
fn in_order(messages: &[Message], instance: &str) {
    let kinds = kinds_of(messages, instance);
    let expected: Vec<String> = PUBLISHED.iter().map(|kind| format!("wf.{kind}")).collect();
    assert_eq!(kinds, expected[..kinds.len()]);
}
