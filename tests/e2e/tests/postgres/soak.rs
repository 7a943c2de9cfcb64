//! Jobs that come and go, and what is left of them: tables must stay as small as what lives in them, and the next job as near.
//! `cargo xtask soak` does the same ten million times and looks at the speed too.

use std::process::Command;

use e2e::node::{run, wf};
use serde_json::Value;
use servers::Options;

const JOBS: u64 = 100_000;
/// As `docs/operations/tuning.md` has it, and faster: the run is short.
const NAPTIME: (&str, &str) = ("autovacuum_naptime", "1s");

/// P4: after a hundred thousand jobs the table of jobs is as big as after some thousands, and a worker's look at its queue
/// reads as little as in a new store.
#[test]
fn p4_jobs_that_come_and_go_leave_nothing_behind() {
    let cluster = Options::default().set(NAPTIME.0, NAPTIME.1).start();
    let url = cluster.create_database(None);
    let parts = churned(wf().args(["bench", "--store", &url, "--seconds", "8", "--churn", &JOBS.to_string()]));
    let number = |part: &Value, name: &str| part[name].as_u64().unwrap_or_else(|| panic!("{name} of {part}"));
    let (early, late) = (&parts[parts.len() / 4], &parts[parts.len() - 1]);
    assert!(number(late, "done") >= JOBS, "{late}");
    let (before, after) = (number(early, "jobsBytes"), number(late, "jobsBytes"));
    assert!(after < before * 2, "{before} bytes after {} jobs, {after} after {}", early["done"], late["done"]);
    for partition in 1..=8 {
        let pages = pages_of_a_look(&url, partition);
        assert!(pages < 100, "{pages} pages are read to find the next jobs of partition {partition}");
    }
}

fn churned(bench: &mut Command) -> Vec<Value> {
    let report = run(bench.args(["--output", "json"])).expect(0).json();
    report["churn"].as_array().cloned().unwrap_or_else(|| panic!("no parts: {report}"))
}

fn pages_of_a_look(url: &str, partition: u16) -> u64 {
    let look = format!(
        "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM onceflow.jobs WHERE partition = {partition} AND tenant = 'default'
         AND job_type = 'bench-task' AND state = 'READY' ORDER BY rank, key LIMIT 64"
    );
    let plan: Value = serde_json::from_str(&servers::execute(url, &look)[0][0]).expect("a plan");
    let pages = |name: &str| plan[0]["Plan"][name].as_u64().unwrap_or_else(|| panic!("{name} of {plan}"));
    pages("Shared Hit Blocks") + pages("Shared Read Blocks")
}
