//! The whole life of one request as one document, layer by layer: its key, its command, the instance, jobs and messages,
//! what was published, the audit, and every repeat that was suppressed. Here are its shapes alone.
//! Next: `explain/found.rs` makes it of rows, `explain/story.rs` reads the audit.

mod found;
mod story;

use serde::Serialize;
use utoipa::ToSchema;
use wf_core::rows::Text;

use crate::answer::KeyText;
use crate::instances::InstanceOut;
use crate::outbox::OutboxOut;
use crate::time::Instant;

pub use found::{Found, Subject, tell};
pub use story::{JobStory, MessageStory, Story};

/// Rows of each list.
pub const ROWS_MAX: usize = 1000;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainOut {
    /// As it was asked for; `null` where another end was asked for: only its hash is shown then.
    #[schema(value_type = Option<String>, required)]
    pub key: Option<Text>,
    #[schema(required)]
    pub key_hash: Option<String>,
    /// `COMPLETED`, `IN_PROGRESS`, `EXPIRED`, or `NONE`: no record is there, or no key was sent.
    #[schema(value_type = String)]
    pub state: &'static str,
    #[schema(value_type = Option<String>, required)]
    pub route: Option<Text>,
    /// Of the first request, under the store's secret.
    #[schema(required)]
    pub fingerprint: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub first_seen_at: Option<Instant>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub expires_at: Option<Instant>,
    #[schema(required)]
    pub answer: Option<RememberedAnswer>,
    #[schema(required)]
    pub command: Option<LoggedCommand>,
    /// Where exactly one was touched.
    #[schema(required)]
    pub instance: Option<InstanceOut>,
    /// What started that instance, where it was not this command.
    #[schema(required)]
    pub started_by: Option<StartedBy>,
    /// All that the command touched, by key.
    #[schema(value_type = Vec<String>)]
    pub instances: Vec<KeyText>,
    pub jobs: Vec<ExplainedJob>,
    pub messages: Vec<ExplainedMessage>,
    pub outbox: Vec<OutboxOut>,
    pub audit: Vec<ExplainedEvent>,
    pub duplicates: Vec<Duplicate>,
    /// There is more than is shown; `unknown` says where it was not looked.
    pub truncated: bool,
    /// What is no longer known, and why.
    pub unknown: Vec<String>,
}

/// What a repeat is answered with.
#[derive(Debug, Serialize, ToSchema)]
pub struct RememberedAnswer {
    pub status: u16,
    pub bytes: usize,
}

/// What the request became.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoggedCommand {
    /// Unique in the log.
    pub id: String,
    #[schema(value_type = String)]
    pub position: KeyText,
    pub event_id: String,
    #[schema(value_type = String)]
    pub verb: Text,
    #[schema(value_type = String, format = DateTime)]
    pub time: Instant,
    /// Where lineage keys begin: a hash of key and request; `null` where there was no key.
    #[schema(value_type = Option<String>, required)]
    pub origin: Option<Text>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartedBy {
    pub event_id: String,
    #[schema(value_type = String)]
    pub verb: Text,
    #[schema(value_type = String, format = DateTime)]
    pub time: Instant,
    /// As above, of the key that it came under.
    #[schema(value_type = String)]
    pub state: &'static str,
    #[schema(required)]
    pub key_hash: Option<String>,
    #[schema(value_type = Option<String>, required)]
    pub route: Option<Text>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedJob {
    #[schema(value_type = String)]
    pub key: KeyText,
    #[schema(value_type = String)]
    pub element_id: Text,
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub job_type: Text,
    pub state: String,
    #[schema(value_type = Option<String>, required)]
    pub worker: Option<Text>,
    #[schema(required)]
    pub lease: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub deadline: Option<Instant>,
    /// `null` once retention has taken the job away.
    #[schema(required)]
    pub retries: Option<i32>,
    /// What each attempt hands to the provider.
    pub idempotency_key: String,
    #[schema(required)]
    pub lineage_key: Option<String>,
    /// Names of recorded steps.
    pub steps: Vec<String>,
    pub activations: Vec<Activation>,
}

/// One lease of a job, from the audit.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Activation {
    pub worker: String,
    pub lease: String,
    #[schema(value_type = String, format = DateTime)]
    pub at: Instant,
    #[schema(value_type = String, format = DateTime)]
    pub deadline: Instant,
    /// `COMPLETED`, `EXPIRED`, `FAILED`, `ERROR_THROWN` or `CANCELED`; `null` while it stands.
    #[schema(value_type = Option<String>, required)]
    pub end: Option<&'static str>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub ended_at: Option<Instant>,
}

/// A message that the command published, or that reached the instance.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedMessage {
    /// `null` where it was published before and waited.
    #[schema(value_type = Option<String>, required)]
    pub key: Option<KeyText>,
    pub name: String,
    #[schema(required)]
    pub correlation_key: Option<String>,
    #[schema(required)]
    pub message_id: Option<String>,
    /// Where the instance took it.
    #[schema(required)]
    pub element_id: Option<String>,
    #[schema(required)]
    pub event_id: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub at: Option<Instant>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedEvent {
    pub event_id: String,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Instant,
    #[serde(rename = "type")]
    pub event_type: String,
    #[schema(value_type = String)]
    pub actor: Text,
    pub resource: String,
}

/// Repeats of one minute that ran nothing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Duplicate {
    /// `REPLAY`: the first answer again. `CONFLICT`: another request under the key, refused. `IN_PROGRESS`: told to come
    /// back. `JOB`: work reported again. `MESSAGE`: a message id sent again.
    #[schema(value_type = String)]
    pub kind: &'static str,
    /// The route, or the verb where it was recognised without a key.
    #[schema(value_type = String)]
    pub route: Text,
    /// Of the key that was sent again; else it is a job or a message.
    #[schema(required)]
    pub key_hash: Option<String>,
    #[schema(value_type = Option<String>, required)]
    pub job_key: Option<KeyText>,
    /// `NAME:ID`
    #[schema(required)]
    pub message: Option<String>,
    pub count: u64,
    #[schema(value_type = String, format = DateTime)]
    pub first_at: Instant,
    #[schema(value_type = String, format = DateTime)]
    pub last_at: Instant,
}
