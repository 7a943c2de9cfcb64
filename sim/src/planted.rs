//! The simulator tested: each planted bug is run, seed by seed, until a checker speaks up. A bug that survives shows a hole in
//! the simulated world or in its checkers. The bugs stand in `wf_core::planted`. Next: `main.rs`.

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use wf_core::planted::{Bug, plant};

use crate::run::run;
use crate::trace::lock;

/// How a bug was caught.
#[derive(Clone, Debug)]
pub struct Caught {
    pub bug: Bug,
    /// Who spoke up in the last seed, the first one first; empty: it survived.
    pub by: Vec<&'static str>,
    /// Seeds that were run.
    pub seeds: u64,
}

/// Each bug with seeds from `start` on, at most `seeds` of them; in the order of `bugs`.
pub fn hunt(bugs: &[Bug], start: u64, seeds: u64, threads: usize, told: impl Fn(&Caught) + Sync) -> Vec<Caught> {
    let next = AtomicUsize::new(0);
    let caught = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((place, bug)) = take(&next, bugs) {
                    let one = hunt_one(bug, start, seeds);
                    told(&one);
                    lock(&caught).push((place, one));
                }
            });
        }
    });
    let mut caught = lock(&caught);
    caught.sort_by_key(|(place, _)| *place);
    caught.drain(..).map(|(_, one)| one).collect()
}

fn take(next: &AtomicUsize, bugs: &[Bug]) -> Option<(usize, Bug)> {
    let place = next.fetch_add(1, Ordering::Relaxed);
    bugs.get(place).map(|bug| (place, *bug))
}

fn hunt_one(bug: Bug, start: u64, seeds: u64) -> Caught {
    for seed in start..start.saturating_add(seeds) {
        // Planted in this thread, and taken out again whatever happens.
        plant(Some(bug));
        let report = catch_unwind(|| run(seed, false));
        plant(None);
        let mut by: Vec<&'static str> = match report {
            Ok(report) => report.violations.iter().map(|violation| violation.checker).collect(),
            Err(_) => vec!["panic"],
        };
        by.dedup();
        if !by.is_empty() {
            return Caught { bug, by, seeds: seed - start + 1 };
        }
    }
    Caught { bug, by: Vec::new(), seeds }
}
