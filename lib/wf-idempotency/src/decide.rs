//! The one table that says what to do with a request whose key was read and whose fingerprint was made.
//! Does not run, store or wait for anything, and reads no clock: the caller carries the verdict out.

use crate::fingerprint::Fingerprint;
use crate::record::{Answer, Record, State};

/// What to do with the request. A refusal is a value; nothing of it is ever written into the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// Run it: there is no record, or it has expired.
    Fresh,
    /// Run nothing; answer this, marked as a replay.
    Replay(&'a Answer),
    /// Run nothing; wait for the answer of `subject` together with the first request.
    Attach { subject: u64 },
    /// The key belongs to another request.
    Mismatch,
    /// The first request still runs. Try again after `retry_after_ms` (at least 1).
    Busy { retry_after_ms: i64 },
    /// Run it in the place of an owner that is gone: compare-and-swap on `from`.
    TakeOver { from: Previous, resume: bool },
    /// It may have been done, and its answer is lost: refuse until somebody finds out.
    Unknown,
    /// Refuse: the key was used and its answer is no longer kept. Only with `Policy::tombstone`.
    Expired,
}

/// What a take-over must still find in the record for it to be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Previous {
    /// Still this owner's, and still past its lease.
    Owner([u8; 16]),
    /// Still unknown since then.
    UnknownSince(i64),
}

/// A route's choices. Safety is not among them: no policy repeats an effect that is not known to be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub on_unknown: OnUnknown,
    /// An expired key is refused instead of being new; the store must then keep expired records.
    pub tombstone: bool,
    /// The longest pause that `Busy` asks for: the first request mostly ends long before its lease.
    pub retry_after_ms_max: i64,
}

/// What becomes of a request whose owner vanished without leaving an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnknown {
    /// Only what was answered is given again; an unknown outcome stays refused.
    #[default]
    Replay,
    /// The handler is entered again at its recovery point and finds out by itself (derived keys, look-up at the provider).
    Resume,
    /// Run from the start. Right only where effect and record share one transaction: no record then means no effect.
    Release,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { on_unknown: OnUnknown::Replay, tombstone: false, retry_after_ms_max: 2_000 }
    }
}

/// Looks at the record of (tenant, key). `fingerprint` must be made with the secret that `record.mac_key_id` names.
///
/// The order is the contract: expired, then mismatch, then in flight, then replay.
pub fn decide<'a>(record: Option<&'a Record>, fingerprint: &Fingerprint, policy: &Policy, now_ms: i64) -> Verdict<'a> {
    let Some(record) = record else { return Verdict::Fresh };
    if expired(record, now_ms) {
        return if policy.tombstone { Verdict::Expired } else { Verdict::Fresh };
    }
    if record.fingerprint != *fingerprint {
        return Verdict::Mismatch;
    }
    match &record.state {
        State::InProgress { lease_until_ms, .. } if now_ms < *lease_until_ms => busy(*lease_until_ms, policy, now_ms),
        State::InProgress { owner, .. } => abandoned(Previous::Owner(*owner), policy),
        State::Unknown { since_ms } => abandoned(Previous::UnknownSince(*since_ms), policy),
        State::Started { subject } => Verdict::Attach { subject: *subject },
        State::Completed(answer) => Verdict::Replay(answer),
    }
}

/// A living owner outlives the record's time: otherwise a slow request and its repeat would both run.
fn expired(record: &Record, now_ms: i64) -> bool {
    let alive = matches!(record.state, State::InProgress { lease_until_ms, .. } if now_ms < lease_until_ms);
    now_ms >= record.expires_ms && !alive
}

fn busy<'a>(lease_until_ms: i64, policy: &Policy, now_ms: i64) -> Verdict<'a> {
    let left_ms = lease_until_ms.saturating_sub(now_ms);
    Verdict::Busy { retry_after_ms: left_ms.min(policy.retry_after_ms_max).max(1) }
}

fn abandoned<'a>(from: Previous, policy: &Policy) -> Verdict<'a> {
    match policy.on_unknown {
        OnUnknown::Replay => Verdict::Unknown,
        OnUnknown::Resume => Verdict::TakeOver { from, resume: true },
        OnUnknown::Release => Verdict::TakeOver { from, resume: false },
    }
}
