//! `wf log archive` and `wf audit archive`: take the oldest part out of a log, so that it does not grow for ever. Commands are
//! executed again first, and what they come to is kept as a checkpoint, at which later replays begin; events are held against
//! their chain. Then they are written to a file; only then do they leave the store. Each step is durable before the next,
//! so that it may be interrupted anywhere. Next: `archive/folder.rs` (row by row), `archive/weeks.rs` (by whole weeks).

mod file;
mod folder;
mod weeks;

use std::path::Path;

use wf_engine::proof::{self, Progress};
use wf_server::{Scratch, ScratchStore};
use wf_store::{Ledger, Visit};
use wf_store_sqlite::STORE_FILE;

use super::scratch::{FolderScratch, checkpoint_path};
use crate::cli::{AuditArchiveArgs, LogArchiveArgs};
use crate::output::{self, Done, Failure};

/// `wf log archive`
pub async fn log(args: LogArchiveArgs) -> Done {
    match &args.store {
        None => folder::archive(&args.before, &args.kept).await,
        Some(url) => weeks::commands(url, &args.before, &args.kept).await,
    }
}

/// `wf audit archive`
pub async fn audit(args: AuditArchiveArgs) -> Done {
    weeks::events(&args.store, &args.before, &args.kept).await
}

/// What of a partition goes: the commands from `first` to `last`.
struct Cut {
    partition: u16,
    first: u64,
    last: u64,
    commands: u64,
}

/// The state after the last command that goes, as a store's file beside the data; how many commands led there.
async fn checkpoint(data: &Path, ledger: Box<dyn Ledger>, cut: &Cut) -> Result<u64, Failure> {
    let scratch = FolderScratch::of(data).open(cut.partition, cut.first).map_err(Failure::work)?;
    let ScratchStore { store, guard } = scratch;
    let bar = output::progress(cut.commands, "commands");
    let mut tell = |progress: Progress| {
        bar.set_position(progress.done);
        Visit::Continue(())
    };
    let report = proof::checkpoint(ledger, &*store, cut.last, &mut tell).await.map_err(Failure::work)?;
    let mut replayed = store.ledger(cut.partition).await.map_err(Failure::work)?;
    let sum = proof::verify_tables(&mut *replayed, &mut tell).map_err(Failure::work)?;
    bar.finish_and_clear();
    if !report.is_identical() || !sum.agrees() {
        let partition = cut.partition;
        return Err(Failure::work(format!(
            "the log of partition {partition} does not come to what it says (`wf debug replay`): nothing was archived"
        )));
    }
    drop(replayed);
    // The last to close it empties its write-ahead log into its file.
    drop(store);
    file::install(&guard.path().join(STORE_FILE), &checkpoint_path(data, cut.partition, cut.last))?;
    Ok(report.commands)
}
