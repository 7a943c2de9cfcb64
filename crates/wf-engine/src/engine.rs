//! Room 2: takes requests, finds the one answer that may bypass the actor, puts the rest in the bounded mailbox.
//! Next: `actor.rs`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use wf_core::Millis;
use wf_idempotency::decide::{Policy, Verdict};
use wf_idempotency::record::{Answer, Record};
use wf_store::{RecordId, Store, StoreError, SuppressedKind, failpoint};

use crate::actor::{self, Actor, Running};
use crate::envelope::{Asked, Envelope, Reply};
use crate::inflight::Visit;
use crate::options::Options;
use crate::request::{Answered, Passport, Refusal, Render, Request, STOPPING};
use crate::shared::Shared;
use crate::suppressed::Note;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("failed to open the partition: {0}")]
    Open(#[from] StoreError),
    #[error("failed to open the partition: its first command was not stored: {0}")]
    Epoch(String),
    #[error("failed to start the engine's thread: {0}")]
    Thread(std::io::Error),
}

/// A running engine. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
    mailbox: mpsc::Sender<Envelope>,
}

impl Engine {
    /// Takes the partition and starts its actor on a thread of its own. Ready when this returns.
    pub async fn open(store: Arc<dyn Store>, options: Options) -> Result<Engine, EngineError> {
        Engine::open_on(store, options, actor::on_its_own_thread).await
    }

    /// As `open`, but the actor runs where the caller likes: `run` must have the future polled to its end within a tokio
    /// runtime with time. One that is dropped before leaves what a crash leaves: whatever the store had got by then.
    pub async fn open_on(
        store: Arc<dyn Store>,
        options: Options,
        run: impl FnOnce(Running) -> Result<(), EngineError>,
    ) -> Result<Engine, EngineError> {
        let opened = store.open(options.partition).await?;
        failpoint::hit("after-take");
        let shared = Arc::new(Shared::new(store, &opened, &options));
        let (mailbox, envelopes) = mpsc::channel(options.mailbox_max);
        let actor = Actor::new(shared.clone(), opened, envelopes, options);
        actor::start(actor, run).await?;
        Ok(Engine { shared, mailbox })
    }

    /// Answers only what is durable. A caller that goes away does not undo what it asked for,
    /// but a poll without a key that nobody waits for leases nothing.
    pub async fn submit(&self, request: Request) -> Result<Answered, Refusal> {
        let Some(passport) = &request.passport else { return self.enqueue(request, None).await };
        let id = RecordId { tenant: request.tenant.clone(), key: passport.key.text() };
        if let Some(answer) = self.replay(&request, passport, &id) {
            return Ok(Answered { answer, replayed: true });
        }
        let visit = self.shared.in_flight.enter(id);
        match visit.is_repeat {
            false => self.enqueue(request, Some(visit)).await,
            true => self.wait_a_while(request, visit).await,
        }
    }

    /// The replay of a committed, unexpired record with the same fingerprint. Everything else is the actor's.
    fn replay(&self, request: &Request, passport: &Passport, id: &RecordId) -> Option<Answer> {
        let record = self.shared.replays.get(id)?;
        self.verdict_of(request, passport, &record)?.ok()
    }

    /// What a committed record, just read, says about the request: its replay, or that the key is another request's.
    /// `None`: it decides nothing.
    pub fn verdict_of(
        &self,
        request: &Request,
        passport: &Passport,
        record: &Record,
    ) -> Option<Result<Answer, Refusal>> {
        let now = self.time();
        match wf_idempotency::decide::decide(Some(record), &passport.fingerprint, &Policy::default(), now) {
            Verdict::Replay(answer) => {
                let note = Note::of(request, passport, SuppressedKind::Replay, now);
                note.log_replay(record.created_ms);
                self.shared.tally.add(note.into_entry());
                metrics::counter!("wf_api_idempotency_hits_total", "path" => passport.route).increment(1);
                Some(Ok(answer.clone()))
            }
            Verdict::Mismatch => Some(Err(Refusal::Conflict)),
            _ => None,
        }
    }

    /// Counts a conflict that was found beside the turns.
    pub fn note_conflict(&self, request: &Request, passport: &Passport) {
        let note = Note::of(request, passport, SuppressedKind::Conflict, self.time());
        note.log_conflict();
        self.shared.tally.add(note.into_entry());
        metrics::counter!("wf_api_idempotency_conflicts_total").increment(1);
    }

    /// Another request with its key is under way.
    async fn wait_a_while(&self, request: Request, visit: Visit) -> Result<Answered, Refusal> {
        let passport = request.passport.as_ref();
        let note = passport.map(|passport| Note::of(&request, passport, SuppressedKind::InProgress, self.now()));
        let limit = Duration::from_millis(self.shared.wait_ms);
        if let Ok(answered) = tokio::time::timeout(limit, self.enqueue(request, Some(visit))).await {
            return answered;
        }
        note.into_iter().for_each(|note| self.shared.tally.add(note.into_entry()));
        Err(Refusal::InProgress { retry_after_ms: 1_000 })
    }

    async fn enqueue(&self, request: Request, visit: Option<Visit>) -> Result<Answered, Refusal> {
        let render = request.render;
        let (reply, answer) = oneshot::channel();
        let asked = Asked { request, nonce: self.shared.chance.nonce(), arrived: Instant::now(), visit, reply };
        self.mailbox.try_send(Envelope::Asked(Box::new(asked))).map_err(|full| match full {
            mpsc::error::TrySendError::Full(_) => Refusal::Overloaded,
            mpsc::error::TrySendError::Closed(_) => stopping(),
        })?;
        // Every envelope is answered, unless the actor died with it: then nobody knows.
        rendered(answer.await.unwrap_or(Reply::Refused(Refusal::OutcomeUnknown)), render)
    }

    pub fn partition(&self) -> u16 {
        self.shared.partition
    }

    /// For reads of committed data.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    pub fn now(&self) -> Millis {
        self.shared.clock.now()
    }

    /// As a command's time would be now: never behind the last one's.
    pub fn time(&self) -> Millis {
        self.now().max(self.shared.last_time.load(Ordering::Acquire))
    }

    /// The actor has stopped, by order or not: nothing will ever be answered.
    pub fn has_ended(&self) -> bool {
        self.shared.end.has_come()
    }

    /// Resolves when the actor has stopped.
    pub async fn ended(&self) {
        self.shared.end.wait().await;
    }

    /// The same run of an engine.
    pub fn is_same(&self, other: &Engine) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub fn has_test_clock(&self) -> bool {
        self.shared.clock.is_test()
    }

    /// Resolves when rows were added to the outbox since the last call.
    pub async fn outbox_filled(&self) {
        self.shared.outbox_filled.notified().await;
    }

    /// The engine takes requests and its last commit succeeded.
    pub fn is_ready(&self) -> bool {
        self.shared.ready.load(Ordering::Acquire) && !self.mailbox.is_closed()
    }

    /// Envelopes that wait and the most that may.
    pub fn queue(&self) -> (usize, usize) {
        (self.shared.mailbox_max - self.mailbox.capacity(), self.shared.mailbox_max)
    }

    /// Refuses new requests, finishes those in the mailbox, commits, stops. The actor has let go of the store then.
    pub async fn shutdown(&self) {
        self.shared.stopping.notify_one();
        self.shared.end.wait().await;
    }
}

fn rendered(reply: Reply, render: Render) -> Result<Answered, Refusal> {
    match reply {
        Reply::Answered(answered) => Ok(answered),
        Reply::Outcome(outcome) => Ok(Answered { answer: render(&outcome), replayed: false }),
        Reply::Refused(refusal) => Err(refusal),
    }
}

pub(crate) fn stopping() -> Refusal {
    Refusal::Unavailable { reason: STOPPING.to_owned() }
}
