//! Repeats and conflicts: counted per key and minute, logged with the key's hash, never the key. They take no position.

use std::collections::BTreeMap;
use std::sync::Mutex;

use wf_core::draft::Base;
use wf_core::rows::Text;
use wf_core::{Command, Context, Key, Millis, Outcome, Row, RowId, ids};
use wf_idempotency::key::hex;
use wf_store::{Suppressed, SuppressedKind};

use crate::cache::Cache;
use crate::clock::lock;
use crate::envelope::Asked;
use crate::request::{Passport, Request};
use crate::turn::Turn;

const MINUTE_MS: i64 = 60_000;
/// Keys and minutes that are counted at a time; what comes beyond, while nothing can be stored, is not counted.
const TALLY_MAX: usize = 100_000;

/// One suppressed request.
pub struct Note {
    tenant: Text,
    key_hash: [u8; 16],
    kind: SuppressedKind,
    route: &'static str,
    now: Millis,
}

impl Note {
    pub fn new(asked: &Asked, passport: &Passport, kind: SuppressedKind, now: Millis) -> Note {
        Note::of(&asked.request, passport, kind, now)
    }

    pub fn of(request: &Request, passport: &Passport, kind: SuppressedKind, now: Millis) -> Note {
        Note { tenant: request.tenant.clone(), key_hash: passport.key_hash, kind, route: passport.route, now }
    }

    /// Without a key: `subject` is a hash of what was repeated, the verb stands for the route.
    fn about(subject: [u8; 16], kind: SuppressedKind, command: &Command, context: &Context) -> Note {
        Note { tenant: context.tenant.clone(), key_hash: subject, kind, route: command.verb(), now: context.now }
    }

    /// L6.3: tenant, route, key hash and age.
    pub fn log_replay(&self, first: Millis) {
        let age_ms = self.now.saturating_sub(first);
        if tracing::enabled!(tracing::Level::INFO) {
            tracing::info!(tenant = %self.tenant, route = self.route, key_hash = %hex(&self.key_hash), age_ms, "replayed");
        }
    }

    pub fn log_conflict(&self) {
        tracing::warn!(tenant = %self.tenant, route = self.route, key_hash = %hex(&self.key_hash),
            "refused: the key was used with another request");
    }

    pub fn into_entry(self) -> Suppressed {
        Suppressed {
            tenant: self.tenant,
            key_hash: self.key_hash,
            kind: self.kind,
            route: self.route.into(),
            minute: self.now.div_euclid(MINUTE_MS),
            count: 1,
            first: self.now,
            last: self.now,
        }
    }
}

/// Work that was asked for again and had been done, as the state knows it without any key: a holder's second completion,
/// a recorded step, a message id. Counted per job type and per subject, so that a spike and its cause are seen.
pub fn note_repeats(outcome: &Outcome, command: &Command, context: &Context, cache: &Cache, turn: &mut Turn) {
    match (outcome, command) {
        (Outcome::Completed { duplicate: true }, Command::CompleteJob { holder, .. })
        | (Outcome::Step { recorded: false, .. }, Command::RecordStep { holder, .. }) => {
            note_job(holder.job, command, context, cache, turn);
        }
        (Outcome::CompletedMany(results), _) => {
            let repeats = results.iter().filter(|(_, result)| *result == Ok(true));
            repeats.for_each(|(job, _)| note_job(*job, command, context, cache, turn));
        }
        (Outcome::Published { duplicate: true, misuse, .. }, Command::PublishMessage { name, message_id, .. }) => {
            if *misuse {
                tracing::warn!(message = %name, "a message id was used again with other content");
            }
            let subject = message_subject(&context.tenant, name, message_id.as_deref().unwrap_or(""));
            turn.suppressed.push(Note::about(subject, SuppressedKind::Message, command, context).into_entry());
        }
        _ => (),
    }
}

fn note_job(job: Key, command: &Command, context: &Context, cache: &Cache, turn: &mut Turn) {
    if let Some(Row::Job(job)) = cache.row(&RowId::Job(job)).flatten() {
        *turn.stats.jobs_skipped.entry(job.job_type.clone()).or_default() += 1;
    }
    turn.suppressed.push(Note::about(job_subject(job), SuppressedKind::Job, command, context).into_entry());
}

/// Under which repeats about a job are counted.
pub fn job_subject(job: Key) -> [u8; 16] {
    ids::hash16(&[b"job", &job.to_be_bytes()])
}

/// Under which repeats of a message id are counted.
pub fn message_subject(tenant: &str, name: &str, message_id: &str) -> [u8; 16] {
    ids::hash16(&[b"message", tenant.as_bytes(), name.as_bytes(), message_id.as_bytes()])
}

/// Counts of requests that were answered beside the turns, until a turn takes them along.
#[derive(Default)]
pub struct Tally(Mutex<Counts>);

type Counts = BTreeMap<(Text, [u8; 16], SuppressedKind, i64), Suppressed>;

impl Tally {
    pub fn add(&self, entry: Suppressed) {
        let mut all = lock(&self.0);
        if all.len() < TALLY_MAX {
            count(&mut all, entry);
        }
    }

    pub fn take(&self) -> Vec<Suppressed> {
        std::mem::take(&mut *lock(&self.0)).into_values().collect()
    }

    pub fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }
}

/// One turn's entries for the same key and minute become one row.
pub fn merged(entries: Vec<Suppressed>) -> Vec<Suppressed> {
    let mut all = Counts::new();
    entries.into_iter().for_each(|entry| count(&mut all, entry));
    all.into_values().collect()
}

fn count(all: &mut Counts, entry: Suppressed) {
    let key = (entry.tenant.clone(), entry.key_hash, entry.kind, entry.minute);
    all.entry(key)
        .and_modify(|known| {
            known.count += entry.count;
            known.first = known.first.min(entry.first);
            known.last = known.last.max(entry.last);
        })
        .or_insert(entry);
}
