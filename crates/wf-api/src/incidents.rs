//! Incidents: what stopped, and the request to try again.
//! Next: `wf_core::incidents`.

use serde::Serialize;
use utoipa::ToSchema;
use wf_core::rows::{Incident, Text};
use wf_core::{Command, Key, Outcome};
use wf_idempotency::record::Answer;

use crate::Problem;
use crate::answer::{self, KeyText};
use crate::body;
use crate::instances::KeyAndState;
use crate::time::Instant;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IncidentOut {
    #[schema(value_type = String)]
    pub key: KeyText,
    /// `JOB_NO_RETRIES`, `UNHANDLED_ERROR_EVENT`, …
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub incident_type: &'static str,
    #[schema(value_type = String)]
    pub message: Text,
    #[schema(value_type = String)]
    pub process_instance_key: KeyText,
    #[schema(value_type = String)]
    pub element_id: Text,
    /// `null` where no job is concerned.
    #[schema(value_type = Option<String>, required)]
    pub job_key: Option<KeyText>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Instant,
}

impl From<&Incident> for IncidentOut {
    fn from(row: &Incident) -> IncidentOut {
        IncidentOut {
            key: KeyText(row.key),
            incident_type: row.kind.name(),
            message: row.message.clone(),
            process_instance_key: KeyText(row.root),
            element_id: row.element_id.clone(),
            job_key: answer::unless_none(row.job),
            created_at: Instant(row.created_at),
        }
    }
}

/// Body of `POST /api/v1/incidents/{key}/resolve`.
#[derive(Debug, ToSchema)]
pub struct ResolveIncident {
    /// The job's from now on; 1 where absent and none are left.
    #[schema(minimum = 1)]
    pub retries: Option<i32>,
}

pub fn read_resolve(incident: Key, bytes: &[u8]) -> Result<Command, Problem> {
    body::read(bytes, |fields| {
        let retries = fields.int("retries", 1..=i64::from(i32::MAX));
        Command::ResolveIncident { incident, retries: retries.and_then(|retries| i32::try_from(retries).ok()) }
    })
}

pub fn render_resolved(outcome: &Outcome) -> Answer {
    let Outcome::Resolved { incident } = outcome else { return answer::unexpected(outcome) };
    answer::of(200, &KeyAndState { key: KeyText(*incident), state: "RESOLVED" })
}
