//! The store as one file, and a store from such a file. What is handed over was checked and is on the disk.
//! It knows files and pragmas, and of the rows only what tells one backup from another. Next: `open.rs`.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use wf_core::Millis;

use crate::files::{make_dir, put_in_place};
use crate::migrate;
use crate::open::{OpenError, STORE_FILE, lock, open_reader};

/// In a data directory: made by a restore, removed by the operator. Who ships asks for it first.
pub const PAUSED_FILE: &str = "shipping-paused";

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    pub schema: u32,
    pub last_position: i64,
    /// Of the last command.
    pub last_time: Millis,
    /// Messages that were not shipped yet, dead letters among them.
    pub unshipped: i64,
    pub bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("find a store in {}: there is no {STORE_FILE}", dir.display())]
    NoStore { dir: PathBuf },
    #[error("write {}: it is there already, and nothing is written over", path.display())]
    Exists { path: PathBuf },
    #[error("use {}: beside it stands {}, so it is no whole store; take a copy that `wf backup` made", path.display(), log.display())]
    NotWhole { path: PathBuf, log: PathBuf },
    #[error("use {}: it is damaged: {found}", path.display())]
    Damaged { path: PathBuf, found: String },
    #[error("use {}: it holds no store", path.display())]
    NoBackup { path: PathBuf },
    #[error("use {}: a newer version of this program made it (schema {found}, this one knows {known})", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error(transparent)]
    Locked(#[from] OpenError),
    #[error("read {}: {source}", path.display())]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error("copy {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

type Copied<T> = Result<T, CopyError>;

/// One consistent copy of the store in `dir`, whether a server runs on it or not, or was killed. A copy that is not whole
/// never has the name `to`.
pub fn backup(dir: &Path, to: &Path) -> Copied<Contents> {
    let database = dir.join(STORE_FILE);
    if !database.is_file() {
        return Err(CopyError::NoStore { dir: dir.to_owned() });
    }
    let partial = reserve(to)?;
    let written = snapshot(&database, &partial).and_then(|()| settle(&partial, to, to));
    remove_unless_done(&written, &[&partial, to]);
    written
}

/// A store in `dir` from a backup; `dir` holds none. It ships nothing until [`PAUSED_FILE`] is removed.
pub fn restore(from: &Path, dir: &Path) -> Copied<Contents> {
    let log = beside(from, "-wal");
    if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        return Err(CopyError::NotWhole { path: from.to_owned(), log });
    }
    make_dir(dir).map_err(failed(dir))?;
    let _lock = lock(dir)?;
    let database = dir.join(STORE_FILE);
    // A log of another history would be read into this one.
    let remains = ["", "-wal", "-shm", "-journal"].map(|suffix| beside(&database, suffix));
    if let Some(path) = remains.into_iter().find(|path| path.exists()) {
        return Err(CopyError::Exists { path });
    }
    let (partial, marker) = (beside(&database, ".partial"), dir.join(PAUSED_FILE));
    // The marker before the store has its name: no start in between ships.
    let written = std::fs::copy(from, &partial)
        .map_err(failed(from))
        .and_then(|_| std::fs::write(&marker, PAUSED).map_err(failed(&marker)))
        .and_then(|()| settle(&partial, &database, from));
    remove_unless_done(&written, &[&partial, &marker]);
    written
}

const PAUSED: &str = "Made by a restore. Shipping begins when this file is removed.\n";

/// These names were ours; the error says what matters.
fn remove_unless_done(written: &Copied<Contents>, paths: &[&Path]) {
    if written.is_err() {
        paths.iter().for_each(|path| drop(std::fs::remove_file(path)));
    }
}

/// Takes the name, so that nobody else does, for its owner's eyes only: a store holds secrets.
fn reserve(to: &Path) -> Copied<PathBuf> {
    let partial = beside(to, ".partial");
    for path in [to, &partial] {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        if let Err(source) = made {
            let is_first = path == to;
            let path = path.to_owned();
            if !is_first {
                let _ = std::fs::remove_file(to);
            }
            return Err(match source.kind() {
                io::ErrorKind::AlreadyExists => CopyError::Exists { path },
                _ => CopyError::Io { path, source },
            });
        }
    }
    Ok(partial)
}

/// Not a copy page by page, which would begin again with every commit.
fn snapshot(database: &Path, partial: &Path) -> Copied<()> {
    let failed = |source| CopyError::Sqlite { path: database.to_owned(), source };
    let to = partial.to_string_lossy();
    open_reader(database).and_then(|reader| reader.execute("VACUUM INTO ?1", [&*to])).map(drop).map_err(failed)
}

/// Checked, on the disk, and only then under its name. `named`: what a damage is told of.
fn settle(partial: &Path, to: &Path, named: &Path) -> Copied<Contents> {
    let contents = verify(partial, named)?;
    put_in_place(partial, to).map_err(failed(to))?;
    Ok(contents)
}

/// Opened as a file that nobody changes: no log, no lock and no index file come into being beside it.
fn verify(path: &Path, named: &Path) -> Copied<Contents> {
    let bytes = std::fs::metadata(path).map_err(failed(path))?.len();
    let named = || named.to_owned();
    let failed = |source| CopyError::Sqlite { path: named(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(immutable(path), flags).map_err(failed)?;
    let schema = migrate::version(&connection).map_err(failed)?;
    match schema {
        0 => return Err(CopyError::NoBackup { path: named() }),
        found if found > migrate::VERSION => {
            return Err(CopyError::Newer { path: named(), found, known: migrate::VERSION });
        }
        _ => (),
    }
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if found != "ok" {
        return Err(CopyError::Damaged { path: named(), found });
    }
    let unshipped = "SELECT count(*) FROM outbox WHERE state <> 'shipped'";
    let head = format!("SELECT last_position, last_time, ({unshipped}) FROM partition");
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let (last_position, last_time, unshipped) = connection.query_row(&head, [], read).map_err(failed)?;
    Ok(Contents { schema, last_position, last_time, unshipped, bytes })
}

fn immutable(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for character in path.to_string_lossy().chars() {
        match character {
            '%' | '?' | '#' => uri.push_str(&format!("%{:02X}", u32::from(character))),
            _ => uri.push(character),
        }
    }
    uri + "?immutable=1"
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> CopyError + use<> {
    let path = path.to_owned();
    move |source| CopyError::Io { path, source }
}
