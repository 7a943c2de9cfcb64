//! What the audit tells of one instance, or of one command: jobs with every lease that they had, messages, and the events
//! themselves. It judges nothing and knows no rows but the audit's. Next: back to `explain.rs`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use wf_core::rows::MessageId;
use wf_core::{Key, Millis};
use wf_store::AuditRow;

use crate::audit::{self, EventOut, NumberedEvent};
use crate::explain::Activation;
use crate::time::Instant;

#[derive(Debug, Default)]
pub struct Story {
    pub events: Vec<NumberedEvent>,
    pub jobs: BTreeMap<Key, JobStory>,
    pub messages: Vec<MessageStory>,
}

#[derive(Debug, Default)]
pub struct JobStory {
    pub job_type: String,
    pub element_id: String,
    pub steps: Vec<String>,
    pub activations: Vec<Activation>,
    is_ready: bool,
}

#[derive(Debug)]
pub struct MessageStory {
    pub key: Option<Key>,
    pub name: String,
    pub correlation_key: Option<String>,
    pub message_id: Option<String>,
    pub element_id: Option<String>,
    pub event_id: Option<String>,
    pub at: Option<Instant>,
}

impl Story {
    /// Of one instance, or of everything that the rows tell; rows stand by position. `None`: a row cannot be read.
    pub fn read(rows: &[AuditRow], instance: Option<Key>) -> Option<Story> {
        let mut story = Story::default();
        for row in rows {
            let mut events = audit::events_of(row, None)?;
            // A publication belongs to no instance: it stands beside what it caused.
            let is_about = |event: &NumberedEvent| instance.is_none() || event.root.is_none() || event.root == instance;
            events.retain(is_about);
            let first_message = story.messages.len();
            for event in events {
                story.take(&event.event, first_message);
                story.events.push(event);
            }
        }
        Some(story)
    }

    /// The instances that the events belong to, sorted.
    pub fn roots(&self) -> Vec<Key> {
        let mut roots: Vec<Key> = self.events.iter().filter_map(|event| event.root).collect();
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// Positions of its events, each once, in order.
    pub fn positions(&self) -> Vec<u64> {
        let mut positions: Vec<u64> = self.events.iter().map(|event| event.position).collect();
        positions.dedup();
        positions
    }

    fn take(&mut self, event: &EventOut, first_message: usize) {
        match event.event_type.split_once('.') {
            Some(("job", what)) => {
                if let Ok(key) = event.resource.parse() {
                    self.jobs.entry(key).or_default().take(what, event);
                }
            }
            Some(("message", "published")) => self.messages.extend(published(event)),
            Some(("message", "correlated")) => self.correlate(event, first_message),
            _ => (),
        }
    }

    /// The message of the same command, where there is one: else it was published before and has waited.
    fn correlate(&mut self, event: &EventOut, first_message: usize) {
        let Some(Correlated { name, element_id }) = payload(event) else { return };
        let own = self.messages.iter_mut().skip(first_message).find(|message| message.name == name);
        match own {
            Some(message) => message.element_id = Some(element_id),
            None => self.messages.push(MessageStory {
                key: None,
                name,
                correlation_key: None,
                message_id: None,
                element_id: Some(element_id),
                event_id: Some(event.event_id.clone()),
                at: Some(event.timestamp),
            }),
        }
    }
}

impl JobStory {
    fn take(&mut self, what: &str, event: &EventOut) {
        match what {
            "created" => {
                if let Some(Created { job_type, element_id }) = payload(event) {
                    (self.job_type, self.element_id) = (job_type, element_id);
                }
            }
            "activated" => self.activations.extend(activation(event)),
            "lease-extended" => {
                if let (Some(last), Some(Extended { deadline })) = (self.activations.last_mut(), payload(event)) {
                    last.deadline = Instant(deadline);
                }
            }
            "step-recorded" => self.steps.extend(payload(event).map(|Step { name }| name)),
            "lease-expired" => self.end("EXPIRED", event),
            "completed" => self.end("COMPLETED", event),
            "failed" => self.end("FAILED", event),
            "error-thrown" => self.end("ERROR_THROWN", event),
            "canceled" => self.end("CANCELED", event),
            _ => (),
        }
        self.is_ready = matches!(what, "created" | "ready");
    }

    /// Of the lease that stands, if one does.
    fn end(&mut self, how: &'static str, event: &EventOut) {
        if let Some(last) = self.activations.last_mut().filter(|last| last.end.is_none()) {
            (last.end, last.ended_at) = (Some(how), Some(event.timestamp));
        }
    }

    /// As far as its last event tells.
    pub fn state(&self) -> &'static str {
        match self.activations.last() {
            _ if self.is_ready => "READY",
            Some(last) => last.end.unwrap_or("ACTIVATED"),
            None => "CANCELED",
        }
    }
}

impl MessageStory {
    /// Of whose publication nothing else is known.
    pub fn received(row: &MessageId) -> MessageStory {
        MessageStory {
            key: Some(row.key),
            name: row.name.to_string(),
            correlation_key: None,
            message_id: Some(row.message_id.to_string()),
            element_id: None,
            event_id: None,
            at: None,
        }
    }
}

fn payload<T: DeserializeOwned>(event: &EventOut) -> Option<T> {
    serde_json::from_str(event.payload.get()).ok()
}

fn activation(event: &EventOut) -> Option<Activation> {
    let Activated { worker, lease, deadline } = payload(event)?;
    let deadline = Instant(deadline);
    Some(Activation { worker, lease, at: event.timestamp, deadline, end: None, ended_at: None })
}

fn published(event: &EventOut) -> Option<MessageStory> {
    let Published { name, correlation_key, message_id } = payload(event)?;
    Some(MessageStory {
        key: event.resource.parse().ok(),
        name,
        correlation_key: Some(correlation_key),
        message_id,
        element_id: None,
        event_id: Some(event.event_id.clone()),
        at: Some(event.timestamp),
    })
}

// Payloads as `wf_store::codec::event` writes them; later versions may add members.

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    job_type: String,
    element_id: String,
}

#[derive(Deserialize)]
struct Activated {
    worker: String,
    lease: String,
    deadline: Millis,
}

#[derive(Deserialize)]
struct Extended {
    deadline: Millis,
}

#[derive(Deserialize)]
struct Step {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    name: String,
    correlation_key: String,
    message_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Correlated {
    name: String,
    element_id: String,
}
