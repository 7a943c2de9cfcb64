//! The outbox as operators see it: what was shipped, what waits, what was given up.
//! It ships nothing. Next: `wf_store::outbox`.

use serde::Serialize;
use utoipa::ToSchema;
use wf_core::Outcome;
use wf_core::rows::Text;
use wf_idempotency::record::Answer;
use wf_store::{OutboxId, OutboxRow, OutboxState};

use crate::Problem;
use crate::answer;
use crate::body;
use crate::time::{self, Instant};

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutboxOut {
    /// For `POST /api/v1/outbox/{id}/retry`.
    pub id: String,
    #[schema(value_type = String)]
    pub event_id: Text,
    /// What the broker recognises a repeat by: the event's id, however often it is shipped.
    #[schema(value_type = String)]
    pub dedup_key: Text,
    #[schema(value_type = String)]
    pub sink: Text,
    #[schema(value_type = String)]
    pub topic: Text,
    /// `pending`, `shipped` or `dead`.
    #[schema(value_type = String)]
    pub state: &'static str,
    pub attempts: u32,
    #[schema(value_type = Option<String>, required)]
    pub last_error: Option<Text>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Instant,
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub shipped_at: Option<Instant>,
}

impl From<OutboxRow> for OutboxOut {
    fn from(row: OutboxRow) -> OutboxOut {
        OutboxOut {
            id: id_text(&row.entry.id),
            event_id: row.entry.event_id.clone(),
            dedup_key: row.entry.event_id,
            sink: row.entry.id.sink,
            topic: row.entry.topic,
            state: state_name(row.state),
            attempts: row.attempts,
            last_error: row.last_error,
            created_at: Instant(row.entry.created_at),
            shipped_at: time::unless_zero(row.shipped_at),
        }
    }
}

fn state_name(state: OutboxState) -> &'static str {
    match state {
        OutboxState::Pending => "pending",
        OutboxState::Shipped => "shipped",
        OutboxState::Dead => "dead",
    }
}

pub fn parse_state(text: &str) -> Option<OutboxState> {
    let states = [OutboxState::Pending, OutboxState::Shipped, OutboxState::Dead];
    states.into_iter().find(|state| state_name(*state) == text)
}

/// `{partition}.{position}.{n}.{sink}`: short, and legible in a path and a shell.
pub fn id_text(id: &OutboxId) -> String {
    format!("{}.{}.{}.{}", id.partition, id.position, id.n, id.sink)
}

/// The inverse of [`id_text`].
pub fn parse_id(text: &str) -> Option<OutboxId> {
    let mut parts = text.splitn(4, '.');
    let partition = parts.next()?.parse().ok()?;
    let position = parts.next()?.parse().ok()?;
    let n = parts.next()?.parse().ok()?;
    let sink = parts.next().filter(|sink| !sink.is_empty())?;
    Some(OutboxId { partition, position, n, sink: sink.into() })
}

/// Body of `POST /api/v1/outbox/{id}/retry`.
#[derive(Debug, ToSchema)]
pub struct RetryOutbox {
    /// Needed where the broker no longer remembers the dedup key: the message may then arrive twice.
    #[schema(value_type = Option<bool>)]
    pub force: bool,
}

pub fn read_retry(bytes: &[u8]) -> Result<bool, Problem> {
    body::read(bytes, |fields| fields.bool("force").unwrap_or(false))
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Retried {
    /// `pending`
    #[schema(value_type = String)]
    pub state: &'static str,
}

/// The outcome says no more than that it was done.
pub fn render_retried(_outcome: &Outcome) -> Answer {
    answer::of(200, &Retried { state: "pending" })
}
