//! What makes a store: the directory, its lock, the connections and the threads over them; what ends them in order.
//! It knows pragmas and nothing of rows. Next: `store.rs`, the contract over these parts.

use std::cmp::Ordering;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use wf_store::failpoint;

use crate::checkpoint::{self, Checkpointer, WAL_BYTES_KEPT};
use crate::files::{make_dir, sync_dir};
use crate::ledger::SqliteLedger;
use crate::migrate;
use crate::readers::{Readers, SpawnError};
use crate::sql::{CACHE_CAPACITY, Sql, Statements};
use crate::writer::{Writer, wait_for_lock};

#[derive(Clone, Debug)]
pub struct Options {
    /// The data directory; made if missing. It belongs to one process at a time.
    pub dir: PathBuf,
    pub durability: Durability,
    /// The greatest size of the database in pages of 4 KiB; a full one refuses turns as a full disk would.
    pub pages_max: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// What was answered survives a loss of power.
    Full,
    /// What was answered survives the process, not a loss of power.
    Normal,
    /// Nothing waits for the disk: for scratch stores that are thrown away, such as a replay's.
    Scratch,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("create the data directory {}: {source}", dir.display())]
    Directory { dir: PathBuf, source: std::io::Error },
    #[error("write to the data directory {}: {source}", dir.display())]
    NotWritable { dir: PathBuf, source: std::io::Error },
    #[error("use the data directory {}: another process holds it{}", dir.display(), held_by(holder))]
    Locked { dir: PathBuf, holder: Option<u32> },
    #[error(
        "open the store in {}: a newer version of this program made it (schema {found}, this one knows {known})",
        dir.display()
    )]
    Newer { dir: PathBuf, found: u32, known: u32 },
    #[error(
        "read the store in {}: an older version of this program made it (schema {found}, this one reads {known}); \
         a start of the server brings it up to date",
        dir.display()
    )]
    Older { dir: PathBuf, found: u32, known: u32 },
    #[error(
        "use the data directory {}: a restore into it was interrupted: run `wf restore` again, or remove {STORE_FILE}{PARTIAL}",
        dir.display()
    )]
    HalfRestored { dir: PathBuf },
    #[error("read the data directory {}: there is no store in it", dir.display())]
    Nothing { dir: PathBuf },
    #[error("open the store in {}: {source}", dir.display())]
    Sqlite { dir: PathBuf, source: rusqlite::Error },
    #[error("start the threads of the store: {0}")]
    Threads(std::io::Error),
}

fn held_by(holder: &Option<u32>) -> String {
    holder.map_or(String::new(), |pid| format!(" (process {pid})"))
}

/// Dropped in this order: readers first, the writer last. The last connection to close empties the log into the database,
/// and one that only reads cannot.
pub struct SqliteStore {
    pub(crate) readers: Readers,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) writer: Writer,
    pub(crate) path: PathBuf,
    /// Of the last one to open the partition.
    pub(crate) epoch: AtomicU64,
    /// Held for the life of the store; the system lets go of it even if the process is killed.
    _lock: Lock,
}

impl SqliteStore {
    /// Blocks while migrations run.
    pub fn open(options: Options) -> Result<SqliteStore, OpenError> {
        let Options { dir, durability, pages_max } = options;
        make_dir(&dir).map_err(|source| OpenError::Directory { dir: dir.clone(), source })?;
        let lock = lock(&dir)?;
        failpoint::hit("after-lock");
        let path = dir.join(STORE_FILE);
        // An empty store instead of the one that was to be restored would run everything anew.
        if !path.exists() && dir.join(format!("{STORE_FILE}{PARTIAL}")).exists() {
            return Err(OpenError::HalfRestored { dir });
        }
        let failed = |source| OpenError::Sqlite { dir: dir.clone(), source };
        make_private(&path).map_err(|source| OpenError::NotWritable { dir: dir.clone(), source })?;
        let (gauge, grown) = checkpoint::gauge();
        let mut connection = open_writer(&path, durability, pages_max).map_err(failed)?;
        prepare_schema(&mut connection, &dir)?;
        sync_dir(&dir);
        failpoint::hit("after-migration");
        Statements::new(&connection).run(Sql::ReleaseClaims).map_err(failed)?;
        let noted = gauge.clone();
        connection
            .wal_hook(Some(move |_: &mut _, frames| {
                noted.note(u32::try_from(frames).unwrap_or(0));
                Ok(())
            }))
            .map_err(failed)?;
        let writer = Writer::spawn(connection).map_err(OpenError::Threads)?;
        let checkpoints = open_checkpointer(&path, durability).map_err(failed)?;
        let checkpointer =
            Checkpointer::spawn(checkpoints, writer.checkpoints(), gauge, grown).map_err(OpenError::Threads)?;
        let readers = Readers::spawn(|| open_reader(&path)).map_err(|error| match error {
            SpawnError::Sqlite(source) => failed(source),
            SpawnError::Io(error) => OpenError::Threads(error),
        })?;
        Ok(SqliteStore { readers, checkpointer, writer, path, epoch: AtomicU64::new(0), _lock: lock })
    }
}

/// What stands in a data directory, also while a process works on it. Changes nothing and takes no lock.
pub fn read_only(dir: &Path) -> Result<SqliteLedger, OpenError> {
    let path = dir.join(STORE_FILE);
    let failed = |source| OpenError::Sqlite { dir: dir.to_owned(), source };
    if !path.is_file() {
        return Err(OpenError::Nothing { dir: dir.to_owned() });
    }
    let connection = open_reader(&path).map_err(failed)?;
    let found = migrate::version(&connection).map_err(failed)?;
    match found.cmp(&migrate::VERSION) {
        Ordering::Equal => Ok(SqliteLedger::over(connection)),
        Ordering::Greater => Err(OpenError::Newer { dir: dir.to_owned(), found, known: migrate::VERSION }),
        Ordering::Less => Err(OpenError::Older { dir: dir.to_owned(), found, known: migrate::VERSION }),
    }
}

/// What a store's file is called in its folder.
pub const STORE_FILE: &str = "wf.db";
/// Behind the name of a copy that is not whole yet.
pub(crate) const PARTIAL: &str = ".partial";
/// Not more: whenever a page splits out of order, SQLite walks its whole cache at COMMIT (while the database is below
/// 1 GiB), and measured here a larger one gained nothing above that either.
const WRITER_CACHE_KIB: i32 = 16 * 1024;
const LOCK_FILE: &str = "wf.lock";

/// SQLite itself would let two processes write in turns; the fence would then depose them in turns.
pub(crate) fn lock(dir: &Path) -> Result<Lock, OpenError> {
    let not_writable = |source| OpenError::NotWritable { dir: dir.to_owned(), source };
    let path = dir.join(LOCK_FILE);
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.as_mut().map_err(|error| not_writable(std::io::Error::new(error.kind(), error.to_string())))?;
    match file.try_lock() {
        Ok(()) => (),
        Err(TryLockError::WouldBlock) => return Err(OpenError::Locked { dir: dir.to_owned(), holder: holder(file) }),
        Err(TryLockError::Error(error)) => return Err(not_writable(error)),
    }
    let note = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
    note.map_err(not_writable)?;
    file.try_clone().map(Lock).map_err(not_writable)
}

/// Let go of by name: closing the file is not enough while a child that is being started still has it open.
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // If it fails, the end of the process does it.
        let _ = self.0.unlock();
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn prepare_schema(connection: &mut Connection, dir: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::Sqlite { dir: dir.to_owned(), source };
    let found = migrate::version(connection).map_err(failed)?;
    if found > migrate::VERSION {
        return Err(OpenError::Newer { dir: dir.to_owned(), found, known: migrate::VERSION });
    }
    migrate::migrate(connection).map_err(failed)
}

/// The store holds the secret that keys are hashed with, and everybody's variables: it is its owner's alone. SQLite gives
/// its other files the same rights.
#[cfg(unix)]
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}

#[cfg(not(unix))]
fn make_private(_path: &Path) -> std::io::Result<()> {
    Ok(())
}

fn open_writer(path: &Path, durability: Durability, pages_max: Option<u32>) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_handler(Some(wait_for_lock))?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // Checkpoints stand outside the commit path: see `checkpoint.rs`.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", WAL_BYTES_KEPT, |_| Ok(()))?;
    set_common(&connection, durability, WRITER_CACHE_KIB)?;
    if let Some(pages) = pages_max {
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    // The triggers of the logs guard against foreign hands. Here they would cost each insert two more look-ups, and this
    // connection runs nothing but the statements under `sql/`, which a test reads.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    Ok(connection)
}

fn open_checkpointer(path: &Path, durability: Durability) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    set_common(&connection, durability, 256)?;
    Ok(connection)
}

/// Also where a process works on the store, or was killed at it.
pub(crate) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_handler(Some(wait_for_lock))?;
    // A commit of the writer empties a reader's cache: a large one would not pay.
    set_common(&connection, Durability::Normal, 4 * 1024)?;
    Ok(connection)
}

fn set_common(connection: &Connection, durability: Durability, cache_kib: i32) -> rusqlite::Result<()> {
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
        Durability::Scratch => "OFF",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(CACHE_CAPACITY);
    Ok(())
}
