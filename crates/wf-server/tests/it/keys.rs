//! Idempotency keys at the door: syntax, replays, conflicts, what configuration changes.

use std::collections::BTreeMap;

use serde_json::json;
use wf_server::{Auth, IdempotencyConfig, RouteRule};
use wf_store::memory::Fault;

use crate::support::*;

const START: &str = "POST /api/v1/instances";
const BODY: &str = r#"{"processDefinitionId":"order"}"#;

async fn keyed(service: &Service, key: &str, body: &str) -> Reply {
    service.send(START, &[JSON, ("idempotency-key", key)], body.to_owned()).await
}

#[tokio::test]
async fn l1_8_malformed_keys_are_refused_whatever_the_request() {
    let service = Service::plain().await;
    let long = "k".repeat(256);
    for key in ["", " ", "\"\"", "\" \"", "\"abc", "abc\"", "a,b", "a b", "a\u{e9}", "k1, k2", &long] {
        let reply = keyed(&service, key, "{").await;
        assert_eq!(reply.verdict(), "400 idempotency-key-malformed", "{key:?}");
        assert!(key.len() < 3 || !reply.body.contains(key), "a key must not be echoed");
    }
    let twice = [JSON, ("idempotency-key", "k"), ("idempotency-key", "k")];
    assert_eq!(service.send(START, &twice, BODY).await.verdict(), "400 idempotency-key-malformed");
    // Ignored on reads, on the clock, on steps.
    for line in ["GET /api/v1/instances", "PUT /api/v1/clock", "PUT /api/v1/jobs/1/steps/a"] {
        let reply = service.send(line, &[JSON, ("idempotency-key", "a b")], r#"{"advanceMs":0}"#).await;
        assert_ne!(reply.json()["code"], "idempotency-key-malformed", "{line}");
    }
}

#[tokio::test]
async fn l1_3_a_repeat_gets_the_first_answer() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let first = keyed(&service, "\"k-1\"", BODY).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (201, ""));
    // Another spelling of the same key and of the same body.
    for (key, body) in [("\"k-1\"", BODY), ("k-1", BODY), ("k-1", " {\"processDefinitionId\" : \"order\"}\n")] {
        let again = keyed(&service, key, body).await;
        assert_eq!((again.status, &again.body), (201, &first.body));
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(again.header("location"), first.header("location"));
        assert_eq!(again.header("content-type"), "application/json");
        assert_eq!(again.header("cache-control"), "no-store");
    }
    let uses = service.get("/api/v1/idempotency").await.json();
    assert_eq!(uses["items"][0]["route"], "/api/v1/instances");
    assert_eq!((&uses["totals"]["keys"], &uses["totals"]["inProgress"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn l1_4_another_request_under_the_key_runs_nothing() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let first = keyed(&service, "k", BODY).await;
    let path = text(&first.json()["key"]);
    let others = [
        (START.to_owned(), r#"{"processDefinitionId":"order","variables":{"a":1}}"#),
        ("POST /api/v1/instances?x=1".to_owned(), BODY),
        (format!("POST /api/v1/instances/{path}/cancel"), ""),
        ("POST /api/v1/messages".to_owned(), r#"{"name":"order"}"#),
    ];
    for (line, body) in others {
        let reply = service.send(&line, &[JSON, ("idempotency-key", "k")], body).await;
        assert_eq!(reply.verdict(), "409 idempotency-conflict", "{line}");
    }
    assert_eq!(keyed(&service, "k", BODY).await.body, first.body);
    let instances = service.get("/api/v1/instances").await.json();
    assert_eq!(instances["items"].as_array().unwrap().len(), 1);
    assert_eq!(instances["items"][0]["state"], "ACTIVE");
}

#[tokio::test]
async fn a_refusal_leaves_the_key_free() {
    let service = Service::plain().await;
    assert_eq!(keyed(&service, "k", "{}").await.verdict(), "400 validation: processDefinitionId");
    assert_eq!(keyed(&service, "k", BODY).await.verdict(), "404 definition-not-found");
    service.deploy(WORK).await;
    assert_eq!(keyed(&service, "k", BODY).await.status, 201);
}

#[tokio::test]
async fn configuration_may_require_keys_and_choose_the_status_of_a_conflict() {
    let rule = RouteRule { mismatch_status: Some(422), ..RouteRule::default() };
    let config = IdempotencyConfig {
        require: vec![START.to_owned()],
        routes: BTreeMap::from([(START.to_owned(), rule), ("POST /api/v1/nothing".to_owned(), RouteRule::default())]),
        ..IdempotencyConfig::default()
    };
    assert_eq!(config.unknown_routes(), ["POST /api/v1/nothing"]);
    let service = Service::with(Auth::default(), config).await;
    service.deploy(WORK).await;
    let missing = service.post("/api/v1/instances", BODY).await;
    assert_eq!(missing.verdict(), "400 idempotency-key-missing");
    assert_eq!(missing.header("link"), "</problems/idempotency-key-missing>; rel=\"describedby\"");
    assert_eq!(keyed(&service, "k", BODY).await.status, 201);
    let other = keyed(&service, "k", r#"{"processDefinitionId":"order","variables":{}}"#).await;
    assert_eq!(other.verdict(), "422 idempotency-conflict");
    assert_eq!(service.get("/api/v1/instances").await.status, 200);
}

#[tokio::test]
async fn a_poll_repeated_with_its_key_gets_the_same_jobs() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let poll = async |key: &str| {
        let headers = [JSON, ("idempotency-key", key)];
        service.send("POST /api/v1/jobs/activate", &headers, r#"{"type":"work","worker":"w"}"#).await
    };
    // An empty poll stores nothing.
    assert_eq!(poll("p").await.body, r#"{"jobs":[]}"#);
    service.start(BODY).await;
    let first = poll("p").await;
    assert_eq!(first.header("idempotent-replayed"), "");
    let again = poll("p").await;
    assert_eq!((&again.body, again.header("idempotent-replayed")), (&first.body, "true"));
    assert_eq!(poll("q").await.body, r#"{"jobs":[]}"#);
}

/// What a client does that is told to come back.
async fn insist(service: &Service) -> Reply {
    loop {
        let reply = keyed(service, "k", BODY).await;
        if reply.status != 503 {
            return reply;
        }
        assert_eq!(reply.header("retry-after"), "1");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_failed_commit_did_nothing_and_an_unknown_one_is_asked_again() {
    // Whether it stands already is what a repeat finds out.
    for (fault, verdict, replayed) in
        [(Fault::BeforeCommit, "503 unavailable", ""), (Fault::AfterCommit, "503 outcome-unknown", "true")]
    {
        let (service, store) = Service::with_store().await;
        service.deploy(WORK).await;
        store.fail_next(fault);
        assert_eq!(keyed(&service, "k", BODY).await.verdict(), verdict);
        let again = insist(&service).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (201, replayed));
        assert_eq!(service.get("/api/v1/instances").await.json()["items"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_body_without_a_type_counts_as_json() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let bare = service.send(START, &[("idempotency-key", "k")], BODY).await;
    let typed = keyed(&service, "k", " {\"processDefinitionId\":\"order\"}").await;
    assert_eq!((typed.header("idempotent-replayed"), &typed.body), ("true", &bare.body));
    let zipped = [JSON, ("content-encoding", "gzip")];
    assert_eq!(service.send(START, &zipped, BODY).await.verdict(), "415 unsupported-media-type");
}
