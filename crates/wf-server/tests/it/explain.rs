//! One request followed through all layers, from each of its ends. With the real binary: `tests/e2e`, `explain.rs`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wf_server::{Auth, IdempotencyConfig, RouteRule};
use wf_store::Store;

use crate::support::*;

const START: &str = "POST /api/v1/instances";
const BODY: &str = r#"{"processDefinitionId":"order"}"#;
const WAITER: &str = r#"{"processDefinitionId":"waiter","variables":{"id":"A7"}}"#;

async fn keyed(service: &Service, key: &str, body: &str) -> Reply {
    service.send(START, &[JSON, ("idempotency-key", key)], body.to_owned()).await
}

async fn explained(service: &Service, query: &str) -> Value {
    let reply = service.get(&format!("/api/v1/explain?{query}")).await;
    assert_eq!(reply.status, 200, "{query}: {}", reply.body);
    reply.json()
}

/// A turn as well: it takes along the counts of repeats that were answered beside the turns.
async fn advance(service: &Service, ms: u64) {
    let moved = service.send("PUT /api/v1/clock", &[JSON], format!(r#"{{"advanceMs":{ms}}}"#)).await;
    assert_eq!(moved.status, 200, "{}", moved.body);
}

async fn activate(service: &Service, worker: &str) -> Value {
    let body = format!(r#"{{"type":"work","worker":"{worker}"}}"#);
    service.post("/api/v1/jobs/activate", &body).await.json()["jobs"][0].clone()
}

/// L6.3, K7: a start that was repeated and misused, a worker that died, another that reported twice.
#[tokio::test]
async fn l6_3_k7_a_key_is_told_through_all_layers() {
    let service = Service::with_sink().await;
    service.deploy(WORK).await;
    let first = keyed(&service, "k", BODY).await;
    let instance = text(&first.json()["key"]);
    for _ in 0..3 {
        assert_eq!(keyed(&service, "k", BODY).await.header("idempotent-replayed"), "true");
    }
    let other = r#"{"processDefinitionId":"order","variables":{"a":1}}"#;
    assert_eq!(keyed(&service, "k", other).await.verdict(), "409 idempotency-conflict");
    let dead = activate(&service, "dead").await;
    let step = format!("PUT /api/v1/jobs/{}/steps/charge", text(&dead["key"]));
    service.send(&step, &[JSON], r#"{"worker":"dead","result":1}"#).await;
    advance(&service, 30_000).await;
    let job = activate(&service, "quick").await;
    let complete = format!("/api/v1/jobs/{}/complete", text(&job["key"]));
    for duplicate in [false, true] {
        let body = format!(r#"{{"worker":"quick","lease":{}}}"#, job["lease"]);
        assert_eq!(service.post(&complete, &body).await.json()["duplicate"], duplicate);
    }

    let document = explained(&service, "key=k").await;
    assert_eq!(service.get("/api/v1/idempotency/k").await.json(), document);
    assert_eq!((&document["key"], &document["state"]), (&json!("k"), &json!("COMPLETED")));
    assert_eq!(document["route"], "/api/v1/instances");
    assert_eq!(document["firstSeenAt"], "2027-01-15T08:00:00.000Z");
    assert_eq!(document["expiresAt"], "2027-01-16T08:00:00.000Z");
    assert_eq!(document["answer"], json!({"status": 201, "bytes": first.body.len()}));
    assert_eq!(document["fingerprint"].as_str().map(str::len), Some(64));
    let listed = service.get("/api/v1/idempotency").await.json();
    let hashes: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|item| &item["keyHash"]).collect();
    assert!(hashes.contains(&&document["keyHash"]), "{hashes:?}");

    let command = &document["command"];
    assert_eq!((&command["verb"], &command["time"]), (&json!("start-instance"), &document["firstSeenAt"]));
    assert_eq!(command["eventId"], format!("ev-1-{}", text(&command["position"])));
    assert_eq!((&document["instances"], &document["instance"]["key"]), (&json!([instance]), &json!(instance)));
    assert_eq!((&document["instance"]["state"], &document["truncated"]), (&json!("COMPLETED"), &json!(false)));
    assert_eq!(document["unknown"], json!([]));

    let told = &document["jobs"][0];
    for name in ["key", "type", "elementId", "idempotencyKey", "lineageKey", "lease"] {
        assert_eq!(told[name], job[name], "{name}");
    }
    assert_eq!(
        (&told["state"], &told["worker"], &told["steps"]),
        (&json!("COMPLETED"), &json!("quick"), &json!(["charge"]))
    );
    let leases: Vec<[&Value; 3]> = told["activations"].as_array().unwrap().iter().map(lease).collect();
    let expired = json!("EXPIRED");
    let completed = json!("COMPLETED");
    assert_eq!(leases[0], [&json!("dead"), &dead["lease"], &expired]);
    assert_eq!(leases[1], [&json!("quick"), &job["lease"], &completed]);
    assert_eq!(told["activations"][0]["deadline"], dead["deadline"]);
    assert_eq!(told["activations"][0]["endedAt"], "2027-01-15T08:00:30.000Z");

    let topics: Vec<&str> =
        document["outbox"].as_array().unwrap().iter().filter_map(|row| row["topic"].as_str()).collect();
    assert_eq!(topics, ["wf.instance.started", "wf.job.completed", "wf.instance.completed"]);
    assert_eq!(document["outbox"][0]["dedupKey"], command["eventId"]);
    let whole = service.get(&format!("/api/v1/audit?instance={instance}&limit=1000")).await.json();
    let ids =
        |events: &Value| events.as_array().unwrap().iter().map(|event| event["eventId"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&document["audit"]), ids(&whole["items"]));

    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in document["duplicates"].as_array().unwrap() {
        let kind = (row["kind"].as_str().unwrap(), row["route"].as_str().unwrap());
        *counts.entry(kind).or_default() += row["count"].as_u64().unwrap();
    }
    let route = "/api/v1/instances";
    assert_eq!(
        counts,
        BTreeMap::from([(("REPLAY", route), 3), (("CONFLICT", route), 1), (("JOB", "complete-job"), 1)])
    );

    // The same from the other ends; the key itself is a secret of those who know it.
    for query in [format!("instance={instance}"), format!("job={}", text(&job["key"]))] {
        let mut same = explained(&service, &query).await;
        assert_eq!(same["key"].take(), json!(null), "{query}");
        same["key"] = json!("k");
        assert_eq!(same, document, "{query}");
    }
}

fn lease(activation: &Value) -> [&Value; 3] {
    [&activation["worker"], &activation["lease"], &activation["end"]]
}

/// L5.7, L6.3: the carrier's webhook came twice, under its id alone.
#[tokio::test]
async fn l5_7_l6_3_a_message_id_is_told_with_what_it_reached() {
    let service = Service::plain().await;
    service.deploy(WAIT).await;
    let instance = text(&keyed(&service, "k", WAITER).await.json()["key"]);
    advance(&service, 70_000).await;
    let publish = r#"{"name":"paid","correlationKey":"A7","messageId":"evt:1"}"#;
    let message = text(&service.post("/api/v1/messages", publish).await.json()["key"]);
    service.post("/api/v1/messages", publish).await;
    let document = explained(&service, "message=paid:evt:1").await;
    assert_eq!((&document["command"]["verb"], &document["state"]), (&json!("publish-message"), &json!("NONE")));
    assert!(text(&document["unknown"][0]).contains("without an Idempotency-Key"), "{document}");
    assert_eq!(document["instance"]["key"], instance);
    let told = json!({"key": message, "name": "paid", "correlationKey": "A7", "messageId": "evt:1", "elementId": "wait",
        "eventId": document["command"]["eventId"], "at": "2027-01-15T08:01:10.000Z"});
    assert_eq!(document["messages"], json!([told]));
    let duplicate = &document["duplicates"][0];
    assert_eq!((&duplicate["kind"], &duplicate["message"]), (&json!("MESSAGE"), &json!("paid:evt:1")));
    // The instance's own story has it too.
    let instance = explained(&service, "key=k").await;
    assert_eq!((&instance["messages"], &instance["duplicates"]), (&document["messages"], &document["duplicates"]));
    for query in ["message=paid:evt", "message=paid", "message=", "message=other:evt:1"] {
        assert_eq!(service.get(&format!("/api/v1/explain?{query}")).await.verdict(), "404 not-found", "{query}");
    }
}

/// F6: another tenant's key, instance, job and message are as if they were not there.
#[tokio::test]
async fn f6_another_tenant_learns_nothing() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let instance = text(&keyed(&service, "k", BODY).await.json()["key"]);
    keyed(&service, "k", BODY).await;
    let job = text(&activate(&service, "w").await["key"]);
    service.post("/api/v1/messages", r#"{"name":"m","messageId":"1"}"#).await;
    let table = [
        ("explain?key=k".to_owned(), "404 not-found"),
        ("idempotency/k".to_owned(), "404 not-found"),
        (format!("explain?instance={instance}"), "404 instance-not-found"),
        (format!("explain?job={job}"), "404 job-not-found"),
        ("explain?message=m:1".to_owned(), "404 not-found"),
    ];
    for (path, verdict) in table {
        let line = format!("GET /api/v1/{path}");
        assert_eq!(service.send(&line, &[("wf-tenant", "other")], "").await.verdict(), verdict, "{path}");
        let nobody = service.get(&format!("/api/v1/{}", path.replace(":1", ":2"))).await;
        assert_eq!(nobody.status, if path.contains("message") { 404 } else { 200 }, "{path}");
    }
    assert_eq!(service.get("/api/v1/explain?instance=42").await.verdict(), "404 instance-not-found");
    assert_eq!(service.get("/api/v1/explain?job=42").await.verdict(), "404 job-not-found");
}

/// Everything that a header may carry is asked for by path and by query.
#[tokio::test]
async fn l1_8_odd_keys_are_asked_for_as_they_are() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let long = "k".repeat(255);
    let keys = [" a b ", "a/b", "50%", "%2F", "a\\\"b", "..", ".", "a+b&key=c", "ä?#".trim_start_matches('ä'), &long];
    for key in keys {
        let header = format!("\"{key}\"");
        assert_eq!(keyed(&service, &header, BODY).await.status, 201, "{key}");
        let key = key.replace("\\\"", "\"");
        let encoded: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for path in [format!("explain?key={encoded}"), format!("idempotency/{encoded}")] {
            let reply = service.get(&format!("/api/v1/{path}")).await;
            assert_eq!((reply.status, &reply.json()["key"]), (200, &json!(key)), "{path}: {}", reply.body);
        }
    }
    for wrong in ["", "%20", "%0A", "%C3%A4", &format!("{long}k")] {
        let reply = service.get(&format!("/api/v1/explain?key={wrong}")).await;
        assert_eq!(reply.verdict(), "400 idempotency-key-malformed", "{wrong}");
    }
    for query in ["", "?key=a&instance=1", "?job=1&message=a:b"] {
        let reply = service.get(&format!("/api/v1/explain{query}")).await;
        assert_eq!(reply.verdict(), "400 validation: query", "{query}");
    }
    assert_eq!(service.get("/api/v1/explain?instance=x").await.verdict(), "400 validation: instance");
    assert_eq!(service.get("/api/v1/explain?kee=x").await.verdict(), "400 validation: kee");
}

/// What is no longer known is said. An expired record is there until the sweep; then the counts and the other ends are.
#[tokio::test]
async fn k7_an_expired_and_swept_key_says_what_is_no_longer_known() {
    let (service, store) = Service::with_store().await;
    service.deploy(WORK).await;
    let instance = text(&keyed(&service, "k", BODY).await.json()["key"]);
    keyed(&service, "quiet", BODY).await;
    keyed(&service, "k", BODY).await;
    advance(&service, 24 * 3_600_000).await;
    assert_eq!(explained(&service, "key=k").await["state"], "EXPIRED");
    store.sweep(1_800_000_000_000 + 24 * 3_600_000, 10).await.unwrap();
    let document = explained(&service, "key=k").await;
    assert_eq!((&document["state"], &document["command"]), (&json!("NONE"), &json!(null)));
    assert_eq!(
        (&document["duplicates"][0]["kind"], &document["duplicates"][0]["count"]),
        (&json!("REPLAY"), &json!(1))
    );
    assert!(text(&document["unknown"][0]).contains("swept"), "{document}");
    assert_eq!(service.get("/api/v1/explain?key=quiet").await.verdict(), "404 not-found");
    let document = explained(&service, &format!("instance={instance}")).await;
    assert_eq!((&document["keyHash"], &document["command"]["verb"]), (&json!(null), &json!("start-instance")));
    assert_eq!((&document["instance"]["state"], &document["jobs"][0]["state"]), (&json!("ACTIVE"), &json!("READY")));
    assert!(text(&document["unknown"][0]).contains("swept"), "{document}");
}

/// A time to live of the route's own; a twin that was found, so that nothing was logged; a key of several instances.
#[tokio::test]
async fn l6_3_keys_of_every_kind_are_told() {
    let rule = RouteRule { ttl_ms: Some(60_000), ..RouteRule::default() };
    let routes = BTreeMap::from([(START.to_owned(), rule)]);
    let service = Service::with(Auth::default(), IdempotencyConfig { routes, ..IdempotencyConfig::default() }).await;
    service.deploy(WORK).await;
    let unique = r#"{"processDefinitionId":"order","uniquenessKey":"id","variables":{"id":1}}"#;
    let instance = text(&keyed(&service, "first", unique).await.json()["key"]);
    assert_eq!(explained(&service, &format!("instance={instance}")).await["route"], "/api/v1/instances");
    assert_eq!(keyed(&service, "twin", unique).await.json()["existing"], true);
    let twin = explained(&service, "key=twin").await;
    assert_eq!((&twin["command"], &twin["instance"]["key"]), (&json!(null), &json!(instance)));
    assert!(text(&twin["unknown"][0]).starts_with("command"), "{twin}");

    let second = service.start(BODY).await;
    let poll = r#"{"type":"work","worker":"w","maxJobs":9}"#;
    service.send("POST /api/v1/jobs/activate", &[JSON, ("idempotency-key", "poll")], poll).await;
    let poll = explained(&service, "key=poll").await;
    assert_eq!((&poll["instances"], &poll["instance"]), (&json!([instance, second]), &json!(null)));
    assert_eq!(poll["audit"].as_array().map(Vec::len), Some(2));
    assert_eq!(poll["jobs"][1]["activations"][0]["worker"], "w");
    service.send("POST /api/v1/definitions", &[XML, ("idempotency-key", "deploy")], WAIT).await;
    let deployed = explained(&service, "key=deploy").await;
    assert_eq!(deployed["audit"][0]["type"], "definition.deployed");
    assert_eq!((&deployed["instances"], &deployed["jobs"]), (&json!([]), &json!([])));
}
