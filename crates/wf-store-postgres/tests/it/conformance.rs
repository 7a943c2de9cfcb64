//! The contract's suite over PostgreSQL, each case in a schema of its own. Next: `shipping.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use servers::{Cluster, PgBouncer};
use wf_store::conformance::world::Failed;
use wf_store::conformance::{Nodes, Report, partition_cases, run_all, run_nodes};
use wf_store::{Later, Store};
use wf_store_postgres::{Options, PostgresStore};

/// Has no regard for the disk: the suite makes hundreds of tables per case, and nothing in it outlives a power cut.
struct Server {
    cluster: Cluster,
    cases: AtomicUsize,
}

impl Server {
    fn start() -> Server {
        let cluster = servers::Options::default().set("fsync", "off").set("full_page_writes", "off").start();
        Server { cluster, cases: AtomicUsize::new(0) }
    }

    fn another_schema(&self) -> String {
        format!("case_{}", self.cases.fetch_add(1, Ordering::Relaxed))
    }

    /// The whole suite over stores of so many partitions, reached over this URL.
    async fn run(&self, url: &str, partitions: u16) -> Report {
        run_all(|| async {
            let options = Options { partitions, ..Options::at(format!("{url}schema={}", self.another_schema())) };
            Arc::new(PostgresStore::connect(options).await.unwrap()) as Arc<dyn Store>
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_its_contract() {
    let server = Server::start();
    let report = server.run(&(server.cluster.url("postgres") + "?"), 8).await;
    assert_eq!(report.not_applicable, ["inboxes::a_lone_partition_has_no_inbox"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_one_partition_too() {
    let server = Server::start();
    let report = server.run(&(server.cluster.url("postgres") + "?"), 1).await;
    let concern_several: Vec<&str> = partition_cases().into_iter().map(|(name, _)| name).collect();
    assert_eq!(report.not_applicable, concern_several);
}

/// Nothing stays prepared, and no session keeps a setting.
#[tokio::test(flavor = "multi_thread")]
async fn behind_pgbouncer_too() {
    let server = Server::start();
    let bouncer = PgBouncer::start(&server.cluster);
    let report = server.run(&(bouncer.url("postgres") + "?pgbouncer=true&"), 3).await;
    assert_eq!(report.not_applicable, ["inboxes::a_lone_partition_has_no_inbox"]);
}

/// Far longer than a case takes.
const LEASE: Duration = Duration::from_secs(60);

/// What the nodes of one case share.
struct Shared {
    url: String,
    schema: String,
}

impl Nodes for Shared {
    fn node(&self, name: &str, address: &str) -> Later<'_, Result<Arc<dyn Store>, Failed>> {
        let (node, address) = (name.to_owned(), address.to_owned());
        let url = format!("{}?schema={}", self.url, self.schema);
        let options = Options { node, address, partitions: 3, lease: LEASE, ..Options::at(url) };
        Box::pin(async move {
            let store = PostgresStore::connect(options).await.map_err(|error| Failed(error.to_string()))?;
            Ok(Arc::new(store) as Arc<dyn Store>)
        })
    }

    fn lease_ms(&self) -> i64 {
        LEASE.as_millis() as i64
    }

    fn has_time(&self) -> bool {
        true
    }

    /// The database's clock is nobody's to set; what it is held against is.
    fn pass(&self, ms: i64) -> Later<'_, Result<(), Failed>> {
        servers::execute(&self.url, &format!("UPDATE {}.node SET lease_until = lease_until - {ms}", self.schema));
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_share_the_store() {
    let server = Server::start();
    let url = server.cluster.url("postgres");
    let report = run_nodes(|| async {
        Arc::new(Shared { url: url.clone(), schema: server.another_schema() }) as Arc<dyn Nodes>
    })
    .await;
    assert!(report.not_applicable.is_empty(), "{:?}", report.not_applicable);
}
