//! Somebody makes a backup; history goes on; the disk burns; the backup is what is left, and everybody sends again what they
//! had sent (S5). Next: `run.rs`.

use std::sync::Arc;

use wf_core::{Key, ids};
use wf_store::Store;

use crate::checks::history::History;
use crate::world::{PARTITION, World};

/// What was, and what of it was kept.
pub struct Lost {
    pub all: History,
    pub kept: History,
    /// The first key that the backup had not given.
    pub key: Key,
}

/// The slowest commit has arrived by then, or never does.
const ON_ITS_WAY_MS: u64 = 7_000;
/// The clock of the machine that takes over is not behind that of the one that is gone.
const CLOCK_AHEAD_MS: i64 = 5;

pub async fn burn(world: Arc<World>) {
    world.sleep(world.between(3_000, world.plan.storm_ms / 2)).await;
    let backup = world.store().backup();
    let kept = History::of(&backup).await;
    world.say("operator", format_args!("makes a backup at {}", kept.position()));
    world.sleep(world.between(1_000, world.plan.storm_ms / 3)).await;
    world.count("restore");
    world.burn();
    world.nodes.iter().for_each(|node| node.strike());
    world.sleep(ON_ITS_WAY_MS).await;
    let all = History::of(&world.store()).await;
    world.say("operator", format_args!("the disk burns at {}", all.position()));
    world.settle_clocks(CLOCK_AHEAD_MS);
    let head = backup.backup().open(PARTITION).await.map(|opened| opened.head).unwrap_or_default();
    world.restore(backup, Lost { all, kept, key: ids::key(PARTITION, head.next_counter) });
}
