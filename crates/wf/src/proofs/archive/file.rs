//! The files of an archive: one line of JSON per row of the log, with everything that the row held. A file stands whole or
//! not at all. Next: back to `archive.rs`.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::value::RawValue;
use wf_core::ids::hex;
use wf_store::{AuditEntry, Ledger, LogRow, StoreError};
use wf_store_sqlite::{STORE_FILE, make_dir, put_in_place};

use super::Cut;
use crate::output::Failure;

const PAGE_ROWS: usize = 1_000;

/// The commands of a partition, `log-<partition>-<first>-<last>.jsonl`.
pub fn commands(folder: &Path, ledger: &mut dyn Ledger, cut: &Cut) -> Result<PathBuf, Failure> {
    let page = |from| ledger.log(from, PAGE_ROWS);
    write(folder, "log", cut, page, |row| row.position, Command::of)
}

/// The audit's rows of a partition, `audit-<partition>-<first>-<last>.jsonl`.
pub fn events(folder: &Path, ledger: &mut dyn Ledger, cut: &Cut) -> Result<PathBuf, Failure> {
    let page = |from| ledger.audit(from, PAGE_ROWS);
    write(folder, "audit", cut, page, |row| row.position, Told::of)
}

fn write<R>(
    folder: &Path,
    log: &str,
    cut: &Cut,
    mut page: impl FnMut(u64) -> Result<Vec<R>, StoreError>,
    position: impl Fn(&R) -> u64,
    line: impl Fn(&R) -> Result<String, serde_json::Error>,
) -> Result<PathBuf, Failure> {
    let path = folder.join(format!("{log}-{}-{}-{}.jsonl", cut.partition, cut.first, cut.last));
    let part = tempfile::NamedTempFile::new()?;
    let mut out = BufWriter::new(part.as_file());
    let mut from = cut.first;
    let mut ends = None;
    while from <= cut.last {
        let rows = page(from).map_err(Failure::work)?;
        for row in rows.iter().filter(|row| position(row) <= cut.last) {
            writeln!(out, "{}", line(row).map_err(Failure::work)?)?;
            ends = Some((ends.map_or(position(row), |(first, _)| first), position(row)));
        }
        from = rows.last().map_or(u64::MAX, |row| position(row) + 1);
    }
    // A file that somebody else has written before the rows went must not be replaced by less.
    if ends != Some((cut.first, cut.last)) {
        return Err(Failure::work("the log was archived by somebody else meanwhile: run it again"));
    }
    out.flush()?;
    drop(out);
    install(part.path(), &path)?;
    Ok(path)
}

#[derive(Serialize)]
struct Command<'r> {
    position: u64,
    id: String,
    time: i64,
    tenant: &'r str,
    verb: &'r str,
    digest: String,
    payload: &'r RawValue,
}

impl Command<'_> {
    fn of(row: &LogRow) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Command {
            position: row.position,
            id: hex(&row.id).to_string(),
            time: row.time,
            tenant: &row.tenant,
            verb: &row.verb,
            digest: format!("{:032x}", row.digest),
            payload: serde_json::from_str(&row.payload)?,
        })
    }
}

/// With its link of the chain, so that the file can be held against the row that follows it.
#[derive(Serialize)]
struct Told<'r> {
    position: u64,
    time: i64,
    tenant: &'r str,
    actor: &'r str,
    count: u32,
    chain: String,
    events: &'r RawValue,
}

impl Told<'_> {
    fn of(row: &AuditEntry) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Told {
            position: row.position,
            time: row.time,
            tenant: &row.tenant,
            actor: &row.actor,
            count: row.count,
            chain: hex(&row.chain).to_string(),
            events: serde_json::from_str(&row.events)?,
        })
    }
}

/// Copies a file to where it belongs so that it stands there whole, or not at all, also after a loss of power.
pub fn install(from: &Path, to: &Path) -> Result<(), Failure> {
    place(to, |part| fs::copy(from, part).map(drop))
}

fn place(to: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::work(format!("write {}: {error}", to.display()));
    let folder = to.parent().unwrap_or(Path::new("."));
    make_dir(folder).map_err(failed)?;
    // Removed where it does not come to its place.
    let part = tempfile::Builder::new().suffix(".part").tempfile_in(folder).map_err(failed)?.into_temp_path();
    write(&part).and_then(|()| put_in_place(&part, to)).map_err(failed)?;
    let _ = part.keep();
    Ok(())
}

/// One folder, one database, one archiving at a time. Unlocked with this value.
pub fn claim(data: &Path, id: &[u8; 32]) -> Result<fs::File, Failure> {
    let failed = |error: io::Error| Failure::work(format!("use {}: {error}", data.display()));
    let refused = |reason: &str| Failure::work(format!("{} {reason}", data.display()));
    make_dir(data).map_err(failed)?;
    if data.join(STORE_FILE).is_file() {
        return Err(refused("is the data folder of a store of its own: an archive needs another one"));
    }
    let lock = fs::File::create(data.join("archive.lock")).map_err(failed)?;
    lock.try_lock().map_err(|_| refused("is being archived to at the moment"))?;
    let (whose, id) = (data.join("archive-of"), hex(id).to_string());
    match fs::read_to_string(&whose) {
        Ok(other) if other != id => Err(refused("holds the archive of another database")),
        Ok(_) => Ok(lock),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        Err(_) => place(&whose, |part| fs::write(part, &id)).map(|()| lock),
    }
}
