//! What `explain` tells of one request, as the contract has it. Times are RFC 3339. Next: `routes.rs`.

use serde::{Deserialize, Serialize};

use crate::types::OutboxMessage;

/// Where a request's story is asked from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Key(String),
    Instance(String),
    Job(String),
    /// `NAME:ID`
    Message(String),
}

impl End {
    pub(crate) fn parameter(&self) -> (&'static str, String) {
        match self {
            End::Key(text) => ("key", text.clone()),
            End::Instance(text) => ("instance", text.clone()),
            End::Job(text) => ("job", text.clone()),
            End::Message(text) => ("message", text.clone()),
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Only where it was asked for by its key.
    pub key: Option<String>,
    pub key_hash: Option<String>,
    pub state: String,
    pub route: Option<String>,
    pub fingerprint: Option<String>,
    pub first_seen_at: Option<String>,
    pub expires_at: Option<String>,
    pub answer: Option<RememberedAnswer>,
    pub command: Option<LoggedCommand>,
    /// Where exactly one was touched.
    pub instance: Option<ExplainedInstance>,
    /// What started that instance, where it was not this command.
    pub started_by: Option<StartedBy>,
    pub instances: Vec<String>,
    pub jobs: Vec<ExplainedJob>,
    pub messages: Vec<ExplainedMessage>,
    pub outbox: Vec<OutboxMessage>,
    pub audit: Vec<ExplainedEvent>,
    pub duplicates: Vec<Duplicate>,
    pub truncated: bool,
    /// What is no longer known, and why.
    pub unknown: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RememberedAnswer {
    pub status: u16,
    pub bytes: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggedCommand {
    pub id: String,
    pub position: String,
    pub event_id: String,
    pub verb: String,
    pub time: String,
    pub origin: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartedBy {
    pub event_id: String,
    pub verb: String,
    pub time: String,
    pub state: String,
    pub key_hash: Option<String>,
    pub route: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedInstance {
    pub key: String,
    pub process_definition_id: String,
    pub version: u32,
    pub state: String,
    pub started_at: String,
    pub ended_at: Option<String>,
    pub parent_key: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedJob {
    pub key: String,
    pub element_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub state: String,
    pub worker: Option<String>,
    pub lease: Option<String>,
    pub deadline: Option<String>,
    pub retries: Option<i32>,
    pub idempotency_key: String,
    pub lineage_key: Option<String>,
    pub steps: Vec<String>,
    pub activations: Vec<Activation>,
}

/// One lease of a job; `end` is absent while it stands.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Activation {
    pub worker: String,
    pub lease: String,
    pub at: String,
    pub deadline: String,
    pub end: Option<String>,
    pub ended_at: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedMessage {
    pub key: Option<String>,
    pub name: String,
    pub correlation_key: Option<String>,
    pub message_id: Option<String>,
    pub element_id: Option<String>,
    pub event_id: Option<String>,
    pub at: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedEvent {
    pub event_id: String,
    pub timestamp: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub actor: String,
    pub resource: String,
}

/// Repeats of one minute that ran nothing.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Duplicate {
    pub kind: String,
    pub route: String,
    pub key_hash: Option<String>,
    pub job_key: Option<String>,
    pub message: Option<String>,
    pub count: u64,
    pub first_at: String,
    pub last_at: String,
}
