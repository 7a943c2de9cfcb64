//! `wf log archive`: takes the oldest commands out of the log, so that it does not grow for ever. First they are executed
//! again, and what they come to is kept as a checkpoint, at which later replays begin; then they are written to a file;
//! only then do they leave the store. Each step is durable before the next, so that it may be interrupted anywhere.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::value::RawValue;
use wf_core::ids::hex;
use wf_engine::proof::{self, Progress, ReplayReport};
use wf_server::{Scratch, ScratchStore};
use wf_store::{Ledger, LogRow, Store, Visit, parse_event_id};
use wf_store_sqlite::{Durability, Options, STORE_FILE, SqliteStore, make_dir, put_in_place};

use super::scratch::{FolderScratch, checkpoint_path};
use crate::cli::LogArchiveArgs;
use crate::output::{self, Done, Failure};

const PAGE_ROWS: usize = 1_000;
/// Rows that leave the log in one transaction.
const SLICE_ROWS: usize = 10_000;

pub async fn archive(args: LogArchiveArgs) -> Done {
    let options = Options { dir: args.data.clone(), durability: Durability::Full, pages_max: None };
    if !args.data.join(STORE_FILE).is_file() {
        return Err(Failure::work(format!("there is no store in {}", args.data.display())));
    }
    // Holds the folder's lock: a server that runs on it must be stopped first.
    let store = SqliteStore::open(options).map_err(|error| Failure::work(format!("failed to {error}")))?;
    sweep(&args.data, &store).await?;
    let mut ledger = store.ledger(0).await.map_err(Failure::work)?;
    let Some(cut) = cut(&mut *ledger, &args.before)? else {
        return output::print("nothing in the log is older");
    };
    let report = checkpoint(&args.data, ledger, &cut).await?;
    let file = write_file(&args, &store, &cut).await?;
    let removed = remove(&store, &cut).await?;
    output::print(&format!(
        "{} commands up to position {} stand in {}\nreplays begin at {} ({} commands executed again, identical)",
        output::grouped(removed as f64, 0),
        cut.last,
        file.display(),
        checkpoint_path(&args.data, cut.last).display(),
        output::grouped(report.commands as f64, 0),
    ))
}

/// What goes: the commands from `first` to `last`.
struct Cut {
    first: u64,
    last: u64,
    commands: u64,
}

/// The last command always stays: its digest is what the tables are held against.
fn cut(ledger: &mut dyn Ledger, before: &str) -> Result<Option<Cut>, Failure> {
    let is_before: Box<dyn Fn(&LogRow) -> bool> = if let Ok(position) = before.parse::<u64>() {
        Box::new(move |row| row.position < position)
    } else if let Some((_, position, _)) = parse_event_id(before) {
        Box::new(move |row| row.position < position)
    } else if let Some(time) = wf_api::time::parse(before) {
        Box::new(move |row| row.time < time)
    } else {
        return Err(Failure::usage(format!(
            "{before:?} is no position, event id or time such as 2026-01-31T00:00:00Z"
        )));
    };
    let end = ledger.standing().map_err(Failure::work)?.fence.new_position;
    let mut cut: Option<Cut> = None;
    let mut from = 0;
    loop {
        let page = ledger.log(from, PAGE_ROWS).map_err(Failure::work)?;
        for row in &page {
            if row.position >= end || !is_before(row) {
                return Ok(cut);
            }
            let (first, commands) = cut.as_ref().map_or((row.position, 0), |cut| (cut.first, cut.commands));
            cut = Some(Cut { first, last: row.position, commands: commands + 1 });
        }
        match page.last() {
            Some(last) => from = last.position + 1,
            None => return Ok(cut),
        }
    }
}

/// The state after the last command that goes, as a store's file beside the data.
async fn checkpoint(data: &Path, mut ledger: Box<dyn Ledger>, cut: &Cut) -> Result<ReplayReport, Failure> {
    let ScratchStore { store, guard } = FolderScratch::of(data).open(cut.first).map_err(Failure::work)?;
    let partition = ledger.standing().map_err(Failure::work)?.fence.partition;
    let bar = output::progress(cut.commands, "commands");
    let mut tell = |progress: Progress| {
        bar.set_position(progress.done);
        Visit::Continue(())
    };
    let report = proof::checkpoint(ledger, &*store, cut.last, &mut tell).await.map_err(Failure::work)?;
    let mut replayed = store.ledger(partition).await.map_err(Failure::work)?;
    let sum = proof::verify_tables(&mut *replayed, &mut tell).map_err(Failure::work)?;
    bar.finish_and_clear();
    if !report.is_identical() || !sum.agrees() {
        return Err(Failure::work("the log does not come to what it says (`wf debug replay`): nothing was archived"));
    }
    drop(replayed);
    // The last to close it empties its write-ahead log into its file.
    drop(store);
    install(&guard.path().join(STORE_FILE), &checkpoint_path(data, cut.last))?;
    Ok(report)
}

async fn write_file(args: &LogArchiveArgs, store: &SqliteStore, cut: &Cut) -> Result<PathBuf, Failure> {
    let folder = args.to.clone().unwrap_or_else(|| args.data.join("archive"));
    let path = folder.join(format!("log-{}-{}.jsonl", cut.first, cut.last));
    let part = tempfile::NamedTempFile::new()?;
    let mut out = BufWriter::new(part.as_file());
    let mut ledger = store.ledger(0).await.map_err(Failure::work)?;
    let mut from = cut.first;
    while from <= cut.last {
        let page = ledger.log(from, PAGE_ROWS).map_err(Failure::work)?;
        for row in page.iter().filter(|row| row.position <= cut.last) {
            serde_json::to_writer(&mut out, &Line::of(row)?).map_err(Failure::work)?;
            out.write_all(b"\n")?;
        }
        from = page.last().map_or(u64::MAX, |row| row.position + 1);
    }
    out.flush()?;
    drop(out);
    install(part.path(), &path)?;
    Ok(path)
}

/// One command in an archive: everything that its log row held.
#[derive(Serialize)]
struct Line<'r> {
    position: u64,
    id: String,
    time: i64,
    tenant: &'r str,
    verb: &'r str,
    digest: String,
    payload: &'r RawValue,
}

impl Line<'_> {
    fn of(row: &LogRow) -> Result<Line<'_>, Failure> {
        Ok(Line {
            position: row.position,
            id: hex(&row.id).to_string(),
            time: row.time,
            tenant: &row.tenant,
            verb: &row.verb,
            digest: format!("{:032x}", row.digest),
            payload: serde_json::from_str(&row.payload).map_err(Failure::work)?,
        })
    }
}

async fn remove(store: &SqliteStore, cut: &Cut) -> Result<usize, Failure> {
    let bar = output::progress(cut.commands, "out of the log");
    let mut removed = 0;
    loop {
        let slice = store.archive_log(cut.last + 1, SLICE_ROWS).await.map_err(Failure::work)?;
        removed += slice;
        bar.inc(slice as u64);
        if slice < SLICE_ROWS {
            bar.finish_and_clear();
            return Ok(removed);
        }
    }
}

/// What an earlier run had archived and did not come to take away. Its first transaction took them out of the log, and with
/// them begins the checkpoint; where there is none somebody opened the archive by hand, and the rows are not ours.
async fn sweep(data: &Path, store: &SqliteStore) -> Done {
    while let Some(before) = store.archive_begun().await.map_err(Failure::work)? {
        let is_ours = checkpoint_path(data, before.saturating_sub(1)).is_file();
        if !is_ours || store.archive_rest(SLICE_ROWS).await.map_err(Failure::work)? == 0 {
            break;
        }
    }
    Ok(())
}

/// Copies a file to where it belongs so that it stands there whole, or not at all, also after a loss of power.
fn install(from: &Path, to: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::work(format!("write {}: {error}", to.display()));
    make_dir(to.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    let part = to.with_extension("part");
    fs::copy(from, &part).map_err(failed)?;
    put_in_place(&part, to).map_err(failed)
}
