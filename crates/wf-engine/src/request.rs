//! What a door hands to the engine and what it gets back. It knows no HTTP: a door renders outcomes into answers
//! and refusals into its own errors. Next: `engine.rs`.

use std::time::Duration;

use wf_core::rows::Text;
use wf_core::{Command, Millis, Outcome, Rejection};
use wf_idempotency::fingerprint::Fingerprint;
use wf_idempotency::key::Key;
use wf_idempotency::record::Answer;
use wf_store::OutboxId;

/// One authenticated request.
#[derive(Clone, Debug)]
pub struct Request {
    pub tenant: Text,
    /// For the audit: the credential's or worker's name.
    pub actor: Text,
    pub ask: Ask,
    pub passport: Option<Passport>,
    /// How long an empty `ActivateJobs` waits for a job, in real time; zero: not at all.
    pub wait: Duration,
    /// Called in the turn when the answer is stored with the effect, else at the door after the commit.
    pub render: Render,
}

/// An outcome as the door's bytes. Pure: the same outcome gives the same bytes.
pub type Render = fn(&Outcome) -> Answer;

#[derive(Clone, Debug)]
pub enum Ask {
    Command(Command),
    /// Ship a message again under the same dedup key.
    RetryOutbox {
        id: OutboxId,
        force: bool,
    },
    /// Only with a test clock.
    SetClock(ClockChange),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockChange {
    Advance {
        ms: i64,
    },
    To {
        now: Millis,
    },
    /// Ticks on from where it stands.
    Thaw,
}

/// What makes a request repeatable.
#[derive(Clone, Debug)]
pub struct Passport {
    pub key: Key,
    pub fingerprint: Fingerprint,
    pub mac_key_id: u32,
    /// For logs, metrics and reports; never the key itself.
    pub key_hash: [u8; 16],
    /// The route's template.
    pub route: &'static str,
    pub ttl_ms: i64,
}

#[derive(Clone, Debug)]
pub struct Answered {
    pub answer: Answer,
    /// The stored answer of the first request with this key.
    pub replayed: bool,
}

/// Why there is no answer. Nothing was changed, except where `OutcomeUnknown` says so.
#[derive(Clone, Debug)]
pub enum Refusal {
    Rejected(Rejection),
    /// The key was used with another request.
    Conflict,
    /// The first request with this key has not finished.
    InProgress {
        retry_after_ms: i64,
    },
    Outbox(OutboxRefusal),
    Clock(ClockRefusal),
    Overloaded,
    Unavailable {
        reason: String,
    },
    OutcomeUnknown,
    Internal {
        error_id: String,
    },
}

/// Reasons of `Unavailable` that say: somebody else may own the partition by now.
pub(crate) const STOPPING: &str = "the engine is stopping";
pub(crate) const TAKEN_AGAIN: &str = "the partition is being taken again";

impl Refusal {
    /// This engine has let go of the partition, or lost it. Nothing was done: whoever owns it now may be asked.
    pub fn is_of_no_owner(&self) -> bool {
        matches!(self, Refusal::Unavailable { reason } if reason == STOPPING || reason == TAKEN_AGAIN)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboxRefusal {
    NotFound,
    /// It is older than its broker remembers ids: only with force.
    PastWindow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockRefusal {
    /// The engine runs on the real clock.
    NoTestClock,
    Past,
}
