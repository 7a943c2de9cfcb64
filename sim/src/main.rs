//! `sim --seeds N --start S`: runs seeds and says which fail, each with the command that shows why. `--seed S --trace` shows
//! one. Started by `cargo xtask simulate`. It decides nothing about a run. Next: `lib.rs`.

use std::process::ExitCode;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use sim::many::{Summary, run_all};
use sim::planted::{Caught, hunt};
use sim::run::{Report, run};
use wf_core::planted::{Bug, plant};

const USAGE: &str = "usage: sim [--seeds N] [--start S] [--threads T]    seeds S to S+N-1, after those in seeds.txt
       sim --seed S [--trace] [--bug NAME]         one seed; --trace prints every line of it
       sim --planted [--seeds N] [--start S]       each planted bug, until it is caught or N seeds are over";

/// Seeds that once failed, always run first.
const KNOWN: &str = include_str!("../seeds.txt");
const SEEDS: u64 = 2_000;

struct Args {
    seeds: u64,
    start: u64,
    threads: usize,
    one: Option<u64>,
    is_traced: bool,
    is_hunt: bool,
    bug: Option<Bug>,
}

fn main() -> ExitCode {
    let Some(args) = read(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // What panics is reported with its seed; the message is part of that seed's run, not of this program's output.
    if !args.is_traced {
        std::panic::set_hook(Box::new(|_| ()));
    }
    let is_good = match args.one {
        Some(seed) => {
            plant(args.bug);
            show(&run(seed, args.is_traced))
        }
        None if args.is_hunt => hunt_all(&args),
        None => many(&args),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(mut words: impl Iterator<Item = String>) -> Option<Args> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut args = Args { seeds: SEEDS, start: 1, threads, one: None, is_traced: false, is_hunt: false, bug: None };
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|text| text.replace('_', "").parse::<u64>().ok());
        match word.as_str() {
            "--seeds" => args.seeds = number()?,
            "--start" => args.start = number()?,
            "--threads" => args.threads = number()? as usize,
            "--seed" => args.one = Some(number()?),
            "--trace" => args.is_traced = true,
            "--planted" => args.is_hunt = true,
            "--bug" => {
                let name = words.next()?;
                args.bug = Some(Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name)?);
            }
            _ => return None,
        }
    }
    Some(args)
}

/// What is wrong with one seed.
fn show(report: &Report) -> bool {
    print_violations(report);
    let hash: String = report.trace_hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    println!(
        "seed {}: {} wrong, {} s of virtual time, trace {hash}",
        report.seed,
        report.violations.len(),
        report.virtual_ms / 1000
    );
    report.violations.is_empty()
}

fn print_violations(report: &Report) {
    for violation in &report.violations {
        println!("seed {}: {}: {}", report.seed, violation.checker, violation.what);
    }
}

fn many(args: &Args) -> bool {
    let known = KNOWN.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
    let fresh = args.start..args.start.saturating_add(args.seeds);
    let seeds: Vec<u64> = known.chain(fresh).collect();
    let bar = ProgressBar::new(seeds.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {per_sec}, {eta} left, {msg}") {
        bar.set_style(style);
    }
    let begun = Instant::now();
    let told = |report: &Report| {
        bar.inc(1);
        if let Some(first) = report.violations.first() {
            bar.set_message(format!("seed {} fails: {}", report.seed, first.checker));
        }
    };
    let summary = run_all(&seeds, args.threads, told, stuck);
    bar.finish_and_clear();
    tell(&summary, begun.elapsed().as_secs_f64());
    summary.failed.is_empty()
}

/// Prints the table of planted bugs as the documentation shows it.
fn hunt_all(args: &Args) -> bool {
    let caught = hunt(&Bug::ALL, args.start, args.seeds, args.threads, |one| eprintln!("{}", line_of(one)));
    println!("| bug | caught by | after seeds |\n|---|---|---|");
    caught.iter().for_each(|one| println!("{}", line_of(one)));
    let survivors = caught.iter().filter(|one| one.by.is_empty()).count();
    println!("{} bugs, {survivors} survived {} seeds", caught.len(), args.seeds);
    survivors == 0
}

fn line_of(caught: &Caught) -> String {
    let by: Vec<String> = caught.by.iter().map(|checker| format!("`{checker}`")).collect();
    let by = if by.is_empty() { "nobody".to_owned() } else { by.join(", ") };
    format!("| `{:?}` | {by} | {} |", caught.bug, caught.seeds)
}

fn stuck(seed: u64) {
    println!("seed {seed}: quiet: it does not end\n  to see why: cargo xtask simulate --seed {seed} --trace");
    std::process::exit(1);
}

fn tell(summary: &Summary, seconds: f64) {
    for (what, count) in &summary.counts {
        println!("{count:>10}  {what}");
    }
    for report in &summary.failed {
        print_violations(report);
        println!("  to see why: cargo xtask simulate --seed {} --trace", report.seed);
    }
    let hash: String = summary.hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    println!(
        "{} seeds in {seconds:.1} s ({:.0} per second), {} hours of virtual time, traces {hash}, {} failed",
        summary.seeds,
        summary.seeds as f64 / seconds,
        summary.virtual_ms / 3_600_000,
        summary.failed.len()
    );
}
