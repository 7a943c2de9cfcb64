//! What a seed draws before anything happens: how big its world is, which troubles it has, how tight its limits are.
//! Small on purpose: two thousand worlds must fit into a minute. Next: `world.rs`.

use crate::rng::Rng;

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    /// Trouble lasts so long; then everything must come to rest.
    pub storm_ms: u64,
    pub orders: u64,
    pub workers: u64,
    /// Two nodes that both believe they own the partition.
    pub has_duel: bool,
    /// A backup is taken, history goes on, and then the backup is what is left (S5).
    pub has_restore: bool,
    pub has_jumps: bool,
    /// One instance takes more steps than a command may.
    pub has_loop: bool,
    /// Of a thousand calls to the store, so many fail in some way.
    pub store_faults: u64,
    /// Mean time between two ends of a node.
    pub crash_ms: u64,
    /// A call to the store takes up to twice as long.
    pub latency_ms: u64,
    pub has_tight_cache: bool,
    /// Entries that one load of a range brings.
    pub page_max: usize,
    pub turn_max: usize,
    pub ttl_ms: i64,
    pub finished_ms: i64,
    pub attempts_max: u32,
    pub lease_ms: i64,
}

impl Plan {
    pub fn of(seed: u64, rng: &mut Rng) -> Plan {
        let has_tight_cache = rng.chance(400);
        Plan {
            seed,
            storm_ms: rng.between(15_000, 45_000),
            orders: rng.between(8, 30),
            workers: rng.between(3, 7),
            has_duel: rng.chance(250),
            has_restore: rng.chance(220),
            has_jumps: rng.chance(350),
            has_loop: rng.chance(120),
            store_faults: [0, 15, 40, 90][rng.below(4) as usize],
            crash_ms: [4_000, 9_000, 20_000, 200_000][rng.below(4) as usize],
            latency_ms: [1, 4, 12, 40][rng.below(4) as usize],
            has_tight_cache,
            page_max: if has_tight_cache { rng.between(1, 4) as usize } else { usize::MAX },
            turn_max: [2, 8, 512][rng.below(3) as usize],
            ttl_ms: [60_000, 600_000, 86_400_000][rng.below(3) as usize],
            finished_ms: [5_000, 30_000, 86_400_000][rng.below(3) as usize],
            attempts_max: rng.between(3, 8) as u32,
            lease_ms: rng.between(2_000, 6_000) as i64,
        }
    }
}
