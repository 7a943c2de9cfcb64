//! What doors and actor both see: the store, the clock, the answers that may be replayed, the word that it is time to stop.
//! It does nothing by itself. Next: `actor.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tokio::sync::Notify;
use wf_store::{Opened, Store};

use crate::clock::Clock;
use crate::inflight::InFlight;
use crate::options::{Chance, Options};
use crate::replays::Replays;
use crate::suppressed::Tally;

pub struct Shared {
    pub partition: u16,
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub chance: Chance,
    pub replays: Replays,
    pub tally: Tally,
    pub outbox_filled: Notify,
    pub ready: AtomicBool,
    /// Command time of the last committed turn: the doors' time never stands behind it.
    pub last_time: AtomicI64,
    pub stopping: Notify,
    pub end: Arc<End>,
    pub in_flight: InFlight,
    pub wait_ms: u64,
    pub mailbox_max: usize,
}

impl Shared {
    pub fn new(store: Arc<dyn Store>, opened: &Opened, options: &Options) -> Shared {
        Shared {
            partition: options.partition,
            store,
            clock: Clock::new(options.clock.clone(), opened.head.clock, opened.head.last_time),
            chance: options.chance.clone(),
            replays: Replays::new(),
            tally: Tally::default(),
            outbox_filled: Notify::new(),
            ready: AtomicBool::new(false),
            last_time: AtomicI64::new(opened.head.last_time),
            stopping: Notify::new(),
            end: Arc::new(End::default()),
            in_flight: InFlight::default(),
            wait_ms: options.wait_ms,
            mailbox_max: options.mailbox_max,
        }
    }
}

/// The actor's end. It holds no store: who hears of it may open the store again.
#[derive(Default)]
pub struct End {
    has_come: AtomicBool,
    coming: Notify,
}

impl End {
    pub fn tell(&self) {
        self.has_come.store(true, Ordering::Release);
        self.coming.notify_waiters();
    }

    pub fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Acquire)
    }

    pub async fn wait(&self) {
        while !self.has_come.load(Ordering::Acquire) {
            let coming = self.coming.notified();
            if self.has_come.load(Ordering::Acquire) {
                break;
            }
            coming.await;
        }
    }
}
