//! Jobs: what workers ask for and get. Activation and completion are the hot path: their answers are written by hand.
//! It does not know who holds a job. Next: `wf_core::jobs`.

use serde::Serialize;
use utoipa::ToSchema;
use wf_core::command::{CompleteItem, Holder};
use wf_core::rows::{Job, JobState, Json, Text, Variables};
use wf_core::{Command, Key, Outcome};
use wf_idempotency::record::Answer;

use crate::Problem;
use crate::answer::{self, KeyText};
use crate::body::{self, Fields, NAME, PROSE, TextRule};
use crate::time::Instant;
use crate::write::{self, Writer};

mod activation;
mod parts;

pub use activation::{ActivateJobs, ActivatedJob, ActivatedJobs, Poll, read_activate, render_activated, render_none};
pub use parts::{Part, merge_completed_many};

pub const LEASE_MS_MAX: i64 = 86_400_000;
/// Jobs of one batch completion.
pub const BATCH_MAX: usize = 1000;
pub const STEP_NAME_CHARS_MAX: usize = 128;
const STEP_NAME: TextRule = TextRule { bytes_max: STEP_NAME_CHARS_MAX * 4, ..NAME };
const BACKOFF_MS_MAX: i64 = 366 * 86_400_000;

/// Who says that it holds the job: every request about one begins like this.
fn holder(job: Key, fields: &mut Fields<'_>) -> Holder {
    Holder { job, worker: fields.required_text("worker", NAME), lease: lease(fields) }
}

/// Opaque to clients; what is no lease of ours was never anybody's.
fn lease(fields: &mut Fields<'_>) -> Option<u64> {
    let text = fields.text("lease", NAME)?;
    let lease = body::parse_key(&text);
    if lease.is_none() {
        fields.refuse("lease", "is no lease: send the text that the activation returned");
    }
    lease
}

/// Body of `POST /api/v1/jobs/{key}/complete`.
#[derive(Debug, ToSchema)]
pub struct CompleteJob {
    #[schema(value_type = String)]
    pub worker: Text,
    /// From the activation. Workers that share a name must send it.
    #[schema(value_type = Option<String>)]
    pub lease: Option<Text>,
    #[schema(value_type = Option<Object>)]
    pub variables: Variables,
}

pub fn read_complete(job: Key, bytes: &[u8]) -> Result<Command, Problem> {
    body::read(bytes, |fields| Command::CompleteJob {
        holder: holder(job, fields),
        variables: fields.variables("variables"),
    })
}

#[derive(Debug, ToSchema)]
pub struct Completed {
    /// `COMPLETED`
    pub state: String,
    /// The holder's own repeat: nothing changed.
    pub duplicate: bool,
}

pub fn render_completed(outcome: &Outcome) -> Answer {
    let Outcome::Completed { duplicate } = outcome else { return answer::unexpected(outcome) };
    let mut out = Writer::new(48);
    out.raw("{\"state\":\"COMPLETED\",\"duplicate\":").bool(*duplicate).raw("}");
    answer::ok(out.finish())
}

/// Body of `POST /api/v1/jobs/complete`.
#[derive(Debug, ToSchema)]
pub struct CompleteJobs {
    #[schema(value_type = String)]
    pub worker: Text,
    #[schema(min_items = 1, max_items = 1000)]
    pub jobs: Vec<CompleteJobsItem>,
}

#[derive(Debug, ToSchema)]
pub struct CompleteJobsItem {
    #[schema(value_type = String)]
    pub key: Key,
    #[schema(value_type = Option<String>)]
    pub lease: Option<Text>,
    #[schema(value_type = Option<Object>)]
    pub variables: Variables,
}

pub fn read_complete_many(bytes: &[u8]) -> Result<Command, Problem> {
    body::read(bytes, |fields| Command::CompleteJobs {
        worker: fields.required_text("worker", NAME),
        items: fields.objects("jobs", 1..=BATCH_MAX, |fields| CompleteItem {
            job: fields.required_key("key"),
            lease: lease(fields),
            variables: fields.variables("variables"),
        }),
    })
}

/// In the order asked for; each item stands alone.
#[derive(Debug, ToSchema)]
pub struct CompletedMany {
    pub results: Vec<CompletedItem>,
}

/// Either `state` and `duplicate`, or `problem`.
#[derive(Debug, ToSchema)]
pub struct CompletedItem {
    pub key: String,
    pub state: Option<String>,
    pub duplicate: Option<bool>,
    #[schema(value_type = Option<Object>)]
    pub problem: Option<crate::problem::ProblemBody>,
}

pub fn render_completed_many(outcome: &Outcome) -> Answer {
    let Outcome::CompletedMany(results) = outcome else { return answer::unexpected(outcome) };
    let mut out = Writer::new(16 + 80 * results.len());
    out.raw("{\"results\":");
    write::list(&mut out, results, |out, (job, result)| {
        out.raw("{\"key\":").key(*job);
        match result {
            Ok(duplicate) => {
                out.raw(",\"state\":\"COMPLETED\",\"duplicate\":").bool(*duplicate);
            }
            Err(rejection) => {
                out.raw(",\"problem\":");
                Problem::from(rejection).write(out);
            }
        }
        out.raw("}");
    });
    out.raw("}");
    answer::ok(out.finish())
}

/// One result of a batch that the store or the network refused.
fn write_refused(out: &mut Writer, job: Key, problem: &str) {
    out.raw("{\"key\":").key(job).raw(",\"problem\":").raw(problem).raw("}");
}

/// Body of `POST /api/v1/jobs/{key}/fail`.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct FailJob {
    #[schema(value_type = String)]
    pub worker: Text,
    #[schema(value_type = Option<String>)]
    pub lease: Option<Text>,
    /// For the incident, where none are left.
    #[schema(value_type = String)]
    pub message: Text,
    /// Left from now on; one less than now where absent.
    #[schema(minimum = 0)]
    pub retries: Option<i32>,
    /// 0 where absent: ready again at once.
    #[schema(value_type = Option<i64>, minimum = 0)]
    pub backoff_ms: i64,
    /// Kept for the next attempt, local to the element.
    #[schema(value_type = Option<Object>)]
    pub variables: Variables,
}

pub fn read_fail(job: Key, bytes: &[u8]) -> Result<Command, Problem> {
    body::read(bytes, |fields| Command::FailJob {
        holder: holder(job, fields),
        message: fields.required_text("message", PROSE),
        retries: fields.int("retries", 0..=i64::from(i32::MAX)).and_then(|retries| i32::try_from(retries).ok()),
        backoff_ms: fields.int("backoffMs", 0..=BACKOFF_MS_MAX).unwrap_or(0),
        variables: fields.variables("variables"),
    })
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    #[schema(value_type = String)]
    pub state: &'static str,
    pub retries: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub incident_key: Option<KeyText>,
}

pub fn render_failed(outcome: &Outcome) -> Answer {
    let Outcome::Failed { state, retries, incident } = outcome else { return answer::unexpected(outcome) };
    let incident_key = incident.map(KeyText);
    answer::of(200, &Failed { state: state_name(*state), retries: *retries, incident_key })
}

/// Body of `POST /api/v1/jobs/{key}/error`: a BPMN error, not a technical failure.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct ThrowError {
    #[schema(value_type = String)]
    pub worker: Text,
    #[schema(value_type = Option<String>)]
    pub lease: Option<Text>,
    #[schema(value_type = String)]
    pub error_code: Text,
    #[schema(value_type = Option<String>)]
    pub message: Text,
    #[schema(value_type = Option<Object>)]
    pub variables: Variables,
}

pub fn read_error(job: Key, bytes: &[u8]) -> Result<Command, Problem> {
    body::read(bytes, |fields| Command::ThrowError {
        holder: holder(job, fields),
        code: fields.required_text("errorCode", NAME),
        message: fields.text("message", PROSE).unwrap_or_else(|| Text::from("")),
        variables: fields.variables("variables"),
    })
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorThrown {
    #[schema(value_type = String)]
    pub state: &'static str,
    /// The event that caught it; absent where nothing does, and an incident waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub caught_by: Option<Text>,
}

pub fn render_error(outcome: &Outcome) -> Answer {
    let Outcome::ErrorThrown { state, caught_by } = outcome else { return answer::unexpected(outcome) };
    answer::of(200, &ErrorThrown { state: state_name(*state), caught_by: caught_by.clone() })
}

/// Body of `POST /api/v1/jobs/{key}/extend`.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct ExtendLease {
    #[schema(value_type = String)]
    pub worker: Text,
    #[schema(value_type = Option<String>)]
    pub lease: Option<Text>,
    /// From now.
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub lease_ms: i64,
}

pub fn read_extend(job: Key, bytes: &[u8]) -> Result<Command, Problem> {
    body::read(bytes, |fields| Command::ExtendLease {
        holder: holder(job, fields),
        lease_ms: fields.required_int("leaseMs", 1..=LEASE_MS_MAX),
    })
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Extended {
    #[schema(value_type = String, format = DateTime)]
    pub deadline: Instant,
}

pub fn render_extended(outcome: &Outcome) -> Answer {
    let Outcome::Extended { deadline } = outcome else { return answer::unexpected(outcome) };
    answer::of(200, &Extended { deadline: Instant(*deadline) })
}

/// Body of `PUT /api/v1/jobs/{key}/steps/{name}`.
#[derive(Debug, ToSchema)]
pub struct RecordStep {
    #[schema(value_type = String)]
    pub worker: Text,
    #[schema(value_type = Option<String>)]
    pub lease: Option<Text>,
    /// Any JSON.
    #[schema(value_type = Value)]
    pub result: Json,
}

pub fn read_step(job: Key, name: &str, bytes: &[u8]) -> Result<Command, Problem> {
    body::read(bytes, |fields| {
        match STEP_NAME.check(name) {
            Err(message) => fields.refuse("name", message),
            Ok(()) if name.chars().count() > STEP_NAME_CHARS_MAX => {
                fields.refuse("name", format!("has more than {STEP_NAME_CHARS_MAX} characters"));
            }
            Ok(()) => (),
        }
        let holder = holder(job, fields);
        Command::RecordStep { holder, name: Text::from(name), result: fields.required_json("result") }
    })
}

/// What stands, whoever wrote it.
#[derive(Debug, ToSchema)]
pub struct StepOut {
    pub name: String,
    #[schema(value_type = Value)]
    pub result: Json,
    /// `false`: an earlier attempt's result stands.
    pub recorded: bool,
}

pub fn render_step(outcome: &Outcome) -> Answer {
    let Outcome::Step { name, result, recorded } = outcome else { return answer::unexpected(outcome) };
    let mut out = Writer::new(48 + name.len() + result.len());
    out.raw("{\"name\":").text(name).raw(",\"result\":").raw(result).raw(",\"recorded\":").bool(*recorded).raw("}");
    answer::ok(out.finish())
}

/// A job in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobOut {
    #[schema(value_type = String)]
    pub key: KeyText,
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub job_type: Text,
    #[schema(value_type = String)]
    pub state: &'static str,
    /// The activation's holder; `null` where nobody is.
    #[schema(value_type = Option<String>, required)]
    pub worker: Option<Text>,
    /// The lease's end.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub deadline: Option<Instant>,
    pub retries: i32,
    pub priority: i32,
    #[schema(value_type = String)]
    pub process_instance_key: KeyText,
    #[schema(value_type = String)]
    pub element_id: Text,
}

pub fn job_of(job: &Job, element_id: Text) -> JobOut {
    let is_activated = job.state == JobState::Activated;
    JobOut {
        key: KeyText(job.key),
        job_type: job.job_type.clone(),
        state: state_name(job.state),
        worker: Some(job.worker.clone()).filter(|worker| !worker.is_empty()),
        deadline: is_activated.then_some(Instant(job.due)),
        retries: job.retries,
        priority: job.priority,
        process_instance_key: KeyText(job.root),
        element_id,
    }
}

pub fn state_name(state: JobState) -> &'static str {
    match state {
        JobState::Ready => "READY",
        JobState::Activated => "ACTIVATED",
        JobState::Backoff => "BACKOFF",
        JobState::Failed => "FAILED",
        JobState::ErrorThrown => "ERROR_THROWN",
        JobState::Completed => "COMPLETED",
        JobState::Canceled => "CANCELED",
    }
}

/// The same again for the job at the same place of an instance that the same request started.
pub fn lineage_key(lineage: &[u8; 16]) -> String {
    format!("wf-lineage-{}", wf_idempotency::key::hex(lineage))
}

pub fn parse_state(text: &str) -> Option<JobState> {
    JobState::ALL.into_iter().find(|state| state_name(*state) == text)
}
