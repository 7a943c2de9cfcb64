//! The contract's suite over SQLite. Next: `durability.rs`.

use std::sync::Arc;

use wf_store::Store;
use wf_store::conformance::run_all;
use wf_store_sqlite::{Durability, Options, SqliteStore};

#[tokio::test]
async fn the_store_keeps_its_contract() {
    let dirs = tempfile::tempdir().unwrap();
    run_all(|| async {
        let dir = tempfile::tempdir_in(&dirs).unwrap().keep();
        let options = Options { dir, durability: Durability::Normal, pages_max: None };
        Arc::new(SqliteStore::open(options).unwrap()) as Arc<dyn Store>
    })
    .await;
}
