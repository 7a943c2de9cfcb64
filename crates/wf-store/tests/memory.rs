//! The store in memory against the contract, and its faults. Next: `src/conformance.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use wf_core::{Partitions, RowId};
use wf_store::conformance::Nodes;
use wf_store::conformance::samples::{row, timer};
use wf_store::conformance::world::{Failed, PARTITION, World, ending};
use wf_store::memory::{Counts, Fault, MemoryStore};
use wf_store::{Later, Store, conformance};

#[tokio::test]
async fn the_store_in_memory_keeps_the_contract() {
    let report = conformance::run_all(|| async { Arc::new(MemoryStore::new()) as Arc<dyn Store> }).await;
    assert_eq!(report.not_applicable.len(), conformance::partition_cases().len());
}

#[tokio::test]
async fn with_several_partitions_too() {
    for partitions in [3, 8] {
        let report = conformance::run_all(|| async {
            Arc::new(MemoryStore::with_partitions(Partitions::of(partitions))) as Arc<dyn Store>
        })
        .await;
        assert_eq!(report.not_applicable, ["inboxes::a_lone_partition_has_no_inbox"]);
    }
}

const LEASE_MS: i64 = 6_000;

/// Time that stands still until it is moved.
struct Shared {
    store: MemoryStore,
    now: Arc<AtomicI64>,
}

impl Nodes for Shared {
    fn node(&self, name: &str, address: &str) -> Later<'_, Result<Arc<dyn Store>, Failed>> {
        let node: Arc<dyn Store> = Arc::new(self.store.node(name, address));
        Box::pin(async move { Ok(node) })
    }

    fn lease_ms(&self) -> i64 {
        LEASE_MS
    }

    fn has_time(&self) -> bool {
        true
    }

    fn pass(&self, ms: i64) -> Later<'_, Result<(), Failed>> {
        self.now.fetch_add(ms, Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn nodes_share_a_store_in_memory() {
    let make = || async {
        let now = Arc::new(AtomicI64::new(1_000_000));
        let clock = now.clone();
        let store = MemoryStore::with_partitions(Partitions::of(3))
            .with_leases(LEASE_MS, move || clock.load(Ordering::Relaxed));
        Arc::new(Shared { store, now }) as Arc<dyn Nodes>
    };
    let report = conformance::run_nodes(make).await;
    assert!(report.not_applicable.is_empty(), "{:?}", report.not_applicable);
}

#[tokio::test]
async fn with_several_partitions_it_keeps_it_too() {
    conformance::run_all(|| async { Arc::new(MemoryStore::with_partitions(Partitions::of(3))) as Arc<dyn Store> })
        .await;
}

#[tokio::test]
async fn faults_come_in_order_and_say_what_they_did() {
    let store = Arc::new(MemoryStore::new());
    let table = [
        (Some(Fault::BeforeCommit), "unavailable", 0),
        (Some(Fault::Conflict), "conflict", 0),
        (Some(Fault::Rejected), "rejected", 0),
        (Some(Fault::Fenced), "fenced", 0),
        (Some(Fault::AfterCommit), "unknown", 1),
        (None, "committed", 2),
    ];
    for (fault, want, rows) in table {
        let mut world = World::open(store.clone()).await.expect("opened");
        if let Some(fault) = fault {
            store.fail_next(fault);
        }
        let result = world.put([row(timer(world.fence.new_position + 1, 5))]).await;
        assert_eq!((ending(&result), store.rows().len()), (want, rows), "{fault:?}");
        if fault == Some(Fault::Fenced) {
            let later = world.delete([RowId::Timer(1)]).await;
            assert_eq!(ending(&later), "fenced", "somebody else has it");
        }
    }
    assert_eq!(store.counts(), Counts { loads: 0, commits: 7, applied: 2 });
    assert_eq!(store.log().len(), 2);
    assert_eq!(store.open(PARTITION).await.expect("opened").fence.new_position, 2);
}
