//! What was found of one request, and the document that tells it. It finds nothing: the door brings the rows.
//! Next: `story.rs`, which reads the audit.

use std::collections::BTreeMap;

use wf_core::rows::{Job, JobState, Text};
use wf_core::{Key, Millis};
use wf_idempotency::ids::provider_key;
use wf_idempotency::key::hex;
use wf_idempotency::record::State;
use wf_store::codec::logged_origin;
use wf_store::{Filed, InstanceDetail, Logged, OutboxRow, Suppressed, event_id};

use super::*;
use crate::audit::NumberedEvent;
use crate::{instances, jobs};

/// What the door has found of one request.
#[derive(Debug, Default)]
pub struct Found {
    /// Where it was asked for by its key.
    pub key: Option<Text>,
    pub key_hash: Option<[u8; 16]>,
    pub filed: Option<Filed>,
    pub command: Option<Logged>,
    pub instance: Option<InstanceDetail>,
    pub instances: Vec<Key>,
    /// What started the instance, where the command did not.
    pub start: Option<(Logged, Option<Filed>)>,
    pub story: Story,
    pub outbox: Vec<OutboxRow>,
    pub repeats: Vec<(Subject, Suppressed)>,
    pub is_truncated: bool,
    pub unknown: Vec<String>,
}

impl Found {
    /// As it was filed, or made of the key that was asked for.
    pub fn key_hash(&self) -> Option<[u8; 16]> {
        self.filed.as_ref().map(|filed| filed.key_hash).or(self.key_hash)
    }
}

/// What was repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Request,
    Job(Key),
    Message { name: String, id: String },
}

/// `now` tells a record that still answers from one that waits for the sweep.
pub fn tell(found: Found, now: Millis) -> ExplainOut {
    let record = found.filed.as_ref().map(|filed| &filed.record);
    let command_time = found.command.as_ref().map(|command| command.time);
    let first_repeat = found.repeats.iter().map(|(_, row)| row.first).min();
    let first_seen = record.map(|record| record.created_ms).or(command_time).or(first_repeat);
    let jobs = jobs_of(&found);
    let key_hash = found.key_hash();
    let story = &found.story;
    let is_cut = [
        jobs.len(),
        story.messages.len(),
        story.events.len(),
        found.outbox.len(),
        found.repeats.len(),
        found.instances.len(),
    ];
    ExplainOut {
        key_hash: key_hash.map(|hash| hex(&hash)),
        state: state_of(found.filed.as_ref(), now),
        fingerprint: record.map(|record| hex(&record.fingerprint.0)),
        first_seen_at: first_seen.map(Instant),
        expires_at: record.map(|record| Instant(record.expires_ms)),
        answer: record.and_then(|record| answer_of(&record.state)),
        command: found.command.as_ref().map(command_of),
        instance: found.instance.as_ref().and_then(|detail| instances::instance_of(&detail.root)),
        started_by: found.start.map(|(command, filed)| started_by(&command, filed, now)),
        instances: found.instances.into_iter().map(KeyText).take(ROWS_MAX).collect(),
        jobs: jobs.into_iter().take(ROWS_MAX).collect(),
        messages: found.story.messages.into_iter().map(message_of).take(ROWS_MAX).collect(),
        outbox: found.outbox.into_iter().map(OutboxOut::from).take(ROWS_MAX).collect(),
        audit: found.story.events.into_iter().map(event_of).take(ROWS_MAX).collect(),
        duplicates: found.repeats.into_iter().map(duplicate_of).take(ROWS_MAX).collect(),
        truncated: found.is_truncated || is_cut.into_iter().any(|rows| rows > ROWS_MAX),
        route: found.filed.map(|filed| filed.route),
        key: found.key,
        unknown: found.unknown,
    }
}

fn state_of(filed: Option<&Filed>, now: Millis) -> &'static str {
    match filed {
        None => "NONE",
        Some(filed) if filed.record.expires_ms <= now => "EXPIRED",
        Some(filed) if matches!(filed.record.state, State::Completed(_)) => "COMPLETED",
        Some(_) => "IN_PROGRESS",
    }
}

fn answer_of(state: &State) -> Option<RememberedAnswer> {
    match state {
        State::Completed(answer) => Some(RememberedAnswer { status: answer.status, bytes: answer.body.len() }),
        _ => None,
    }
}

fn command_of(command: &Logged) -> LoggedCommand {
    LoggedCommand {
        id: hex(&command.id),
        position: KeyText(command.position),
        event_id: event_id(command.partition, command.position, 1),
        verb: command.verb.clone(),
        time: Instant(command.time),
        origin: logged_origin(&command.payload),
    }
}

fn started_by(command: &Logged, filed: Option<Filed>, now: Millis) -> StartedBy {
    StartedBy {
        event_id: event_id(command.partition, command.position, 1),
        verb: command.verb.clone(),
        time: Instant(command.time),
        state: state_of(filed.as_ref(), now),
        key_hash: filed.as_ref().map(|filed| hex(&filed.key_hash)),
        route: filed.map(|filed| filed.route),
    }
}

/// Those that stand as rows, and those of which only the audit knows any more.
fn jobs_of(found: &Found) -> Vec<ExplainedJob> {
    let rows = found.instance.iter().flat_map(|detail| &detail.jobs);
    let rows: BTreeMap<Key, &Job> = rows.map(|job| (job.key, &**job)).collect();
    let mut keys: Vec<Key> = found.story.jobs.keys().chain(rows.keys()).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    let none = JobStory::default();
    keys.iter().map(|key| job_of(*key, rows.get(key).copied(), found.story.jobs.get(key).unwrap_or(&none))).collect()
}

fn job_of(key: Key, row: Option<&Job>, story: &JobStory) -> ExplainedJob {
    let is_leased = |job: &&Job| job.state == JobState::Activated;
    ExplainedJob {
        key: KeyText(key),
        element_id: story.element_id.as_str().into(),
        job_type: row.map_or_else(|| story.job_type.as_str().into(), |job| job.job_type.clone()),
        state: row.map_or(story.state(), |job| jobs::state_name(job.state)).to_owned(),
        worker: row.map(|job| job.worker.clone()).filter(|worker| !worker.is_empty()),
        lease: row.filter(|job| job.lease != 0).map(|job| job.lease.to_string()),
        deadline: row.filter(is_leased).map(|job| Instant(job.due)),
        retries: row.map(|job| job.retries),
        idempotency_key: provider_key(key, None),
        lineage_key: row.map(|job| jobs::lineage_key(&job.lineage)),
        steps: story.steps.clone(),
        activations: story.activations.clone(),
    }
}

fn message_of(story: MessageStory) -> ExplainedMessage {
    ExplainedMessage {
        key: story.key.map(KeyText),
        name: story.name,
        correlation_key: story.correlation_key,
        message_id: story.message_id,
        element_id: story.element_id,
        event_id: story.event_id,
        at: story.at,
    }
}

fn event_of(numbered: NumberedEvent) -> ExplainedEvent {
    let event = numbered.event;
    ExplainedEvent {
        event_id: event.event_id,
        timestamp: event.timestamp,
        event_type: event.event_type,
        actor: event.actor,
        resource: event.resource,
    }
}

fn duplicate_of((subject, row): (Subject, Suppressed)) -> Duplicate {
    let (key_hash, job_key, message) = match subject {
        Subject::Request => (Some(hex(&row.key_hash)), None, None),
        Subject::Job(job) => (None, Some(KeyText(job)), None),
        Subject::Message { name, id } => (None, None, Some(format!("{name}:{id}"))),
    };
    Duplicate {
        kind: row.kind.name(),
        route: row.route,
        key_hash,
        job_key,
        message,
        count: row.count,
        first_at: Instant(row.first),
        last_at: Instant(row.last),
    }
}
