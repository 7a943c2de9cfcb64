//! Opening: what a second process, a newer store and an unusable directory are told. Next: `durability.rs`.

use wf_store::{Claim, OutboxEntry, OutboxId, Store};
use wf_store_sqlite::{OpenError, SqliteStore};

use crate::*;

fn refusal(dir: &Path) -> String {
    match SqliteStore::open(options(dir)) {
        Ok(_) => "opened".to_owned(),
        Err(error) => error.to_string().replace(&dir.display().to_string(), "DIR"),
    }
}

#[test]
fn a_directory_belongs_to_one_store_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let pid = std::process::id();
    let told = format!("use the data directory DIR: another process holds it (process {pid})");
    assert_eq!(refusal(dir.path()), told);
    drop(store);
    assert_eq!(refusal(dir.path()), "opened");
}

#[test]
fn a_newer_store_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    database(dir.path()).pragma_update(None, "user_version", 99).unwrap();
    let told = "open the store in DIR: a newer version of this program made it (schema 99, this one knows 3)";
    assert_eq!(refusal(dir.path()), told);
    assert!(matches!(SqliteStore::open(options(dir.path())), Err(OpenError::Newer { found: 99, known: 3, .. })));
}

#[test]
fn an_unusable_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(refusal(&file).starts_with("create the data directory DIR: "), "{}", refusal(&file));
    std::fs::create_dir(dir.path().join("wf.lock")).unwrap();
    assert!(refusal(dir.path()).starts_with("write to the data directory DIR: "), "{}", refusal(dir.path()));
}

#[tokio::test]
async fn what_was_committed_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let first = fence(&store).await;
    commit(&store, first, 3).await;
    assert_eq!(store.secret("mac", [1; 32]).await.unwrap(), [1; 32]);
    drop(store);
    let store = open(dir.path());
    let opened = store.open(PARTITION).await.unwrap();
    assert_eq!((opened.fence.epoch, opened.fence.new_position, opened.head.next_counter), (first.epoch + 1, 3, 3));
    assert_eq!(store.secret("mac", [2; 32]).await.unwrap(), [1; 32]);
    let other = store.open(PARTITION + 1).await.unwrap_err();
    assert_eq!(other.to_string(), "store: this store belongs to another partition: it has one");
}

/// S9: the process that held a claim is gone, as the lock says. What it had shipped and not marked is shipped again at
/// once, not after the claim's time; a claim of a living shipper is left alone.
#[tokio::test]
async fn s9_claims_end_with_their_process() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut batch = turn(fence(&store).await, 10);
    batch.outbox.push(message(batch.fence.new_position));
    store.commit(Arc::new(batch)).await.unwrap();
    assert_eq!(store.claim_outbox(claim([1; 16])).await.unwrap().len(), 1);
    assert_eq!(store.claim_outbox(claim([2; 16])).await.unwrap().len(), 0);
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.claim_outbox(claim([2; 16])).await.unwrap().len(), 1);
}

fn claim(owner: [u8; 16]) -> Claim {
    Claim { sink: "bus".into(), owner, now: 0, lease_ms: 30_000, limit: 10, dead_pass: false }
}

fn message(position: u64) -> OutboxEntry {
    OutboxEntry {
        id: OutboxId { partition: 1, position, n: 1, sink: "bus".into() },
        tenant: "acme".into(),
        order_key: 1,
        topic: "wf.instance.started".into(),
        event_id: "ev-1-1".into(),
        envelope: "{}".into(),
        created_at: 0,
    }
}

/// What only reads does not bring a store up to date: a start of the server does.
#[test]
fn an_older_store_is_brought_up_to_date_by_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let first = database(dir.path());
    first.execute_batch(include_str!("../../migrations/main/0001_initial.sql")).unwrap();
    first.pragma_update(None, "user_version", 1).unwrap();
    drop(first);
    let older = wf_store_sqlite::read_only(dir.path()).map(drop);
    assert!(matches!(older, Err(OpenError::Older { found: 1, known: 3, .. })));
    drop(open(dir.path()));
    assert!(wf_store_sqlite::read_only(dir.path()).is_ok());
}

#[cfg(unix)]
#[test]
fn a_new_store_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for name in ["wf.db", "wf.db-wal"] {
        let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    drop(store);
}
