//! The binary `wf`: reads the command line, runs one command, turns its failure into a message and an exit code.
//! It decides nothing. Read `cli.rs` (what can be said), then `node.rs` (the server) and `commands/` (its clients).

mod cli;
mod config;
mod node;
mod paused;
mod backup;
mod migrate;
mod commands;
mod demo;
mod bench;
mod proofs;

mod output;
mod hints;
mod logs;
mod process;
mod stores;
mod tenants;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use output::{Done, Failure};

/// Rows and batches are made on one thread and freed on another, which the system allocator pays for dearly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::say(failure.message());
            ExitCode::from(failure.code())
        }
    }
}

fn run(command: Command) -> Done {
    match command {
        Command::Dev(args) => node::dev(&args),
        Command::Server(args) => node::server(&args),
        Command::Migrate(args) => on_one_thread(migrate::migrate(args)),
        Command::Tenants(args) => on_one_thread(tenants::run(args)),
        Command::Backup(args) => backup::backup(&args),
        Command::Restore(args) => backup::restore(&args),
        Command::Bench(args) => on_one_thread(or_interrupted(bench::run(args))),
        Command::BenchBare(args) => bench::bare::run(args),
        Command::Demo(args) => on_one_thread(or_interrupted(demo::run(args))),
        other => on_one_thread(commands::run(other)),
    }
}

/// Clients wait most of the time; one thread is enough and leaves the other cores to the server.
fn on_one_thread(work: impl Future<Output = Done>) -> Done {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::work)?.block_on(work)
}

/// Ended early, these leave no child and no folder behind: dropping them ends and removes both.
async fn or_interrupted(work: impl Future<Output = Done>) -> Done {
    tokio::select! {
        done = work => done,
        () = process::stop_signal() => Err(Failure::work("interrupted")),
    }
}
