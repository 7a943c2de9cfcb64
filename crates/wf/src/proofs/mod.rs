//! Proofs for anybody who does not want to believe: over a store, read beside a running server or without one, or by
//! a server over its own store. Here the two ways meet; what is proven stands in `wf_engine::proof`, how it looks in `show.rs`.
//! Next: `show.rs`, `scratch.rs`, then `export.rs` and `archive.rs`, which read the same.

mod archive;
mod export;
mod local;
mod scratch;
mod show;

use indicatif::ProgressBar;
use wf_api::proofs::{AuditProofOut, ProofLine, ReplayOut, TablesOut};
use wf_engine::proof::{self, Progress, ProofError, Range, Tell};
use wf_server::{Scratch, ScratchStore};
use wf_store::{Ledger, Visit};

use crate::cli::{AuditVerifyArgs, Output, Proven, ReplayArgs, Source, VerifyArgs};
use crate::commands::connect;
use crate::output::{self, Done, Failure};

use local::Local;

pub use archive::{audit as archive_audit, log as archive_log};
pub use export::export;
pub use local::ledger_of;
pub use scratch::FolderScratch;

/// `wf debug replay`
pub async fn replay(args: ReplayArgs) -> Done {
    if args.to.is_some_and(|to| args.from.is_some_and(|from| from > to)) {
        return Err(Failure::usage("--from lies behind --to: nothing would be compared"));
    }
    let range = Range { from: args.from.unwrap_or(0), to: args.to.unwrap_or(u64::MAX), ..Range::default() };
    if let Some(local) = Local::of(&args.proven.source) {
        let mut reports = Vec::new();
        for partition in partitions_of(&local, &args.proven)? {
            let scratch = local.scratch(args.archived_in.as_deref());
            reports.push((partition, replay_here(&local, partition, &scratch, range).await?));
        }
        return show::all(args.proven.source.remote.output, &reports);
    }
    let query = [("from", args.from), ("to", args.to)];
    let query = query.into_iter().filter_map(|(name, position)| Some((name, position?.to_string())));
    of_server(&args.proven, "replay", &query.collect::<Vec<_>>(), "commands").await
}

/// `wf debug verify`
pub async fn verify(args: VerifyArgs) -> Done {
    let Some(local) = Local::of(&args.proven.source) else {
        return of_server(&args.proven, "tables", &[], "rows").await;
    };
    here(&args.proven, &local, "rows", |ledger, tell| {
        Ok(ProofLine::Tables(TablesOut::from(&proof::verify_tables(ledger, tell)?)))
    })
}

/// `wf audit verify`
pub async fn verify_audit(args: AuditVerifyArgs) -> Done {
    let Some(local) = Local::of(&args.proven.source) else {
        return of_server(&args.proven, "audit", &[], "commands").await;
    };
    here(&args.proven, &local, "commands", |ledger, tell| {
        Ok(ProofLine::Audit(AuditProofOut::from(&proof::verify_audit(ledger, tell)?)))
    })
}

/// The store may belong to a server that runs.
async fn replay_here(
    local: &Local<'_>,
    partition: u16,
    scratch: &FolderScratch,
    range: Range,
) -> Result<ProofLine, Failure> {
    let mut ledger = local.ledger(partition)?;
    let first = ledger.log_begin().map_err(Failure::work)?.unwrap_or(0);
    let ScratchStore { store, guard: _guard } =
        scratch.open(partition, range.from.max(first)).map_err(Failure::work)?;
    let bar = output::progress(0, "commands");
    let report = proof::replay(ledger, &*store, range, &mut telling(&bar)).await;
    bar.finish_and_clear();
    Ok(ProofLine::Replay(ReplayOut::from(&report.map_err(Failure::work)?)))
}

fn partitions_of(local: &Local<'_>, proven: &Proven) -> Result<Vec<u16>, Failure> {
    proven.partition.map_or_else(|| local.partitions(), |partition| Ok(vec![partition]))
}

fn telling(bar: &ProgressBar) -> impl FnMut(Progress) -> Visit {
    |progress| {
        show_progress(bar, progress.done, progress.of);
        Visit::Continue(())
    }
}

/// One partition after the other.
fn here(
    proven: &Proven,
    local: &Local<'_>,
    what: &str,
    prove: impl Fn(&mut dyn Ledger, Tell<'_>) -> Result<ProofLine, ProofError>,
) -> Done {
    let mut reports = Vec::new();
    for partition in partitions_of(local, proven)? {
        let mut ledger = local.ledger(partition)?;
        let bar = output::progress(0, what);
        let line = prove(&mut *ledger, &mut telling(&bar));
        bar.finish_and_clear();
        reports.push((partition, line.map_err(Failure::work)?));
    }
    show::all(proven.source.remote.output, &reports)
}

/// One partition after the other, each a proof of its own.
async fn of_server(proven: &Proven, kind: &str, query: &[(&str, String)], what: &str) -> Done {
    let (source, output) = (&proven.source, proven.source.remote.output);
    let partitions = match proven.partition {
        Some(partition) => vec![partition],
        None => partitions(source).await?,
    };
    let mut reports = Vec::with_capacity(partitions.len());
    for partition in partitions {
        let mut query = query.to_vec();
        query.push(("partition", partition.to_string()));
        reports.push((partition, remote(source, kind, &query, what).await?));
    }
    show::all(output, &reports)
}

/// Which partitions the store has.
async fn partitions(source: &Source) -> Result<Vec<u16>, Failure> {
    let nodes = connect(&source.remote)?.nodes().await?;
    Ok(nodes.partitions.iter().map(|row| row.partition).collect())
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
