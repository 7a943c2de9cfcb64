//! `cargo xtask crash`: the crash matrix for as long as there is time. Two stores at a time, each one a life of many deaths;
//! a table at the end; exit 1 at the first store that is not as it must be, which is kept. Next: `e2e::crash`.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use e2e::crash::counts::Counts;
use e2e::crash::{Broken, Plan, live};
use e2e::locked;
use e2e::node::Setup;
use indicatif::{ProgressBar, ProgressStyle};

/// At once: the load and the nodes share the machine.
const STORES: u64 = 2;
const DEATHS_OF_A_LIFE: u64 = 60;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((minutes, seed, is_postgres)) = read(&args) else {
        eprintln!("usage: crash --minutes M [--seed S] [--store sqlite|postgres]");
        return ExitCode::from(2);
    };
    let counts = Counts::default();
    let broken = soak(Duration::from_secs(60 * minutes), seed, is_postgres, &counts);
    println!("{}", counts.table());
    let figure = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "seed {seed}: {} kills, {} requests, {} repeats answered from what was stored",
        counts.kills(),
        figure(&counts.requests),
        figure(&counts.repeats)
    );
    broken.iter().for_each(|broken| eprintln!("{broken}"));
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(args: &[String]) -> Option<(u64, u64, bool)> {
    let (mut minutes, mut seed, mut is_postgres) = (None, 1, false);
    for pair in args.chunks(2) {
        let [name, figure] = pair else { return None };
        match &**name {
            "--minutes" => minutes = Some(figure.parse().ok()?),
            "--seed" => seed = figure.parse().ok()?,
            "--store" if figure == "sqlite" || figure == "postgres" => is_postgres = figure == "postgres",
            _ => return None,
        }
    }
    Some((minutes?, seed, is_postgres))
}

/// Lives have seeds from `seed` on; every second one has a broker beside the webhook.
fn soak(time: Duration, seed: u64, is_postgres: bool, counts: &Counts) -> Vec<Broken> {
    let (end, next) = (Instant::now() + time, AtomicU64::new(seed));
    let (broken, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let bar = progress(time);
    std::thread::scope(|scope| {
        let stores: Vec<_> = (0..STORES)
            .map(|_| {
                scope.spawn(|| {
                    while Instant::now() < end && !is_over.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        let with_nats = seed.is_multiple_of(2);
                        let store = if is_postgres { Setup::postgres() } else { Setup::new() };
                        let plan = Plan {
                            store,
                            seed,
                            deaths: DEATHS_OF_A_LIFE,
                            with_nats,
                            power: None,
                            end: Some(end),
                            late_tries: 0,
                        };
                        if let Err(found) = live(&plan, counts) {
                            is_over.store(true, Ordering::Relaxed);
                            locked(&broken).push(found);
                        }
                    }
                })
            })
            .collect();
        while stores.iter().any(|store| !store.is_finished()) {
            show(&bar, counts);
            std::thread::park_timeout(Duration::from_millis(200));
        }
    });
    bar.finish_and_clear();
    broken.into_inner().unwrap_or_default()
}

fn progress(time: Duration) -> ProgressBar {
    // Hidden where nobody looks: in a pipe.
    let bar = ProgressBar::new(time.as_secs());
    let style = ProgressStyle::with_template("{bar:30} {elapsed_precise}  {msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn show(bar: &ProgressBar, counts: &Counts) {
    let figure = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (repeats, requests) = (figure(&counts.repeats), figure(&counts.requests));
    bar.set_position(bar.elapsed().as_secs());
    bar.set_message(format!("{} kills, {repeats} repeats, {requests} requests", counts.kills()));
}
