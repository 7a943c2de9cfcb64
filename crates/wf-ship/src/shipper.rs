//! The shipper: one task per sink, woken when a turn filled the outbox, else once a second.
//! Knows no broker and decides nothing about rows. Next: `lane.rs`, what such a task does.

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use wf_core::Millis;
use wf_store::Store;

use crate::config::SinkConfig;
use crate::gauges;
use crate::lane::Lane;
use crate::sink::Sink;

/// The engine's clock: retry times and leases obey it, also when it is a test clock.
pub type Clock = Arc<dyn Fn() -> Millis + Send + Sync>;

/// Rows of one claim.
pub const BATCH_MAX: usize = 100;
/// So long a claim keeps others off. A crash between the ack and the mark delays the repeat by as much.
pub const LEASE_MS: i64 = 30_000;
/// What a sink has not answered by then counts as not sent.
pub const SHIP_MAX: Duration = Duration::from_secs(25);
/// Between two looks at the outbox without a wake-up: rows whose retry is due, leases that ended, a wake-up that was lost.
pub const POLL: Duration = Duration::from_secs(1);

// Otherwise somebody else claims what is still being sent.
const _: () = assert!((SHIP_MAX.as_millis() as i64) < LEASE_MS);

/// Dropped, it stops at once, wherever it stands (what was sent and not marked is sent again by the next one);
/// see [`Shipper::shutdown`].
#[derive(Debug)]
pub struct Shipper {
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    states: Vec<(String, watch::Receiver<SinkState>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkState {
    /// Not checked yet.
    Starting,
    Shipping,
    /// Cannot be used now; asked again every second, and nothing is claimed until then.
    Waiting {
        error: String,
    },
    /// It asked for nothing more; its rows stay pending, and the next start tries again.
    Disabled {
        error: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkStatus {
    pub sink: String,
    pub state: SinkState,
}

impl Shipper {
    /// `filled` gives a future that resolves after rows were added to the outbox (or now and then without). Must be called
    /// within a tokio runtime.
    pub fn start<F, W>(
        store: Arc<dyn Store>,
        sinks: Vec<(SinkConfig, Arc<dyn Sink>)>,
        clock: Clock,
        filled: F,
    ) -> Shipper
    where
        F: Fn() -> W + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        Shipper::start_as(fresh_owner, store, sinks, clock, filled)
    }

    /// As `start`, with the names under which the lanes claim rows given: no two shippers of a store may share one.
    pub fn start_as<F, W>(
        mut owner: impl FnMut() -> [u8; 16],
        store: Arc<dyn Store>,
        sinks: Vec<(SinkConfig, Arc<dyn Sink>)>,
        clock: Clock,
        filled: F,
    ) -> Shipper
    where
        F: Fn() -> W + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = watch::channel(false);
        let (ring, rung) = watch::channel(());
        let mut tasks = JoinSet::new();
        let mut states = Vec::new();
        let names = sinks.iter().map(|(config, _)| config.name.clone()).collect();
        tasks.spawn(gauges::keep(store.clone(), names, clock.clone(), stopped.clone()));
        tasks.spawn(wake(filled, ring, stopped.clone()));
        for (config, sink) in sinks {
            let (state, shown) = watch::channel(SinkState::Starting);
            states.push((config.name.clone(), shown));
            let lane = Lane::new(config, sink, store.clone(), clock.clone(), owner(), state);
            tasks.spawn(lane.run(rung.clone(), stopped.clone()));
        }
        Shipper { tasks, stop, states }
    }

    pub fn status(&self) -> Vec<SinkStatus> {
        let status = |(sink, state): &(String, watch::Receiver<SinkState>)| SinkStatus {
            sink: sink.clone(),
            state: state.borrow().clone(),
        };
        self.states.iter().map(status).collect()
    }

    /// Resolves when the sink's state is the wanted one; at once if it is already, never if there is no such sink.
    pub async fn state_of(&self, sink: &str, wanted: impl Fn(&SinkState) -> bool) {
        let Some((_, state)) = self.states.iter().find(|(name, _)| name == sink) else {
            return std::future::pending().await;
        };
        if state.clone().wait_for(wanted).await.is_err() {
            std::future::pending().await
        }
    }

    /// Claims nothing more, finishes and marks what is being sent (at most [`SHIP_MAX`] and the store's time), gives back
    /// what was claimed and not sent.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

/// One listener for all sinks: the engine tells each filling once.
async fn wake<F, W>(filled: F, ring: watch::Sender<()>, mut stopped: watch::Receiver<bool>)
where
    F: Fn() -> W,
    W: Future<Output = ()>,
{
    loop {
        // In this order: an outbox that keeps filling must not hide the end.
        tokio::select! {
            biased;
            // Err: the shipper is gone.
            _ = stopped.wait_for(|stopped| *stopped) => return,
            () = filled() => ring.send_replace(()),
        }
    }
}

/// Random enough: two shippers never hold the same name, on any node.
fn fresh_owner() -> [u8; 16] {
    let half = || RandomState::new().build_hasher().finish().to_le_bytes();
    let mut owner = [0; 16];
    owner[..8].copy_from_slice(&half());
    owner[8..].copy_from_slice(&half());
    owner
}
