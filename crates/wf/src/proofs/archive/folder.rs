//! A folder's commands, one by one: its server must be stopped. The audit stays whole. Next: `file.rs`.

use std::path::Path;

use wf_store::{Ledger, LogRow, Store, parse_event_id};
use wf_store_sqlite::{Durability, Options, STORE_FILE, SqliteStore};

use super::{Cut, checkpoint, file};
use crate::cli::Kept;
use crate::output::{self, Done, Failure};
use crate::proofs::scratch::{checkpoint_path, is_checkpoint};

const PAGE_ROWS: usize = 1_000;
/// Rows that leave the log in one transaction.
const SLICE_ROWS: usize = 10_000;

pub async fn archive(before: &str, kept: &Kept) -> Done {
    let data = kept.data();
    let options = Options { dir: data.to_owned(), durability: Durability::Full, pages_max: None };
    if !data.join(STORE_FILE).is_file() {
        return Err(Failure::work(format!("there is no store in {}", data.display())));
    }
    // Holds the folder's lock: a server that runs on it must be stopped first.
    let store = SqliteStore::open(options).map_err(|error| Failure::work(format!("failed to {error}")))?;
    sweep(data, &store).await?;
    let mut ledger = store.ledger(0).await.map_err(Failure::work)?;
    let Some(cut) = cut(&mut *ledger, before)? else {
        return output::print("nothing in the log is older");
    };
    let executed = checkpoint(data, ledger, &cut).await?;
    let file = file::commands(&kept.to(), &mut *store.ledger(0).await.map_err(Failure::work)?, &cut)?;
    let removed = remove(&store, &cut).await?;
    output::print(&format!(
        "{} commands up to position {} stand in {}\nreplays begin at {} ({} commands executed again, identical)",
        output::grouped(removed as f64, 0),
        cut.last,
        file.display(),
        checkpoint_path(data, cut.partition, cut.last).display(),
        output::grouped(executed as f64, 0),
    ))
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
    let fence = ledger.standing().map_err(Failure::work)?.fence;
    let mut cut: Option<Cut> = None;
    let mut from = 0;
    loop {
        let page = ledger.log(from, PAGE_ROWS).map_err(Failure::work)?;
        for row in &page {
            if row.position >= fence.new_position || !is_before(row) {
                return Ok(cut);
            }
            let (first, commands) = cut.as_ref().map_or((row.position, 0), |cut| (cut.first, cut.commands));
            cut = Some(Cut { partition: fence.partition, first, last: row.position, commands: commands + 1 });
        }
        match page.last() {
            Some(last) => from = last.position + 1,
            None => return Ok(cut),
        }
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
    let partition = store.ledger(0).await.map_err(Failure::work)?.standing().map_err(Failure::work)?.fence.partition;
    while let Some(before) = store.archive_begun().await.map_err(Failure::work)? {
        let is_ours = is_checkpoint(data, partition, before.saturating_sub(1));
        if !is_ours || store.archive_rest(SLICE_ROWS).await.map_err(Failure::work)? == 0 {
            break;
        }
    }
    Ok(())
}
