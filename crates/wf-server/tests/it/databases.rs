//! Several databases behind one door: each tenant is whole in one, and what concerns no tenant is told of all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use wf_cluster::{Node, Options};
use wf_core::Partitions;
use wf_core::ids::partition_of;
use wf_engine::ClockMode;
use wf_server::{App, Auth, Database, Databases, IdempotencyConfig};
use wf_store::memory::MemoryStore;
use wf_store::{Directory, Later, StoreError};

use crate::support::*;

/// Settles tenants in turn.
#[derive(Default)]
struct Homes {
    known: Mutex<BTreeMap<String, usize>>,
    is_gone: AtomicBool,
}

impl Directory for Homes {
    fn home<'a>(&'a self, tenant: &'a str, settles: bool) -> Later<'a, Result<Option<usize>, StoreError>> {
        let mut known = self.known.lock().unwrap();
        let next = known.len() % 2;
        let found = known.get(tenant).copied();
        let home = found.or_else(|| settles.then(|| *known.entry(tenant.to_owned()).or_insert(next)));
        let is_lost = found.is_none() && self.is_gone.load(Ordering::Relaxed);
        Box::pin(async move { if is_lost { Err(StoreError("gone".to_owned())) } else { Ok(home) } })
    }
}

async fn database_of(numbers: Partitions) -> Database {
    let clock = ClockMode::Test { start: 1_800_000_000_000 };
    let options = Options::new(wf_engine::Options { clock, ..wf_engine::Options::default() });
    let node = Node::open(Arc::new(MemoryStore::with_partitions(numbers)), options).await.unwrap();
    database(node)
}

async fn two() -> (Service, Arc<Homes>) {
    let homes = Arc::new(Homes::default());
    let numbers = [Partitions::of(3), Partitions::run(4, 3).unwrap()];
    let databases = vec![database_of(numbers[0]).await, database_of(numbers[1]).await];
    let app = App {
        databases: Databases::shared(databases, homes.clone()),
        auth: Auth::default(),
        idempotency: IdempotencyConfig::default(),
        messages_dedup_ms: 86_400_000,
        metrics: None,
    };
    (Service::of(app), homes)
}

const START: &str = r#"{"processDefinitionId":"order"}"#;

async fn deploy(service: &Service, tenant: &str) {
    let reply = service.send("POST /api/v1/definitions", &[XML, ("wf-tenant", tenant)], WORK).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
}

async fn start(service: &Service, tenant: &str, key: &str) -> (u16, u64) {
    let headers = [JSON, ("wf-tenant", tenant), ("idempotency-key", key)];
    let reply = service.send("POST /api/v1/instances", &headers, START).await;
    let instance = reply.json()["key"].as_str().and_then(|key| key.parse().ok()).unwrap_or(0);
    (reply.status, instance)
}

/// L1.2: the same key of two tenants in two databases is two requests, and each is at home in its own.
#[tokio::test]
async fn l1_2_tenants_of_two_databases_share_nothing() {
    let (service, homes) = two().await;
    for tenant in ["ada", "bob"] {
        deploy(&service, tenant).await;
    }
    assert_eq!(*homes.known.lock().unwrap(), BTreeMap::from([("ada".to_owned(), 0), ("bob".to_owned(), 1)]));
    let (ada, bob) = (start(&service, "ada", "k").await, start(&service, "bob", "k").await);
    assert!((1..=3).contains(&partition_of(ada.1)) && (4..=6).contains(&partition_of(bob.1)), "{ada:?} {bob:?}");
    assert_eq!((start(&service, "ada", "k").await, start(&service, "bob", "k").await), (ada, bob), "replays");
    let seen = |tenant: &'static str, key: u64| {
        let (service, path) = (&service, format!("GET /api/v1/instances/{key}"));
        async move { service.send(&path, &[("wf-tenant", tenant)], "").await.status }
    };
    assert_eq!([seen("ada", ada.1).await, seen("bob", bob.1).await], [200, 200]);
    assert_eq!([seen("ada", bob.1).await, seen("bob", ada.1).await], [404, 404]);
}

#[tokio::test]
async fn who_only_looks_settles_nowhere() {
    let (service, homes) = two().await;
    let reply = service.send("GET /api/v1/instances", &[("wf-tenant", "nobody")], "").await;
    assert_eq!((reply.status, &reply.json()["items"]), (200, &serde_json::json!([])));
    assert!(homes.known.lock().unwrap().is_empty());
}

/// The order of the checks stands, also where a home cannot be found out.
#[tokio::test]
async fn a_lost_directory_is_told_after_what_is_wrong_with_the_request() {
    let (service, homes) = two().await;
    homes.is_gone.store(true, Ordering::Relaxed);
    let with = |name: &'static str, value: &'static str| {
        let service = &service;
        async move { service.send("POST /api/v1/instances", &[JSON, (name, value)], START).await.verdict() }
    };
    assert_eq!(with("idempotency-key", "\"").await, "400 idempotency-key-malformed");
    assert_eq!(with("wf-tenant", "no tenant").await, "400 validation: Wf-Tenant");
    assert_eq!(with("wf-tenant", "stranger").await, "503 unavailable");
}

#[tokio::test]
async fn a_lost_directory_stops_strangers_alone() {
    let (service, homes) = two().await;
    deploy(&service, "ada").await;
    homes.is_gone.store(true, Ordering::Relaxed);
    assert_eq!(start(&service, "ada", "k").await.0, 201);
    let headers = [JSON, ("wf-tenant", "stranger")];
    let reply = service.send("POST /api/v1/instances", &headers, START).await;
    assert_eq!((reply.status, text(&reply.json()["code"])), (503, "unavailable".to_owned()));
}

#[tokio::test]
async fn what_concerns_no_tenant_is_told_of_all_databases() {
    let (service, _) = two().await;
    let numbers = |value: &serde_json::Value| -> Vec<u64> {
        value.as_array().unwrap().iter().map(|one| one["partition"].as_u64().unwrap()).collect()
    };
    assert_eq!(numbers(&service.get("/readyz").await.json()["partitions"]), [1, 2, 3, 4, 5, 6]);
    let nodes = service.get("/api/v1/nodes").await.json();
    assert_eq!(numbers(&nodes["partitions"]), [1, 2, 3, 4, 5, 6]);
    assert_eq!(nodes["nodes"].as_array().unwrap().len(), 1, "a node of two databases is one node");
    assert_eq!(nodes["nodes"][0]["partitions"], serde_json::json!([1, 2, 3, 4, 5, 6]));
    for (partition, status) in [(3, 200), (4, 200), (7, 400), (0, 400)] {
        let reply = service.get(&format!("/api/v1/proofs/tables?partition={partition}")).await;
        assert_eq!(reply.status, status, "{partition}: {}", reply.body);
    }
}
