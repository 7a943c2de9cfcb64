//! A turn that was not committed. Nothing of it ever existed: its envelopes are answered truthfully or executed again.

use std::sync::atomic::Ordering;
use std::time::Instant;

use wf_store::{CommitError, Fence};

use crate::actor::Actor;
use crate::envelope::{Envelope, Reply};
use crate::own_work::PAUSE;
use crate::request::Refusal;
use crate::turn::Turn;

impl Actor {
    /// `failed` was being committed; the turn at hand was built on it and goes with it.
    pub(crate) async fn recover(&mut self, failed: Turn, _fence: Fence, error: CommitError) {
        tracing::error!(%error, commands = failed.items.len(), "a turn was not committed");
        metrics::counter!("wf_turns_failed_total", "reason" => reason(&error)).increment(1);
        let speculative = std::mem::take(&mut self.turn);
        self.own_work_from = Instant::now() + PAUSE;
        self.partition.drop_uncommitted();
        self.reset_since();
        match error {
            CommitError::Conflict(_) => {
                self.execute_again(failed);
            }
            CommitError::Rejected(reason) => self.execute_singly(failed, &reason),
            CommitError::Unavailable(reason) => {
                self.shared.ready.store(false, Ordering::Release);
                self.refuse_all(failed, &Refusal::Unavailable { reason });
            }
            CommitError::Fenced => {
                self.refuse_all(
                    failed,
                    &Refusal::Unavailable { reason: "the partition is owned elsewhere".to_owned() },
                );
                self.take_again().await;
            }
            CommitError::Unknown(_) => {
                self.refuse_all(failed, &Refusal::OutcomeUnknown);
                self.take_again().await;
            }
        }
        self.execute_again(speculative);
        self.skipped.clear();
    }

    /// In their order, before anything new. The engine's own commands come again by themselves, if they are still due.
    fn execute_again(&mut self, turn: Turn) {
        let asked = turn.items.into_iter().map(|(envelope, _)| envelope);
        let is_epoch = |envelope: &Envelope| matches!(envelope, Envelope::Own(own) if matches!(own.command, wf_core::Command::OpenEpoch { .. }));
        self.redo.extend(asked.filter(|envelope| matches!(envelope, Envelope::Asked(_)) || is_epoch(envelope)));
    }

    /// One poisoned command must not stop its turn: each is tried alone; the offender is answered.
    fn execute_singly(&mut self, failed: Turn, reason: &str) {
        if failed.items.len() > 1 {
            self.singly = failed.items.len();
            self.redo.extend(failed.items.into_iter().map(|(envelope, _)| envelope));
            return;
        }
        let error_id = crate::engine::error_id();
        tracing::error!(%error_id, reason, "a command cannot be stored");
        self.refuse_all(failed, &Refusal::Internal { error_id });
    }

    fn refuse_all(&mut self, mut failed: Turn, refusal: &Refusal) {
        for (envelope, reply) in &mut failed.items {
            let is_poll = matches!(envelope, Envelope::Asked(_));
            if is_poll {
                *reply = Reply::Refused(refusal.clone());
            }
        }
        failed.release();
        for (sender, _) in self.clock_replies.drain(..) {
            let _ = sender.send(Reply::Refused(refusal.clone()));
        }
    }

    /// With a higher epoch: the store's UPDATE waits for a transaction that may still be dying.
    async fn take_again(&mut self) {
        self.shared.ready.store(false, Ordering::Release);
        loop {
            match self.shared.store.open(self.partition.id).await {
                Ok(opened) => {
                    self.partition.reopen(opened);
                    self.reset_since();
                    self.queue_epoch();
                    return;
                }
                Err(error) => {
                    tracing::error!(%error, "failed to take the partition again; trying on");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
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
