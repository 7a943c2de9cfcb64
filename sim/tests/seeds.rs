//! What CI runs of the simulator: seeds that once failed and two thousand others, the planted bugs, and that a seed repeats
//! byte for byte. `cargo xtask test` builds the program with optimisations and names it; the tests start it.
#![allow(clippy::unwrap_used, reason = "a test that is surprised fails")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// Two cores do them in half a minute.
const SEEDS: &str = "2000";
/// Far more than any planted bug needs today: see `docs/reliability.md`.
const PLANTED_SEEDS: &str = "600";

/// What two thousand seeds must have had to prove anything.
const TROUBLES: [&str; 41] = [
    "answer lost",
    "batch completion",
    "broker delivers twice",
    "broker hangs",
    "broker is away",
    "broker loses its ack",
    "broker refuses",
    "broker refuses for good",
    "check fails",
    "claim fails",
    "clean stop",
    "client timeout",
    "clock jumps ahead",
    "clock jumps back",
    "commit conflict",
    "commit fenced",
    "commit rejected",
    "commit unavailable",
    "commit unknown, applied",
    "commit unknown, late",
    "commit unknown, lost",
    "connection reset",
    "crash",
    "dead letter shipped again",
    "death after commit",
    "death before commit",
    "deposed answer",
    "double click",
    "incident resolved",
    "job fails",
    "load fails",
    "mark fails",
    "node dies between ack and mark",
    "page cut short",
    "repeat after the TTL",
    "restore",
    "worker completes twice",
    "worker dies after its call",
    "worker dies before its call",
    "worker is slow",
    "wrong body",
];

fn simulator() -> PathBuf {
    match std::env::var_os("WF_SIMULATOR").map(PathBuf::from) {
        Some(path) if path.is_file() => path,
        _ => panic!("WF_SIMULATOR names no file: run `cargo xtask test`, or `cargo xtask simulate` without a test"),
    }
}

/// Its output; fails with it where the program does.
fn simulate(args: &[&str]) -> String {
    let output = Command::new(simulator()).args(args).output().expect("the simulator starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{args:?}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The summary's figures: `   12  broker hangs`.
fn counts(text: &str) -> BTreeMap<&str, u64> {
    text.lines()
        .filter_map(|line| {
            let (count, what) = line.trim_start().split_once("  ")?;
            Some((what.trim(), count.parse().ok()?))
        })
        .collect()
}

/// Seeds that once failed and two thousand others; and each kind of trouble did happen.
#[test]
fn l2_3_two_thousand_seeds_hold_every_promise() {
    let text = simulate(&["--seeds", SEEDS]);
    let counts = counts(&text);
    let missing: Vec<&&str> =
        TROUBLES.iter().filter(|what| counts.get(**what).is_none_or(|count| *count == 0)).collect();
    assert!(missing.is_empty(), "never happened: {missing:?}\n{text}");
}

/// A simulator that catches nothing proves nothing.
#[test]
fn every_planted_bug_is_caught() {
    let text = simulate(&["--planted", "--seeds", PLANTED_SEEDS]);
    assert!(text.contains("0 survived"), "{text}");
}

/// The same seed gives the same bytes; which thread runs it does not matter.
#[test]
fn a_seed_repeats_byte_for_byte() {
    for seed in ["1", "7", "42", "153"] {
        let trace = || simulate(&["--seed", seed, "--trace"]);
        let (one, other) = (trace(), trace());
        assert!(one == other, "seed {seed}");
        assert!(one.lines().count() > 100, "seed {seed} has a trace");
    }
    let hash_of = |threads: &str| {
        let text = simulate(&["--seeds", "60", "--start", "500", "--threads", threads]);
        text.split("traces ").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or_default().to_owned()
    };
    let alone = hash_of("1");
    assert!(!alone.is_empty());
    assert_eq!(alone, hash_of("2"));
}

/// What users get holds no planted bug: the mark of the feature is in the simulator, not in the release binary.
#[test]
fn the_release_binary_has_no_planted_bugs() {
    const MARK: &str = "wf-core: planted bugs are compiled in";
    let has_mark = |path: PathBuf| String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(MARK);
    assert!(has_mark(simulator()), "the mark is looked for in the right way");
    let binary = std::env::var_os("WF_BINARY").expect("WF_BINARY is set by `cargo xtask test`");
    assert!(!has_mark(binary.into()));
}
