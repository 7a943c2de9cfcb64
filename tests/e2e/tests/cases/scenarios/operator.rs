//! S3: an operator replays what was given up: dead letters, and jobs without retries. Next: `restore.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use e2e::api::{Api, text};
use e2e::models::order;
use e2e::node::{Node, run};
use e2e::until;
use serde_json::{Value, json};

use crate::fresh_setup;

use super::{Shop, invoice, picked_up, start};
use e2e::receiver::{Delivery, Receiver};
use e2e::stream::all_shipped;

const ATTEMPTS_MAX: usize = 3;
/// Above every back-off between so few attempts.
const BACKOFF_MS: u64 = 20_000;

/// A receiver books what it is sent, and then fails to say so, until every attempt is used up. The operator replays the dead
/// letter, gets nervous and replays it again: the receiver sees the id that it has booked, and books nothing more.
#[test]
fn s3_operator_replays_the_dead_letter_queue() {
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = is_broken.clone();
    let receiver = Receiver::start(move |_| if broken.load(Ordering::Relaxed) { 500 } else { 200 });
    let hook = format!(
        "[[sink]]\nname = \"books\"\nkind = \"webhook\"\nurl = \"{}\"\nattempts_max = {ATTEMPTS_MAX}",
        receiver.url()
    );
    let node = fresh_setup().test_clock().config(&hook).start();
    node.api.deploy(&order()).answer().expect(201);
    let instance = text(&start(&node.api, "O-1").answer().expect(201).json()["key"]);
    let charge = node.api.job("charge-card", "till");
    node.api.complete(&charge, "till", json!({})).answer().expect(200);

    for attempt in 1..ATTEMPTS_MAX {
        let counted = || node.api.all("/api/v1/outbox").iter().any(|row| row["attempts"] == attempt);
        until("an attempt", || counted().then_some(()));
        node.api.advance(BACKOFF_MS);
    }
    let dead = until("a dead letter", || node.api.all("/api/v1/outbox?state=dead").pop());
    assert_eq!(dead["attempts"], ATTEMPTS_MAX);
    // What came later of the same order waits behind it, so that the receiver never sees an end before its start.
    assert_eq!(node.api.all("/api/v1/outbox?state=pending").len(), 1);
    assert_eq!(booked(&receiver.deliveries()).len(), 1, "it booked at the first attempt");

    is_broken.store(false, Ordering::Relaxed);
    let listed = run(&mut node.wf(&["outbox", "--state", "dead", "--output", "json"])).expect(0).json();
    assert_eq!(listed[0]["id"], dead["id"]);
    replay(&node, &dead);
    all_shipped(&node.api);
    let before = receiver.deliveries().len();
    replay(&node, &dead);
    until("another delivery", || (receiver.deliveries().len() > before).then_some(()));
    all_shipped(&node.api);
    picked_up(&node.api, "O-1").answer().expect(200);
    invoice(&node.api);
    all_shipped(&node.api);

    let deliveries = receiver.deliveries();
    let of_it = deliveries.iter().filter(|delivery| delivery.header("webhook-id") == text(&dead["eventId"]));
    assert_eq!(of_it.count(), ATTEMPTS_MAX + 2);
    let booked = booked(&deliveries);
    let kinds: Vec<&str> = booked.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(kinds, super::WHOLE_ORDER, "each once, in order");
    assert!(booked.iter().all(|event| event["subject"] == instance.as_str()));
    run(&mut node.wf(&["outbox", "retry", "ev-1-1-1:nowhere"])).expect(1);
}

fn replay(node: &Node, dead: &Value) {
    let told = run(&mut node.wf(&["outbox", "retry", &text(&dead["id"]), "--output", "json"])).expect(0).json();
    assert_eq!(told[0]["id"], dead["id"]);
}

/// What a receiver does that keeps the ids which it has processed: each once, in the order of its first delivery. Under one
/// id it never sees two different things.
fn booked(deliveries: &[Delivery]) -> Vec<Value> {
    let (mut inbox, mut books) = (BTreeMap::new(), Vec::new());
    for delivery in deliveries {
        let known = inbox.entry(delivery.header("webhook-id")).or_insert_with(|| {
            books.push(delivery.json());
            delivery.body.clone()
        });
        assert_eq!(*known, delivery.body);
    }
    books
}

/// A worker charges, records that it did, and then fails at something else until no retries are left. The operator resolves
/// the incident, again and again: the charge is not made again, and when the cause is gone the order goes on.
#[test]
fn s3_a_job_that_comes_back_from_its_incident_repeats_no_recorded_effect() {
    let shop = Shop::open(fresh_setup());
    let node = shop.node();
    let api = &node.api;
    let order = text(&start(api, "O-1").answer().expect(201).json()["key"]);

    let retries = 3;
    for left in (0..retries).rev() {
        let answer = attempt(&shop, api, true);
        assert_eq!(answer["retries"], left);
    }
    for _ in 0..2 {
        let incident = api.all("/api/v1/incidents").remove(0);
        assert_eq!((&incident["type"], &incident["processInstanceKey"]), (&json!("JOB_NO_RETRIES"), &json!(order)));
        let key = text(&incident["key"]);
        run(&mut node.wf(&["resolve", &key])).expect(0);
        // A second operator does the same: there is nothing to resolve.
        run(&mut node.wf(&["resolve", &key])).expect(1);
        attempt(&shop, api, true);
    }
    run(&mut node.wf(&["resolve", &text(&api.all("/api/v1/incidents")[0]["key"])])).expect(0);
    attempt(&shop, api, false);

    assert_eq!(shop.provider.calls(), 1, "recorded, so not even asked again");
    shop.charged_once_each(&["O-1"]);
    assert_eq!(api.instance(&order)["variables"]["charge"], "ch_1");
    picked_up(api, "O-1").answer().expect(200);
    invoice(api);
    assert_eq!((api.state(&order).as_str(), api.all("/api/v1/incidents").len()), ("COMPLETED", 0));
    assert_eq!((api.events("job.step-recorded"), api.events("incident.created")), (1, 3));
    let published = shop.published(api);
    let created = published.iter().filter(|message| message.event["type"] == "wf.incident.created");
    assert_eq!(created.count(), 3, "each incident is told once");
}

/// One activation: charge unless a step says that it was done, then fail or complete.
fn attempt(shop: &Shop, api: &Api, fails: bool) -> Value {
    let job = api.job("charge-card", "till");
    let mut charge = job["steps"]["charged"].clone();
    if charge.is_null() {
        charge = shop.provider.charge(&text(&job["idempotencyKey"]), &job["variables"]).expect(200).json();
        let body = json!({"worker": "till", "lease": job["lease"], "result": charge});
        api.put(&format!("/api/v1/jobs/{}/steps/charged", text(&job["key"])), body).answer().expect(200);
    }
    if !fails {
        return api.complete(&job, "till", charge).answer().expect(200).json();
    }
    let failure = json!({"worker": "till", "lease": job["lease"], "message": "the printer is out of paper"});
    api.about(&job, "fail", failure).answer().expect(200).json()
}
