//! Proofs for anybody who does not want to believe: over a data folder, read beside a running server or without one, or by
//! a server over its own store. Here the two ways meet; what is proven stands in `wf_engine::proof`, how it looks in `show.rs`.

mod archive;
mod export;
mod scratch;
mod show;

use std::path::Path;

use indicatif::ProgressBar;
use wf_api::proofs::{AuditProofOut, ProofLine, ReplayOut, TablesOut};
use wf_engine::proof::{self, Progress, ProofError, Range, Tell};
use wf_server::{Scratch, ScratchStore};
use wf_store::{Ledger, Visit};

use crate::cli::{AuditVerifyArgs, Output, ReplayArgs, Source, VerifyArgs};
use crate::commands::connect;
use crate::output::{self, Done, Failure};

pub use archive::archive;
pub use export::export;
pub use scratch::FolderScratch;

/// `wf debug replay`
pub async fn replay(args: ReplayArgs) -> Done {
    if args.to.is_some_and(|to| args.from.is_some_and(|from| from > to)) {
        return Err(Failure::usage("--from lies behind --to: nothing would be compared"));
    }
    let range = Range { from: args.from.unwrap_or(0), to: args.to.unwrap_or(u64::MAX), ..Range::default() };
    let line = match &args.source.data {
        Some(dir) => replay_here(dir, range).await?,
        None => {
            let query = [("from", args.from), ("to", args.to)];
            let query = query.into_iter().filter_map(|(name, position)| Some((name, position?.to_string())));
            remote(&args.source, "replay", &query.collect::<Vec<_>>(), "commands").await?
        }
    };
    show::report(args.source.remote.output, &line)
}

/// `wf debug verify`
pub async fn verify(args: VerifyArgs) -> Done {
    let line = match &args.source.data {
        Some(dir) => local(dir, "rows", |mut ledger, tell| {
            Ok(ProofLine::Tables(TablesOut::from(&proof::verify_tables(&mut *ledger, tell)?)))
        })?,
        None => remote(&args.source, "tables", &[], "rows").await?,
    };
    show::report(args.source.remote.output, &line)
}

/// `wf audit verify`
pub async fn verify_audit(args: AuditVerifyArgs) -> Done {
    let line = match &args.source.data {
        Some(dir) => local(dir, "commands", |mut ledger, tell| {
            Ok(ProofLine::Audit(AuditProofOut::from(&proof::verify_audit(&mut *ledger, tell)?)))
        })?,
        None => remote(&args.source, "audit", &[], "commands").await?,
    };
    show::report(args.source.remote.output, &line)
}

/// The folder may belong to a server that runs.
async fn replay_here(dir: &Path, range: Range) -> Result<ProofLine, Failure> {
    let mut ledger = ledger_of(dir)?;
    let first = ledger.log_begin().map_err(Failure::work)?.unwrap_or(0);
    let ScratchStore { store, guard: _guard } =
        FolderScratch::of(dir).open(range.from.max(first)).map_err(Failure::work)?;
    let bar = output::progress(0, "commands");
    let report = proof::replay(ledger, &*store, range, &mut telling(&bar)).await;
    bar.finish_and_clear();
    Ok(ProofLine::Replay(ReplayOut::from(&report.map_err(Failure::work)?)))
}

pub fn ledger_of(dir: &Path) -> Result<Box<dyn Ledger>, Failure> {
    let ledger = wf_store_sqlite::read_only(dir).map_err(|error| Failure::work(format!("failed to {error}")))?;
    Ok(Box::new(ledger))
}

fn telling(bar: &ProgressBar) -> impl FnMut(Progress) -> Visit {
    |progress| {
        show_progress(bar, progress.done, progress.of);
        Visit::Continue(())
    }
}

fn local(
    dir: &Path,
    what: &str,
    prove: impl FnOnce(Box<dyn Ledger>, Tell<'_>) -> Result<ProofLine, ProofError>,
) -> Result<ProofLine, Failure> {
    let ledger = ledger_of(dir)?;
    let bar = output::progress(0, what);
    let line = prove(ledger, &mut telling(&bar));
    bar.finish_and_clear();
    line.map_err(Failure::work)
}

async fn remote(source: &Source, kind: &str, query: &[(&str, String)], what: &str) -> Result<ProofLine, Failure> {
    let bar = output::progress(0, what);
    let mut last = None;
    let client = connect(&source.remote)?;
    let each = |line: ProofLine| match line {
        ProofLine::Progress(progress) => show_progress(&bar, progress.done, progress.of),
        other => last = Some(other),
    };
    client.proof(kind, query, each).await?;
    bar.finish_and_clear();
    last.ok_or_else(|| Failure::work("the server ended before the proof did"))
}

fn show_progress(bar: &ProgressBar, done: u64, of: Option<u64>) {
    if let Some(of) = of {
        bar.set_length(of);
    }
    bar.set_position(done);
}

/// JSON for programs, words for people; a proof that fails is a failure.
fn ends(output: Output, json: &impl serde::Serialize, text: &str, holds: bool) -> Done {
    match output {
        Output::Json => output::print(&output::json(json))?,
        Output::Table => output::print(text)?,
    }
    if holds { Ok(()) } else { Err(Failure::work("the proof failed")) }
}
