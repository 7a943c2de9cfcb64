//! What the server is built from, and what its handlers share.
//! It does not start anything. Next: `server.rs`.

use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;
use wf_engine::Engine;
use wf_idempotency::MacKey;

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
            closing: watch::Sender::new(false),
        })
    }
}
