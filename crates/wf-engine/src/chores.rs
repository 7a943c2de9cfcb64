//! What the actor does now and then, beside requests and due work: counts of repeats that go along with a turn, polls that
//! end empty, the sweep of what has expired, a probe whether a store that failed works again. Next: `own_work.rs`.

use std::time::Duration;

use tokio::time::Instant;
use wf_core::Millis;
use wf_store::Store;

use crate::actor::{Actor, Standing, TICK};

/// Rows that the store drops in one transaction.
const SWEEP_ROWS_MAX: usize = 10_000;

impl Actor {
    pub(crate) fn flush_tally(&mut self) {
        let now = Instant::now();
        // At the end once more; but a store that fails then must not be asked again and again.
        let is_end = self.is_closing && self.is_ready();
        let is_time = now >= self.next_flush || is_end || !self.turn.is_empty();
        if !self.turn.is_alone && is_time && !self.shared.tally.is_empty() {
            self.turn.tallied.extend(self.shared.tally.take());
            self.next_flush = now + TICK;
        }
    }

    pub(crate) fn end_polls(&mut self) {
        let now = Instant::now();
        if now >= self.next_look {
            self.polls.drop_gone();
            self.next_look = now + TICK;
        }
        if !self.turn.is_alone {
            for asked in self.polls.take_over(now) {
                self.answer_empty(asked);
            }
        }
    }

    pub(crate) fn sweep_now_and_then(&mut self) {
        let is_sweeping = self.sweeping.as_ref().is_some_and(|sweep| !sweep.is_finished());
        if Instant::now() < self.next_sweep || self.is_closing || is_sweeping {
            return;
        }
        self.next_sweep = Instant::now() + Duration::from_millis(self.options.sweep_ms);
        self.is_purging = true;
        let (store, now) = (self.shared.store.clone(), self.partition.committed_time());
        self.sweeping = Some(tokio::spawn(async move { sweep(&*store, now).await }));
    }

    pub(crate) async fn stop_sweeping(&mut self) {
        if let Some(sweeping) = self.sweeping.take() {
            sweeping.abort();
            let _ = sweeping.await;
        }
    }

    /// Without requests nothing else would tell that the store works again.
    pub(crate) fn probe_if_needed(&mut self) {
        let may_probe = self.standing == Standing::Open && !self.is_ready() && !self.is_closing;
        if may_probe && self.turn.is_empty() && Instant::now() >= self.retry_from {
            self.turn.is_probe = true;
        }
    }
}

/// What expires faster than one slice a minute must not pile up.
async fn sweep(store: &dyn Store, now: Millis) {
    loop {
        match store.sweep(now, SWEEP_ROWS_MAX).await {
            Ok(dropped) => {
                metrics::counter!("wf_key_store_swept_total").increment(dropped as u64);
                if dropped < SWEEP_ROWS_MAX {
                    break;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "failed to sweep expired records");
                break;
            }
        }
        tokio::task::yield_now().await;
    }
    if let Err(error) = store.idle().await {
        tracing::warn!(%error, "failed to move the write-ahead log");
    }
}
