//! L1.1-L1.5, L1.9: what a key promises while everything is well. Under crashes: `crash.rs`; message ids: `scenarios/` (S2).

use e2e::api::{Call, jobs_of, text};
use e2e::http::Answer;
use e2e::models::one_task;
use e2e::node::Node;
use serde_json::{Value, json};

use crate::fresh_setup;

fn node() -> Node {
    let node = fresh_setup().test_clock().start();
    node.api.deploy(&one_task("one", "work")).answer().expect(201);
    node
}

/// L1.1, L1.3: a key counts on every POST, and on the one PUT that is not idempotent by itself. The repeat has the first
/// answer's status, bytes and headers, runs nothing, and says what it is; under another body the key is refused.
#[test]
fn l1_1_l1_3_every_route_that_takes_a_key_replays() {
    let node = node();
    let api = &node.api;
    let mut jobs = (0..6).map(|n| api.started("one", json!({"n": n}))).collect::<Vec<_>>();
    let canceled = jobs.remove(0);
    let jobs = api.activated("work", "w", 6);
    let of = |index: usize, verb: &str, more: Value| {
        let mut body = json!({"worker": "w", "lease": jobs[index]["lease"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        api.about(&jobs[index], verb, body)
    };
    let table: [(&str, Call); 10] = [
        ("deploy", api.deploy(&one_task("two", "work"))),
        ("start", api.start("one", json!({"n": 7}))),
        ("cancel", api.post(&format!("/api/v1/instances/{canceled}/cancel"), json!({}))),
        ("variables", api.put(&instance_path(&jobs[1]), json!({"variables": {"a": 1}}))),
        ("activate", api.activate("work", "w", 1)),
        ("complete", of(1, "complete", json!({"variables": {"done": 1}}))),
        ("fail", of(2, "fail", json!({"message": "m", "retries": 1}))),
        ("error", of(3, "error", json!({"errorCode": "e"}))),
        ("extend", of(4, "extend", json!({"leaseMs": 60_000}))),
        ("publish", api.publish("m", "k", "", json!({}))),
    ];
    for (name, call) in table {
        let key = format!("\"{name}, once\"");
        let call = call.key(&key);
        let first = call.answer();
        assert!((200..300).contains(&first.status) && !first.is_replay(), "{name}: {}", first.text());
        let events = api.audit().len();
        api.advance(1_000);
        same_again(name, &first, &call.answer());
        assert_eq!(api.audit().iter().filter(|event| event["type"] != "clock.set").count(), events, "{name} ran again");
        api.publish("something", "else", "", json!({})).key(&key).answer().expect_problem(409, "idempotency-conflict");
    }
    let batch = json!({"worker": "w", "jobs": [{"key": jobs[5]["key"], "lease": jobs[5]["lease"]}, {"key": "42"}]});
    let batch = api.post("/api/v1/jobs/complete", batch).key("batch");
    let first = batch.answer().expect(200);
    assert_eq!(first.json()["results"][1]["problem"]["code"], "job-not-found");
    same_again("batch", &first, &batch.answer());
}

fn instance_path(job: &Value) -> String {
    format!("/api/v1/instances/{}/variables", text(&job["processInstanceKey"]))
}

#[track_caller]
fn same_again(name: &str, first: &Answer, again: &Answer) {
    assert!(again.is_replay(), "{name}");
    assert_eq!((first.status, &first.body), (again.status, &again.body), "{name}");
    for header in ["content-type", "location"] {
        assert_eq!(first.header(header), again.header(header), "{name}: {header}");
    }
}

/// L1.4, F1, F6: what counts is what a request says, not how it is written; another request under the key runs nothing.
#[test]
fn l1_4_the_fingerprint_reads_the_meaning() {
    let node = node();
    let api = &node.api;
    let raw = |body: &str| api.call("POST", "/api/v1/instances").body("application/json", body.as_bytes()).key("k");
    let first = raw(r#"{"processDefinitionId":"one","variables":{"a":1.50,"b":["é",null]}}"#).answer().expect(201);
    let same = [
        "{ \"variables\" : {\"b\":[\"\\u00e9\", null],\n\"a\":1.50}, \"processDefinitionId\":\"one\" }",
        r#"{"processDefinitionId":"one","variables":{"a":15e-1,"b":["é",null]}}"#,
    ];
    same.iter().for_each(|body| same_again(body, &first, &raw(body).answer()));
    let different = [
        r#"{"processDefinitionId":"one","variables":{"a":1.51,"b":["é",null]}}"#,
        r#"{"processDefinitionId":"one","variables":{"a":1.50,"b":[null,"é"]}}"#,
        r#"{"processDefinitionId":"one","variables":{"a":"1.50","b":["é",null]}}"#,
        r#"{"processDefinitionId":"one","variables":{"a":1.50,"b":["e\u0301",null]}}"#,
        r#"{"processDefinitionId":"nobody"}"#,
    ];
    for body in different {
        raw(body).answer().expect_problem(409, "idempotency-conflict");
    }
    // Another route is another request.
    api.publish("m", "", "", json!({})).key("k").answer().expect_problem(409, "idempotency-conflict");
    // Quoted or not, it is one key; what only looks alike is another one.
    let quoted = r#"{"processDefinitionId":"one","variables":{"a":1.50,"b":["é",null]}}"#;
    let with =
        |key: &str| api.call("POST", "/api/v1/instances").body("application/json", quoted.as_bytes()).key(key).answer();
    assert!(with("\"k\"").is_replay() && with("\"k\";v=1").is_replay());
    assert!(!with("K").is_replay() && !with("\"k \"").is_replay());
    assert_eq!(api.all("/api/v1/instances").len(), 3);
    assert_eq!(api.metric("wf_api_idempotency_conflicts_total"), 6.0);
}

/// L1.5: everybody who comes with the key at once gets the one answer.
#[test]
fn l1_5_many_at_once_under_one_key_are_one() {
    let node = node();
    let api = &node.api;
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let start = |n: u32| api.start("one", json!({"n": n})).key(&format!("key-{n}")).answer();
        let threads: Vec<_> = (0..60).map(|n| scope.spawn(move || start(n % 3))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().expect(201)).collect()
    });
    assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 3);
    let mut bodies: Vec<&[u8]> = answers.iter().map(|answer| answer.body.as_slice()).collect();
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), 3);
    assert_eq!(api.all("/api/v1/instances").len(), 3);
}

/// L1.9: the value is the instance's as long as it is active, whatever becomes of the variable.
#[test]
fn l1_9_a_unique_value_is_free_again_when_its_instance_has_ended() {
    let node = node();
    let api = &node.api;
    let start = |value: Value| {
        let body = json!({"processDefinitionId": "one", "variables": {"order": value}, "uniquenessKey": "order"});
        api.post("/api/v1/instances", body).answer()
    };
    let first = start(json!("1")).expect(201).json();
    let key = text(&first["key"]);
    let twin = start(json!("1")).expect(200).json();
    assert_eq!((&twin["key"], &twin["existing"]), (&json!(key), &json!(true)));
    assert_ne!(start(json!(1)).expect(201).json()["key"], key.as_str(), "a number is no text");
    for value in [json!(null), json!([]), json!({})] {
        start(value).expect_problem(400, "validation");
    }
    let path = format!("/api/v1/instances/{key}/variables");
    api.put(&path, json!({"variables": {"order": "2"}})).answer().expect(200);
    start(json!("1")).expect(200);
    api.deploy(&one_task("one", "other")).answer().expect(201);
    assert_eq!(start(json!("1")).expect(200).json()["version"], 1, "across versions");
    api.post(&format!("/api/v1/instances/{key}/cancel"), json!({})).answer().expect(200);
    assert_ne!(start(json!("1")).expect(201).json()["key"], key.as_str());
}

/// A long poll that waits gets the job when it comes, and nobody else does.
#[test]
fn l3_1_a_waiting_poll_is_woken_by_its_job() {
    let node = node();
    let api = &node.api;
    let poll = json!({"type": "work", "worker": "patient", "waitMs": 60_000});
    let jobs = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| jobs_of(&api.post("/api/v1/jobs/activate", poll).answer().expect(200)));
        api.started("one", json!({}));
        waiting.join().unwrap()
    });
    assert_eq!(jobs.len(), 1);
    assert_eq!(api.activated("work", "other", 1), Vec::<Value>::new());
    assert_eq!(api.all("/api/v1/jobs?state=ACTIVATED")[0]["worker"], "patient");
}
