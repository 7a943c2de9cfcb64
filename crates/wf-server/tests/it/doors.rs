//! Who is let in, and what everybody else is told.

use serde_json::json;
use wf_engine::ClockMode;
use wf_server::{ApiKey, Auth, AuthError, IdempotencyConfig};

use crate::support::*;

/// Token, tenant, role.
const TOKENS: [(&str, &str, &str); 5] = [
    ("boss", "acme", "admin"),
    ("shop", "acme", "client"),
    ("bot", "acme", "worker"),
    ("eye", "acme", "reader"),
    ("rival", "other", "admin"),
];

fn keys() -> Vec<ApiKey> {
    use sha2::{Digest, Sha256};
    let key = |(token, tenant, role): (&str, &str, &str)| ApiKey {
        name: token.to_owned(),
        tenant: tenant.to_owned(),
        sha256: wf_idempotency::key::hex(&Sha256::digest(token.as_bytes())),
        roles: vec![role.to_owned()],
    };
    TOKENS.into_iter().map(key).collect()
}

async fn guarded() -> Service {
    Service::with(Auth::new(&keys()).unwrap(), IdempotencyConfig::default()).await
}

#[tokio::test]
async fn roles_open_their_routes_only() {
    let service = guarded().await;
    let lines = [
        "POST /api/v1/definitions",
        "POST /api/v1/instances",
        "GET /api/v1/instances",
        "POST /api/v1/jobs/activate",
        "GET /api/v1/jobs",
        "GET /api/v1/audit",
        "POST /api/v1/incidents/1/resolve",
        "PUT /api/v1/clock",
    ];
    let table = [("boss", "yyyyyyyy"), ("shop", "-yy-y---"), ("bot", "---yy---"), ("eye", "--y-yy--")];
    for (token, expected) in table {
        let bearer = format!("Bearer {token}");
        let mut found = String::new();
        for line in lines {
            let reply = service.send(line, &[("authorization", &bearer)], "").await;
            assert_ne!(reply.status, 401);
            found.push(if reply.status == 403 { '-' } else { 'y' });
        }
        assert_eq!(found, expected, "{token}");
    }
}

#[tokio::test]
async fn a_token_is_needed_once_there_are_keys() {
    let service = guarded().await;
    for header in [None, Some(""), Some("  "), Some("boss"), Some("Basic boss"), Some("Bearer "), Some("Bearer nobody")]
    {
        let headers: Vec<(&str, &str)> = header.iter().map(|value| ("authorization", *value)).collect();
        let reply = service.send("GET /api/v1/instances", &headers, "").await;
        assert_eq!(reply.verdict(), "401 unauthenticated", "{header:?}");
        assert_eq!(reply.header("www-authenticate"), "Bearer");
    }
    let twice = [("authorization", "Bearer boss"), ("authorization", "Bearer boss")];
    assert_eq!(service.send("GET /api/v1/instances", &twice, "").await.status, 401);
    for open in ["/livez", "/readyz", "/openapi.json", "/problems/validation"] {
        assert_eq!(service.get(open).await.status, 200, "{open}");
    }
    // The body is not looked at, nor read, before the caller is known; the key's syntax is.
    let reply = service.send("POST /api/v1/instances", &[("content-type", "text/plain")], "{").await;
    assert_eq!(reply.verdict(), "401 unauthenticated");
    let reply = service.send("POST /api/v1/instances", &[("idempotency-key", "a b")], "{").await;
    assert_eq!(reply.verdict(), "400 idempotency-key-malformed");
}

#[tokio::test]
async fn l1_2_another_tenants_things_do_not_exist() {
    let service = guarded().await;
    let ours = ("authorization", "Bearer boss");
    let theirs = ("authorization", "Bearer rival");
    // With authentication the header means nothing.
    let spoofed = [theirs, ("wf-tenant", "acme")];
    service.send("POST /api/v1/definitions", &[XML, ours], WORK).await;
    let key = ("idempotency-key", "k");
    let body = r#"{"processDefinitionId":"order"}"#;
    let started = service.send("POST /api/v1/instances", &[JSON, ours, key], body).await;
    let instance = text(&started.json()["key"]);
    assert_eq!(started.status, 201);
    let activated = service.send("POST /api/v1/jobs/activate", &[JSON, ours], r#"{"type":"work","worker":"w"}"#).await;
    let job = text(&activated.json()["jobs"][0]["key"]);

    let worker = r#"{"worker":"w"}"#;
    let lines = [
        (format!("GET /api/v1/instances/{instance}"), "", "404 instance-not-found"),
        (format!("POST /api/v1/instances/{instance}/cancel"), "{}", "404 instance-not-found"),
        (format!("PUT /api/v1/instances/{instance}/variables"), r#"{"variables":{}}"#, "404 instance-not-found"),
        (format!("GET /api/v1/audit?instance={instance}"), "", "404 instance-not-found"),
        (format!("POST /api/v1/jobs/{job}/complete"), worker, "404 job-not-found"),
        (format!("PUT /api/v1/jobs/{job}/steps/a"), r#"{"worker":"w","result":1}"#, "404 job-not-found"),
        ("GET /api/v1/definitions/order".to_owned(), "", "404 definition-not-found"),
        ("POST /api/v1/instances".to_owned(), body, "404 definition-not-found"),
        (format!("POST /api/v1/incidents/{job}/resolve"), "{}", "404 incident-not-found"),
    ];
    for (line, body, expected) in lines {
        let mut headers = vec![JSON];
        headers.extend(spoofed);
        assert_eq!(service.send(&line, &headers, body).await.verdict(), expected, "{line}");
        let unknown = line.replace(&instance, "12345").replace(&job, "12345");
        assert_eq!(service.send(&unknown, &headers, body).await.verdict(), expected, "{unknown}");
    }
    // The same key in another tenant is another key: no replay, no conflict.
    let other = service.send("POST /api/v1/instances", &[JSON, theirs, key], body).await;
    assert_eq!((other.verdict().as_str(), other.header("idempotent-replayed")), ("404 definition-not-found", ""));
    for list in ["instances", "jobs", "incidents", "definitions", "outbox", "audit", "idempotency"] {
        let reply = service.send(&format!("GET /api/v1/{list}"), &[theirs], "").await;
        assert_eq!((reply.status, &reply.json()["items"]), (200, &json!([])), "{list}");
    }
}

#[tokio::test]
async fn without_authentication_a_header_names_the_tenant() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let body = r#"{"processDefinitionId":"order"}"#;
    let long = "x".repeat(64);
    let table: [(&[(&str, &str)], &str); 6] = [
        (&[("wf-tenant", "default")], "201"),
        (&[("wf-tenant", "acme")], "404 definition-not-found"),
        (&[("wf-tenant", "")], "400 validation: Wf-Tenant"),
        (&[("wf-tenant", "a/b")], "400 validation: Wf-Tenant"),
        (&[("wf-tenant", &long)], "400 validation: Wf-Tenant"),
        (&[("wf-tenant", "default"), ("wf-tenant", "default")], "400 validation: Wf-Tenant"),
    ];
    for (headers, expected) in table {
        let mut headers = headers.to_vec();
        headers.push(JSON);
        assert_eq!(service.send("POST /api/v1/instances", &headers, body).await.verdict(), expected, "{headers:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_too() {
    let service = Service::plain().await;
    let big = "x".repeat((4 << 20) + 1);
    let table = [
        ("GET /", JSON, "", "404 not-found"),
        ("GET /api/v1/nothing", JSON, "", "404 not-found"),
        ("GET /problems/nothing", JSON, "", "404 not-found"),
        ("GET /metrics", JSON, "", "404 not-found"),
        ("GET /api/v1/instances/abc", JSON, "", "404 not-found"),
        ("GET /api/v1/instances/-1", JSON, "", "404 not-found"),
        ("GET /api/v1/instances/99999999999999999999", JSON, "", "404 not-found"),
        ("GET /api/v1/definitions/%ff", JSON, "", "404 not-found"),
        ("POST /api/v1/outbox/x/retry", JSON, "{}", "404 not-found"),
        ("POST /api/v1/outbox/1.1.1.sink/retry", JSON, "{}", "404 not-found"),
        ("DELETE /api/v1/instances", JSON, "", "405 method-not-allowed"),
        ("POST /livez", JSON, "", "405 method-not-allowed"),
        ("POST /api/v1/instances", ("content-type", "text/plain"), "{}", "415 unsupported-media-type"),
        ("POST /api/v1/instances", XML, "{}", "415 unsupported-media-type"),
        ("POST /api/v1/definitions", JSON, "{}", "415 unsupported-media-type"),
        ("POST /api/v1/messages", JSON, &big, "413 payload-too-large"),
        ("GET /api/v1/jobs?tpye=a", JSON, "", "400 validation: tpye"),
        ("GET /api/v1/jobs?state=LOST&limit=0", JSON, "", "400 validation: state, limit"),
        ("GET /api/v1/jobs?cursor=zz&type=a&type=b", JSON, "", "400 validation: type, cursor"),
        ("GET /api/v1/instances?startedAfter=yesterday", JSON, "", "400 validation: startedAfter"),
        ("GET /api/v1/idempotency?hours=721", JSON, "", "400 validation: hours"),
        ("GET /api/v1/audit?from=1", JSON, "", "400 validation: from"),
    ];
    for (line, kind, body, expected) in table {
        let reply = service.send(line, &[kind], body.to_owned()).await;
        assert_eq!(reply.verdict(), expected, "{line}");
        assert!(!reply.header("x-request-id").is_empty(), "{line}");
    }
    let reply = service.send("DELETE /api/v1/instances", &[], "").await;
    assert_eq!(reply.header("allow"), "POST,GET,HEAD");
    let reply = service.send("GET /livez", &[("x-request-id", "mine-1")], "").await;
    assert_eq!(reply.header("x-request-id"), "mine-1");
}

#[tokio::test]
async fn without_a_test_clock_there_is_none() {
    let service = Service::of(app(Auth::default(), IdempotencyConfig::default(), ClockMode::System).await);
    let reply = service.send("PUT /api/v1/clock", &[JSON], r#"{"advanceMs":1}"#).await;
    assert_eq!(reply.verdict(), "404 not-found");
    assert_eq!(service.send("DELETE /api/v1/clock", &[], "").await.verdict(), "404 not-found");
}

#[tokio::test]
async fn every_code_has_a_page() {
    let service = Service::plain().await;
    for code in wf_api::Code::ALL {
        let page = service.get(&format!("/problems/{}", code.as_str())).await;
        assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
        assert!(page.body.contains(code.explained().title) && page.body.contains("What to do"));
    }
}

#[test]
fn wrong_credentials_are_named() {
    let key = |sha256: &str, tenant: &str, role: &str| ApiKey {
        name: "ci".to_owned(),
        tenant: tenant.to_owned(),
        sha256: sha256.to_owned(),
        roles: vec![role.to_owned()],
    };
    let (good, name) = ("ab".repeat(32), || "ci".to_owned());
    assert_eq!(Auth::new(&[key("AB", "a", "admin")]).unwrap_err(), AuthError::Hash { name: name() });
    assert_eq!(Auth::new(&[key(&good.to_uppercase(), "a", "admin")]).unwrap_err(), AuthError::Hash { name: name() });
    assert_eq!(Auth::new(&[key(&good, "a b", "admin")]).unwrap_err(), AuthError::Tenant { name: name() });
    let role = "root".to_owned();
    assert_eq!(Auth::new(&[key(&good, "a", "root")]).unwrap_err(), AuthError::Role { name: name(), role });
    assert!(!Auth::new(&[key(&good, "a", "admin")]).unwrap().is_off());
}
