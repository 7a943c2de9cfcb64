//! What stands in a slot, and what each wish does to it: pure, and the same for every store that can read a record before it
//! writes it. The verdict is `decide`'s. Next: `memory.rs`, the shortest store.

use super::{Claim, Claimed, Ended, Owner, StoreError};
use crate::decide::decide;
use crate::{Answer, Fingerprint, Record, State, Verdict};

/// A record, and what only stores need to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub record: Record,
    pub attempts: u32,
    /// The answer's body was too big.
    pub is_cut: bool,
}

/// What a claim comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Write this; then the claim has won.
    Write(Entry),
    /// Write nothing.
    Say(Claimed),
}

impl Next {
    pub fn of(claim: &Claim, found: Option<&Entry>, now_ms: i64) -> Result<Next, StoreError> {
        let Some(found) = found else { return first(claim, now_ms).map(Next::Write) };
        let record = &found.record;
        if matches!(&record.state, State::InProgress { owner, .. } if *owner == claim.owner) {
            return Ok(Next::Write(found.held_by(claim, now_ms, found.attempts)));
        }
        let fingerprint = fingerprint(claim, Some(record.mac_key_id))?;
        Ok(match decide(Some(record), &fingerprint, &claim.policy, now_ms) {
            Verdict::Fresh => Next::Write(first(claim, now_ms)?),
            Verdict::TakeOver { .. } => Next::Write(found.held_by(claim, now_ms, found.attempts.saturating_add(1))),
            Verdict::Replay(answer) if found.is_cut => Next::Say(Claimed::NotKept(answer.clone())),
            Verdict::Replay(answer) => Next::Say(Claimed::Replay(answer.clone())),
            Verdict::Mismatch => Next::Say(Claimed::Mismatch),
            Verdict::Busy { retry_after_ms } => Next::Say(Claimed::Busy { retry_after_ms }),
            // Nothing of ours files one.
            Verdict::Attach { .. } | Verdict::Unknown => Next::Say(Claimed::Unknown),
            Verdict::Expired => Next::Say(Claimed::Expired),
        })
    }

    /// What the claim is told when this is written.
    pub fn told(self, resume: bool) -> Claimed {
        match self {
            Next::Write(entry) => Claimed::Won { attempt: entry.attempts, resume: resume && entry.attempts > 1 },
            Next::Say(claimed) => claimed,
        }
    }
}

/// `None`: the current secret.
fn fingerprint(claim: &Claim, mac_key_id: Option<u32>) -> Result<Fingerprint, StoreError> {
    let found = claim.fingerprints.iter().find(|(id, _)| mac_key_id.is_none_or(|wanted| wanted == *id));
    found.map(|(_, fingerprint)| *fingerprint).ok_or_else(|| {
        StoreError(match mac_key_id {
            Some(id) => format!("the record's fingerprint was made with secret {id}, which is not known here"),
            None => "a claim needs a fingerprint".to_owned(),
        })
    })
}

fn first(claim: &Claim, now_ms: i64) -> Result<Entry, StoreError> {
    let record = Record {
        fingerprint: fingerprint(claim, None)?,
        mac_key_id: claim.fingerprints.first().map_or(0, |(id, _)| *id),
        created_ms: now_ms,
        expires_ms: now_ms.saturating_add(claim.ttl_ms),
        state: in_progress(claim.owner, claim.lease_ms, now_ms),
    };
    Ok(Entry { record, attempts: 1, is_cut: false })
}

fn in_progress(owner: Owner, lease_ms: i64, now_ms: i64) -> State {
    State::InProgress { owner, lease_until_ms: now_ms.saturating_add(lease_ms) }
}

impl Entry {
    fn held_by(&self, claim: &Claim, now_ms: i64, attempts: u32) -> Entry {
        let state = in_progress(claim.owner, claim.lease_ms, now_ms);
        Entry { record: Record { state, ..self.record.clone() }, attempts, is_cut: false }
    }

    pub fn is_held_by(&self, owner: &Owner) -> bool {
        matches!(&self.record.state, State::InProgress { owner: held, .. } if held == owner)
    }

    pub fn extended(&self, owner: Owner, lease_ms: i64, now_ms: i64) -> Entry {
        let state = in_progress(owner, lease_ms, now_ms);
        Entry { record: Record { state, ..self.record.clone() }, ..*self }
    }

    /// `None`: nothing is left of it.
    pub fn ended(&self, ended: Ended, now_ms: i64) -> Option<Entry> {
        let (state, is_cut) = match ended {
            Ended::Answered(answer) => (State::Completed(answer), false),
            Ended::NotKept(answer) => (State::Completed(Answer { body: bytes::Bytes::new(), ..answer }), true),
            Ended::Unknown => (State::Unknown { since_ms: now_ms }, false),
            Ended::NotExecuted => return None,
        };
        Some(Entry { record: Record { state, ..self.record.clone() }, is_cut, ..*self })
    }

    /// Nobody asks for it any more.
    pub fn is_over(&self, kept_ms: i64, now_ms: i64) -> bool {
        let is_alive = matches!(self.record.state, State::InProgress { lease_until_ms, .. } if now_ms < lease_until_ms);
        !is_alive && now_ms >= self.record.expires_ms.saturating_add(kept_ms)
    }
}
