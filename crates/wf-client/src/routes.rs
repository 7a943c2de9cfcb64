//! The calls of the API, one function each. POSTs carry a key unless the job's own state makes a repeat harmless.
//! Nothing is decided here. Next: `worker.rs`, which uses the job calls.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};

use crate::client::{Call, Client, Request};
use crate::error::ClientError;
use crate::explanation::{End, Explanation};
use crate::fresh_key;
use crate::types::*;

const JSON: &str = "application/json";

/// What a list of instances is narrowed to; empty fields narrow nothing.
#[derive(Clone, Debug, Default)]
pub struct InstanceFilter {
    pub state: Option<String>,
    pub process_definition_id: Option<String>,
    pub started_after: Option<String>,
    /// Name and text of scalar variables.
    pub variables: Vec<(String, String)>,
}

impl Client {
    // Definitions.

    pub fn deploy(&self, xml: impl Into<Bytes>) -> Call<Deployment> {
        self.post(&["definitions"], "application/xml", xml.into())
    }

    /// All files or none. Resource name and content of each.
    pub fn deploy_files(&self, files: &[(String, Vec<u8>)]) -> Call<Deployment> {
        let (content_type, body) = multipart(files);
        self.post(&["definitions"], content_type, body)
    }

    pub fn definitions(&self, cursor: Option<&str>) -> Call<Page<Definition>> {
        self.get(&["definitions"], cursor_of(cursor))
    }

    pub fn definition(&self, id: &str, version: Option<u32>) -> Call<Definition> {
        let version = version.map(|version| ("version", version.to_string()));
        self.get(&["definitions", id], version.into_iter().collect())
    }

    pub async fn definition_xml(&self, id: &str) -> Result<Bytes, ClientError> {
        self.get::<Value>(&["definitions", id, "xml"], vec![]).raw().await.map(|reply| reply.value)
    }

    // Instances.

    pub fn start(&self, start: &StartInstance) -> Call<Started> {
        let held = Duration::from_millis(start.await_ms.unwrap_or(0));
        self.keyed(Method::POST, &["instances"], start, held)
    }

    pub fn instances(&self, filter: &InstanceFilter, cursor: Option<&str>) -> Call<Page<Instance>> {
        let mut query: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, value: &Option<String>| {
            query.extend(value.as_ref().map(|value| (name.to_owned(), value.clone())));
        };
        add("state", &filter.state);
        add("processDefinitionId", &filter.process_definition_id);
        add("startedAfter", &filter.started_after);
        add("cursor", &cursor.map(str::to_owned));
        query.extend(filter.variables.iter().map(|(name, value)| (format!("variable.{name}"), value.clone())));
        let pairs: Vec<(&str, String)> = query.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        self.get(&["instances"], pairs)
    }

    pub fn instance(&self, key: &str) -> Call<Instance> {
        self.get(&["instances", key], vec![])
    }

    pub fn cancel(&self, key: &str) -> Call<Ended> {
        self.keyed(Method::POST, &["instances", key, "cancel"], &json!({}), Duration::ZERO)
    }

    pub fn set_variables(&self, key: &str, variables: &Variables, scope: Option<&str>) -> Call<Value> {
        let mut body = json!({ "variables": variables });
        if let (Some(scope), Some(object)) = (scope, body.as_object_mut()) {
            object.insert("scope".to_owned(), scope.into());
        }
        self.keyed(Method::PUT, &["instances", key, "variables"], &body, Duration::ZERO)
    }

    // Jobs.

    /// With its key a repeat gets the same jobs and leases; an empty poll stores nothing.
    pub fn activate(&self, poll: &ActivateJobs) -> Call<Activated> {
        self.keyed(Method::POST, &["jobs", "activate"], poll, Duration::from_millis(poll.wait_ms))
    }

    /// `filter`: `type`, `state`, `processInstanceKey`.
    pub fn jobs(&self, filter: &[(&str, String)], cursor: Option<&str>) -> Call<Page<JobInfo>> {
        let mut query = filter.to_vec();
        query.extend(cursor_of(cursor));
        self.get(&["jobs"], query)
    }

    /// Needs no key: the holder that repeats its own completion is told `duplicate`.
    pub fn complete(&self, job: &str, holder: &Holder, variables: &Variables) -> Call<Completed> {
        let body = Held { holder, more: json!({ "variables": variables }) };
        self.plain(Method::POST, &["jobs", job, "complete"], &body)
    }

    /// Each item stands alone.
    pub fn complete_many(&self, worker: &str, jobs: &[CompleteItem]) -> Call<CompletedMany> {
        self.plain(Method::POST, &["jobs", "complete"], &json!({ "worker": worker, "jobs": jobs }))
    }

    pub fn fail(&self, job: &str, holder: &Holder, failure: &FailJob) -> Call<Failed> {
        self.keyed(Method::POST, &["jobs", job, "fail"], &Held { holder, more: failure }, Duration::ZERO)
    }

    pub fn throw_error(&self, job: &str, holder: &Holder, error: &ThrowError) -> Call<Thrown> {
        self.keyed(Method::POST, &["jobs", job, "error"], &Held { holder, more: error }, Duration::ZERO)
    }

    /// Needs no key: a repeat moves the deadline once more, which is what its holder wants.
    pub fn extend(&self, job: &str, holder: &Holder, lease_ms: u64) -> Call<Extended> {
        self.plain(Method::POST, &["jobs", job, "extend"], &Held { holder, more: json!({ "leaseMs": lease_ms }) })
    }

    /// Needs no key: the first write of a name wins.
    pub fn record_step(&self, job: &str, name: &str, holder: &Holder, result: &Value) -> Call<Step> {
        self.plain(Method::PUT, &["jobs", job, "steps", name], &Held { holder, more: json!({ "result": result }) })
    }

    // Messages, incidents, outbox.

    pub fn publish(&self, message: &PublishMessage) -> Call<Published> {
        self.keyed(Method::POST, &["messages"], message, Duration::ZERO)
    }

    pub fn incidents(&self, cursor: Option<&str>) -> Call<Page<Incident>> {
        self.get(&["incidents"], cursor_of(cursor))
    }

    pub fn resolve(&self, key: &str, retries: Option<u32>) -> Call<Ended> {
        let body = retries.map_or_else(|| json!({}), |retries| json!({ "retries": retries }));
        self.keyed(Method::POST, &["incidents", key, "resolve"], &body, Duration::ZERO)
    }

    pub fn outbox(&self, state: Option<&str>, cursor: Option<&str>) -> Call<Page<OutboxMessage>> {
        let mut query = cursor_of(cursor);
        query.extend(state.map(|state| ("state", state.to_owned())));
        self.get(&["outbox"], query)
    }

    pub fn outbox_retry(&self, id: &str, force: bool) -> Call<Value> {
        let body = if force { json!({ "force": true }) } else { json!({}) };
        self.keyed(Method::POST, &["outbox", id, "retry"], &body, Duration::ZERO)
    }

    // Looking back.

    /// `from`: an event id, inclusive.
    pub fn audit(&self, from: Option<&str>, instance: Option<&str>, cursor: Option<&str>) -> Call<Page<AuditEvent>> {
        let mut query = cursor_of(cursor);
        query.extend(from.map(|from| ("from", from.to_owned())));
        query.extend(instance.map(|instance| ("instance", instance.to_owned())));
        self.get(&["audit"], query)
    }

    pub fn idempotency(&self, hours: u32, cursor: Option<&str>) -> Call<KeyUses> {
        let mut query = cursor_of(cursor);
        query.push(("hours", hours.to_string()));
        self.get(&["idempotency"], query)
    }

    /// The nodes that share the server's store.
    pub fn nodes(&self) -> Call<Nodes> {
        self.get(&["nodes"], vec![])
    }

    /// The whole life of one request, asked for from one of its ends.
    pub fn explain(&self, end: &End) -> Call<Explanation> {
        self.get(&["explain"], vec![end.parameter()])
    }

    // The test clock; its routes ignore keys. Setting it to a time is repeatable, moving it on is not: see `advance`.

    pub fn set_clock(&self, now: &str) -> Call<Clock> {
        self.plain(Method::PUT, &["clock"], &json!({ "now": now }))
    }

    /// A repeat after a lost answer moves the clock twice: where that matters, use `set_clock`.
    pub fn advance_clock(&self, advance_ms: u64) -> Call<Clock> {
        self.plain(Method::PUT, &["clock"], &json!({ "advanceMs": advance_ms }))
    }

    /// The server takes requests.
    pub async fn is_ready(&self) -> bool {
        let request = Request {
            method: Method::GET,
            url: self.url(&["readyz"], &[]),
            body: None,
            key: None,
            held: Duration::ZERO,
            once: false,
        };
        self.call::<Value>(request).raw().await.is_ok()
    }

    fn get<T>(&self, path: &[&str], query: Vec<(&str, String)>) -> Call<T> {
        let url = self.url(&under_api(path), &query);
        self.call(Request { method: Method::GET, url, body: None, key: None, held: Duration::ZERO, once: false })
    }

    fn post<T>(&self, path: &[&str], content_type: &'static str, body: Bytes) -> Call<T> {
        let url = self.url(&under_api(path), &[]);
        let body = Some((content_type, body));
        self.call(Request {
            method: Method::POST,
            url,
            body,
            key: Some(fresh_key()),
            held: Duration::ZERO,
            once: false,
        })
    }

    fn keyed<T>(&self, method: Method, path: &[&str], body: &impl Serialize, held: Duration) -> Call<T> {
        let body = Some((JSON, to_json(body)));
        self.call(Request {
            method,
            url: self.url(&under_api(path), &[]),
            body,
            key: Some(fresh_key()),
            held,
            once: false,
        })
    }

    fn plain<T>(&self, method: Method, path: &[&str], body: &impl Serialize) -> Call<T> {
        let body = Some((JSON, to_json(body)));
        self.call(Request {
            method,
            url: self.url(&under_api(path), &[]),
            body,
            key: None,
            held: Duration::ZERO,
            once: false,
        })
    }
}

/// The holder's members beside those of the step itself.
#[derive(Serialize)]
struct Held<'a, M> {
    #[serde(flatten)]
    holder: &'a Holder,
    #[serde(flatten)]
    more: M,
}

fn under_api<'a>(path: &[&'a str]) -> Vec<&'a str> {
    ["api", "v1"].iter().chain(path).copied().collect()
}

fn cursor_of(cursor: Option<&str>) -> Vec<(&'static str, String)> {
    cursor.map(|cursor| ("cursor", cursor.to_owned())).into_iter().collect()
}

/// Our own shapes have text keys only, so this cannot fail; an empty body would be refused by the server.
fn to_json(body: &impl Serialize) -> Bytes {
    serde_json::to_vec(body).map(Bytes::from).unwrap_or_default()
}

/// The boundary is fixed, so that a repeat has the same bytes; a file that contains it would be cut, so it is long.
const BOUNDARY: &str = "onceflow-7c1f0a94d2b54e7fa3c08e6b51d9f2aa";

fn multipart(files: &[(String, Vec<u8>)]) -> (&'static str, Bytes) {
    let mut body = Vec::new();
    for (name, content) in files {
        let name: String = name.chars().map(|c| if c == '"' || c.is_control() { '_' } else { c }).collect();
        body.extend_from_slice(format!("--{BOUNDARY}\r\n").as_bytes());
        let disposition = format!("Content-Disposition: form-data; name=\"resources\"; filename=\"{name}\"\r\n");
        body.extend_from_slice(disposition.as_bytes());
        body.extend_from_slice(b"Content-Type: application/xml\r\n\r\n");
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    ("multipart/form-data; boundary=onceflow-7c1f0a94d2b54e7fa3c08e6b51d9f2aa", Bytes::from(body))
}
