//! `cargo xtask VERB`: everything that a developer or CI does with this repository, by one name each.
//! Knows no crate's inside; it starts cargo and looks at its answers. Light on purpose: it is built before anything else.
//! Next: `run.rs` starts programs, `tools.rs` finds what tests need, `deps.rs` holds the rules about dependencies.

mod run;
mod tools;
mod deps;

use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask VERB

  verify         what CI runs, writes nothing: fmt, lint, deps, test
  fmt            is everything formatted?
  lint           clippy over all targets, warnings are errors
  deps           the rules about dependencies: direction, licences, what the pure crates may contain
  crash --minutes M [--seed S] [--store sqlite|postgres]
                 kills the release binary at every failpoint under load for so long, checks what everybody saw, and
                 prints a table; exit 1 with the seed and the kept folder at the first fault
  soak [--jobs N]
                 finishes so many jobs (10,000,000 where nothing is said) on a PostgreSQL of its own, and prints whether the
                 store stays as fast and as small as it was
  simulate [ARGS]
                 worlds of one seed each around the real engine: --seeds N --start S [--threads T]; --seed S [--trace] for one;
                 --planted [--seeds N] for the bugs that must be caught; exit 1 with the failing seeds
  test [ARGS]    builds the release binary, finds what tests need, runs all tests
                 (ARGS go to the test runner in place of --workspace: `cargo xtask test -p wf-feel`)
  fix            writes: formats, applies clippy's suggestions";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (verb, rest) = args.split_first().map_or(("", &[][..]), |(verb, rest)| (verb.as_str(), rest));
    let outcome = match (verb, rest) {
        ("verify", []) => verify(),
        ("fmt", []) => fmt(),
        ("lint", []) => lint(),
        ("deps", []) => deps::check(),
        ("test", args) => test(args),
        ("crash", args) if !args.is_empty() => crash(args),
        ("soak", []) => soak("10000000"),
        ("soak", [flag, jobs]) if flag == "--jobs" => soak(jobs),
        ("simulate", args) => simulate(args),
        ("fix", []) => fix(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {verb}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn verify() -> Result<()> {
    fmt()?;
    lint()?;
    deps::check()?;
    test(&[])
}

fn fmt() -> Result<()> {
    run::cargo(&["fmt", "--all", "--check"])
}

fn lint() -> Result<()> {
    run::cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
}

fn fix() -> Result<()> {
    run::cargo(&["clippy", "--fix", "--workspace", "--all-targets", "--allow-dirty", "--allow-staged"])?;
    run::cargo(&["fmt", "--all"])
}

/// Everything missing is found before the first minute is spent on building.
fn test(args: &[String]) -> Result<()> {
    let nats_server = tools::nats_server()?;
    let (postgres, pgbouncer) = (tools::postgres()?, tools::pgbouncer()?);
    tools::c_compiler()?;
    tools::curl()?;
    let binary = run::release_binary("wf")?;
    // What the end-to-end tests start. A test that finds one of them unset fails and says so; none is ever skipped.
    let simulator = run::simulator()?;
    let mut env = vec![("WF_BINARY", binary), ("WF_NATS_SERVER", nats_server), ("WF_SIMULATOR", simulator)];
    if cfg!(target_os = "linux") {
        env.push(("WF_POWERLOSS_LAYER", run::powerloss_layer()?));
    }
    env.extend([("WF_POSTGRES_BIN", postgres), ("WF_PGBOUNCER", pgbouncer)]);
    let shared = tools::SharedPostgres::start(&env)?;
    env.push(("WF_POSTGRES_URL", PathBuf::from(&shared.url)));
    let args: Vec<&str> = if args.is_empty() { vec!["--workspace"] } else { args.iter().map(String::as_str).collect() };
    if !run::succeeds("nextest") {
        eprintln!("cargo-nextest is not installed; running cargo test. Nicer: cargo install --locked cargo-nextest");
        return run::cargo_with(&[&["test", "--locked", "--no-fail-fast"], &args[..]].concat(), &env);
    }
    if args == ["--workspace"] {
        // The runner does not know documentation tests. They go first, so that its summary is what stands last.
        run::cargo_with(&["test", "--quiet", "--locked", "--doc", "--workspace"], &env)?;
    }
    run::cargo_with(&[&["nextest", "run", "--locked"], &args[..]].concat(), &env)
}

fn soak(jobs: &str) -> Result<()> {
    let env = [("WF_POSTGRES_BIN", tools::postgres()?)];
    let binary = run::release_binary("wf")?;
    let shared = tools::SharedPostgres::start(&env)?;
    let store = format!("{}/postgres", shared.url);
    let status = run::command(binary).args(["bench", "--store", &store, "--churn", jobs]).status()?;
    anyhow::ensure!(status.success(), "the soak failed ({status})");
    Ok(())
}

fn simulate(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    run::cargo(&[&["run", "--quiet", "--locked", "--profile", "sim", "--package", "sim", "--"], &args[..]].concat())
}

/// The crash matrix of the end-to-end tests, as long as asked; the same code that CI runs for a minute.
fn crash(args: &[String]) -> Result<()> {
    let nats_server = tools::nats_server()?;
    tools::c_compiler()?;
    let binary = run::release_binary("wf")?;
    let mut env = vec![("WF_BINARY", binary), ("WF_NATS_SERVER", nats_server)];
    if args.iter().any(|arg| arg == "postgres") {
        env.push(("WF_POSTGRES_BIN", tools::postgres()?));
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    run::cargo_with(
        &[&["run", "--quiet", "--locked", "--package", "e2e", "--bin", "crash", "--"], &args[..]].concat(),
        &env,
    )
}
