//! L1.2 and the doors that are closed: keys, roles and tenants over HTTP. Whoever may not see a thing learns nothing of it.

use e2e::api::{Api, Call, text};
use e2e::models::one_task;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::fresh_setup;

/// A credential's lines; the token is its name with a word in front.
fn credential(name: &str, tenant: &str, role: &str) -> String {
    let sha256: String = Sha256::digest(token(name)).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[[api_key]]\nname = \"{name}\"\ntenant = \"{tenant}\"\nsha256 = \"{sha256}\"\nroles = [\"{role}\"]\n")
}

fn token(name: &str) -> String {
    format!("token-of-{name}")
}

#[test]
fn access_each_role_opens_its_doors_and_no_other() {
    let roles = ["admin", "client", "worker", "reader"];
    let config: String = roles.iter().map(|role| credential(role, "acme", role)).collect();
    let node = fresh_setup().config(&config).test_clock().start();
    let as_role = |role: &str| node.api.bearer(&token(role));
    let admin = as_role("admin");
    admin.deploy(&one_task("one", "work")).answer().expect(201);
    let instance = admin.started("one", json!({}));
    let own = format!("/api/v1/instances/{instance}");
    // (method, path, body, which roles get past the door)
    let doors: [(&str, &str, Value, &[&str]); 12] = [
        ("POST", "/api/v1/definitions", json!("<x/>"), &["admin"]),
        ("GET", "/api/v1/definitions", Value::Null, &["admin", "client", "reader"]),
        ("POST", "/api/v1/instances", json!({"processDefinitionId": "one"}), &["admin", "client"]),
        ("GET", &own, Value::Null, &["admin", "client", "reader"]),
        ("PUT", &format!("{own}/variables"), json!({"variables": {"a": 1}}), &["admin", "client"]),
        ("POST", "/api/v1/messages", json!({"name": "m"}), &["admin", "client"]),
        ("POST", "/api/v1/jobs/activate", json!({"type": "nothing", "worker": "w"}), &["admin", "worker"]),
        ("GET", "/api/v1/jobs", Value::Null, &["admin", "client", "worker", "reader"]),
        ("GET", "/api/v1/audit", Value::Null, &["admin", "reader"]),
        ("GET", "/api/v1/idempotency", Value::Null, &["admin", "reader"]),
        ("POST", "/api/v1/outbox/1.1.1.s/retry", json!({}), &["admin"]),
        ("PUT", "/api/v1/clock", json!({"advanceMs": 1}), &["admin"]),
    ];
    for (method, path, body, allowed) in &doors {
        for role in roles {
            let call = as_role(role).call(method, path);
            let answer = match body {
                Value::Null => call.answer(),
                Value::String(xml) => call.body("application/xml", xml.as_bytes()).answer(),
                body => call.json(body).answer(),
            };
            let is_open = !matches!(answer.status, 401 | 403);
            assert_eq!(is_open, allowed.contains(&role), "{method} {path} as {role}: {}", answer.text());
            if !is_open {
                answer.expect_problem(403, "forbidden");
            }
        }
    }
    let reader = as_role("reader");
    let actor = reader.audit().iter().find(|event| event["type"] == "instance.started").cloned().unwrap();
    assert_eq!(actor["actor"], "admin");
}

#[test]
fn access_without_a_known_token_nothing_opens_but_the_health() {
    let node = fresh_setup().config(&credential("admin", "acme", "admin")).start();
    for headers in ["", "Bearer", "Bearer wrong", "Basic YTpi", "token-of-admin"] {
        let api = node.api.with("authorization", headers);
        let answer = api.get("/api/v1/instances");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{headers}");
        answer.expect_problem(401, "unauthenticated");
        api.start("one", json!({})).answer().expect_problem(401, "unauthenticated");
    }
    for open in ["/livez", "/readyz", "/metrics", "/openapi.json", "/problems/forbidden"] {
        node.api.get(open).expect(200);
    }
}

/// L1.2: what another tenant has is not there, and says so in the very words of what never was.
#[test]
fn l1_2_tenants_share_nothing_not_even_a_key() {
    let config = ["acme", "other"].map(|name| credential(name, name, "admin")).concat();
    let node = fresh_setup().config(&config).start();
    // The header means nothing where there are credentials.
    let acme = node.api.bearer(&token("acme")).tenant("other");
    let other = node.api.bearer(&token("other"));
    acme.deploy(&one_task("one", "work")).answer().expect(201);
    other.start("one", json!({})).answer().expect_problem(404, "definition-not-found");
    other.deploy(&one_task("one", "work")).answer().expect(201);
    let start = |api: &Api, n: u32| api.start("one", json!({"n": n})).key("order-1").answer();
    let first = start(&acme, 1).expect(201);
    let second = start(&other, 2).expect(201);
    assert!(!second.is_replay() && first.json()["key"] != second.json()["key"]);
    assert!(start(&acme, 1).is_replay() && start(&other, 2).is_replay());
    let instance = text(&first.json()["key"]);
    let job = acme.job("work", "w");
    let key = text(&job["key"]);
    // (what is asked, with a key of another tenant's, in which words it is refused)
    type Ask = fn(&Api, &str) -> Call;
    let hidden: [(Ask, &str, &str); 5] = [
        (|api, key| api.call("GET", &format!("/api/v1/instances/{key}")), &instance, "instance-not-found"),
        (|api, key| api.post(&format!("/api/v1/instances/{key}/cancel"), json!({})), &instance, "instance-not-found"),
        (set_variables, &instance, "instance-not-found"),
        (|api, key| api.post(&format!("/api/v1/jobs/{key}/complete"), json!({"worker": "w"})), &key, "job-not-found"),
        (record_step, &key, "job-not-found"),
    ];
    for (call, key, code) in hidden {
        let foreign = call(&other, key).answer();
        let absent = call(&other, "42").answer();
        assert_eq!(foreign.text().replace(key, "42"), absent.text());
        foreign.expect_problem(404, code);
    }
    for list in ["/api/v1/instances", "/api/v1/jobs", "/api/v1/audit", "/api/v1/definitions", "/api/v1/idempotency"] {
        let shown = other.get(list).expect(200).text();
        assert!(!shown.contains(&instance) && !shown.contains(&key), "{list}: {shown}");
    }
    assert_eq!(other.activated("work", "w", 10).len(), 1, "its own one only");
    let message = |api: &Api| api.publish("m", "", "id-1", json!({})).answer().expect(200).json();
    assert_eq!((&message(&acme)["duplicate"], &message(&other)["duplicate"]), (&json!(false), &json!(false)));
    assert_eq!(acme.state(&instance), "ACTIVE");
}

fn set_variables(api: &Api, key: &str) -> Call {
    api.put(&format!("/api/v1/instances/{key}/variables"), json!({"variables": {}}))
}

fn record_step(api: &Api, key: &str) -> Call {
    api.put(&format!("/api/v1/jobs/{key}/steps/s"), json!({"worker": "w", "result": 1}))
}

/// Without credentials the header chooses; a malformed one is nobody's tenant.
#[test]
fn access_the_tenant_header_is_checked() {
    let node = fresh_setup().start();
    let long = "t".repeat(64);
    for tenant in ["", "a b", "a/b", "ä", &long] {
        node.api.tenant(tenant).get("/api/v1/instances").expect_problem(400, "validation");
    }
    node.api.tenant("a").tenant("a").get("/api/v1/instances").expect_problem(400, "validation");
    node.api.tenant("a.b_c-9").deploy(&one_task("one", "work")).answer().expect(201);
    assert_eq!(node.api.all("/api/v1/definitions"), Vec::<Value>::new());
}
