//! L6.3, K7, F6: why was this dropped, and what became of it? One request's life, told from each of its ends.

use std::collections::BTreeMap;

use e2e::api::{Api, text};
use e2e::models::{one_task, order};
use e2e::node::{Node, run};
use e2e::until;
use serde_json::{Value, json};

use e2e::receiver::Receiver;

use crate::fresh_setup;

const KEY: &str = "order 4711/\"A\" 100%";

/// As a header carries it.
fn quoted(key: &str) -> String {
    format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""))
}

fn explain(node: &Node, args: &[&str]) -> Value {
    run(&mut node.wf(&[&["debug", "explain", "--output", "json"], args].concat())).expect(0).json()
}

fn encoded(key: &str) -> String {
    key.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A lost answer and its repeats, a conflict, a worker that dies, a webhook, a message that comes twice, and two restarts in
/// between: the story is whole, whoever asks.
#[test]
fn l6_3_k7_a_whole_life_is_told_from_all_four_ends() {
    let receiver = Receiver::start(|_| 200);
    let sink = format!("[[sink]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{}\"", receiver.url());
    // Of a message that another partition received the story at the instance knows no repeats.
    let setup = fresh_setup().one_partition().test_clock().config(&sink);
    let node = setup.start();
    node.api.deploy(&order()).answer().expect(201);
    assert!(node.stop().success());

    let start = |api: &Api, total: u32| api.start("order", json!({"orderId": "O-1", "total": total})).key(&quoted(KEY));
    let node = setup.start_armed("before-answer");
    assert!(start(&node.api, 1).send().is_err(), "the answer is lost");
    node.dies();
    let node = setup.start();
    let api = &node.api;
    let first = start(api, 1).answer().expect(201);
    assert!(first.is_replay());
    (0..2).for_each(|_| assert!(start(api, 1).answer().is_replay()));
    start(api, 2).answer().expect_problem(409, "idempotency-conflict");
    let instance = text(&first.json()["key"]);
    // The first worker dies with its lease.
    let lost = api.job("charge-card", "dead");
    api.advance(30_000);
    let job = api.job("charge-card", "quick");
    let step = format!("/api/v1/jobs/{}/steps/charged", text(&job["key"]));
    api.put(&step, json!({"worker": "quick", "lease": job["lease"], "result": {"id": "ch_1"}})).answer().expect(200);
    for _ in 0..2 {
        api.complete(&job, "quick", json!({})).answer().expect(200);
    }
    assert!(node.stop().success());
    let node = setup.start();
    let api = &node.api;
    for duplicate in [false, true] {
        let message = api.publish("parcel-picked-up", "O-1", "carrier:77", json!({})).answer().expect(200).json();
        assert_eq!(message["duplicate"], duplicate);
    }
    let invoice = api.job("send-invoice", "w");
    api.complete(&invoice, "w", json!({"invoiceNumber": "I-1"})).answer().expect(200);
    until("delivery", || api.all("/api/v1/outbox?state=pending").is_empty().then_some(()));

    let told = api.get(&format!("/api/v1/idempotency/{}", encoded(KEY))).expect(200).json();
    assert_eq!((&told["key"], &told["state"]), (&json!(KEY), &json!("COMPLETED")));
    assert_eq!(told["answer"], json!({"status": 201, "bytes": first.body.len()}));
    assert_eq!((&told["command"]["verb"], &told["startedBy"]), (&json!("start-instance"), &json!(null)));
    assert_eq!((&told["instance"]["key"], &told["instance"]["state"]), (&json!(instance), &json!("COMPLETED")));
    let route = "/api/v1/instances";
    let wanted = [
        (("CONFLICT", route), 1),
        (("JOB", "complete-job"), 1),
        (("MESSAGE", "publish-message"), 1),
        (("REPLAY", route), 3),
    ];
    assert_eq!(
        counts(&told),
        BTreeMap::from(wanted.map(|((kind, route), count)| ((kind.to_owned(), route.to_owned()), count)))
    );
    leases(&told, &lost, &job);
    shipped(&told, &receiver);
    let message = &told["messages"][0];
    assert_eq!((&message["messageId"], &message["elementId"]), (&json!("carrier:77"), &json!("picked-up")));
    let audit = api.all(&format!("/api/v1/audit?instance={instance}"));
    let ids = |events: &[Value]| events.iter().map(|event| text(&event["eventId"])).collect::<Vec<_>>();
    let own: Vec<Value> = told["audit"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] != "message.published")
        .cloned()
        .collect();
    assert_eq!(ids(&own), ids(&audit));
    assert_eq!((&told["truncated"], &told["unknown"]), (&json!(false), &json!([])));

    // By the command line, and from the other ends: the same document, without the key.
    assert_eq!(explain(&node, &["--key", KEY]), told);
    let mut keyless = told.clone();
    keyless["key"] = Value::Null;
    assert_eq!(explain(&node, &["--instance", &instance]), keyless);
    assert_eq!(explain(&node, &["--job", &text(&job["key"])]), keyless);
    let message = explain(&node, &["--message", "parcel-picked-up:carrier:77", "--tenant", "default"]);
    for name in ["instance", "instances", "jobs", "messages", "outbox", "audit", "duplicates"] {
        assert_eq!(message[name], told[name], "{name}");
    }
    assert_eq!(message["command"]["verb"], "publish-message");
    assert_eq!(message["startedBy"]["keyHash"], told["keyHash"]);
    picture(&node, &told);
}

fn counts(told: &Value) -> BTreeMap<(String, String), u64> {
    let mut counts = BTreeMap::new();
    for row in told["duplicates"].as_array().unwrap() {
        *counts.entry((text(&row["kind"]), text(&row["route"]))).or_default() += row["count"].as_u64().unwrap();
    }
    counts
}

/// The lease that died and the one that held, under one key for the provider.
fn leases(told: &Value, lost: &Value, job: &Value) {
    let shown = told["jobs"].as_array().unwrap().iter().find(|shown| shown["key"] == job["key"]).unwrap();
    let activations = shown["activations"].as_array().unwrap();
    assert_eq!(activations.len(), 2, "{shown}");
    for (activation, job, worker, end) in
        [(&activations[0], lost, "dead", "EXPIRED"), (&activations[1], job, "quick", "COMPLETED")]
    {
        assert_eq!((&activation["worker"], &activation["end"]), (&json!(worker), &json!(end)));
        assert_eq!((&activation["lease"], &activation["deadline"]), (&job["lease"], &job["deadline"]));
    }
    for name in ["idempotencyKey", "lineageKey", "elementId", "type"] {
        assert_eq!((&shown[name], &shown[name]), (&job[name], &lost[name]), "{name}");
    }
    assert_eq!(shown["steps"], json!(["charged"]));
}

fn shipped(told: &Value, receiver: &Receiver) {
    let received: Vec<String> = receiver.deliveries().iter().map(|delivery| delivery.header("webhook-id")).collect();
    let outbox = told["outbox"].as_array().unwrap();
    assert_eq!(outbox.iter().map(|row| text(&row["dedupKey"])).collect::<Vec<_>>(), received);
    assert!(outbox.iter().all(|row| row["state"] == "shipped" && row["attempts"] == 1), "{outbox:?}");
}

/// What people see: every layer, in order, with the distance from the first moment.
fn picture(node: &Node, told: &Value) {
    let shown = run(&mut node.wf(&["debug", "explain", "--key", KEY])).expect(0).stdout;
    let wanted = [
        &format!("key {KEY}   COMPLETED"),
        "key hash",
        "1 API",
        "+0.000 s  first",
        "duplicate ×3  REPLAY",
        "CONFLICT",
        "2 command",
        "start-instance",
        "instance started",
        "3 jobs",
        "leased by dead",
        "EXPIRED +30.000 s",
        "leased by quick",
        "duplicate ×1",
        "4 calls to the outside",
        "steps: charged",
        "5 messages",
        "parcel-picked-up for O-1, id carrier:77 → picked-up",
        "duplicate ×1",
        "wf.instance.started → hook shipped",
        "6 audit",
        "instance.completed",
    ];
    let mut from = 0;
    for part in wanted {
        let at = shown[from..].find(part).unwrap_or_else(|| panic!("{part} does not follow in\n{shown}"));
        from += at + part.len();
    }
    assert!(shown.contains(&text(&told["jobs"][0]["lineageKey"])), "{shown}");
}

/// L1.8, F6: keys that need quoting everywhere; nobody else learns anything; what is asked wrongly is said.
#[test]
fn f6_l1_8_odd_keys_are_explained_and_other_tenants_learn_nothing() {
    let node = fresh_setup().start();
    let api = &node.api;
    api.deploy(&one_task("one", "work")).answer().expect(201);
    let long = "k".repeat(255);
    for key in ["a b", " a/b?c#d ", "%2F%25", "'$HOME' \"x\" \\", "..", "--key", "+&=", &long] {
        let instance = text(&api.start("one", json!({})).key(&quoted(key)).answer().expect(201).json()["key"]);
        let told = explain(&node, &["--key", key]);
        assert_eq!((&told["key"], &told["instance"]["key"]), (&json!(key), &json!(instance)));
        let path = format!("/api/v1/idempotency/{}", encoded(key));
        assert_eq!(api.get(&path).expect(200).json(), told, "{path}");
        let theirs = run(&mut node.wf(&["debug", "explain", "--key", key, "--tenant", "other"])).expect(1);
        assert!(theirs.stderr.contains("not-found") && theirs.stdout.is_empty(), "{theirs:?}");
        let theirs = run(&mut node.wf(&["debug", "explain", "--instance", &instance, "--tenant", "other"])).expect(1);
        assert!(theirs.stderr.contains("instance-not-found"), "{theirs:?}");
    }
    let table: [(&[&str], i32, &str); 5] = [
        (&[], 2, "--key"),
        (&["--key", "a", "--job", "1"], 2, "cannot be used with"),
        (&["--key", "ä"], 1, "idempotency-key-malformed"),
        (&["--job", "42"], 1, "job-not-found"),
        (&["--message", "nothing"], 1, "not-found"),
    ];
    for (args, code, said) in table {
        let ended = run(&mut node.wf(&[&["debug", "explain"], args].concat())).expect(code);
        assert!(ended.stderr.contains(said), "{args:?}: {ended:?}");
    }
}

/// K7: after its time the record goes; what is left is told, and what is not.
#[test]
fn k7_a_swept_key_says_what_is_no_longer_known() {
    let setup = fresh_setup().test_clock().config("[idempotency]\nsweep_ms = 100");
    let node = setup.start();
    let api = &node.api;
    api.deploy(&one_task("one", "work")).answer().expect(201);
    let start = || api.start("one", json!({})).key("k").answer();
    let instance = text(&start().expect(201).json()["key"]);
    assert!(start().is_replay());
    api.advance(86_400_000);
    let swept = || Some(explain(&node, &["--key", "k"])).filter(|told| told["state"] == "NONE");
    let told = until("sweep", swept);
    assert_eq!((&told["duplicates"][0]["kind"], &told["command"]), (&json!("REPLAY"), &json!(null)));
    let told = explain(&node, &["--instance", &instance]);
    assert_eq!((&told["keyHash"], &told["command"]["verb"]), (&json!(null), &json!("start-instance")));
    let shown = run(&mut node.wf(&["debug", "explain", "--instance", &instance])).expect(0).stdout;
    assert!(shown.contains("not known\n") && shown.contains("swept"), "{shown}");
}
