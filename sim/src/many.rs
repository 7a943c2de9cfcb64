//! Many seeds over some threads: each thread runs whole seeds, nothing is shared between them. What they had is added up.
//! Next: `main.rs`.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// `told` hears of each seed that is done.
pub fn run_all(seeds: &[u64], threads: usize, told: impl Fn(&Report) + Sync) -> Summary {
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::with_capacity(seeds.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((place, seed)) = take(&next, seeds) {
                    let report = run(seed, false);
                    told(&report);
                    lock(&reports).push((place, report));
                }
            });
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
