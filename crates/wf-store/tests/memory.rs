//! The store in memory against the contract, and its faults. Next: `src/conformance.rs`.

use std::sync::Arc;

use wf_core::RowId;
use wf_store::conformance::samples::{row, timer};
use wf_store::conformance::world::{PARTITION, World, ending};
use wf_store::memory::{Counts, Fault, MemoryStore};
use wf_store::{Store, conformance};

#[tokio::test]
async fn the_store_in_memory_keeps_the_contract() {
    conformance::run_all(|| async { Arc::new(MemoryStore::new()) as Arc<dyn Store> }).await;
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
