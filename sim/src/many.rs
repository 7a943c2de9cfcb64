//! Many seeds over some threads: each thread runs whole seeds, nothing is shared between them. What they had is added up.
//! A seed that does not end in real time is named: a product that spins cannot be stopped from inside. Next: `main.rs`.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::run::{Report, run};
use crate::trace::lock;

#[derive(Default)]
pub struct Summary {
    pub seeds: u64,
    pub virtual_ms: u64,
    pub counts: BTreeMap<&'static str, u64>,
    /// Those with violations, by seed.
    pub failed: Vec<Report>,
    /// Over the traces of all seeds, in the order of seeds.
    pub hash: [u8; 32],
}

/// A world takes some milliseconds; what takes this long does not end.
const SEED_MAX: Duration = Duration::from_secs(120);

/// `told` hears of each seed that is done, `stuck` of one that does not end (the run then ends without its summary).
pub fn run_all(seeds: &[u64], threads: usize, told: impl Fn(&Report) + Sync, stuck: impl Fn(u64) + Sync) -> Summary {
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::with_capacity(seeds.len()));
    let at_work = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| {
                scope.spawn(|| {
                    while let Some((place, seed)) = take(&next, seeds) {
                        lock(&at_work).insert(place, (seed, Instant::now()));
                        let report = run(seed, false);
                        lock(&at_work).remove(&place);
                        told(&report);
                        lock(&reports).push((place, report));
                    }
                })
            })
            .collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            std::thread::park_timeout(Duration::from_millis(20));
            let over = lock(&at_work).values().find(|(_, begun)| begun.elapsed() > SEED_MAX).map(|(seed, _)| *seed);
            over.into_iter().for_each(&stuck);
        }
    });
    let mut reports = lock(&reports);
    reports.sort_by_key(|(place, _)| *place);
    summarize(reports.drain(..).map(|(_, report)| report))
}

fn take(next: &AtomicUsize, seeds: &[u64]) -> Option<(usize, u64)> {
    let place = next.fetch_add(1, Ordering::Relaxed);
    seeds.get(place).map(|seed| (place, *seed))
}

fn summarize(reports: impl Iterator<Item = Report>) -> Summary {
    let mut summary = Summary::default();
    let mut hasher = blake3::Hasher::new();
    for report in reports {
        summary.seeds += 1;
        summary.virtual_ms += report.virtual_ms;
        hasher.update(&report.trace_hash);
        report.counts.iter().for_each(|(what, count)| *summary.counts.entry(what).or_default() += count);
        if !report.violations.is_empty() {
            summary.failed.push(report);
        }
    }
    summary.hash = *hasher.finalize().as_bytes();
    summary
}
