//! The audit as clients read it: one item per event, in order, each with the id that a sink publishes it under.
//! Stored rows hold all events of a command; here they are taken apart. Next: `wf_store::codec::event`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use wf_core::rows::Text;
use wf_core::{Key, Millis};
use wf_store::{AuditRow, event_id};

use crate::time::Instant;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventOut {
    pub event_id: String,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Instant,
    #[serde(rename = "type")]
    pub event_type: String,
    /// The worker or credential that asked for it, or `engine`.
    #[schema(value_type = String)]
    pub actor: Text,
    /// The key of what it is about.
    pub resource: String,
    #[schema(value_type = Object)]
    pub payload: Box<RawValue>,
}

/// As the codec writes it; members that a later version adds are not ours to show.
#[derive(Deserialize)]
struct StoredEvent<'a> {
    #[serde(rename = "type")]
    event_type: String,
    resource: String,
    root: Option<String>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// An event with its place among the events of its command, from 1.
#[derive(Debug)]
pub struct NumberedEvent {
    pub partition: u16,
    pub position: u64,
    pub n: u32,
    /// The instance that it belongs to.
    pub root: Option<Key>,
    pub event: EventOut,
}

/// The events of one row that concern `instance` (all where absent). `None`: the row cannot be read.
pub fn events_of(row: &AuditRow, instance: Option<Key>) -> Option<Vec<NumberedEvent>> {
    let stored: Vec<StoredEvent<'_>> = serde_json::from_str(&row.events).ok()?;
    let wanted = instance.map(|key| key.to_string());
    let concerns = |event: &StoredEvent<'_>| {
        wanted.as_ref().is_none_or(|key| event.root.as_ref() == Some(key) || event.resource == *key)
    };
    let numbered = (1..).zip(stored).filter(|(_, event)| concerns(event));
    Some(numbered.map(|(n, event)| number(row, row.time, n, event)).collect())
}

fn number(row: &AuditRow, time: Millis, n: u32, stored: StoredEvent<'_>) -> NumberedEvent {
    let root = stored.root.and_then(|root| root.parse().ok());
    let event = EventOut {
        event_id: event_id(row.partition, row.position, n),
        timestamp: Instant(time),
        event_type: stored.event_type,
        actor: row.actor.clone(),
        resource: stored.resource,
        payload: stored.payload.to_owned(),
    };
    NumberedEvent { partition: row.partition, position: row.position, n, root, event }
}

impl NumberedEvent {
    /// Where it stands among all events.
    pub fn place(&self) -> (u16, u64, u32) {
        (self.partition, self.position, self.n)
    }
}
