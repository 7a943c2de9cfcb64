//! The stores of a node: a folder, a database, or several databases and where the tenants live. Only this and the commands
//! that work on a store without a server name a concrete one. Next: `node.rs`.

use std::sync::Arc;
use std::time::Duration;

use wf_ship::config::Secret;
use wf_store::{Directory, Store};
use wf_store_postgres::Options;
use wf_store_sqlite::SqliteStore;

use crate::config::{Config, StoreChoice};
use crate::output::Failure;

pub struct Stores {
    /// At least one.
    pub all: Vec<Arc<dyn Store>>,
    /// Where there are several.
    pub directory: Option<Arc<dyn Directory>>,
}

impl Stores {
    /// `address`: where other nodes reach this one, unless it is configured.
    pub async fn open(config: &Config, address: &str) -> Result<Stores, Failure> {
        match &config.store {
            StoreChoice::Sqlite => Ok(Stores { all: vec![open_sqlite(config).await?], directory: None }),
            StoreChoice::Postgres(urls) => open_postgres(config, urls, address).await,
        }
    }

    pub fn partitions(&self) -> u16 {
        self.all.iter().map(|store| store.partitions().count()).sum()
    }
}

async fn open_sqlite(config: &Config) -> Result<Arc<dyn Store>, Failure> {
    let options = wf_store_sqlite::Options {
        dir: config.data.clone(),
        durability: config.durability,
        pages_max: config.pages_max,
    };
    let opening = tokio::task::spawn_blocking(move || SqliteStore::open(options));
    let store = opening.await.map_err(Failure::work)?.map_err(|error| Failure::work(format!("failed to {error}")))?;
    Ok(Arc::new(store))
}

async fn open_postgres(config: &Config, urls: &[Secret], address: &str) -> Result<Stores, Failure> {
    let options = urls.iter().map(|url| postgres_options(config, url, address)).collect();
    let (stores, directory) = wf_store_postgres::connect_all(options).await.map_err(Failure::work)?;
    let all = stores.into_iter().map(|store| Arc::new(store) as Arc<dyn Store>).collect();
    Ok(Stores { all, directory: directory.map(|directory| Arc::new(directory) as Arc<dyn Directory>) })
}

fn postgres_options(config: &Config, url: &Secret, address: &str) -> Options {
    Options {
        node: config.node.name.clone(),
        address: config.node.advertise.clone().unwrap_or_else(|| address.to_owned()),
        partitions: config.partitions,
        writers: config.writers,
        lease: Duration::from_millis(config.node.lease_ms),
        ..Options::at(url.0.as_str())
    }
}
