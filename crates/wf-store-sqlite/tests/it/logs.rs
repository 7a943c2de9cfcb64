//! L6.1: the logs are append-only whoever writes, and readable with nothing but a shell.
//! The last of these files.

use rusqlite::Connection;

use crate::*;

fn refusal(database: &Connection, sql: &str) -> String {
    match database.execute(sql, []) {
        Ok(changed) => format!("changed {changed}"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn l6_1_foreign_hands_cannot_change_the_logs() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let fence = fence(&store).await;
    commit(&store, fence, 3).await;
    let database = database(dir.path());
    let content = |table: &str| -> Vec<String> {
        let text = if table == "command_log" { "payload" } else { "actor" };
        let mut rows = database.prepare(&format!("SELECT position || tenant || {text} FROM {table}")).unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    for recursive in ["OFF", "ON"] {
        database.pragma_update(None, "recursive_triggers", recursive).unwrap();
        for table in ["command_log", "audit_log"] {
            let before = content(table);
            let told = format!("{table} is append-only");
            assert_eq!(refusal(&database, &format!("UPDATE {table} SET tenant = 'evil'")), told);
            assert_eq!(
                refusal(&database, &format!("UPDATE OR REPLACE {table} SET position = 2 WHERE position = 1")),
                told
            );
            assert_eq!(refusal(&database, &format!("DELETE FROM {table}")), told);
            // Inserting what stands changes nothing, whatever the conflict clause (L6.2).
            for verb in ["INSERT OR REPLACE", "INSERT OR IGNORE", "REPLACE", "INSERT"] {
                let again = format!("{verb} INTO {table} SELECT * FROM {table} WHERE position = 2");
                assert_eq!(refusal(&database, &again), "changed 0", "{again}");
            }
            assert_eq!(content(table), before);
        }
        // The same command id at another position would replace through the unique index.
        let stolen = "INSERT OR REPLACE INTO command_log SELECT position + 10, partition, id, time, 'evil', verb, digest, payload FROM command_log";
        assert_eq!(refusal(&database, stolen), "changed 0");
        let evil = "INSERT OR REPLACE INTO audit_log SELECT position, partition, time, 'evil', actor, count, chain, events FROM audit_log";
        assert_eq!(refusal(&database, evil), "changed 0");
    }
    // Archiving is an explicit act.
    database.execute("INSERT INTO meta VALUES ('archive_before', 3)", []).unwrap();
    assert_eq!(refusal(&database, "DELETE FROM command_log WHERE position < 3"), "changed 2");
    assert_eq!(refusal(&database, "DELETE FROM command_log"), "command_log is append-only");
    // It takes nothing out of the audit.
    assert_eq!(refusal(&database, "DELETE FROM audit_log WHERE position < 3"), "audit_log is append-only");
}

/// A kill between two slices leaves rows that stand in the archive already: the log begins behind them, and the next
/// archiving takes them away.
#[tokio::test]
async fn l2_3_an_interrupted_archiving_leaves_no_gap() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut fence = fence(&store).await;
    for _ in 0..5 {
        fence = commit(&store, fence, 1).await;
    }
    assert_eq!((store.archive_begun().await.unwrap(), store.archive_rest(10).await.unwrap()), (None, 0));
    assert_eq!(store.archive_log(4, 1).await.unwrap(), 1);
    drop(store);
    let store = open(dir.path());
    let mut ledger = store.ledger(PARTITION).await.unwrap();
    let mut begins = || (ledger.log(0, 1).unwrap()[0].position, ledger.count_log(0).unwrap());
    assert_eq!(begins(), (4, 2));
    assert_eq!(store.archive_begun().await.unwrap(), Some(4));
    assert_eq!((store.archive_rest(10).await.unwrap(), store.archive_begun().await.unwrap()), (2, None));
    assert_eq!((begins(), store.archive_rest(10).await.unwrap()), ((4, 2), 0));
}

#[tokio::test]
async fn the_views_show_text() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let fence = fence(&store).await;
    commit(&store, fence, 1).await;
    let database = database(dir.path());
    let mut rows = database.prepare("SELECT event_id || ' ' || type || ' ' || time FROM audit_events").unwrap();
    let events: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let time = "2026-09-21T14:13:20.000Z";
    assert_eq!(events, [format!("ev-1-1 clock.set {time}"), format!("ev-1-1-2 epoch.opened {time}")]);
    let commands: String = database
        .query_row("SELECT event_id || ' ' || verb || ' ' || length(command_id) FROM commands", [], |row| row.get(0))
        .unwrap();
    assert_eq!(commands, "ev-1-1 set-clock 32");
    for view in ["instances", "outbox_messages"] {
        database.query_row(&format!("SELECT count(*) FROM {view}"), [], |row| row.get::<_, i64>(0)).unwrap();
    }
}
