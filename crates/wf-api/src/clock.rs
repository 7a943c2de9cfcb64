//! The test clock: what a body asks of it, and where it stands.
//! Next: `wf_engine::request::ClockChange`, which the door makes of it.

use serde::Serialize;
use utoipa::ToSchema;
use wf_core::{Millis, Outcome};
use wf_idempotency::record::Answer;

use crate::Problem;
use crate::answer;
use crate::body::{self, NAME};
use crate::time::{self, Instant};

/// The longest step forward: a hundred years.
const ADVANCE_MS_MAX: i64 = 36_525 * 86_400_000;

/// Body of `PUT /api/v1/clock`: one of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct SetClock {
    #[schema(minimum = 0)]
    pub advance_ms: Option<i64>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub now: Option<Millis>,
}

pub fn read_set(bytes: &[u8]) -> Result<SetClock, Problem> {
    body::read(bytes, |fields| {
        let advance_ms = fields.int("advanceMs", 0..=ADVANCE_MS_MAX);
        let text = fields.text("now", NAME);
        let now = text.as_deref().and_then(time::parse);
        match (advance_ms, &text, now) {
            (_, Some(_), None) => fields.refuse("now", "must be an RFC 3339 time such as 2026-11-29T12:00:00Z"),
            (Some(_), Some(_), _) => fields.refuse("now", "excludes advanceMs"),
            (None, None, _) if fields.errors.is_empty() => fields.refuse("advanceMs", "this or now is required"),
            _ => (),
        }
        SetClock { advance_ms, now }
    })
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ClockOut {
    #[schema(value_type = String, format = DateTime)]
    pub now: Instant,
}

pub fn render_set(outcome: &Outcome) -> Answer {
    let Outcome::ClockSet { now } = outcome else { return answer::unexpected(outcome) };
    answer::of(200, &ClockOut { now: Instant(*now) })
}
