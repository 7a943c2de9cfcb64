//! A turn that was not committed. Nothing of it ever existed: its envelopes are answered truthfully or executed again.
//! Where ownership is in doubt the partition is taken again, and a new epoch opened, before anything else.

use std::sync::atomic::Ordering;
use tokio::time::Instant;
use wf_core::Command;
use wf_core::planted::{self, Bug};
use wf_store::CommitError;

use crate::actor::{Actor, Standing, TICK};
use crate::due;
use crate::engine::{EngineError, stopping};
use crate::envelope::{Envelope, Reply};
use crate::intake::lost;
use crate::partition::OwnResult;
use crate::request::Refusal;
use crate::turn::Turn;

/// Conflicts in a row after which a turn is looked at one command at a time: reloading does not help it.
const CONFLICTS_MAX: u32 = 3;

impl Actor {
    /// `failed` was being committed; the turn at hand was built on it and goes with it.
    pub(crate) async fn recover(&mut self, mut failed: Turn, error: CommitError) {
        match error {
            // Another partition was faster, under a key that both were asked about: it is executed again.
            CommitError::Conflict(_) if self.conflicts < CONFLICTS_MAX => {
                tracing::debug!(%error, commands = failed.items.len(), "a turn met another one");
            }
            _ => tracing::error!(%error, commands = failed.items.len(), "a turn was not committed"),
        }
        metrics::counter!("wf_turns_failed_total", "reason" => reason(&error)).increment(1);
        let mut speculative = std::mem::take(&mut self.turn);
        self.forget(&mut failed, &mut speculative, matches!(error, CommitError::Unknown(_)));
        if failed.opens_epoch {
            // Nothing else was executed: there are refusals, and polls whose time was over.
            failed.release();
            speculative.release();
            return self.stay_lost(&error.to_string());
        }
        let (was_alone, is_alone) = (failed.is_alone, speculative.is_alone);
        let mut again = self.judge(failed, error).await;
        self.alone += if was_alone { again.len() } else { 0 };
        let next = asked_of(speculative);
        self.alone += if is_alone { next.len() } else { 0 };
        again.extend(next);
        again.into_iter().rev().for_each(|envelope| self.redo.push_front(envelope));
    }

    /// Back to what is committed.
    fn forget(&mut self, failed: &mut Turn, speculative: &mut Turn, may_be_committed: bool) {
        self.partition.drop_uncommitted();
        self.reset_since();
        if let Some(before) = failed.clock_before.or(speculative.clock_before) {
            self.shared.clock.restore(before);
        }
        self.skipped.clear();
        self.inbox.forget();
        // What woke them may have been lost with the turn, or stand in the store after all.
        self.filled = self.polls.queues();
        if !may_be_committed {
            failed.tallied.drain(..).for_each(|entry| self.shared.tally.add(entry));
        }
        speculative.tallied.drain(..).for_each(|entry| self.shared.tally.add(entry));
        self.next_flush = Instant::now() + TICK;
    }

    /// Answers those of the failed turn that must be answered; the others come back, to be executed again in their order.
    async fn judge(&mut self, failed: Turn, error: CommitError) -> Vec<Envelope> {
        match error {
            CommitError::Conflict(_) if self.conflicts < CONFLICTS_MAX => {
                self.conflicts += 1;
                again_of(failed)
            }
            CommitError::Conflict(reason) | CommitError::Rejected(reason) => self.single_out(failed, &reason).await,
            CommitError::Unavailable(reason) => {
                self.shared.ready.store(false, Ordering::Release);
                self.retry_from = Instant::now() + self.pause();
                refuse_all(failed, &Refusal::Unavailable { reason })
            }
            CommitError::Fenced => {
                self.lose();
                refuse_all(failed, &lost())
            }
            CommitError::Unknown(reason) if planted::is(Bug::UnknownAsFailed) => {
                refuse_all(failed, &Refusal::Unavailable { reason })
            }
            CommitError::Unknown(_) => {
                self.lose();
                let (harmless, in_doubt) = failed.items.into_iter().partition(|(_, reply)| reply.changed_nothing());
                refuse_all(Turn { items: in_doubt, ..Turn::default() }, &Refusal::OutcomeUnknown);
                asked_of(Turn { items: harmless, ..Turn::default() })
            }
        }
    }

    /// One poisoned command must not stop its turn: each is tried alone; the offender is answered.
    async fn single_out(&mut self, failed: Turn, reason: &str) -> Vec<Envelope> {
        self.conflicts = 0;
        if !failed.is_alone {
            self.alone += failed.items.len();
            return failed.items.into_iter().map(|(envelope, _)| envelope).collect();
        }
        for (envelope, _) in failed.items {
            let error_id = self.shared.chance.error_id();
            tracing::error!(%error_id, reason, "a command cannot be stored");
            let refusal = Refusal::Internal { error_id };
            match envelope {
                Envelope::Asked(asked) => asked.answer(Reply::Refused(refusal)),
                // A failure here is one of the store's: it comes again by itself.
                Envelope::Own(own) => drop(self.put_aside(&own, &refusal).await),
            }
        }
        Vec::new()
    }

    /// The first envelopes of what must be executed again, as far as the turn goes.
    pub(crate) async fn redo_some(&mut self) {
        if self.alone > 0 {
            if self.turn.is_empty()
                && let Some(envelope) = self.redo.pop_front()
            {
                self.alone -= 1;
                self.turn.is_alone = true;
                self.take(envelope).await;
            }
            return;
        }
        // What they need is forgotten: one load for all of them.
        let mut redo = std::mem::take(&mut self.redo);
        self.foresee(redo.make_contiguous()).await;
        self.redo = redo;
        while self.has_room()
            && let Some(envelope) = self.redo.pop_front()
        {
            self.take(envelope).await;
        }
    }

    fn lose(&mut self) {
        self.standing = Standing::Lost;
        self.shared.ready.store(false, Ordering::Release);
    }

    /// Not now. What waits is told so; what arrives meanwhile is told so at once.
    fn stay_lost(&mut self, reason: &str) {
        self.lose();
        tracing::error!(reason, "failed to take the partition; trying on");
        self.retry_from = Instant::now() + self.pause();
        self.alone = 0;
        self.refuse_redo(&lost());
        self.fail_start(EngineError::Epoch(reason.to_owned()));
    }

    fn refuse_redo(&mut self, refusal: &Refusal) {
        for envelope in self.redo.drain(..) {
            if let Envelope::Asked(asked) = envelope {
                asked.answer(Reply::Refused(refusal.clone()));
            }
        }
    }

    /// With a higher epoch: the store's UPDATE waits for a transaction that may still be dying.
    pub(crate) async fn take_up(&mut self) {
        if self.is_closing {
            self.standing = Standing::Lost;
            return self.refuse_redo(&stopping());
        }
        if Instant::now() < self.retry_from {
            return;
        }
        if self.standing == Standing::Lost {
            match self.shared.store.open(self.partition.id).await {
                Ok(opened) => {
                    self.partition.reopen(&opened);
                    self.reset_since();
                    opened.head.clock.into_iter().for_each(|stored| self.shared.clock.adopt(stored));
                    self.standing = Standing::Taken;
                }
                Err(error) => return self.stay_lost(&error.to_string()),
            }
        }
        self.open_epoch().await;
    }

    /// The first command after the partition was taken, alone in its turn: nothing else runs before it is durable.
    async fn open_epoch(&mut self) {
        self.shared.clock.stored().into_iter().for_each(|clock| self.partition.set_clock(clock));
        let command = Command::OpenEpoch {
            epoch: self.partition.epoch(),
            previous_position: self.partition.position(),
            previous_digest: self.partition.head().digest.to_be_bytes(),
            semantics: wf_core::ids::SEMANTICS,
        };
        let own = due::fresh(self.now(), b"epoch", (self.partition.id, self.partition.epoch()), command);
        match self.run_own(&own, self.now()).await {
            Ok(OwnResult::Done) => self.turn.opens_epoch = true,
            Ok(OwnResult::Failed(refusal)) | Err(refusal) => self.stay_lost(&format!("{refusal:?}")),
            Ok(OwnResult::Nothing | OwnResult::Known) => self.stay_lost("the epoch was not opened"),
        }
    }
}

/// In their order. The engine's own commands come again by themselves, if they are still due.
fn asked_of(turn: Turn) -> Vec<Envelope> {
    let envelopes = turn.items.into_iter().map(|(envelope, _)| envelope);
    envelopes.filter(|envelope| matches!(envelope, Envelope::Asked(_))).collect()
}

/// In single steps an own command stays at its turn, until it is known that it is the one that conflicts.
fn again_of(turn: Turn) -> Vec<Envelope> {
    match turn.is_alone {
        true => turn.items.into_iter().map(|(envelope, _)| envelope).collect(),
        false => asked_of(turn),
    }
}

fn refuse_all(failed: Turn, refusal: &Refusal) -> Vec<Envelope> {
    for (envelope, _) in failed.items {
        if let Envelope::Asked(asked) = envelope {
            asked.answer(Reply::Refused(refusal.clone()));
        }
    }
    Vec::new()
}

fn reason(error: &CommitError) -> &'static str {
    match error {
        CommitError::Fenced => "fenced",
        CommitError::Conflict(_) => "conflict",
        CommitError::Rejected(_) => "rejected",
        CommitError::Unavailable(_) => "unavailable",
        CommitError::Unknown(_) => "unknown",
    }
}
