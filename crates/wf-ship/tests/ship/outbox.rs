//! A store with an outbox to fill, a clock to set, and a sink that answers as it is told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};
use wf_core::Key;
use wf_ship::{Clock, Later, ShipResult, Shipment, Shipper, Sink, SinkConfig, SinkError, SinkInfo};
use wf_store::memory::MemoryStore;
use wf_store::*;

pub const NOW: i64 = 1_800_000_000_000;

/// Each event number is a position.
#[derive(Clone)]
pub struct World {
    pub store: Arc<MemoryStore>,
    pub now: Arc<AtomicI64>,
    pub filled: Arc<Notify>,
    fence: Arc<Mutex<Fence>>,
}

impl World {
    pub async fn new() -> World {
        let store = Arc::new(MemoryStore::new());
        let fence = store.open(1).await.unwrap().fence;
        let now = Arc::new(AtomicI64::new(NOW));
        World { store, now, filled: Arc::new(Notify::new()), fence: Arc::new(Mutex::new(fence)) }
    }

    /// One turn with one event per order key; returns their event ids.
    pub async fn write(&self, sink: &str, order_keys: &[Key]) -> Vec<String> {
        let mut batch = self.batch();
        batch.fence.new_position = batch.fence.old_position + order_keys.len() as u64;
        for (order_key, position) in order_keys.iter().zip(batch.fence.old_position + 1..) {
            batch.outbox.push(OutboxEntry {
                id: OutboxId { partition: 1, position, n: 1, sink: sink.into() },
                tenant: "default".into(),
                order_key: *order_key,
                topic: "wf.instance.started".into(),
                event_id: event_id(1, position, 1).into(),
                envelope: format!("{{\"id\":\"{}\"}}", event_id(1, position, 1)).into(),
                created_at: NOW,
            });
        }
        let ids = batch.outbox.iter().map(|entry| entry.event_id.to_string()).collect();
        self.commit(batch).await;
        ids
    }

    /// What `POST /outbox/{id}/retry` leaves in a turn.
    pub async fn ship_again(&self, sink: &str, position: u64) {
        let mut batch = self.batch();
        batch.outbox_retries.push(OutboxId { partition: 1, position, n: 1, sink: sink.into() });
        self.commit(batch).await;
    }

    fn batch(&self) -> Batch {
        let last = *self.fence.lock().unwrap();
        Batch { fence: Fence { old_position: last.new_position, ..last }, ..Batch::default() }
    }

    async fn commit(&self, batch: Batch) {
        let fence = batch.fence;
        self.store.commit(Arc::new(batch)).await.unwrap();
        *self.fence.lock().unwrap() = fence;
        self.filled.notify_one();
    }

    /// By event id.
    pub async fn rows(&self) -> BTreeMap<String, OutboxRow> {
        let slice = Slice { limit: 10_000, ..Slice::default() };
        let query = OutboxQuery { tenant: "default".into(), state: None, id: None, slice };
        let rows = self.store.outbox(query).await.unwrap().items;
        rows.into_iter().map(|row| (row.entry.event_id.to_string(), row)).collect()
    }

    pub async fn states(&self) -> Vec<OutboxState> {
        self.rows().await.into_values().map(|row| row.state).collect()
    }

    pub fn set_clock(&self, now: i64) {
        self.now.store(now, Ordering::SeqCst);
    }

    pub fn clock(&self) -> Clock {
        let now = self.now.clone();
        Arc::new(move || now.load(Ordering::SeqCst))
    }

    pub fn start(&self, config: &SinkConfig, sink: Arc<dyn Sink>) -> Shipper {
        let filled = self.filled.clone();
        Shipper::start(self.store.clone(), vec![(config.clone(), sink)], self.clock(), move || {
            let filled = filled.clone();
            async move { filled.notified().await }
        })
    }

    /// Asks the store until it is so; where time is paused, it jumps from one question to the next.
    pub async fn until(&self, is_so: impl Fn(&BTreeMap<String, OutboxRow>) -> bool) {
        while !is_so(&self.rows().await) {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }

    /// Some rounds of the shipper: enough for what is due, and for what is not to show that it is not.
    pub async fn some_rounds(&self) {
        tokio::time::sleep(10 * wf_ship::shipper::POLL).await;
    }
}

type Rule = Box<dyn Fn(&Shipment) -> Option<ShipResult> + Send + Sync>;

/// Answers by a rule; `None`: it has the message and never answers.
pub struct Scripted {
    name: String,
    rule: Rule,
    pub usable: watch::Sender<bool>,
    /// Event ids as they came.
    pub seen: watch::Sender<Vec<String>>,
}

impl Scripted {
    pub fn new(name: &str, rule: impl Fn(&Shipment) -> Option<ShipResult> + Send + Sync + 'static) -> Arc<Scripted> {
        let (usable, seen) = (watch::Sender::new(true), watch::Sender::new(Vec::new()));
        Arc::new(Scripted { name: name.to_owned(), rule: Box::new(rule), usable, seen })
    }

    pub fn seen(&self) -> Vec<String> {
        self.seen.borrow().clone()
    }

    pub async fn has_seen(&self, count: usize) {
        self.seen.subscribe().wait_for(|seen| seen.len() >= count).await.unwrap();
    }
}

impl Sink for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Later<'_, Result<SinkInfo, SinkError>> {
        let usable = *self.usable.borrow();
        Box::pin(std::future::ready(match usable {
            true => Ok(SinkInfo { window_ms: None }),
            false => Err(SinkError::Unreachable("switched off".to_owned())),
        }))
    }

    fn ship<'a>(&'a self, batch: &'a [Shipment]) -> Later<'a, Vec<ShipResult>> {
        Box::pin(async move {
            let ids = batch.iter().map(|shipment| shipment.event_id.to_string());
            self.seen.send_modify(|seen| seen.extend(ids));
            let mut results = Vec::new();
            for shipment in batch {
                match (self.rule)(shipment) {
                    Some(result) => results.push(result),
                    None => std::future::pending().await,
                }
            }
            results
        })
    }
}

pub fn shipped() -> Option<ShipResult> {
    Some(ShipResult::Shipped { duplicate: false })
}

pub fn retry(retry_after_ms: Option<i64>) -> Option<ShipResult> {
    Some(ShipResult::Retry { error: "not now".to_owned(), retry_after_ms })
}
