//! Issue 2, item 10, what is wrong around the process: an address in use, a configuration with mistakes, a store that grows.
//! A clear word and an exit code; what was answered stays. A full disk, a store that somebody holds: `../sqlite/files.rs`.

use e2e::api::text;
use e2e::models::one_task;
use e2e::node::Ended;
use e2e::until;
use serde_json::json;

use crate::fresh_setup;

#[test]
fn limits_an_address_in_use_is_named() {
    let first = fresh_setup().start();
    let ended = fresh_setup().listen(&first.api.address).try_start().map(|_| ()).unwrap_err();
    failed(&ended, &[&first.api.address, "in use"]);
}

#[track_caller]
fn failed(ended: &Ended, said: &[&str]) {
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    said.iter().for_each(|said| assert!(ended.stderr.contains(said), "{said}: {ended:?}"));
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    assert_eq!(ended.stdout, "");
}

/// All mistakes in one list, each with its place; the check starts nothing.
#[test]
fn limits_a_configuration_is_checked_as_a_whole() {
    let wrong = "[server]\nlisten = \"nowhere\"\n[idempotency]\nttl = 5\nrequire = [\"POST /api/v1/instanzes\"]\n\
                 [idempotency.routes.\"POST /api/v1/messages\"]\nttl_ms = 1\n[sqlite]\ndurability = \"maybe\"\n\
                 [[api_key]]\nname = \"a\"\nsha256 = \"x\"\nroles = [\"king\"]\n\
                 [[sink]]\nname = \"s\"\nkind = \"nats\"\nurl = \"http://x\"\n[colour]\nred = 1";
    let places = [
        "unknown key idempotency.ttl",
        "POST /api/v1/instanzes",
        "ttl_ms",
        "sqlite.durability",
        "sha256",
        "roles",
        "nats://",
        "unknown section colour",
        "unknown key messages.dedup (from WF__MESSAGES__DEDUP)",
    ];
    let setup = fresh_setup().config(wrong).env("WF__MESSAGES__DEDUP", "1");
    for setup in [setup.clone(), setup.flag("--check")] {
        let ended = setup.try_start().map(|_| ()).unwrap_err();
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        places.iter().for_each(|place| assert!(ended.stderr.contains(place), "{place}: {}", ended.stderr));
        assert!(!setup.data().exists());
    }
    let right = fresh_setup().config("[idempotency]\nttl_ms = 5000").flag("--check");
    let ended = right.try_start().map(|_| ()).unwrap_err();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("the configuration is right") && ended.stderr.contains("24 h"), "{ended:?}");
    assert!(!right.data().exists());
    let unknown = fresh_setup().flag("--colour").try_start().map(|_| ()).unwrap_err();
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
}

/// Deny by default: whoever can be reached from outside asks who is there.
#[test]
fn limits_an_address_for_everybody_needs_keys() {
    let open = fresh_setup().listen("0.0.0.0:0").try_start().map(|_| ()).unwrap_err();
    assert_eq!(open.status.code(), Some(2), "{open:?}");
    assert!(open.stderr.contains("[[api_key]]") && open.stderr.contains("0.0.0.0"), "{open:?}");
    let key = format!("[[api_key]]\nname = \"a\"\nsha256 = \"{}\"\nroles = [\"admin\"]", "0".repeat(64));
    let node = fresh_setup().listen("0.0.0.0:0").config(&key).advertise("http://127.0.0.1:1").start();
    let api = e2e::api::Api::at(&node.url.replace("0.0.0.0", "127.0.0.1"));
    api.get("/api/v1/instances").expect_problem(401, "unauthenticated");
}

/// L1.7, F4: a key is new again after its time, on the engine's clock.
#[test]
fn l1_7_f4_a_key_is_new_again_after_its_time() {
    let setup = fresh_setup()
        .test_clock()
        .config("[idempotency]\nttl_ms = 86400000\n[idempotency.routes.\"POST /api/v1/messages\"]\nttl_ms = 604800000");
    let node = setup.start();
    let api = &node.api;
    api.deploy(&one_task("one", "work")).answer().expect(201);
    let start = || api.start("one", json!({})).key("daily").answer().expect(201);
    let message = || api.publish("m", "", "", json!({})).key("weekly").answer().expect(200);
    let (first, first_message) = (start(), message());
    api.advance(86_400_000 - 1);
    assert_eq!((start().is_replay(), start().body), (true, first.body.clone()));
    api.advance(1);
    let second = start();
    assert_eq!((second.is_replay(), second.json()["key"] == first.json()["key"]), (false, false));
    assert_eq!((message().is_replay(), message().body), (true, first_message.body));
    assert_eq!(api.all("/api/v1/instances").len(), 2);
}

/// Retention: an instance that ended is forgotten after its time; what happened, and what was answered, is not.
#[test]
fn l1_7_ended_instances_go_and_their_audit_and_answers_stay() {
    let config = "[retention]\nfinished_ms = 3600000\n[idempotency]\nsweep_ms = 100";
    let node = fresh_setup().test_clock().config(config).start();
    let api = &node.api;
    api.deploy(&one_task("one", "work")).answer().expect(201);
    let start = || api.start("one", json!({})).key("k").answer().expect(201);
    let (first, lives) = (start(), api.started("one", json!({"lives": true})));
    let key = text(&first.json()["key"]);
    let jobs = api.activated("work", "w", 2);
    let job = jobs.iter().find(|job| job["processInstanceKey"] == key).unwrap();
    api.complete(job, "w", json!({})).answer().expect(200);
    api.advance(3_600_000 - 1);
    assert_eq!(api.complete(job, "w", json!({})).answer().expect(200).json()["duplicate"], true);
    api.advance(2);
    until("sweep", || (api.get(&format!("/api/v1/instances/{key}")).status == 404).then_some(()));
    api.complete(job, "w", json!({})).answer().expect_problem(404, "job-not-found");
    assert_eq!(api.state(&lives), "ACTIVE");
    assert!(start().is_replay(), "the answer outlives its instance");
    let told = api.all(&format!("/api/v1/audit?instance={key}"));
    assert!(told.iter().any(|event| event["type"] == "instance.completed"), "{told:?}");
}
