//! One sink's loop: check, claim, send, mark. Nothing is decided here but when to look again; rows are settled in `settle.rs`.
//! Order comes from the claim: it gives out a row only when every earlier one of its order key is done.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{debug, error, info, warn};
use wf_core::Millis;
use wf_core::planted::{self, Bug};
use wf_core::rows::Text;
use wf_store::{Claim, Mark, MarkResult, OutboxRow, Store, failpoint};

use crate::config::{OnDead, SinkConfig};
use crate::gauges;
use crate::settle::{pause_ms, settle, span_ms};
use crate::shipper::{BATCH_MAX, Clock, LEASE_MS, POLL, SHIP_MAX, SinkState};
use crate::sink::{ShipResult, Shipment, Sink};

/// Attempts to write marks; what is not marked then is sent again with the same id.
const MARK_ATTEMPTS_MAX: u32 = 5;

pub(crate) struct Lane {
    config: SinkConfig,
    sink: Arc<dyn Sink>,
    store: Arc<dyn Store>,
    clock: Clock,
    owner: [u8; 16],
    state: watch::Sender<SinkState>,
    sink_name: Text,
    /// The sink could be used when it was last asked, and has not failed since.
    is_checked: bool,
    /// The other side asked for quiet until then.
    paused_until: Millis,
}

/// What a round of the loop leaves to do.
enum Next {
    /// Something went out, so there may be more.
    Again,
    /// Nothing to send: wait for the outbox to fill.
    Idle,
    /// Not now: a filled outbox changes nothing.
    Later,
    End,
}

impl Lane {
    pub fn new(
        config: SinkConfig,
        sink: Arc<dyn Sink>,
        store: Arc<dyn Store>,
        clock: Clock,
        owner: [u8; 16],
        state: watch::Sender<SinkState>,
    ) -> Lane {
        let sink_name = Text::from(config.name.as_str());
        Lane { config, sink, store, clock, owner, state, sink_name, is_checked: false, paused_until: Millis::MIN }
    }

    pub async fn run(mut self, mut filled: watch::Receiver<()>, mut stopped: watch::Receiver<bool>) {
        while !*stopped.borrow() {
            // What fills from here on is seen by this round or wakes the next one.
            filled.mark_unchanged();
            match self.round(&mut stopped).await {
                Next::Again => (),
                Next::Idle => wait(Some(&mut filled), &mut stopped).await,
                Next::Later => wait(None, &mut stopped).await,
                Next::End => return,
            }
        }
    }

    async fn round(&mut self, stopped: &mut watch::Receiver<bool>) -> Next {
        if !self.is_checked && !self.check(stopped).await || (self.clock)() < self.paused_until {
            return Next::Later;
        }
        let rows = match self.store.claim_outbox(self.claim()).await {
            Ok(rows) if rows.is_empty() => return Next::Idle,
            Ok(rows) => rows,
            Err(error) => {
                warn!(sink = self.config.name, %error, "the outbox cannot be claimed");
                return Next::Later;
            }
        };
        failpoint::hit("after-claim");
        if *stopped.borrow() {
            self.mark(rows.iter().map(|row| self.mark_of(row, MarkResult::Release)).collect()).await;
            return Next::End;
        }
        if planted::is(Bug::MarkBeforeShip) {
            let at = (self.clock)();
            self.mark(rows.iter().map(|row| self.mark_of(row, MarkResult::Shipped { at })).collect()).await;
        }
        let results = self.ship(&rows).await;
        failpoint::hit("after-ship");
        self.finish(&rows, &results).await
    }

    /// Asks whether the sink can be used; a stop interrupts it, as nothing is claimed.
    async fn check(&mut self, stopped: &mut watch::Receiver<bool>) -> bool {
        let answer = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => return false,
            answer = timeout(SHIP_MAX, self.sink.check()) => answer,
        };
        let state = match answer {
            Ok(Ok(info)) => {
                self.is_checked = true;
                if self.is_new(&SinkState::Shipping) {
                    self.compare_window(info.window_ms);
                }
                SinkState::Shipping
            }
            Ok(Err(error)) => SinkState::Waiting { error: error.to_string() },
            Err(_) => SinkState::Waiting { error: format!("no answer within {SHIP_MAX:?}") },
        };
        self.show(state);
        self.is_checked
    }

    fn is_new(&self, state: &SinkState) -> bool {
        *self.state.borrow() != *state
    }

    fn compare_window(&self, window_ms: Option<i64>) {
        let span_ms = span_ms(self.config.attempts_max);
        if let Some(window_ms) = window_ms.filter(|window_ms| *window_ms < span_ms) {
            warn!(
                sink = self.config.name,
                window_ms,
                span_ms,
                "the broker forgets dedup ids before the last attempt: a late repeat may count twice"
            );
        }
    }

    /// Logged once per change, not once per second.
    fn show(&self, state: SinkState) {
        if !self.is_new(&state) {
            return;
        }
        match &state {
            SinkState::Starting | SinkState::Shipping => info!(sink = self.config.name, "shipping"),
            SinkState::Waiting { error } => warn!(sink = self.config.name, error, "waiting for the sink"),
            SinkState::Disabled { error } => error!(sink = self.config.name, error, "the sink stops"),
        }
        self.state.send_replace(state);
    }

    fn claim(&self) -> Claim {
        Claim {
            sink: self.sink_name.clone(),
            owner: self.owner,
            now: (self.clock)(),
            lease_ms: LEASE_MS,
            limit: self.sink.batch_max().clamp(1, BATCH_MAX),
            dead_pass: self.config.on_dead == OnDead::Pass,
        }
    }

    /// One result per row, whatever the sink does.
    async fn ship(&self, rows: &[OutboxRow]) -> Vec<ShipResult> {
        let batch: Vec<Shipment> = rows.iter().map(shipment).collect();
        let mut results = timeout(SHIP_MAX, self.sink.ship(&batch)).await.unwrap_or_default();
        let missing = || ShipResult::Retry { error: format!("no answer within {SHIP_MAX:?}"), retry_after_ms: None };
        results.resize_with(rows.len(), missing);
        results
    }

    async fn finish(&mut self, rows: &[OutboxRow], results: &[ShipResult]) -> Next {
        let now = (self.clock)();
        let mut marks = Vec::new();
        let mut disabled = None;
        for (row, result) in rows.iter().zip(results) {
            if let ShipResult::Retry { error, retry_after_ms } = result {
                self.is_checked = false;
                debug!(sink = self.config.name, event = &*row.entry.event_id, error, "not shipped yet");
                self.paused_until = self.paused_until.max(now + pause_ms(*retry_after_ms));
            }
            if let ShipResult::Disabled { error } = result {
                disabled = Some(error.clone());
            }
            let result = settle(&self.config, row, result, now);
            if let MarkResult::Dead { error } = &result {
                error!(sink = self.config.name, event = &*row.entry.event_id, error = &**error, "a dead letter");
            }
            marks.push(self.mark_of(row, result));
        }
        let has_moved =
            marks.iter().any(|mark| matches!(mark.result, MarkResult::Shipped { .. } | MarkResult::Dead { .. }));
        let is_marked = self.mark(marks.clone()).await;
        failpoint::hit("after-mark");
        if is_marked {
            gauges::count(&self.config.name, rows, results, &marks);
        }
        if let Some(error) = disabled {
            self.show(SinkState::Disabled { error });
            return Next::End;
        }
        if has_moved && is_marked { Next::Again } else { Next::Later }
    }

    fn mark_of(&self, row: &OutboxRow, result: MarkResult) -> Mark {
        Mark { id: row.entry.id.clone(), owner: self.owner, result }
    }

    /// A store that fails for a moment must not make us send everything again.
    async fn mark(&self, marks: Vec<Mark>) -> bool {
        for attempt in 0..MARK_ATTEMPTS_MAX {
            match self.store.mark_outbox(marks.clone()).await {
                Ok(()) => return true,
                Err(error) => warn!(sink = self.config.name, %error, "what was sent cannot be marked"),
            }
            sleep(Duration::from_millis(100 << attempt)).await;
        }
        false
    }
}

fn shipment(row: &OutboxRow) -> Shipment {
    let entry = &row.entry;
    Shipment {
        event_id: entry.event_id.clone(),
        tenant: entry.tenant.clone(),
        topic: entry.topic.clone(),
        order_key: entry.order_key,
        envelope: entry.envelope.clone(),
    }
}

/// Until the outbox fills (if that matters), the poll time has passed, or the end.
async fn wait(filled: Option<&mut watch::Receiver<()>>, stopped: &mut watch::Receiver<bool>) {
    let filled = async {
        // Err: nobody rings any more.
        let Some(filled) = filled else { return std::future::pending().await };
        if filled.changed().await.is_err() {
            std::future::pending().await
        }
    };
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stopped| *stopped) => (),
        () = filled => (),
        () = sleep(POLL) => (),
    }
}
