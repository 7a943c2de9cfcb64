//! S6, S7, S8: workers die, are late, and write at the same time. Next: `broker.rs`.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

use e2e::api::{Api, text};
use e2e::models::model;
use e2e::node::{Ended, Node, run};
use e2e::until;
use serde_json::{Value, json};

use crate::fresh_setup;

use super::{Shop, invoice, picked_up, start};

const LEASE_MS: u64 = 30_000;
const SIGKILL: i32 = 9;

/// A worker charges the card and is killed before it can say so. Its lease runs out, another one gets the job with the same
/// key, and the provider recognises it.
#[test]
fn s6_worker_dies_after_the_external_call_before_the_ack() {
    let shop = Shop::open(fresh_setup().test_clock());
    let node = shop.node();
    let order = text(&start(&node.api, "O-1").answer().expect(201).json()["key"]);

    let charge = format!(
        "charge=$(cat); curl -sf -H \"Idempotency-Key: $WF_IDEMPOTENCY_KEY\" -d \"$charge\" {}",
        shop.provider.url()
    );
    let died = work(&shop, &node, "first", &format!("{charge} && kill -9 $PPID"));
    assert_eq!(died.status.signal(), Some(SIGKILL), "{died:?}");
    assert_eq!(shop.provider.calls(), 1);
    let job = node.api.all("/api/v1/jobs?type=charge-card").remove(0);
    assert_eq!((&job["state"], &job["worker"]), (&json!("ACTIVATED"), &json!("first")), "nobody told the engine");

    // While the lease lasts the job is the dead one's; then it is the next one's.
    assert_eq!(node.api.activated("charge-card", "second", 1).len(), 0);
    node.api.advance(LEASE_MS);
    work(&shop, &node, "second", &charge).expect(0);
    assert_eq!(shop.provider.calls(), 2, "it was called twice");
    let key = format!("wf-job-{}", text(&job["key"]));
    assert_eq!(shop.provider.charges(), BTreeMap::from([(key, 1)]), "it charged once");
    assert_eq!(node.api.instance(&order)["variables"]["charge"], "ch_1", "the answer that the dead one got");

    picked_up(&node.api, "O-1").answer().expect(200);
    invoice(&node.api);
    shop.went_through_once(&node.api, &order);
    assert_eq!(node.api.metric("wf_lease_expiries_total"), 1.0);
}

/// The same for a provider that knows no keys: the worker records a step between call and completion and is killed, and the
/// next one reads there that it was done.
#[test]
fn s6_a_recorded_step_outlives_its_worker() {
    let shop = Shop::open(fresh_setup().test_clock());
    let node = shop.node();
    let order = text(&start(&node.api, "O-1").answer().expect(201).json()["key"]);

    // Without a key the provider cannot tell two calls apart.
    let charge = format!(
        "cat > job.json; curl -sf -d '{{\"orderId\": \"O-1\"}}' {} > charge.json; \
         curl -sf -X PUT \"$WF_SERVER/api/v1/jobs/$WF_JOB_KEY/steps/charged\" -H 'Content-Type: application/json' \
         -d \"{{\\\"worker\\\": \\\"first\\\", \\\"result\\\": $(cat charge.json)}}\" > step.json; kill -9 $PPID",
        shop.provider.url()
    );
    let died = work(&shop, &node, "first", &charge);
    assert_eq!(died.status.signal(), Some(SIGKILL), "{died:?}");
    assert_eq!(shop.file("step.json")["recorded"], true);
    assert_eq!(shop.file("job.json")["steps"], json!({}));
    node.api.advance(LEASE_MS);
    work(&shop, &node, "second", "cat > job.json; echo '{}'").expect(0);
    assert_eq!(shop.file("job.json")["steps"], json!({"charged": {"charge": "ch_1"}}), "so it did not call");

    picked_up(&node.api, "O-1").answer().expect(200);
    invoice(&node.api);
    shop.went_through_once(&node.api, &order);
    assert_eq!(shop.provider.calls(), 1);
}

/// `wf worker` for one job, in the shop's folder.
fn work(shop: &Shop, node: &Node, name: &str, exec: &str) -> Ended {
    let words = ["worker", "--type", "charge-card", "--once", "--name", name, "--exec", exec];
    run(node.wf(&words).current_dir(shop.setup.folder.path()))
}

fn record(api: &Api, job: &Value, worker: &str, result: Value) -> e2e::http::Answer {
    let path = format!("/api/v1/jobs/{}/steps/charged", text(&job["key"]));
    api.put(&path, json!({"worker": worker, "lease": job["lease"], "result": result})).answer()
}

/// The provider takes longer than the lease. Another worker has the job by then, and the first one comes back: whatever it
/// says, it is told that it is late, and nothing changes.
#[test]
fn s7_late_worker() {
    let shop = Shop::open(fresh_setup().test_clock());
    let node = shop.node();
    let api = &node.api;
    let order = text(&start(api, "O-1").answer().expect(201).json()["key"]);

    let late = api.job("charge-card", "late");
    let key = text(&late["idempotencyKey"]);
    shop.provider.is_slow(true);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| shop.provider.charge(&key, &late["variables"]).expect(200).json());
        until("the call at the provider", || (shop.provider.calls() == 1).then_some(()));
        api.advance(LEASE_MS);
        // Expired, and nobody else has it yet: late all the same.
        refused(api, &late, "expired");
        let job = api.job("charge-card", "in-time");
        assert_eq!((&job["key"], &job["idempotencyKey"]), (&late["key"], &late["idempotencyKey"]));
        assert_ne!(job["lease"], late["lease"]);
        refused(api, &late, "taken");

        // The provider answers both, and charged once.
        shop.provider.is_slow(false);
        let charge = shop.provider.charge(&key, &job["variables"]).expect(200).json();
        assert_eq!(call.join().expect("an answer"), charge);
        let complete =
            || api.complete(&job, "in-time", charge.clone()).answer().expect(200).json()["duplicate"] == true;
        // The rightful holder may repeat itself.
        assert_eq!([complete(), complete()], [false, true]);
    });
    assert_eq!(api.metric("wf_worker_idempotency_skipped_total{type=\"charge-card\"}"), 1.0);
    refused(api, &late, "finished");

    picked_up(api, "O-1").answer().expect(200);
    invoice(api);
    shop.went_through_once(api, &order);
    shop.charged_once_each(&["O-1"]);
    let completed = |event: &&Value| event["type"] == "job.completed" && event["resource"] == late["key"];
    let events = api.all(&format!("/api/v1/audit?instance={order}"));
    let by: Vec<&Value> = events.iter().filter(completed).map(|event| &event["payload"]["worker"]).collect();
    assert_eq!(by, ["in-time"]);
    assert_eq!(api.instance(&order)["variables"].get("lateness"), None);
}

/// Everything that a holder may say, said too late. It leaves no trace.
#[track_caller]
fn refused(api: &Api, job: &Value, reason: &str) {
    let before = api.audit().len();
    let report = |more: Value| {
        let mut body = json!({"worker": "late", "lease": job["lease"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let table = [
        api.complete(job, "late", json!({"lateness": 1})),
        api.about(job, "fail", report(json!({"message": "it took so long"}))),
        api.about(job, "error", report(json!({"errorCode": "card-declined"}))),
        api.about(job, "extend", report(json!({"leaseMs": LEASE_MS}))),
    ];
    for call in table {
        let problem = call.answer().expect_problem(409, "job-lease-lost");
        assert_eq!((&problem["retry"], &problem["reason"]), (&json!(false), &json!(reason)), "{}", call.request.path);
    }
    record(api, job, "late", json!("late")).expect_problem(409, "job-lease-lost");
    assert_eq!(api.audit().len(), before);
}

const TASKS: usize = 12;
const WRITES: usize = 40;

/// Two workers and an operator write variables of one instance at the same time: each has names of its own, and all write
/// `last`. The engine puts the writes into one order; none of them is lost, and under each name stands what came last.
#[test]
fn s8_concurrent_variable_updates() {
    let node = fresh_setup().start();
    let api = &node.api;
    api.deploy(&parallel_tasks()).answer().expect(201);
    let instance = api.started("many", json!({"last": "nobody"}));
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            scope.spawn(move || {
                for n in 0..TASKS / 2 {
                    let job = api.activated("count", name, 1).remove(0);
                    let wrote = format!("{name}-{n}");
                    let variables = json!({wrote.as_str(): {"of": name, "n": n}, "last": wrote});
                    api.complete(&job, name, variables).answer().expect(200);
                }
            });
        }
        scope.spawn(|| {
            for n in 0..WRITES {
                let wrote = format!("operator-{n}");
                let variables = json!({wrote.as_str(): n, "last": wrote});
                let path = format!("/api/v1/instances/{instance}/variables");
                api.put(&path, json!({"variables": variables})).answer().expect(200);
            }
        });
    });

    // The log's own order, folded: later writes win by name.
    let events = api.all(&format!("/api/v1/audit?instance={instance}"));
    let mut folded = serde_json::Map::new();
    for event in &events {
        if let Some(written) = event["payload"]["variables"].as_object() {
            folded.extend(written.clone());
        }
    }
    let variables = api.instance(&instance)["variables"].clone();
    assert_eq!(variables, Value::Object(folded));
    let names = variables.as_object().map(|all| all.keys().filter(|name| name.contains('-')).count());
    assert_eq!(names, Some(TASKS + WRITES), "one was lost: {variables}");
    // They were at it together: the operator's writes are not all before or behind the workers'.
    let writes = events.iter().filter(|event| event["type"] == "variables.set");
    assert_eq!(writes.count(), TASKS + WRITES);
    assert_eq!(api.state(&instance), "ACTIVE");
    api.complete(&api.job("end", "a"), "a", json!({})).answer().expect(200);
    assert_eq!(api.instance(&instance)["variables"], variables, "the end changes none");
    assert_eq!(api.state(&instance), "COMPLETED");
}

/// Fork, `TASKS` tasks at once, join, one task that ends it.
fn parallel_tasks() -> String {
    let task = |id: &str, kind: &str| {
        format!(
            r#"<bpmn:serviceTask id="{id}"><bpmn:extensionElements><zeebe:taskDefinition type="{kind}"/>
</bpmn:extensionElements></bpmn:serviceTask>"#
        )
    };
    let flow =
        |from: &str, to: &str| format!(r#"<bpmn:sequenceFlow id="{from}-{to}" sourceRef="{from}" targetRef="{to}"/>"#);
    let mut content = r#"<bpmn:startEvent id="start"/><bpmn:parallelGateway id="fork"/>
<bpmn:parallelGateway id="join"/><bpmn:endEvent id="end"/>"#
        .to_owned();
    content += &task("last-task", "end");
    for (from, to) in [("start", "fork"), ("join", "last-task"), ("last-task", "end")] {
        content += &flow(from, to);
    }
    for n in 0..TASKS {
        let id = format!("task-{n}");
        content += &(task(&id, "count") + &flow("fork", &id) + &flow(&id, "join"));
    }
    model("many", &content)
}
