//! Messages from outside: correlated now, kept for a while, or recognised as a repeat.
//! It correlates nothing. Next: `wf_core::messages`.

use serde::Serialize;
use utoipa::ToSchema;
use wf_core::rows::{Text, Variables};
use wf_core::{Command, Outcome};
use wf_idempotency::record::Answer;

use crate::Problem;
use crate::answer::{self, KeyText};
use crate::body::{self, NAME, NAME_OR_EMPTY, TextRule};

/// A correlation key is compared, never shown in a list's column.
const CORRELATION_KEY: TextRule = TextRule { bytes_max: 1024, empty: true, controls: true };
/// A year.
const TTL_MS_MAX: i64 = 366 * 24 * 3_600_000;

/// Body of `POST /api/v1/messages`.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct PublishMessage {
    #[schema(value_type = String, min_length = 1, max_length = 255)]
    pub name: Text,
    /// Empty where absent.
    #[schema(value_type = Option<String>, max_length = 1024)]
    pub correlation_key: Text,
    /// Unique per tenant and name: a repeat correlates nothing. Empty: none.
    #[schema(value_type = Option<String>, max_length = 255)]
    pub message_id: Option<Text>,
    /// How long it waits for a subscription; 0 where absent: now or never.
    #[schema(value_type = Option<i64>, minimum = 0)]
    pub ttl_ms: i64,
    #[schema(value_type = Option<Object>)]
    pub variables: Variables,
}

/// `dedup_ms`: how long the message id is remembered, from the configuration.
pub fn read_publish(bytes: &[u8], dedup_ms: i64) -> Result<Command, Problem> {
    body::read(bytes, |fields| Command::PublishMessage {
        name: fields.required_text("name", NAME),
        correlation_key: fields.text("correlationKey", CORRELATION_KEY).unwrap_or_else(|| Text::from("")),
        message_id: fields.text("messageId", NAME_OR_EMPTY).filter(|id| !id.is_empty()),
        ttl_ms: fields.int("ttlMs", 0..=TTL_MS_MAX).unwrap_or(0),
        dedup_ms,
        variables: fields.variables("variables"),
    })
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// The first message's where this is a duplicate.
    #[schema(value_type = String)]
    pub key: KeyText,
    pub duplicate: bool,
    /// Instances that it was handed to in this turn.
    pub correlated: Vec<Correlated>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Correlated {
    #[schema(value_type = String)]
    pub process_instance_key: KeyText,
}

pub fn render_published(outcome: &Outcome) -> Answer {
    let Outcome::Published { key, duplicate, correlated, .. } = outcome else { return answer::unexpected(outcome) };
    let correlated = correlated.iter().map(|key| Correlated { process_instance_key: KeyText(*key) });
    answer::of(200, &Published { key: KeyText(*key), duplicate: *duplicate, correlated: correlated.collect() })
}
