//! What the server is built from, and what its handlers share.
//! It does not start anything. Next: `server.rs`.

use std::path::Path;
use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::{Semaphore, watch};
use wf_engine::Engine;
use wf_idempotency::MacKey;
use wf_store::Store;

use crate::auth::Auth;
use crate::graphs::Graphs;
use crate::keys::{IdempotencyConfig, KeyPolicies};

/// Everything that a server needs besides a socket.
#[derive(Clone)]
pub struct App {
    pub engine: Engine,
    pub auth: Auth,
    pub idempotency: IdempotencyConfig,
    /// The store's secret (`Store::secret`), under which fingerprints and key hashes are made.
    pub mac_secret: [u8; 32],
    /// Which secret it is; records carry it.
    pub mac_key_id: u32,
    /// How long a message id is remembered.
    pub messages_dedup_ms: i64,
    /// From [`crate::recorder`], installed before the engine opens; `/metrics` answers 404 without it.
    pub metrics: Option<PrometheusHandle>,
    /// Where replays keep their rows; without it the route answers 404.
    pub scratch: Option<Arc<dyn Scratch>>,
}

/// A store of its own for a replay: it is written to, and thrown away with its guard.
pub trait Scratch: Send + Sync {
    /// Empty, or the latest checkpoint before this position. Blocks.
    fn open(&self, before: u64) -> Result<ScratchStore, String>;
}

pub struct ScratchStore {
    pub store: Arc<dyn Store>,
    /// Dropped last: it removes what the store stands on.
    pub guard: Box<dyn Folder>,
}

/// A temporary folder, removed when it is dropped.
pub trait Folder: Send {
    fn path(&self) -> &Path;
}

pub(crate) type Shared = Arc<Inner>;

pub(crate) struct Inner {
    pub engine: Engine,
    pub auth: Auth,
    pub keys: KeyPolicies,
    pub mac: MacKey,
    pub mac_secret: [u8; 32],
    pub messages_dedup_ms: i64,
    pub metrics: Option<PrometheusHandle>,
    pub graphs: Graphs,
    pub scratch: Option<Arc<dyn Scratch>>,
    /// One proof at a time: each reads the whole store.
    pub proving: Arc<Semaphore>,
    /// True from the moment at which the server was asked to stop: long polls end.
    pub closing: watch::Sender<bool>,
}

impl Inner {
    pub fn new(app: App) -> Shared {
        Arc::new(Inner {
            keys: KeyPolicies::new(&app.idempotency),
            mac: MacKey::new(app.mac_key_id, app.mac_secret),
            engine: app.engine,
            auth: app.auth,
            mac_secret: app.mac_secret,
            messages_dedup_ms: app.messages_dedup_ms,
            metrics: app.metrics,
            graphs: Graphs::default(),
            scratch: app.scratch,
            proving: Arc::new(Semaphore::new(1)),
            closing: watch::Sender::new(false),
        })
    }
}
