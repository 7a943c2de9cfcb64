//! Room 3: one partition's actor. It owns time and I/O: drain envelopes, load what they need, execute, commit,
//! and only then answer. One turn commits while the next is made on top of it; turns are released strictly in order.
//! Next: `partition.rs::execute`, then the store's commit.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use wf_core::{Command, RangeId, SortKey};
use wf_store::{Batch, CommitError, Needs, Opened, TestClock};

use crate::due;
use crate::engine::{EngineError, Shared};
use crate::envelope::{Asked, Envelope, Own, Reply};
use crate::loader;
use crate::options::{ClockMode, Options};
use crate::partition::{Executed, Partition};
use crate::polls::Polls;
use crate::request::{Ask, Refusal};
use crate::turn::Turn;

/// Bytes of commands in one turn; the rest waits for the next.
const TURN_BYTES_MAX: usize = 8 << 20;
/// The actor looks around at least this often.
const TICK: Duration = Duration::from_secs(1);

pub struct Actor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) partition: Partition,
    pub(crate) options: Options,
    mailbox: mpsc::Receiver<Envelope>,
    /// The turn at hand and the position before it.
    pub(crate) turn: Turn,
    since: u64,
    pub(crate) committing: Option<Committing>,
    /// Envelopes of failed turns, to be executed again before anything new.
    pub(crate) redo: VecDeque<Envelope>,
    /// So many of them one by one, each in a turn of its own.
    pub(crate) singly: usize,
    pub(crate) polls: Polls,
    /// Clock changes whose consequences are not all committed.
    pub(crate) clock_replies: Vec<(oneshot::Sender<Reply>, Reply)>,
    /// Due entries that could not be applied; looked at again after the next commit.
    pub(crate) skipped: BTreeSet<(RangeId, SortKey)>,
    /// After a failed commit own work waits a little.
    pub(crate) own_work_from: Instant,
    next_sweep: Instant,
    next_flush: Instant,
    is_closing: bool,
    is_drained: bool,
}

/// A turn on its way to the disk.
pub struct Committing {
    pub turn: Turn,
    pub batch: Arc<Batch>,
    pub begun: Instant,
    task: JoinHandle<Result<(), CommitError>>,
}

/// Starts the actor on a thread of its own; ready when its first command is durable.
pub async fn start(actor: Actor) -> Result<(), EngineError> {
    let (started, is_started) = oneshot::channel();
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(actor.run(started)),
            Err(error) => drop(started.send(Err(EngineError::Thread(error)))),
        }
    };
    let thread = std::thread::Builder::new().name("wf-actor".to_owned()).spawn(run);
    thread.map_err(EngineError::Thread)?;
    is_started.await.unwrap_or_else(|_| Err(EngineError::Epoch("the actor stopped".to_owned())))
}

impl Actor {
    pub fn new(shared: Arc<Shared>, opened: Opened, mailbox: mpsc::Receiver<Envelope>, options: Options) -> Actor {
        let now = Instant::now();
        let since = opened.fence.old_position;
        let partition = Partition::new(opened, options.cache_rows_max, options.sinks.clone(), options.source.clone());
        Actor {
            next_sweep: now + Duration::from_millis(options.sweep_ms),
            shared,
            partition,
            options,
            mailbox,
            turn: Turn::default(),
            since,
            committing: None,
            redo: VecDeque::new(),
            singly: 0,
            polls: Polls::default(),
            clock_replies: Vec::new(),
            skipped: BTreeSet::new(),
            own_work_from: now,
            next_flush: now,
            is_closing: false,
            is_drained: false,
        }
    }

    async fn run(mut self, started: oneshot::Sender<Result<(), EngineError>>) {
        let mut started = Some(started);
        self.queue_epoch();
        let mut arrived = Vec::with_capacity(self.options.turn_max);
        loop {
            self.work().await;
            self.commit_or_release();
            if self.committing.is_none() && self.redo.is_empty() && self.turn.is_empty() {
                if let Some(started) = started.take() {
                    let _ = started.send(Ok(()));
                }
                self.release_clock();
                if self.is_closing && self.is_drained {
                    break;
                }
            }
            let room = self.room();
            let wake = self.next_wake();
            tokio::select! {
                biased;
                committed = committed(&mut self.committing) => self.settle(committed).await,
                count = self.mailbox.recv_many(&mut arrived, room), if room > 0 && !self.is_drained => {
                    self.is_drained = count == 0;
                    for envelope in arrived.drain(..) {
                        self.take(envelope).await;
                    }
                    self.serve_polls().await;
                }
                () = self.shared.stopping.notified(), if !self.is_closing => self.close(),
                () = tokio::time::sleep_until(wake.into()) => (),
            }
        }
        self.shared.ready.store(false, Ordering::Release);
        self.shared.is_stopped.store(true, Ordering::Release);
        self.shared.stopped.notify_waiters();
    }

    fn close(&mut self) {
        self.is_closing = true;
        self.mailbox.close();
        for asked in self.polls.take_all() {
            self.answer_empty(asked);
        }
    }

    /// The first command after the partition was taken: nothing else runs before it.
    pub(crate) fn queue_epoch(&mut self) {
        if let ClockMode::Test { .. } = self.options.clock {
            let frozen = !self.shared.clock.ticks();
            self.partition.set_clock(TestClock { now: self.shared.clock.now(), frozen });
        }
        let head = *self.partition.head();
        let command = Command::OpenEpoch {
            epoch: self.partition.epoch(),
            previous_position: self.partition.position(),
            previous_digest: head.digest.to_be_bytes(),
            semantics: SEMANTICS,
        };
        let now = self.shared.clock.now();
        let own = due::fresh(now, b"epoch", self.partition.epoch(), command);
        self.redo.push_front(Envelope::Own(own));
    }

    fn room(&self) -> usize {
        // In single steps, or with a full turn, what arrives waits in the mailbox.
        if self.singly > 0 || !self.redo.is_empty() || self.turn.bytes() > TURN_BYTES_MAX {
            return 0;
        }
        self.options.turn_max.saturating_sub(self.turn.items.len())
    }

    fn next_wake(&self) -> Instant {
        let now = Instant::now();
        let mut wake = now + TICK;
        if let Some(end) = self.polls.next_end() {
            wake = wake.min(end);
        }
        if self.room() > 0
            && let Some(due_in) = self.own_work_due_in()
        {
            wake = wake.min((now + due_in).max(self.own_work_from));
        }
        wake
    }

    /// What is to be done before the mailbox is looked at.
    async fn work(&mut self) {
        self.redo_some().await;
        if self.redo.is_empty() && self.singly == 0 {
            self.do_due_work().await;
            self.serve_polls().await;
        }
        for asked in self.polls.take_over(Instant::now()) {
            self.answer_empty(asked);
        }
        self.flush_tally();
        self.sweep_now_and_then().await;
    }

    async fn redo_some(&mut self) {
        let limit = if self.singly > 0 { 1 } else { self.options.turn_max };
        while self.turn.items.len() < limit {
            let Some(envelope) = self.redo.pop_front() else {
                self.singly = 0;
                break;
            };
            self.take(envelope).await;
            if self.singly > 0 {
                break;
            }
        }
    }

    /// Executes one envelope into the turn at hand.
    async fn take(&mut self, envelope: Envelope) {
        if envelope.is_withdrawn() {
            return;
        }
        match envelope {
            Envelope::Own(own) => {
                self.take_own(own).await;
            }
            Envelope::Asked(asked) => match asked.request.ask {
                Ask::SetClock(change) => self.set_clock(asked, change).await,
                _ => self.take_asked(asked, Instant::now()).await,
            },
        }
    }

    async fn take_asked(&mut self, asked: Box<Asked>, arrived: Instant) {
        match self.execute(&asked).await {
            Ok(Executed::Reply(reply)) => self.turn.items.push((Envelope::Asked(asked), reply)),
            Ok(Executed::Empty) if !self.is_closing => {
                if let Some(asked) = self.polls.park(asked, arrived) {
                    self.answer_empty(asked);
                }
            }
            Ok(Executed::Empty) => self.answer_empty(asked),
            Err(refusal) => self.turn.items.push((Envelope::Asked(asked), Reply::Refused(refusal))),
        }
    }

    /// Runs it until nothing is missing: it is pure, so running it again is harmless.
    async fn execute(&mut self, asked: &Asked) -> Result<Executed, Refusal> {
        loop {
            let now = self.partition.time(self.shared.clock.now());
            match self.partition.execute(asked, &mut self.turn, now) {
                Ok(executed) => {
                    self.partition.cache.forget_passing();
                    return Ok(executed);
                }
                Err(needs) => self.load(needs).await?,
            }
        }
    }

    pub(crate) async fn load(&mut self, needs: Needs) -> Result<(), Refusal> {
        loader::load(&*self.shared.store, &mut self.partition.cache, needs).await
    }

    pub(crate) fn answer_empty(&mut self, asked: Box<Asked>) {
        let nothing = wf_core::Outcome::Activated(Vec::new());
        self.turn.items.push((Envelope::Asked(asked), Reply::Outcome(nothing)));
    }

    /// Long polls whose queue got a job in this turn.
    async fn serve_polls(&mut self) {
        while let Some(range) = self.turn.filled.pop_first() {
            while let Some((asked, until)) = self.polls.next_for(&range) {
                match self.execute(&asked).await {
                    Ok(Executed::Empty) => {
                        self.polls.put_back(&range, asked, until);
                        break;
                    }
                    Ok(Executed::Reply(reply)) => self.turn.items.push((Envelope::Asked(asked), reply)),
                    Err(refusal) => self.turn.items.push((Envelope::Asked(asked), Reply::Refused(refusal))),
                }
            }
        }
    }

    pub(crate) async fn run_own(&mut self, own: &Own) -> Result<crate::partition::OwnResult, Refusal> {
        loop {
            let now = self.partition.time(self.shared.clock.now());
            match self.partition.execute_own(own, &mut self.turn, now) {
                Ok(result) => {
                    self.partition.cache.forget_passing();
                    return Ok(result);
                }
                Err(needs) => self.load(needs).await?,
            }
        }
    }

    fn flush_tally(&mut self) {
        let now = Instant::now();
        if !self.shared.tally.is_empty() && (now >= self.next_flush || self.is_closing || !self.turn.is_empty()) {
            self.turn.suppressed.extend(self.shared.tally.take());
            self.next_flush = now + TICK;
        }
    }

    async fn sweep_now_and_then(&mut self) {
        if Instant::now() < self.next_sweep || self.is_closing {
            return;
        }
        self.next_sweep = Instant::now() + Duration::from_millis(self.options.sweep_ms);
        self.purge().await;
        let store = self.shared.store.clone();
        let now = self.partition.head().last_time;
        tokio::spawn(async move { sweep(&*store, now).await });
    }

    /// A turn that writes nothing is released as soon as every earlier one is.
    fn commit_or_release(&mut self) {
        if self.committing.is_some() || self.turn.is_empty() {
            return;
        }
        let mut turn = std::mem::take(&mut self.turn);
        if turn.writes_nothing() {
            turn.release();
            return;
        }
        turn.suppressed = crate::suppressed::merged(std::mem::take(&mut turn.suppressed));
        let rows = self.partition.cache.changes();
        let (fence, head) = self.partition.close_turn(self.since);
        self.partition.cache.next_layer();
        self.since = fence.new_position;
        let batch = turn.batch(fence, head, rows);
        let (store, sent) = (self.shared.store.clone(), batch.clone());
        let task = tokio::spawn(async move { store.commit(sent).await });
        self.committing = Some(Committing { turn, batch, begun: Instant::now(), task });
    }

    async fn settle(&mut self, committed: Result<(), CommitError>) {
        let Some(mut done) = self.committing.take() else { return };
        match committed {
            Ok(()) => {
                self.partition.settle(&done.batch.fence, done.batch.head);
                done.batch.records.iter().for_each(|entry| self.shared.replays.add(entry));
                if !done.batch.outbox.is_empty() || !done.batch.outbox_retries.is_empty() {
                    self.shared.outbox_filled.notify_one();
                }
                crate::stats::tell(&mut done, self.partition.id);
                self.shared.ready.store(true, Ordering::Release);
                if !done.batch.log.is_empty() {
                    self.skipped.clear();
                }
                wf_store::failpoint::hit("before-answer");
                done.turn.release();
            }
            Err(error) => self.recover(done.turn, done.batch.fence, error).await,
        }
    }

    pub(crate) fn reset_since(&mut self) {
        self.since = self.partition.position();
    }

    /// Clock changes are answered when all that fell due has committed.
    fn release_clock(&mut self) {
        let is_quiet = self.own_work_due_in() != Some(Duration::ZERO);
        if is_quiet {
            for (sender, reply) in self.clock_replies.drain(..) {
                let _ = sender.send(reply);
            }
        }
    }
}

/// The version of the core's behaviour, written into each epoch.
const SEMANTICS: u32 = 1;

/// Waits for the commit under way; for ever where there is none.
async fn committed(committing: &mut Option<Committing>) -> Result<(), CommitError> {
    match committing {
        None => std::future::pending().await,
        Some(committing) => {
            let joined = (&mut committing.task).await;
            joined.unwrap_or_else(|panic| Err(CommitError::Unknown(panic.to_string())))
        }
    }
}

/// Rows that one sweep drops at most; the next sweep goes on.
const SWEEP_ROWS_MAX: usize = 10_000;

async fn sweep(store: &dyn wf_store::Store, now: wf_core::Millis) {
    match store.sweep(now, SWEEP_ROWS_MAX).await {
        Ok(dropped) => metrics::counter!("wf_key_store_swept_total").increment(dropped as u64),
        Err(error) => tracing::warn!(%error, "failed to sweep expired records"),
    }
    if let Err(error) = store.idle().await {
        tracing::warn!(%error, "failed to move the write-ahead log");
    }
}

impl Turn {
    /// Replies leave in the order of arrival.
    pub(crate) fn release(&mut self) {
        for (envelope, reply) in self.items.drain(..) {
            if let Envelope::Asked(asked) = envelope {
                // A client that is gone hears nothing; its effect stands.
                let _ = asked.reply.send(reply);
            }
        }
    }
}
