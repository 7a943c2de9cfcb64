//! What stands after a kill, on a full disk and beside failing neighbours; and the log that is emptied when idle.
//! Next: `logs.rs`.

use std::process::{Command, Stdio};

use wf_store::{CommitError, Store};
use wf_store_sqlite::SqliteStore;

use crate::*;

const CHILD_DIR: &str = "WF_TEST_CHILD_DIR";

/// Not a test of its own: what the killed process does.
#[tokio::test]
async fn child_commits_until_it_is_killed() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    let store = open(Path::new(&dir));
    let fence = fence(&store).await;
    commit(&store, fence, 10).await;
    panic!("the failpoint was not hit");
}

/// L1.6: a commit is there whole or not at all, on both sides of COMMIT. Hit 1 is the opening, hit 4 the third turn.
#[tokio::test]
async fn a_killed_process_leaves_whole_turns() {
    for (failpoint, turns) in [("before-commit:4", 2), ("after-commit:4", 3), ("before-commit", 0)] {
        let dir = tempfile::tempdir().unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "durability::child_commits_until_it_is_killed"])
            .env(CHILD_DIR, dir.path())
            .env("WF_FAILPOINT", failpoint)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), None, "{failpoint}: the child was not killed");
        let store = open(dir.path());
        assert_eq!(fence(&store).await.new_position, turns, "{failpoint}");
        let database = database(dir.path());
        for table in ["command_log", "audit_log", "variable"] {
            let count = format!("SELECT count(*) FROM {table}");
            let rows: i64 = database.query_row(&count, [], |row| row.get(0)).unwrap();
            assert_eq!(rows, turns as i64, "{failpoint}: {table}");
        }
    }
}

#[tokio::test]
async fn a_full_disk_refuses_turns_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(Options { pages_max: Some(200), ..options(dir.path()) }).unwrap();
    let mut last = fence(&store).await;
    let refused = loop {
        let batch = turn(last, 40_000);
        let fence = batch.fence;
        match store.commit(Arc::new(batch)).await {
            Ok(()) => last = fence,
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, CommitError::Unavailable(_)), "{refused}");
    // The turn before it stands, and a turn that needs no room goes on from there.
    let small = Batch { head: Head { last_time: 7, ..Head::default() }, ..turn(last, 0) };
    let small = Batch { fence: last, log: vec![], rows: vec![], audit: vec![], ..small };
    let small = Batch { fence: Fence { old_position: last.new_position, ..last }, ..small };
    store.commit(Arc::new(small)).await.unwrap();
    let opened = store.open(PARTITION).await.unwrap();
    assert_eq!((opened.fence.new_position, opened.head.last_time), (last.new_position, 7));
}

/// Jobs that wait together share a transaction; one that fails takes none of the others with it.
#[tokio::test]
async fn a_failing_neighbour_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let fence = fence(&store).await;
    let deposed = Fence { epoch: fence.epoch + 5, ..fence };
    for round in 0..20u8 {
        let stale = store.commit(Arc::new(turn(deposed, 16)));
        let secrets = [store.secret("a", [round; 32]), store.secret("b", [round; 32])];
        let again = store.commit(Arc::new(turn(deposed, 16)));
        assert!(matches!(stale.await, Err(CommitError::Fenced)));
        for secret in secrets {
            assert_eq!(secret.await.unwrap(), [0; 32]);
        }
        assert!(matches!(again.await, Err(CommitError::Fenced)));
    }
    commit(&store, fence, 1).await;
}

#[tokio::test]
async fn an_idle_store_has_no_log() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let fence = fence(&store).await;
    commit(&store, fence, 5).await;
    let log = || std::fs::metadata(dir.path().join("wf.db-wal")).unwrap().len();
    assert!(log() > 0);
    store.idle().await.unwrap();
    assert_eq!(log(), 0);
}

/// `wf.db` alone is the whole store then, for whoever copies a stopped one.
#[tokio::test]
async fn a_closed_store_is_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let fence = fence(&store).await;
    commit(&store, fence, 5).await;
    drop(store);
    assert!(!dir.path().join("wf.db-wal").exists());
    let rows: i64 = database(dir.path()).query_row("SELECT count(*) FROM command_log", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 5);
}

/// Turns go on while somebody holds a snapshot; when it is gone the log begins anew, cut to what is kept of it.
#[tokio::test]
async fn a_stuck_reader_stops_no_turn() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(Options { durability: Durability::Normal, ..options(dir.path()) }).unwrap();
    let mut last = fence(&store).await;
    let reader = database(dir.path());
    reader.execute_batch("BEGIN; SELECT count(*) FROM variable;").unwrap();
    let log_bytes = || std::fs::metadata(dir.path().join("wf.db-wal")).unwrap().len();
    for _ in 0..80 {
        last = commit_one(&store, last, 1_000_000).await;
    }
    assert!(log_bytes() > 80_000_000);
    reader.execute_batch("COMMIT").unwrap();
    let mut turns = 0;
    while log_bytes() > 70_000_000 {
        last = commit_one(&store, last, 100_000).await;
        turns += 1;
        assert!(turns < 2_000, "the log is {} bytes long", log_bytes());
    }
}

async fn commit_one(store: &SqliteStore, fence: Fence, bytes: usize) -> Fence {
    let batch = turn(fence, bytes);
    let fence = batch.fence;
    store.commit(Arc::new(batch)).await.unwrap();
    fence
}
