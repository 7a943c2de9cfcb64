//! Three partitions of one store in memory, an engine each, in one process: as a node has them, or three nodes.
//! Next: `stage.rs`.

use std::sync::Arc;

use wf_core::{Key, Partitions, ids};
use wf_engine::*;
use wf_store::memory::MemoryStore;
use wf_store::{Batch, Sent, Store};

use super::whole::{Left, check_of};
use super::{Stage, World, deploy, options, start_with};

pub const PARTITIONS: u16 = 3;

pub struct Worlds {
    pub store: Arc<MemoryStore>,
    all: Vec<World>,
    options: Options,
}

impl Worlds {
    /// With the model deployed for tenant `acme`, and known everywhere.
    pub async fn new() -> Worlds {
        Worlds::with(system_options()).await
    }

    pub async fn with(options: Options) -> Worlds {
        let store = Arc::new(MemoryStore::with_partitions(Partitions::of(PARTITIONS)));
        let mut all = Vec::new();
        for partition in 1..=PARTITIONS {
            all.push(World::open(Stage::over(store.clone()), Options { partition, ..options.clone() }).await);
        }
        let worlds = Worlds { store, all, options };
        worlds.at(1).ok(deploy()).await;
        worlds
    }

    /// As engines of three nodes.
    pub async fn apart() -> Worlds {
        Worlds::each(system_options()).await
    }

    /// The same, and no answer waits for another partition.
    pub async fn hasty() -> Worlds {
        Worlds::each(Options { delivered_wait_ms: 0, ..system_options() }).await
    }

    async fn each(options: Options) -> Worlds {
        let store = Arc::new(MemoryStore::with_partitions(Partitions::of(PARTITIONS)));
        let mut all = Vec::new();
        for partition in 1..=PARTITIONS {
            let options = Options { partition, hub: Hub::default(), ..options.clone() };
            all.push(World::open(Stage::over(store.clone()), options).await);
        }
        let worlds = Worlds { store, all, options };
        worlds.at(1).ok(deploy()).await;
        worlds
    }

    pub fn at(&self, partition: u16) -> &World {
        &self.all[usize::from(partition) - 1]
    }

    /// Stopped, and opened again over the same store.
    pub async fn restart(&mut self, partition: u16) {
        self.at(partition).engine.shutdown().await;
        let options = Options { partition, ..self.options.clone() };
        self.all[usize::from(partition) - 1] = World::open(Stage::over(self.store.clone()), options).await;
    }

    /// An instance that waits for `paid` under this id.
    pub async fn wait_for_paid(&self, partition: u16, id: &str) -> Key {
        super::key_in(&self.at(partition).ok(paid(id)).await)
    }

    /// The partition that publishes it.
    pub async fn publish(&self, id: &str, message_id: Option<&str>, ttl_ms: i64) -> String {
        self.at(home(id)).ok(super::publish("paid", id, message_id, ttl_ms)).await
    }

    /// An id whose message is received in this partition.
    pub fn id_at(&self, partition: u16) -> String {
        (0..).map(|number: u32| number.to_string()).find(|id| home(id) == partition).unwrap()
    }

    /// Puts a row into an inbox as if a partition, which must not be at work, had sent it.
    pub async fn plant(&self, source: u16, sent: Sent) {
        self.at(source).engine.shutdown().await;
        let opened = self.store.open(source).await.unwrap();
        let batch = Batch { fence: opened.fence, head: opened.head, sent: vec![sent], ..Batch::default() };
        self.store.commit(Arc::new(batch)).await.unwrap();
    }

    /// Until nothing is on its way: every inbox is empty and stays so.
    pub async fn until_quiet(&self) {
        while !self.store.inboxes().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    /// Stops the engines and holds what they left against the promises that every run must keep.
    pub async fn end(self) -> Vec<Left> {
        for world in &self.all {
            world.engine.shutdown().await;
        }
        let mut left = Vec::new();
        for partition in 1..=PARTITIONS {
            left.push(check_of(&self.store, partition).await);
        }
        left
    }
}

/// Time goes by itself: a test clock belongs to one engine.
pub fn system_options() -> Options {
    Options { clock: ClockMode::System, ..options() }
}

pub fn home(id: &str) -> u16 {
    ids::home_of_message("acme", "paid", id, Partitions::of(PARTITIONS))
}

/// Starts an instance that waits for `paid` under this id.
pub fn paid(id: &str) -> Request {
    start_with("paid", vec![("id".into(), format!("\"{id}\"").into())])
}
