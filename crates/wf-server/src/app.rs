//! What the server is built from, and what its handlers share.
//! It does not start anything. Next: `server.rs`.

use std::path::Path;
use std::sync::Arc;

use axum::http::HeaderMap;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::{Semaphore, watch};
use wf_cluster::Node;
use wf_idempotency::MacKey;
use wf_store::{Directory, Store, StoreError};

use crate::auth::{Auth, Visitor};
use crate::door::Refused;
use crate::graphs::Graphs;
use crate::keys::{IdempotencyConfig, KeyPolicies};
use crate::peers::Wire;
use crate::route::Permission;

/// Everything that a server needs besides a socket.
#[derive(Clone)]
pub struct App {
    pub databases: Databases,
    pub auth: Auth,
    pub idempotency: IdempotencyConfig,
    /// How long a message id is remembered.
    pub messages_dedup_ms: i64,
    /// From [`crate::recorder`], installed before the node opens; `/metrics` answers 404 without it.
    pub metrics: Option<PrometheusHandle>,
}

/// One for all tenants, or several that share them.
#[derive(Clone)]
pub struct Databases {
    all: Vec<Database>,
    directory: Option<Arc<dyn Directory>>,
}

impl Databases {
    pub fn one(database: Database) -> Databases {
        Databases { all: vec![database], directory: None }
    }

    /// In the order that the directory numbers them by.
    pub fn shared(all: Vec<Database>, directory: Arc<dyn Directory>) -> Databases {
        Databases { all, directory: Some(directory) }
    }
}

/// A store and this node's part in it.
#[derive(Clone)]
pub struct Database {
    pub node: Node,
    /// The store's secret (`Store::secret`), under which fingerprints and key hashes are made.
    pub mac_secret: [u8; 32],
    /// Which secret it is; records carry it.
    pub mac_key_id: u32,
    /// Where replays keep their rows; without it the route answers 404.
    pub scratch: Option<Arc<dyn Scratch>>,
}

/// A store of its own for a replay: it is written to, and thrown away with its guard.
pub trait Scratch: Send + Sync {
    /// Empty, or the partition's latest checkpoint before this position. Blocks.
    fn open(&self, partition: u16, before: u64) -> Result<ScratchStore, String>;
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

/// What handlers of a tenant's requests share: their tenant's database, and what is the same for all.
pub(crate) type Shared = Arc<Inner>;

pub(crate) struct Inner {
    pub node: Node,
    /// To the other nodes.
    pub wire: Arc<Wire>,
    pub keys: Arc<KeyPolicies>,
    pub mac: MacKey,
    pub mac_secret: [u8; 32],
    pub messages_dedup_ms: i64,
    pub graphs: Graphs,
    pub scratch: Option<Arc<dyn Scratch>>,
    /// One proof at a time: each reads the whole store.
    pub proving: Arc<Semaphore>,
    /// True from the moment at which the server was asked to stop: long polls end.
    pub closing: watch::Sender<bool>,
}

/// The state of the router: all databases, and which of them a tenant lives in.
#[derive(Clone)]
pub(crate) struct Doors {
    all: Arc<[Shared]>,
    directory: Option<Arc<dyn Directory>>,
    pub auth: Arc<Auth>,
    pub keys: Arc<KeyPolicies>,
    pub metrics: Option<PrometheusHandle>,
}

impl Doors {
    pub fn new(app: App) -> Doors {
        let (auth, keys) = (Arc::new(app.auth), Arc::new(KeyPolicies::new(&app.idempotency)));
        let (proving, closing) = (Arc::new(Semaphore::new(1)), watch::Sender::new(false));
        let inner = |database: Database| {
            let wire = Wire::new(database.node.secret());
            database.node.use_peers(wire.clone());
            Arc::new(Inner {
                wire,
                keys: keys.clone(),
                mac: MacKey::new(database.mac_key_id, database.mac_secret),
                node: database.node,
                mac_secret: database.mac_secret,
                messages_dedup_ms: app.messages_dedup_ms,
                graphs: Graphs::default(),
                scratch: database.scratch,
                proving: proving.clone(),
                closing: closing.clone(),
            })
        };
        let all = app.databases.all.into_iter().map(inner).collect();
        Doors { all, directory: app.databases.directory, auth, keys, metrics: app.metrics }
    }

    pub fn all(&self) -> &[Shared] {
        &self.all
    }

    /// For what concerns no tenant.
    pub fn any(&self) -> &Shared {
        &self.all[0]
    }

    /// The one that has the partition.
    pub fn of_partition(&self, partition: u16) -> Option<&Shared> {
        self.all.iter().find(|app| app.node.partitions().contains(partition))
    }

    /// The tenant's. `settles`: one that has no home yet gets one; otherwise it is looked for in the first, and not found.
    pub async fn of_tenant(&self, tenant: &str, settles: bool) -> Result<&Shared, StoreError> {
        let Some(directory) = &self.directory else { return Ok(self.any()) };
        match directory.home(tenant, settles).await? {
            None if !settles => Ok(self.any()),
            home => {
                home.and_then(|at| self.all.get(at)).ok_or_else(|| StoreError(format!("tenant {tenant} has no home")))
            }
        }
    }

    /// For who only reads: may they, and where?
    pub async fn visit(&self, headers: &HeaderMap, permission: Permission) -> Result<(Shared, Visitor), Refused> {
        let visitor = self.auth.admit(headers, permission)?;
        let app = self.of_tenant(&visitor.tenant, false).await?.clone();
        Ok((app, visitor))
    }

    pub fn close(&self) {
        self.any().closing.send_replace(true);
    }
}
