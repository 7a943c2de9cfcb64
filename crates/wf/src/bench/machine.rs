//! What this machine can do without us: its disk's syncs, and SQLite taking the rows of our starts in batches.
//! The tables here are a calibration, not the store's schema: the same columns, bytes and indexes, no logic.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::output::{self, Failure};

use super::Bench;
use super::histogram::Histogram;
use super::load::Random;
use super::postgres::{self, Postgres};

const SYNC_BYTES: usize = 16 << 10;
const FILE_BYTES: u64 = 16 << 20;
/// As many starts per transaction as clients would fill a turn with.
pub const BATCH: u64 = 64;
pub const MEASURE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, Default)]
pub struct Machine {
    pub sync: Duration,
    pub sync_p99: Duration,
    /// Starts whose rows SQLite takes in a second.
    pub sqlite_starts: f64,
    /// Whole instances of one task: the rows of a start, then those of a completion.
    pub sqlite_whole: f64,
    /// Where the server's store is one.
    pub postgres: Option<Postgres>,
}

pub async fn measure(bench: &Bench) -> Result<Machine, Failure> {
    let (folder, full) = (bench.folder.clone(), bench.args.durability == "full");
    let bar = output::progress(1, "the disk, and SQLite alone");
    let work = tokio::task::spawn_blocking(move || both(folder, full));
    let machine = work.await.map_err(Failure::work)?;
    bar.finish_and_clear();
    let mut machine = machine?;
    if let Some(url) = bench.postgres() {
        machine.postgres = Some(postgres::measure(url, bench.args.clients).await?);
    }
    Ok(machine)
}

fn both(folder: PathBuf, full: bool) -> Result<Machine, Failure> {
    let (sync, sync_p99) = syncs(&folder.join("sync.bin"))?;
    let path = folder.join("calibration.db");
    let sqlite_starts = inserts(&path, full, &START).map_err(Failure::work)?;
    let whole: Vec<&str> = START.iter().chain(&COMPLETION).copied().collect();
    let sqlite_whole = inserts(&path, full, &whole).map_err(Failure::work)?;
    Ok(Machine { sync, sync_p99, sqlite_starts, sqlite_whole, postgres: None })
}

/// fdatasync of 16 KiB each, on a file that has all its blocks already.
fn syncs(path: &Path) -> Result<(Duration, Duration), Failure> {
    let mut file = File::create(path)?;
    let block = vec![7_u8; SYNC_BYTES];
    for _ in 0..FILE_BYTES / SYNC_BYTES as u64 {
        file.write_all(&block)?;
    }
    file.sync_all()?;
    let (mut times, started) = (Histogram::default(), Instant::now());
    while started.elapsed() < MEASURE / 2 {
        if file.stream_position()? + SYNC_BYTES as u64 > FILE_BYTES {
            file.seek(SeekFrom::Start(0))?;
        }
        let begun = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.record(begun.elapsed());
    }
    std::fs::remove_file(path)?;
    Ok((times.quantile(0.5), times.quantile(0.99)))
}

/// What one start leaves: record with its answer, command, scope, element, variables, job, audit line.
const SCHEMA: &str = "
    CREATE TABLE record (tenant TEXT NOT NULL, key TEXT NOT NULL, fingerprint BLOB NOT NULL, expires_at INTEGER NOT NULL,
        status INTEGER NOT NULL, headers TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (tenant, key)) STRICT, WITHOUT ROWID;
    CREATE INDEX record_expires ON record (expires_at);
    CREATE TABLE command (position INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, body BLOB NOT NULL, digest BLOB NOT NULL) STRICT;
    CREATE TABLE scope (key INTEGER PRIMARY KEY, tenant TEXT NOT NULL, process TEXT NOT NULL, state INTEGER NOT NULL,
        started_at INTEGER NOT NULL) STRICT;
    CREATE TABLE element (key INTEGER PRIMARY KEY, scope INTEGER NOT NULL, element_id TEXT NOT NULL, state INTEGER NOT NULL) STRICT;
    CREATE TABLE variable (scope INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (scope, name)) STRICT, WITHOUT ROWID;
    CREATE TABLE job (key INTEGER PRIMARY KEY, tenant TEXT NOT NULL, type TEXT NOT NULL, state INTEGER NOT NULL,
        priority INTEGER NOT NULL, retries INTEGER NOT NULL, element INTEGER NOT NULL) STRICT;
    CREATE INDEX job_ready ON job (tenant, type, priority DESC, key) WHERE state = 0;
    CREATE TABLE audit (position INTEGER PRIMARY KEY, time INTEGER NOT NULL, actor TEXT NOT NULL, events TEXT NOT NULL,
        hash BLOB NOT NULL) STRICT;";

const START: [&str; 8] = [
    "INSERT INTO record VALUES ('default', ?1, zeroblob(32), ?2, 201, '', zeroblob(180))",
    "INSERT INTO command VALUES (?2, ?1, zeroblob(160), zeroblob(16))",
    "INSERT INTO scope VALUES (?2, 'default', 'bench-one-task', 0, ?2)",
    "INSERT INTO element VALUES (?2, ?2, 'task', 0)",
    "INSERT INTO variable VALUES (?2, 'orderId', '\"o-1\"')",
    "INSERT INTO variable VALUES (?2, 'amount', '12.50')",
    "INSERT INTO job VALUES (?2, 'default', 'bench-task', 0, 0, 3, ?2)",
    "INSERT INTO audit VALUES (?2, ?2, 'anonymous', hex(zeroblob(150)), zeroblob(32))",
];

/// ?3 is a position of its own.
const COMPLETION: [&str; 6] = [
    "INSERT INTO command VALUES (?3, ?1, zeroblob(120), zeroblob(16))",
    "INSERT INTO variable VALUES (?2, 'paid', 'true')",
    "UPDATE job SET state = 2 WHERE key = ?2",
    "DELETE FROM element WHERE key = ?2",
    "UPDATE scope SET state = 1 WHERE key = ?2",
    "INSERT INTO audit VALUES (?3, ?2, 'bench-1', hex(zeroblob(150)), zeroblob(32))",
];
/// Positions of completions lie beyond those of starts.
const SECOND: i64 = 1 << 40;

fn inserts(path: &Path, full: bool, rows: &[&str]) -> rusqlite::Result<f64> {
    let mut database = Connection::open(path)?;
    let synchronous = if full { "FULL" } else { "NORMAL" };
    database.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -65536; {SCHEMA}"
    ))?;
    let (mut random, mut next) = (Random(1), 1_u64);
    let started = Instant::now();
    while started.elapsed() < MEASURE {
        let transaction = database.transaction()?;
        for position in next..next + BATCH {
            one(&transaction, rows, &random.key(), position)?;
        }
        transaction.commit()?;
        next += BATCH;
    }
    let rate = (next - 1) as f64 / started.elapsed().as_secs_f64();
    drop(database);
    for suffix in ["", "-wal", "-shm"] {
        // Left over is no harm.
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    Ok(rate)
}

/// All statements of one instance: its key, its position, and the position of its completion.
fn one(transaction: &rusqlite::Transaction, rows: &[&str], key: &str, position: u64) -> rusqlite::Result<()> {
    let number = i64::try_from(position).unwrap_or(i64::MAX);
    // A command's id begins with its time, as ours does.
    let id = [&position.to_be_bytes()[..], &key.as_bytes()[..8]].concat();
    for sql in rows {
        let mut statement = transaction.prepare_cached(sql)?;
        for (index, value) in [Value::from(key.to_owned()), number.into(), (number + SECOND).into()].iter().enumerate()
        {
            if index < statement.parameter_count() {
                statement.raw_bind_parameter(index + 1, value)?;
            }
        }
        if sql.starts_with("INSERT INTO command") {
            statement.raw_bind_parameter(1, if sql.contains("?3") { second(&id) } else { id.clone() })?;
        }
        statement.raw_execute()?;
    }
    Ok(())
}

fn second(id: &[u8]) -> Vec<u8> {
    let mut id = id.to_vec();
    id.iter_mut().last().into_iter().for_each(|byte| *byte ^= 0xff);
    id
}
