//! A worker's poll and the jobs it gets: the widest answer of all, written in one go.
//! Variables and headers are spliced in as they are stored. Next: `wf_core::jobs::activate`.

use std::time::Duration;

use utoipa::ToSchema;
use wf_core::outcome::Activated;
use wf_core::rows::{Text, Variables};
use wf_core::{Command, Outcome};
use wf_idempotency::ids::provider_key;
use wf_idempotency::key;
use wf_idempotency::record::Answer;

use crate::Problem;
use crate::answer;
use crate::body::{self, NAME};
use crate::jobs::LEASE_MS_MAX;
use crate::write::{self, Writer};

const JOBS_MAX: i64 = 1000;
const LEASE_MS: i64 = 30_000;
const WAIT_MS_MAX: i64 = 60_000;
const FETCH_MAX: usize = 1000;

/// Body of `POST /api/v1/jobs/activate`.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct ActivateJobs {
    #[schema(value_type = String, rename = "type")]
    pub job_type: Text,
    #[schema(value_type = String)]
    pub worker: Text,
    /// 1 where absent.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1000)]
    pub max_jobs: i64,
    /// 30,000 where absent.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 86_400_000)]
    pub lease_ms: i64,
    /// How long an empty answer waits for a job; 0 where absent.
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 60_000)]
    pub wait_ms: i64,
    /// All visible variables where absent.
    #[schema(value_type = Option<Vec<String>>)]
    pub fetch_variables: Option<Vec<Text>>,
}

/// An activation and how long it may wait for a job.
#[derive(Clone, Debug)]
pub struct Poll {
    pub command: Command,
    pub wait: Duration,
}

pub fn read_activate(bytes: &[u8]) -> Result<Poll, Problem> {
    body::read(bytes, |fields| {
        let wait_ms = fields.int("waitMs", 0..=WAIT_MS_MAX).unwrap_or(0);
        let jobs_max = fields.int("maxJobs", 1..=JOBS_MAX).unwrap_or(1);
        let command = Command::ActivateJobs {
            job_type: fields.required_text("type", NAME),
            worker: fields.required_text("worker", NAME),
            jobs_max: u32::try_from(jobs_max).unwrap_or(1),
            lease_ms: fields.int("leaseMs", 1..=LEASE_MS_MAX).unwrap_or(LEASE_MS),
            fetch: fields.texts("fetchVariables", FETCH_MAX),
        };
        Poll { command, wait: Duration::from_millis(wait_ms.unsigned_abs()) }
    })
}

#[derive(Debug, ToSchema)]
pub struct ActivatedJobs {
    pub jobs: Vec<ActivatedJob>,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct ActivatedJob {
    pub key: String,
    #[schema(rename = "type")]
    pub job_type: String,
    pub process_instance_key: String,
    pub process_definition_id: String,
    pub element_id: String,
    /// Opaque; tells this activation from the next one.
    pub lease: String,
    #[schema(value_type = String, format = DateTime)]
    pub deadline: String,
    pub retries: i32,
    pub priority: i32,
    #[schema(value_type = Object)]
    pub variables: Variables,
    #[schema(value_type = Object)]
    pub custom_headers: Text,
    /// For the provider: the same for every retry of this job.
    pub idempotency_key: String,
    /// The same again after a restore, when clients send their requests again.
    pub lineage_key: String,
    /// Results recorded by earlier attempts, by name.
    #[schema(value_type = Object)]
    pub steps: Variables,
}

pub fn render_activated(outcome: &Outcome) -> Answer {
    let Outcome::Activated(jobs) = outcome else { return answer::unexpected(outcome) };
    let mut out = Writer::new(16 + jobs.iter().map(size).sum::<usize>());
    out.raw("{\"jobs\":");
    write::list(&mut out, jobs, write_job);
    out.raw("}");
    answer::ok(out.finish())
}

/// The poll found nothing.
pub fn render_none() -> Answer {
    render_activated(&Outcome::Activated(Vec::new()))
}

/// About what it takes, so that the buffer grows seldom.
fn size(activated: &Activated) -> usize {
    let variables = activated.variables.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>();
    512 + variables + activated.headers.len()
}

fn write_job(out: &mut Writer, activated: &Activated) {
    let job = &*activated.job;
    out.raw("{\"key\":").key(job.key).raw(",\"type\":").text(&job.job_type);
    out.raw(",\"processInstanceKey\":").key(job.root);
    out.raw(",\"processDefinitionId\":").text(&activated.process_id);
    out.raw(",\"elementId\":").text(&activated.element_id);
    out.raw(",\"lease\":").key(job.lease).raw(",\"deadline\":").time(job.due);
    out.raw(",\"retries\":").int(i64::from(job.retries)).raw(",\"priority\":").int(i64::from(job.priority));
    out.raw(",\"variables\":").variables(&activated.variables);
    out.raw(",\"customHeaders\":").raw(if activated.headers.is_empty() { "{}" } else { &activated.headers });
    out.raw(",\"idempotencyKey\":\"").raw(&provider_key(job.key, None));
    out.raw("\",\"lineageKey\":\"wf-lineage-").raw(&key::hex(&job.lineage));
    out.raw("\",\"steps\":").variables(&activated.steps).raw("}");
}
