//! The store from outside: the contract's suite, what it does to files and processes, and foreign hands on the database.
//! It knows no engine. Next: `conformance.rs`, `opening.rs`, `durability.rs`, `backup.rs`, `logs.rs`.

#![expect(clippy::unwrap_used, reason = "tests")]

mod backup;
mod conformance;
mod durability;
mod logs;
mod opening;

use std::path::Path;
use std::sync::Arc;

use wf_core::ids;
use wf_core::rows::{Stored, Variable};
use wf_store::*;
use wf_store_sqlite::{Durability, Options, SqliteStore};

const PARTITION: u16 = 1;

fn options(dir: &Path) -> Options {
    Options { dir: dir.to_owned(), durability: Durability::Full, pages_max: None }
}

fn open(dir: &Path) -> SqliteStore {
    SqliteStore::open(options(dir)).unwrap()
}

/// A turn of one command that writes a variable of `bytes` bytes and an audit entry, at the position after `fence`.
fn turn(fence: Fence, bytes: usize) -> Batch {
    let position = fence.new_position + 1;
    let variable =
        Variable { scope: position, name: "filler".into(), value: format!("\"{}\"", "0".repeat(bytes)).into() };
    Batch {
        fence: Fence { old_position: fence.new_position, new_position: position, ..fence },
        head: Head { last_time: 1_790_000_000_000, next_counter: position, ..Head::default() },
        log: vec![LogEntry {
            position,
            id: ids::hash16(&[&position.to_le_bytes()]),
            time: 1_790_000_000_000,
            tenant: "acme".into(),
            verb: "set-clock",
            payload: "{}".to_owned(),
            digest: 1,
        }],
        rows: vec![Change { id: variable.id(), existed: false, new: Some(Variable::wrap(Arc::new(variable))) }],
        audit: vec![AuditEntry {
            position,
            time: 1_790_000_000_000,
            tenant: "acme".into(),
            actor: "engine".into(),
            events: r#"[{"type":"clock.set","resource":"7","payload":{}},{"type":"epoch.opened","resource":"8","payload":{}}]"#
                .to_owned(),
            count: 2,
            chain: [3; 32],
        }],
        ..Batch::default()
    }
}

async fn fence(store: &SqliteStore) -> Fence {
    store.open(PARTITION).await.unwrap().fence
}

/// Commits turns and gives the fence behind them.
async fn commit(store: &SqliteStore, mut fence: Fence, turns: usize) -> Fence {
    for _ in 0..turns {
        let batch = turn(fence, 16);
        fence = batch.fence;
        store.commit(Arc::new(batch)).await.unwrap();
    }
    fence
}

fn database(dir: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(dir.join("wf.db")).unwrap()
}
