//! The shapes that the API speaks, as its clients see them: camelCase JSON, 64-bit keys as text, times as RFC 3339.
//! Answers may grow: unknown members are ignored. Requests leave out what was not given.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Numbers keep their digits exactly.
pub type Variables = Map<String, Value>;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Deployment {
    pub definitions: Vec<Definition>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    pub key: String,
    pub process_definition_id: String,
    pub version: u32,
    #[serde(default)]
    pub resource_name: String,
    #[serde(default)]
    pub deployed_at: String,
    #[serde(default)]
    pub duplicate: bool,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartInstance {
    pub process_definition_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub variables: Variables,
    /// The variable whose value only one ACTIVE instance may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uniqueness_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub await_ms: Option<u64>,
}

impl StartInstance {
    pub fn of(process_definition_id: impl Into<String>) -> StartInstance {
        StartInstance { process_definition_id: process_definition_id.into(), ..StartInstance::default() }
    }

    pub fn variable(mut self, name: &str, value: impl Into<Value>) -> StartInstance {
        self.variables.insert(name.to_owned(), value.into());
        self
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    pub key: String,
    #[serde(default)]
    pub process_definition_id: String,
    #[serde(default)]
    pub version: u32,
    #[serde(default)]
    pub state: String,
    /// An ACTIVE instance with the same uniqueness value was found instead.
    #[serde(default)]
    pub existing: bool,
    /// Only where the instance ended while the start waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<Variables>,
}

/// Lists leave out `variables`, `active_elements` and `incidents`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    pub key: String,
    pub process_definition_id: String,
    pub version: u32,
    pub state: String,
    pub started_at: String,
    pub ended_at: Option<String>,
    #[serde(default)]
    pub parent_key: Option<String>,
    #[serde(default)]
    pub variables: Variables,
    #[serde(default)]
    pub active_elements: Vec<ActiveElement>,
    #[serde(default)]
    pub incidents: Vec<Incident>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveElement {
    pub key: String,
    pub element_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// What it waits for: one thing, or all of them where the server says so.
    #[serde(default)]
    pub waiting_for: Option<Waiting>,
    /// Entered at, where the server tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub kind: String,
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Ended {
    pub key: String,
    pub state: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivateJobs {
    #[serde(rename = "type")]
    pub job_type: String,
    pub worker: String,
    pub max_jobs: u32,
    pub lease_ms: u64,
    pub wait_ms: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fetch_variables: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Activated {
    pub jobs: Vec<Job>,
}

/// A job as its holder sees it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub key: String,
    #[serde(rename = "type")]
    pub job_type: String,
    pub process_instance_key: String,
    pub process_definition_id: String,
    pub element_id: String,
    /// Fences this activation from the next.
    pub lease: String,
    pub deadline: String,
    pub retries: i32,
    #[serde(default)]
    pub priority: i32,
    #[serde(default)]
    pub variables: Variables,
    #[serde(default)]
    pub custom_headers: Map<String, Value>,
    /// For the external call: the same for every retry of this job.
    pub idempotency_key: String,
    /// The same again after a restore from a backup.
    pub lineage_key: String,
    /// Recorded steps: results that an earlier attempt left.
    #[serde(default)]
    pub steps: Value,
}

impl Job {
    /// The result that an earlier attempt recorded. `steps` is an object by name, or a list of named results.
    pub fn step(&self, name: &str) -> Option<&Value> {
        match &self.steps {
            Value::Object(steps) => steps.get(name),
            Value::Array(steps) => steps.iter().find(|step| step.get("name").is_some_and(|n| n == name))?.get("result"),
            _ => None,
        }
    }
}

/// A job as a list shows it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobInfo {
    pub key: String,
    #[serde(rename = "type")]
    pub job_type: String,
    pub state: String,
    pub worker: Option<String>,
    pub deadline: Option<String>,
    pub retries: i32,
    #[serde(default)]
    pub priority: i32,
    pub process_instance_key: String,
    pub element_id: String,
}

/// Who holds a job: worker and lease of its activation.
#[derive(Clone, Debug, Serialize)]
pub struct Holder {
    pub worker: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Completed {
    pub state: String,
    #[serde(default)]
    pub duplicate: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct CompleteItem {
    pub key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub variables: Variables,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CompletedMany {
    pub results: Vec<CompletedOne>,
}

/// Either `state` or `problem`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CompletedOne {
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default)]
    pub duplicate: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Value>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailJob {
    pub message: String,
    /// Left after this failure; without it one less than now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u64>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub variables: Variables,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    pub state: String,
    pub retries: i32,
    #[serde(default)]
    pub incident_key: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThrowError {
    pub error_code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub variables: Variables,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Thrown {
    pub state: String,
    #[serde(default)]
    pub caught_by: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Extended {
    pub deadline: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Step {
    pub name: String,
    pub result: Value,
    /// False: another write stood already, and `result` is its.
    pub recorded: bool,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishMessage {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub correlation_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub variables: Variables,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Published {
    pub key: String,
    pub duplicate: bool,
    #[serde(default)]
    pub correlated: Vec<Correlated>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Correlated {
    pub process_instance_key: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Incident {
    pub key: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
    #[serde(default)]
    pub process_instance_key: String,
    #[serde(default)]
    pub element_id: String,
    #[serde(default)]
    pub job_key: Option<String>,
    #[serde(default)]
    pub created_at: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxMessage {
    pub id: String,
    pub event_id: String,
    pub dedup_key: String,
    pub sink: String,
    pub topic: String,
    pub state: String,
    pub attempts: u32,
    pub last_error: Option<String>,
    pub created_at: String,
    pub shipped_at: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    pub event_id: String,
    pub timestamp: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub actor: String,
    #[serde(default)]
    pub resource: Value,
    #[serde(default)]
    pub payload: Value,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyUses {
    pub items: Vec<KeyUse>,
    #[serde(default)]
    pub totals: Map<String, Value>,
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// Hits and conflicts count repeats only.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyUse {
    pub key_hash: String,
    pub route: String,
    pub state: String,
    pub first_seen_at: String,
    pub last_seen_at: String,
    pub hits: u64,
    pub conflicts: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Clock {
    pub now: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Nodes {
    pub nodes: Vec<Node>,
    pub partitions: Vec<Partition>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    pub id: String,
    pub name: String,
    pub address: String,
    pub version: String,
    pub joined_at: Option<String>,
    pub lease_left_ms: Option<i64>,
    pub partitions: Vec<u16>,
    /// The node that answered.
    pub is_self: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Partition {
    pub partition: u16,
    pub epoch: String,
    pub position: String,
    /// The owner's name.
    pub owner: Option<String>,
    /// Commands of other partitions that wait; counted up to 100.
    pub inbox: u64,
}
