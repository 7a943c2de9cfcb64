//! Every store gives the same answers: the suite over those that need no server, and what SQLite's file must survive.

#![allow(clippy::unwrap_used, reason = "a test that is surprised fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use wf_idempotency::store::conformance::{self, Bench};
use wf_idempotency::store::{Claim, Claimed, Clock, Durability, MemoryStore, Slot, SqliteStore, Store};
use wf_idempotency::{Fingerprint, Key, Policy};

/// Goes on when it is told to.
#[derive(Clone, Default)]
struct Hands(Arc<AtomicI64>);

impl Clock for Hands {
    fn now_ms(&self) -> i64 {
        1_000_000 + self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct InMemory(Hands);

impl Bench for InMemory {
    type Store = MemoryStore<Hands>;

    async fn store(&self) -> Self::Store {
        MemoryStore::with_clock(self.0.clone())
    }

    async fn advance(&self, _: &Self::Store, ms: i64) {
        self.0.0.fetch_add(ms, Ordering::Relaxed);
    }
}

struct InFiles {
    hands: Hands,
    folder: tempfile::TempDir,
    count: AtomicI64,
}

impl Bench for InFiles {
    type Store = SqliteStore<Hands>;

    async fn store(&self) -> Self::Store {
        let name = format!("{}.db", self.count.fetch_add(1, Ordering::Relaxed));
        SqliteStore::with_clock(&self.folder.path().join(name), Durability::Normal, self.hands.clone()).unwrap()
    }

    async fn advance(&self, _: &Self::Store, ms: i64) {
        self.hands.0.fetch_add(ms, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn p4_memory_does_what_a_store_must() {
    conformance::all(&InMemory::default()).await;
}

#[tokio::test]
async fn p4_sqlite_does_what_a_store_must() {
    let folder = tempfile::tempdir().unwrap();
    conformance::all(&InFiles { hands: Hands::default(), folder, count: AtomicI64::new(0) }).await;
}

fn claim(key: &str, n: u8) -> Claim {
    Claim {
        slot: Slot { tenant: "t".into(), key: Key::new(key).unwrap() },
        fingerprints: vec![(1, Fingerprint([1; 32]))],
        owner: [n; 16],
        lease_ms: 10_000,
        ttl_ms: 86_400_000,
        policy: Policy::default(),
    }
}

/// One file, one process; and what was claimed before a restart is claimed after it.
#[tokio::test]
async fn f1_sqlite_keeps_what_it_has_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.db");
    let store = SqliteStore::open(&path, Durability::Full).unwrap();
    assert_eq!(store.claim(claim("k", 1)).await, Ok(Claimed::Won { attempt: 1, resume: false }));
    assert!(SqliteStore::open(&path, Durability::Full).is_err(), "another one has it");
    drop(store);
    let store = SqliteStore::open(&path, Durability::Full).unwrap();
    assert!(matches!(store.claim(claim("k", 2)).await, Ok(Claimed::Busy { .. })));
}

/// One that cannot be answered does not take the others of its transaction with it.
#[tokio::test]
async fn a_claim_that_fails_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("records.db"), Durability::Full).unwrap();
    store.claim(claim("k", 1)).await.unwrap();
    let forgotten = Claim { fingerprints: vec![(7, Fingerprint([1; 32]))], ..claim("k", 2) };
    let others = (0..50).map(|n| store.claim(claim(&format!("k-{n}"), 3)));
    let (failed, won) = tokio::join!(store.claim(forgotten), futures_util::future::join_all(others));
    assert!(failed.unwrap_err().0.contains("secret 1"));
    assert!(won.iter().all(|won| *won == Ok(Claimed::Won { attempt: 1, resume: false })), "{won:?}");
}
