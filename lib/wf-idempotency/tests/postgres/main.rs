//! The promises that are kept inside a PostgreSQL transaction, against a real server: races are two transactions that
//! stand open at once, a crash is a connection that goes before its commit.

#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

mod names;
mod once;
mod queue;
mod seen;
mod transition;

use servers::Database;
use tokio_postgres::{Client, Transaction};

/// Returns when so many sessions of this database wait for a lock. Says so by the server's own books, not by time.
async fn waiting_for_a_lock(database: &Database, count: i64) {
    let client = servers::connect(database.url()).await;
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let all_wait = async {
        while client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) < count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), all_wait).await.expect("nobody waits for a lock");
}

/// The transaction's connection is gone, without a word from its client.
async fn crash(database: &Database, transaction: &Transaction<'_>) {
    let pid: i32 = transaction.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    database.execute(&format!("SELECT pg_terminate_backend({pid})"));
}

async fn begin(client: &mut Client) -> Transaction<'_> {
    client.transaction().await.unwrap()
}

async fn text(client: &Client, sql: &str) -> String {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}
