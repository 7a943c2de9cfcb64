//! The document and the server agree: every documented operation is asked with a minimal valid request, and its answer
//! has the documented status, media type and members.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::*;

/// Operation, headers, body, expected status. `{…}` in a path is filled from what earlier steps found.
const STEPS: &[(&str, (&str, &str), &str, u16)] = &[
    ("post /api/v1/definitions", XML, WORK, 201),
    ("post /api/v1/definitions", XML, WORK, 200),
    ("get /api/v1/definitions", JSON, "", 200),
    ("get /api/v1/definitions/{id}", JSON, "", 200),
    ("get /api/v1/definitions/{id}/xml", JSON, "", 200),
    ("post /api/v1/instances", JSON, UNIQUE, 201),
    ("post /api/v1/instances", JSON, UNIQUE, 200),
    ("get /api/v1/instances", JSON, "", 200),
    ("get /api/v1/instances/{key}", JSON, "", 200),
    ("put /api/v1/instances/{key}/variables", JSON, r#"{"variables":{"a":1}}"#, 200),
    ("post /api/v1/jobs/activate", JSON, r#"{"type":"work","worker":"w"}"#, 200),
    ("get /api/v1/jobs", JSON, "", 200),
    ("put /api/v1/jobs/{key}/steps/{name}", JSON, r#"{"worker":"w","result":{"a":1}}"#, 200),
    ("post /api/v1/jobs/{key}/extend", JSON, r#"{"worker":"w","leaseMs":1000}"#, 200),
    ("post /api/v1/jobs/{key}/fail", JSON, r#"{"worker":"w","message":"m","retries":0}"#, 200),
    ("get /api/v1/incidents", JSON, "", 200),
    ("get /api/v1/instances/{key}", JSON, "", 200),
    ("post /api/v1/incidents/{key}/resolve", JSON, "{}", 200),
    ("post /api/v1/jobs/activate", JSON, r#"{"type":"work","worker":"w"}"#, 200),
    ("post /api/v1/jobs/{key}/complete", JSON, r#"{"worker":"w"}"#, 200),
    ("post /api/v1/jobs/complete", JSON, r#"{"worker":"w","jobs":[{"key":"{key}"},{"key":"1"}]}"#, 200),
    ("post /api/v1/instances", JSON, UNIQUE, 201),
    ("post /api/v1/jobs/activate", JSON, r#"{"type":"work","worker":"w"}"#, 200),
    ("post /api/v1/jobs/{key}/error", JSON, r#"{"worker":"w","errorCode":"e"}"#, 200),
    ("post /api/v1/instances/{key}/cancel", JSON, "{}", 200),
    ("post /api/v1/messages", JSON, r#"{"name":"m"}"#, 200),
    ("get /api/v1/outbox", JSON, "", 200),
    ("post /api/v1/outbox/{id}/retry", JSON, r#"{"force":true}"#, 200),
    ("get /api/v1/audit", JSON, "", 200),
    ("get /api/v1/idempotency", JSON, "", 200),
    ("get /api/v1/idempotency/{key}", JSON, "", 200),
    ("get /api/v1/explain", JSON, "", 200),
    ("put /api/v1/clock", JSON, r#"{"advanceMs":1}"#, 200),
    ("delete /api/v1/clock", JSON, "", 200),
    ("get /api/v1/nodes", JSON, "", 200),
    ("get /api/v1/proofs/replay", JSON, "", 200),
    ("get /api/v1/proofs/tables", JSON, "", 200),
    ("get /api/v1/proofs/audit", JSON, "", 200),
    ("get /livez", JSON, "", 200),
    ("get /readyz", JSON, "", 200),
    ("get /problems/{code}", JSON, "", 200),
];
const UNIQUE: &str = r#"{"processDefinitionId":"order","uniquenessKey":"id","variables":{"id":1}}"#;
const KEY: &str = "asked-for-later";
/// `/metrics` needs the process-wide recorder; `readyz` 503 an engine that fails.
const NOT_ASKED: [&str; 2] = ["get /metrics 200", "get /readyz 503"];

#[tokio::test]
async fn every_documented_route_answers_as_documented() {
    let service = Service::with_sink().await;
    let document = service.get("/openapi.json").await.json();
    assert_eq!(document["openapi"].as_str().map(|version| &version[..4]), Some("3.1."));
    let mut unseen = documented(&document);
    let mut found = Found::default();
    service.send("POST /api/v1/messages", &[JSON, ("idempotency-key", KEY)], r#"{"name":"m"}"#).await;
    for (operation, kind, body, status) in STEPS {
        let (method, template) = operation.split_once(' ').unwrap();
        let path = found.fill(template);
        let body = body.replace("{key}", &found.job);
        let reply = service.send(&format!("{} {path}", method.to_uppercase()), &[*kind], body).await;
        assert_eq!(reply.status, *status, "{operation}: {}", reply.body);
        let response = &document["paths"][template][method]["responses"][status.to_string()];
        check_answer(&document, operation, response, &reply);
        unseen.remove(&format!("{operation} {status}"));
        found.look_at(template, &reply);
    }
    NOT_ASKED.iter().for_each(|left_out| assert!(unseen.remove(*left_out), "{left_out}"));
    assert_eq!(unseen, BTreeSet::new(), "documented, and never asked");
}

#[tokio::test]
async fn the_document_knows_every_route_and_every_operation_has_a_name() {
    let service = Service::plain().await;
    let document = service.get("/openapi.json").await.json();
    for route in wf_server::route::ROUTES {
        let operation = &document["paths"][route.path][route.method.to_lowercase()];
        let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_keyed = parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key");
        assert_eq!((operation.is_object(), is_keyed), (true, route.is_keyed), "{route:?}");
    }
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} twice");
            for response in operation["responses"].as_object().unwrap().values() {
                assert!(response["description"].is_string(), "{method} {path}");
            }
        }
    }
}

/// Statuses but `default`, which is the problem's.
fn documented(document: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let statuses = operation["responses"].as_object().unwrap().keys().filter(|status| *status != "default");
            all.extend(statuses.map(|status| format!("{method} {path} {status}")));
            let is_guarded = path.starts_with("/api/");
            assert_eq!(operation["responses"].get("default").is_some(), is_guarded, "{method} {path}");
        }
    }
    all
}

fn check_answer(document: &Value, operation: &str, response: &Value, reply: &Reply) {
    let (media, content) = response["content"].as_object().and_then(|content| content.iter().next()).unwrap();
    let sent = reply.header("content-type").split(';').next().unwrap();
    assert_eq!(sent, media, "{operation}");
    if media == "application/json" {
        check_value(document, operation, &content["schema"], &reply.json());
    }
}

/// Members that the schema requires are there, none that it does not know, kinds agree; all the way down.
fn check_value(document: &Value, place: &str, schema: &Value, value: &Value) {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointed = document.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference}"));
        return check_value(document, place, pointed, value);
    }
    if let Some(parts) = schema["allOf"].as_array() {
        return check_value(document, place, &merged(document, parts), value);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().find(|choice| (choice["type"] == "null") == value.is_null());
        return check_value(document, place, fitting.unwrap_or_else(|| panic!("{place}: {value}")), value);
    }
    check_kind(place, schema, value);
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        assert!(value.get(name).is_some(), "{place}: {name} is missing in {value}");
    }
    let Some(known) = schema["properties"].as_object() else {
        if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
            values.iter().for_each(|value| check_value(document, place, items, value));
        }
        return;
    };
    for (name, member) in value.as_object().unwrap() {
        let schema = known.get(name).unwrap_or_else(|| panic!("{place}: {name} is not documented"));
        check_value(document, &format!("{place} {name}"), schema, member);
    }
}

fn merged(document: &Value, parts: &[Value]) -> Value {
    let (mut properties, mut required) = (serde_json::Map::new(), Vec::new());
    for part in parts {
        let pointed = part["$ref"].as_str().and_then(|path| document.pointer(path.trim_start_matches('#')));
        let part = pointed.unwrap_or(part);
        let part = part["allOf"].as_array().map_or_else(|| part.clone(), |inner| merged(document, inner));
        properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
        required.extend(part["required"].as_array().cloned().unwrap_or_default());
    }
    json!({"type": "object", "properties": properties, "required": required})
}

fn check_kind(place: &str, schema: &Value, value: &Value) {
    let kinds = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if kinds.contains(&"integer") => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(kinds.contains(&kind), "{place}: {value} is no {kinds:?}");
}

/// Keys that later steps need.
#[derive(Default)]
struct Found {
    instance: String,
    job: String,
    incident: String,
    message: String,
}

impl Found {
    fn fill(&self, template: &str) -> String {
        let key = match template {
            _ if template.contains("/instances/") => &self.instance,
            _ if template.contains("/idempotency/") => KEY,
            _ if template.contains("/incidents/") => &self.incident,
            _ => &self.job,
        };
        let id = if template.contains("/outbox/") { &self.message } else { "order" };
        let path = template.replace("{key}", key).replace("{id}", id).replace("{name}", "charge");
        let path = path.replace("{code}", "validation");
        path.replace("/explain", &format!("/explain?instance={}", self.instance))
    }

    fn look_at(&mut self, template: &str, reply: &Reply) {
        let first = |list: &str, name: &str| reply.json()[list][0][name].as_str().map(str::to_owned);
        match template {
            "/api/v1/instances" if reply.status == 201 => self.instance = text(&reply.json()["key"]),
            "/api/v1/jobs/activate" => self.job = first("jobs", "key").unwrap(),
            "/api/v1/incidents" => self.incident = first("items", "key").unwrap(),
            "/api/v1/outbox" => self.message = first("items", "id").unwrap(),
            _ => (),
        }
    }
}
