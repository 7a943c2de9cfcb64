//! Backups of a store that is being written, and what comes back from them. What the commands refuse: `e2e`. Next: `logs.rs`.

use wf_store_sqlite::{CopyError, OpenError, PAUSED_FILE, backup, restore};

use crate::*;

/// K8: whenever a backup is made, it holds whole turns without a gap, and all that was committed before it began.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k8_a_backup_under_load_holds_whole_turns() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    let first = fence(&store).await;
    let (done, committed) = tokio::sync::watch::channel(0);
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            let mut last = first;
            while !done.is_closed() {
                last = commit(&store, last, 1).await;
                done.send_replace(last.new_position);
            }
        }
    });
    for n in 0..5 {
        let at_least =
            committed.clone().wait_for(|position| *position > 20 * n).await.map(|position| *position).unwrap();
        let file = dir.path().join(format!("backup-{n}"));
        let data = dir.path().to_owned();
        let made = tokio::task::spawn_blocking(move || backup(&data, &file).unwrap()).await.unwrap();
        let restored = tempfile::tempdir().unwrap();
        let same = restore(&dir.path().join(format!("backup-{n}")), restored.path()).unwrap();
        assert_eq!(same, made);
        assert!(made.last_position as u64 >= at_least && restored.path().join(PAUSED_FILE).is_file());
        assert_eq!(fence(&open(restored.path())).await.new_position, made.last_position as u64);
        for table in ["command_log", "audit_log", "variable"] {
            let count = format!("SELECT count(*) FROM {table}");
            let rows: i64 = database(restored.path()).query_row(&count, [], |row| row.get(0)).unwrap();
            assert_eq!(rows, made.last_position, "{table}");
        }
    }
    drop(committed);
    writer.await.unwrap();
}

/// A server that starts by itself after a restore was killed must not begin with nothing.
#[tokio::test]
async fn k8_an_interrupted_restore_is_no_empty_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let first = fence(&store).await;
    commit(&store, first, 1).await;
    let file = dir.path().join("backup");
    backup(dir.path(), &file).unwrap();
    let killed = tempfile::tempdir().unwrap();
    std::fs::write(killed.path().join("wf.db.partial"), "half of it").unwrap();
    assert!(matches!(SqliteStore::open(options(killed.path())), Err(OpenError::HalfRestored { .. })));
    assert!(!killed.path().join("wf.db").exists());
    restore(&file, killed.path()).unwrap();
    drop(open(killed.path()));
}

/// A store of a newer program is not handed to this one, in either direction.
#[test]
fn k8_a_newer_store_is_neither_backed_up_nor_restored() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    database(dir.path()).pragma_update(None, "user_version", 99).unwrap();
    let file = dir.path().join("backup");
    let is_newer = |refused| matches!(refused, Err(CopyError::Newer { found: 99, known: 3, .. }));
    assert!(is_newer(backup(dir.path(), &file)) && !file.exists());
    assert!(is_newer(restore(&dir.path().join("wf.db"), &dir.path().join("other"))));
    assert!(!dir.path().join("other/wf.db").exists());
}
