//! Room 3: one partition's actor. It owns time and I/O: drain envelopes, load what they need, execute, commit,
//! and only then answer. One turn commits while the next is made on top of it; turns are released strictly in order.
//! Next: `intake.rs`, how an envelope gets into a turn, then `partition.rs::execute`, then the store's commit.

use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use wf_core::RangeId;
use wf_core::planted::{self, Bug};
use wf_store::{Batch, CommitError, Opened, failpoint};

use crate::due::Place;
use crate::engine::EngineError;
use crate::envelope::{Asked, Envelope, Reply};
use crate::inbox::Inbox;
use crate::options::{OnReady, Options};
use crate::partition::Partition;
use crate::polls::Polls;
use crate::shared::{End, Shared};
use crate::stats;
use crate::turn::Turn;

/// Bytes of commands in one turn; the rest waits for the next.
const TURN_BYTES_MAX: usize = 8 << 20;
/// The actor looks around at least this often.
pub const TICK: Duration = Duration::from_secs(1);

pub struct Actor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) partition: Partition,
    pub(crate) options: Options,
    mailbox: mpsc::Receiver<Envelope>,
    pub(crate) started: Option<oneshot::Sender<Result<(), EngineError>>>,
    pub(crate) standing: Standing,
    /// The turn at hand and the position before it.
    pub(crate) turn: Turn,
    since: u64,
    committing: Option<Committing>,
    /// Envelopes of failed turns, to be executed again before anything new.
    pub(crate) redo: VecDeque<Envelope>,
    /// So many of them, the first ones, each in a turn of its own.
    pub(crate) alone: usize,
    /// Turns in a row that the store called a conflict.
    pub(crate) conflicts: u32,
    pub(crate) polls: Polls,
    pub(crate) inbox: Inbox,
    /// Queues with a ready job that somebody waits for.
    pub(crate) filled: BTreeSet<RangeId>,
    /// Committed clock changes whose consequences are not all committed.
    clock_replies: Vec<(Box<Asked>, Reply)>,
    /// Due entries that could not be applied; looked at again after the next commit.
    pub(crate) skipped: BTreeSet<Place>,
    /// The engine's own commands that are not tried any more.
    pub(crate) given_up: BTreeSet<[u8; 16]>,
    /// Something may have been kept long enough.
    pub(crate) is_purging: bool,
    /// After a failure own work, and taking the partition again, wait until then.
    pub(crate) retry_from: Instant,
    pub(crate) sweeping: Option<JoinHandle<()>>,
    pub(crate) next_sweep: Instant,
    pub(crate) next_flush: Instant,
    pub(crate) next_look: Instant,
    pub(crate) is_closing: bool,
    is_drained: bool,
}

/// What the partition is to this actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Somebody else may own it: it must be taken again before anything is done.
    Lost,
    /// Taken; the first command of its epoch is not durable yet, and nothing runs before it.
    Taken,
    Open,
}

/// A turn on its way to the disk.
struct Committing {
    turn: Turn,
    batch: Arc<Batch>,
    begun: Instant,
    task: JoinHandle<Result<(), CommitError>>,
}

/// An actor at work, until it has stopped and let go of its store.
pub type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Has the actor run; ready when its first command is durable.
pub async fn start(mut actor: Actor, run: impl FnOnce(Running) -> Result<(), EngineError>) -> Result<(), EngineError> {
    let (started, is_started) = oneshot::channel();
    actor.started = Some(started);
    run(Box::pin(actor.run()))?;
    is_started.await.unwrap_or_else(|_| Err(EngineError::Epoch("the actor stopped".to_owned())))
}

pub fn on_its_own_thread(actor: Running) -> Result<(), EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(EngineError::Thread)?;
    let thread = std::thread::Builder::new().name("wf-actor".to_owned());
    thread.spawn(move || runtime.block_on(actor)).map_err(EngineError::Thread)?;
    Ok(())
}

impl Actor {
    pub fn new(shared: Arc<Shared>, opened: Opened, mailbox: mpsc::Receiver<Envelope>, options: Options) -> Actor {
        let now = Instant::now();
        let shared_partitions = shared.store.partitions();
        Actor {
            inbox: Inbox::new(&options.hub, options.partition),
            shared,
            partition: Partition::new(&opened, &options, shared_partitions),
            mailbox,
            started: None,
            standing: Standing::Taken,
            turn: Turn::default(),
            since: opened.fence.old_position,
            committing: None,
            redo: VecDeque::new(),
            alone: 0,
            conflicts: 0,
            polls: Polls::new(options.mailbox_max),
            filled: BTreeSet::new(),
            clock_replies: Vec::new(),
            skipped: BTreeSet::new(),
            given_up: BTreeSet::new(),
            is_purging: false,
            retry_from: now,
            sweeping: None,
            next_sweep: now + Duration::from_millis(options.sweep_ms),
            next_flush: now,
            next_look: now + TICK,
            is_closing: false,
            is_drained: false,
            options,
        }
    }

    pub(crate) fn fail_start(&mut self, error: EngineError) {
        if let Some(started) = self.started.take() {
            self.close();
            self.is_drained = true;
            let _ = started.send(Err(error));
        }
    }

    async fn run(self) {
        let _stopped = Stopped(self.shared.end.clone());
        // It is gone, and its hold on the store, before anybody hears that it has stopped.
        self.work_on().await;
    }

    async fn work_on(mut self) {
        let mut arrived = Vec::with_capacity(self.options.turn_max);
        loop {
            self.work().await;
            if !self.commit_or_release().await {
                continue;
            }
            if self.committing.is_none() && self.redo.is_empty() && self.turn.is_empty() {
                if self.is_quiet() {
                    self.release_clock();
                }
                if self.is_closing && self.is_drained {
                    break;
                }
            }
            let room = self.room();
            let wake = self.next_wake();
            let inbox = self.inbox.filled.clone();
            tokio::select! {
                biased;
                committed = committed(&mut self.committing) => self.settle(committed).await,
                () = self.shared.stopping.notified(), if !self.is_closing => self.close(),
                count = self.mailbox.recv_many(&mut arrived, room), if room > 0 && !self.is_drained => {
                    self.foresee(&arrived).await;
                    for envelope in arrived.drain(..) {
                        self.take(envelope).await;
                    }
                    if count == 0 {
                        // Also when the last handle was dropped without a word.
                        self.close();
                        self.is_drained = true;
                    }
                }
                () = inbox.notified() => self.inbox.tell_filled(),
                () = tokio::time::sleep_until(wake) => (),
            }
        }
        self.inbox.close().await;
        self.shared.ready.store(false, Ordering::Release);
        self.stop_sweeping().await;
    }

    fn close(&mut self) {
        self.is_closing = true;
        self.mailbox.close();
        for asked in self.polls.take_all() {
            self.answer_empty(asked);
        }
    }

    /// What is to be done before the mailbox is looked at.
    async fn work(&mut self) {
        if self.standing != Standing::Open && self.committing.is_none() {
            self.take_up().await;
        }
        if self.standing == Standing::Open {
            self.redo_some().await;
            if self.redo.is_empty() && !self.turn.is_alone {
                self.do_due_work().await;
                self.take_inbox().await;
            }
            self.serve_polls().await;
            self.flush_tally();
            self.sweep_now_and_then();
        }
        self.end_polls();
    }

    /// In single steps, or with a full turn, what arrives waits in the mailbox.
    fn room(&self) -> usize {
        match self.standing {
            Standing::Taken => 0,
            Standing::Open if !self.redo.is_empty() || !self.has_room() => 0,
            Standing::Open | Standing::Lost => self.options.turn_max.saturating_sub(self.turn.items.len()).max(1),
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        let turn = &self.turn;
        turn.items.len() < self.options.turn_max && turn.bytes() <= TURN_BYTES_MAX && !turn.is_alone
    }

    fn next_wake(&self) -> Instant {
        let now = Instant::now();
        let mut wake = now + TICK;
        // A turn that must stay alone takes no answer to a poll: waking for one would be waking again and again.
        if let Some(end) = self.polls.next_end().filter(|_| !self.turn.is_alone) {
            wake = wake.min(end);
        }
        if self.committing.is_some() {
            return wake;
        }
        if self.standing != Standing::Open || !self.is_ready() {
            wake = wake.min(self.retry_from);
        }
        if self.standing == Standing::Open && !self.redo.is_empty() {
            wake = now;
        }
        if self.standing == Standing::Open && !self.partition.partitions.is_one() && !self.is_closing {
            wake = wake.min(self.inbox.next_look().max(self.retry_from));
        }
        match self.own_work_due_in() {
            Some(due_in) => wake.min((now + due_in).max(self.retry_from)),
            None => wake,
        }
    }

    /// `false`: the turn failed, and that must be dealt with before anything else.
    async fn commit_or_release(&mut self) -> bool {
        if self.committing.is_some() {
            if planted::is(Bug::AnswerEarly) {
                self.turn.release_harmless();
            }
            return true;
        }
        self.probe_if_needed();
        if self.turn.is_empty() {
            self.turn.is_alone = false;
            return true;
        }
        let turn = std::mem::take(&mut self.turn);
        if turn.writes_nothing() {
            return self.release_unwritten(turn).await;
        }
        self.commit(turn);
        true
    }

    /// As every earlier turn is released, so is one that writes nothing. No commit asks for it whether the partition is still
    /// ours, and a deposed owner would refuse out of a stale memory: so the store is asked.
    async fn release_unwritten(&mut self, mut turn: Turn) -> bool {
        if self.standing == Standing::Open
            && !planted::is(Bug::FenceUnasked)
            && let Err(error) = self.shared.store.check_fence(self.partition.fence(self.since)).await
        {
            self.recover(turn, error).await;
            return false;
        }
        self.remember_replays(&mut turn);
        stats::tell(&mut turn, self.partition.id);
        turn.release();
        true
    }

    /// The next repeat of a request that an earlier life of this node answered is answered at the door too. Without that a
    /// full mailbox would stay full: of repeats that come again because they wait in it.
    fn remember_replays(&self, turn: &mut Turn) {
        turn.replayed.drain(..).for_each(|(id, record)| self.shared.replays.add(&id, &record));
    }

    fn commit(&mut self, mut turn: Turn) {
        turn.is_quiet = self.shared.clock.is_test() && self.is_quiet();
        if planted::is(Bug::AnswerBeforeCommit) && !turn.opens_epoch {
            turn.release();
        }
        let rows = self.partition.cache.changes();
        let (fence, head) = self.partition.close_turn(self.since);
        self.partition.cache.next_layer();
        self.since = fence.new_position;
        let batch = turn.batch(fence, head, rows);
        failpoint::hit("before-turn");
        let (store, sent) = (self.shared.store.clone(), batch.clone());
        let task = tokio::spawn(async move { store.commit(sent).await });
        self.committing = Some(Committing { turn, batch, begun: Instant::now(), task });
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.shared.ready.load(Ordering::Acquire)
    }

    async fn settle(&mut self, committed: Result<(), CommitError>) {
        let Some(done) = self.committing.take() else { return };
        match committed {
            Ok(()) => self.release(done),
            Err(error) => self.recover(done.turn, error).await,
        }
    }

    fn release(&mut self, done: Committing) {
        let Committing { mut turn, batch, begun, .. } = done;
        self.partition.settle(&batch.fence, batch.head);
        self.shared.last_time.fetch_max(batch.head.last_time, Ordering::AcqRel);
        batch.records.iter().for_each(|entry| self.shared.replays.add(&entry.id, &entry.record));
        if !batch.outbox.is_empty() || !batch.outbox_retries.is_empty() {
            self.shared.outbox_filled.notify_one();
        }
        self.remember_replays(&mut turn);
        stats::tell_commit(&turn, begun.elapsed());
        stats::tell(&mut turn, self.partition.id);
        self.conflicts = 0;
        self.shared.ready.store(true, Ordering::Release);
        if !batch.log.is_empty() {
            self.skipped.clear();
        }
        if turn.opens_epoch {
            failpoint::hit("after-epoch");
        }
        self.tell_ready(&turn);
        failpoint::hit("before-answer");
        let held = turn.take_held();
        self.tell_others(&batch, held);
        self.clock_replies.extend(turn.release());
        failpoint::hit("after-answer");
        if turn.is_quiet {
            self.release_clock();
        }
        if turn.opens_epoch {
            self.standing = Standing::Open;
            self.started.take().into_iter().for_each(|started| drop(started.send(Ok(()))));
        }
    }

    /// Before the answers: who hears of an effect finds the job that it made.
    fn tell_ready(&self, turn: &Turn) {
        let Some(OnReady(tell)) = &self.options.ready else { return };
        turn.ready.iter().chain(&turn.filled).for_each(|range| tell(Some(range)));
        if turn.opens_epoch {
            tell(None);
        }
    }

    pub(crate) fn reset_since(&mut self) {
        self.since = self.partition.position();
    }

    /// Clock changes are answered when all that fell due has committed.
    fn release_clock(&mut self) {
        self.clock_replies.drain(..).for_each(|(asked, reply)| asked.answer(reply));
    }

    /// All that is due is done, or on its way to the disk.
    fn is_quiet(&self) -> bool {
        let is_at_work = self.is_closing || self.standing == Standing::Open;
        let has_mail = !self.partition.partitions.is_one() && !self.inbox.is_quiet();
        is_at_work && !has_mail && self.redo.is_empty() && self.own_work_due_in() != Some(Duration::ZERO)
    }
}

/// Says that the actor has stopped, however it came to that.
struct Stopped(Arc<End>);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.tell();
    }
}

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
