//! T1, T2, L6.3: what operators see. The promised names stand in `/metrics`, and no log line has a key, a token or a secret.

use e2e::api::text;
use e2e::models::one_task;
use e2e::node::run;
use e2e::until;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use e2e::receiver::Receiver;

use crate::fresh_setup;

const KEY: &str = "order-of-mrs-k-4711";
const TOKEN: &str = "t0k3n-that-nobody-may-read";
const WRONG_TOKEN: &str = "an-old-t0k3n";
const SECRET: &str = "whsec_c2lnbmVkIHdpdGggdGhpcw==";

/// Everything that is counted happens once; `wf_outbox_dedup_drops_total` needs a broker's word: `scenarios/` (S9).
#[test]
fn t2_metrics_have_the_promised_names_and_count_what_happened() {
    let receiver = Receiver::start(|_| 200);
    let sink = format!("[[sink]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{}\"", receiver.url());
    let setup = fresh_setup().test_clock().config(&sink);
    let node = setup.start();
    let api = &node.api;
    for name in ["wf_api_idempotency_conflicts_total", "wf_db_command_dedup_total"] {
        let text = api.get("/metrics").text();
        assert!(text.lines().any(|line| line == format!("{name} 0")), "{name} is there from the start: {text}");
    }
    api.deploy(&one_task("one", "work")).answer().expect(201);
    let start = |n: u32| api.start("one", json!({"n": n})).key(KEY).answer();
    start(1).expect(201);
    (0..3).for_each(|_| assert!(start(1).is_replay()));
    start(2).expect_problem(409, "idempotency-conflict");
    let job = api.job("work", "w");
    (0..3).for_each(|_| drop(api.complete(&job, "w", json!({})).answer().expect(200)));
    api.started("one", json!({}));
    api.job("work", "w");
    api.advance(30_000);
    until("delivery", || (api.metric("wf_outbox_shipped_total{sink=\"hook\"}") == 4.0).then_some(()));
    let table = [
        ("wf_api_idempotency_hits_total{path=\"/api/v1/instances\"}", 3.0),
        ("wf_api_idempotency_conflicts_total", 1.0),
        ("wf_worker_idempotency_skipped_total{type=\"work\"}", 2.0),
        ("wf_lease_expiries_total", 1.0),
        ("wf_commands_total{type=\"start-instance\"", 2.0),
        ("wf_http_request_duration_seconds_count{route=\"/api/v1/instances\",method=\"POST\",status=\"409\"}", 1.0),
        ("wf_build_info{version=", 1.0),
    ];
    for (name, count) in table {
        assert_eq!(api.metric(name), count, "{name}");
    }
    assert!(node.stop().success());
    // What the store holds is counted at the start, and now and then.
    let node = setup.start();
    let api = &node.api;
    until("gauges", || (api.metric("wf_jobs{type=\"work\",state=\"READY\"}") == 1.0).then_some(()));
    let text = api.get("/metrics").expect(200).text();
    let names = [
        "wf_commit_batch_size histogram",
        "wf_commit_duration_seconds histogram",
        "wf_actor_queue_depth gauge",
        "wf_incidents gauge",
        "wf_outbox_pending gauge",
        "wf_outbox_oldest_age_seconds gauge",
        "wf_key_store_records gauge",
    ];
    names.iter().for_each(|name| assert!(text.contains(&format!("# TYPE {name}\n")), "{name}: {text}"));
    let queues: Vec<&str> = text.lines().filter(|line| line.starts_with("wf_actor_queue_depth")).collect();
    let partitions: std::collections::BTreeSet<&str> =
        queues.iter().filter_map(|line| Some(line.split_once('{')?.1.split_once('}')?.0)).collect();
    assert!(!queues.is_empty() && partitions.len() == queues.len(), "one line per partition: {queues:?}");
    assert!(!text.contains(KEY) && !text.contains(&text_of(&job)), "labels are bounded: {text}");
}

fn text_of(job: &Value) -> String {
    text(&job["processInstanceKey"])
}

/// T1, F1, F6, L6.3: the same story in the log, in the API and on the command line, by the key's hash alone.
#[test]
fn t1_l6_3_keys_are_seen_by_their_hash_and_secrets_by_nobody() {
    let receiver = Receiver::start(|_| 200);
    let sha256: String = Sha256::digest(TOKEN).iter().map(|byte| format!("{byte:02x}")).collect();
    let config = format!(
        "[[api_key]]\nname = \"app\"\ntenant = \"acme\"\nsha256 = \"{sha256}\"\nroles = [\"admin\"]\n\
         [[sink]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{}\"\nsecret = \"{SECRET}\"\n",
        receiver.url()
    );
    // What is never said by default is not said loudly either.
    let setup = fresh_setup().config(&config).flag("--log-format=json").env("RUST_LOG", "debug");
    let node = setup.start();
    let api = node.api.bearer(TOKEN);
    api.deploy(&one_task("one", "work")).answer().expect(201);
    let start = |n: u32| api.start("one", json!({"n": n})).key(KEY).answer();
    start(1).expect(201);
    assert!(start(1).is_replay());
    start(2).expect_problem(409, "idempotency-conflict");
    api.start("one", json!({})).key(&format!("\"{KEY}")).answer().expect_problem(400, "idempotency-key-malformed");
    node.api.bearer(WRONG_TOKEN).get("/api/v1/instances").expect_problem(401, "unauthenticated");
    let answer = api.call("GET", "/api/v1/instances").header("x-request-id", "seen-by-the-proxy").answer();
    assert_eq!(answer.header("x-request-id"), Some("seen-by-the-proxy"));
    until("delivery", || receiver.deliveries().first().map(drop));
    let check = ["debug", "idempotency-check", "--hours", "24", "--output", "json"];
    let checked = || run(node.wf(&check).env("WF_API_KEY", TOKEN)).expect(0).json();
    let is_counted = |checked: &Value| checked["totals"]["conflicts"] == 1 && checked["totals"]["hits"] == 1;
    let checked = until("counts in the store", || Some(checked()).filter(is_counted));
    let key_hash =
        text(&checked["items"].as_array().unwrap().iter().find(|item| item["hits"] == 1).unwrap()["keyHash"]);
    let listed = api.get("/api/v1/idempotency?hours=24").expect(200);
    assert_eq!(listed.json()["totals"], checked["totals"]);
    assert!(listed.text().contains(&key_hash) && !listed.text().contains(KEY));
    // Asked for by the key itself: it stands in the request, and still not in the log.
    for path in [format!("/api/v1/idempotency/{KEY}"), format!("/api/v1/explain?key={KEY}")] {
        let told = api.get(&path).expect(200).json();
        assert_eq!((&told["keyHash"], told["duplicates"].as_array().map(Vec::len)), (&json!(key_hash), Some(2)));
    }
    assert!(node.stop().success());
    let log = setup.log();
    for secret in [KEY, TOKEN, WRONG_TOKEN, SECRET, SECRET.trim_start_matches("whsec_"), &sha256] {
        assert!(!log.contains(secret), "{secret} stands in the log:\n{log}");
    }
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let about = |message: &str| lines.iter().find(|line| line["message"] == message).expect(message).clone();
    let replayed = about("replayed");
    assert_eq!((&replayed["level"], &replayed["tenant"]), (&json!("INFO"), &json!("acme")));
    assert_eq!((&replayed["route"], &replayed["key_hash"]), (&json!("/api/v1/instances"), &json!(key_hash)));
    assert!(replayed["age_ms"].is_u64(), "{replayed}");
    let conflict = about("refused: the key was used with another request");
    assert_eq!((&conflict["level"], &conflict["key_hash"]), (&json!("WARN"), &json!(key_hash)));
    assert!(lines.iter().any(|line| line["request_id"] == "seen-by-the-proxy"), "{log}");
}

/// Text for people by default; the store says nothing of tokens either.
#[test]
fn t2_the_log_is_text_by_default_and_says_little() {
    let setup = fresh_setup();
    let node = setup.start();
    node.api.deploy(&one_task("one", "work")).answer().expect(201);
    node.api.start("one", json!({})).key(KEY).answer().expect(201);
    node.api.start("one", json!({})).key(KEY).answer().expect(201);
    assert!(node.stop().success());
    let log = setup.log();
    assert!(log.lines().count() <= 5 && log.contains("replayed") && !log.contains(KEY), "{log}");
    assert!(!log.starts_with('{') && !log.contains('\u{1b}'), "no colours in a file: {log}");
}
