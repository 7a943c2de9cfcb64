//! The store from outside: the contract's suite, several nodes on one database, and what becomes of turns whose connection
//! fails. It knows no engine. Next: `conformance.rs`, `shipping.rs`, `long_lists.rs`, `nodes.rs`, `turns.rs`, `faults.rs`,
//! `connections.rs`, `schema.rs`, `directory.rs`.

#![expect(clippy::unwrap_used, reason = "tests")]

mod archive;
mod conformance;
mod connections;
mod directory;
mod faults;
mod long_lists;
mod nodes;
mod schema;
mod shipping;
mod turns;

use std::sync::Arc;

use wf_core::rows::{MessageId, Stored, Unique, Variable};
use wf_core::{Row, ids};
use wf_store::*;
use wf_store_postgres::{Options, PostgresStore};

const NOW: i64 = 1_790_000_000_000;

async fn node(url: &str, name: &str) -> PostgresStore {
    let node = Options { node: name.to_owned(), address: format!("http://{name}"), ..Options::at(url) };
    PostgresStore::connect(node).await.unwrap()
}

async fn store(url: &str) -> PostgresStore {
    node(url, "n-1").await
}

async fn fence(store: &PostgresStore, partition: u16) -> Fence {
    store.open(partition).await.unwrap().fence
}

/// A turn of one command at the position after `fence` that writes a variable and an audit entry.
fn turn(fence: Fence) -> Batch {
    let position = fence.new_position + 1;
    let variable = Variable { scope: position, name: "n".into(), value: position.to_string().into() };
    Batch {
        fence: Fence { old_position: fence.new_position, new_position: position, ..fence },
        head: Head { last_time: NOW, next_counter: position, ..Head::default() },
        log: vec![LogEntry {
            position,
            id: ids::command_id(NOW, &[&fence.partition.to_le_bytes(), &position.to_le_bytes()]),
            time: NOW,
            tenant: "acme".into(),
            verb: "set-clock",
            payload: "{}".to_owned(),
            digest: 1,
        }],
        rows: vec![inserted(variable)],
        audit: vec![AuditEntry {
            position,
            time: NOW,
            tenant: "acme".into(),
            actor: "engine".into(),
            events: r#"[{"type":"clock.set","resource":"7","payload":{}}]"#.to_owned(),
            count: 1,
            chain: [3; 32],
        }],
        ..Batch::default()
    }
}

fn inserted<T: Stored>(row: T) -> Change {
    change(row, false)
}

fn change<T: Stored>(row: T, existed: bool) -> Change {
    let row: Row = T::wrap(Arc::new(row));
    Change { id: row.id(), existed, new: Some(row) }
}

fn message_id(key: u64, expires_at: i64) -> MessageId {
    MessageId {
        tenant: "acme".into(),
        name: "paid".into(),
        message_id: "m-1".into(),
        key,
        content: [5; 16],
        expires_at,
    }
}

fn unique(root: u64) -> Unique {
    Unique { tenant: "acme".into(), process_id: "order".into(), variable: "id".into(), value: [7; 16], root }
}

/// Returns when so many sessions of the database wait for a lock.
async fn waiting(database: &servers::Database, sessions: i64) {
    let client = servers::connect(database.url()).await;
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) < sessions {
        tokio::task::yield_now().await;
    }
}
