//! PostgreSQL and PgBouncer for the tests, and the cluster that one run's tests share. How a cluster is made stands in
//! `tests/servers`; this starts that crate's program and ends it.

use super::{find, packages, target_directory};
use crate::run;
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// The folder with `initdb` and `postgres`: `WF_POSTGRES_BIN`, the installed one, or Debian's, unpacked.
pub fn postgres() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("WF_POSTGRES_BIN").map(PathBuf::from) {
        ensure!(is_complete(&folder), "WF_POSTGRES_BIN names {}, which has no initdb and postgres", folder.display());
        return Ok(folder);
    }
    let in_path = find("initdb").and_then(|path| Some(path.canonicalize().ok()?.parent()?.to_owned()));
    if let Some(installed) = in_path.filter(|folder| is_complete(folder)).or_else(|| newest(Path::new("/"))) {
        return Ok(installed);
    }
    let root = reachable_directory()?.join("postgresql");
    if newest(&root).is_none() {
        packages::fetch("postgresql", &root);
    }
    newest(&root).context(
        "PostgreSQL is missing, and the tests of its store need it. On Debian or Ubuntu:\n  \
         apt-get update && apt-get install -y postgresql\n\
         Elsewhere: install it in any way and set WF_POSTGRES_BIN to the folder with initdb and postgres",
    )
}

pub fn pgbouncer() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("WF_PGBOUNCER").map(PathBuf::from) {
        ensure!(path.is_file(), "WF_PGBOUNCER names {}, which is no file", path.display());
        return Ok(path);
    }
    if let Some(installed) = find("pgbouncer") {
        return Ok(installed);
    }
    let root = reachable_directory()?.join("pgbouncer");
    let unpacked = root.join("usr/sbin/pgbouncer");
    if !unpacked.is_file() {
        packages::fetch("pgbouncer", &root);
    }
    if !unpacked.is_file() {
        bail!(
            "PgBouncer is missing, and the tests behind a pool need it. On Debian or Ubuntu:\n  \
             apt-get update && apt-get install -y pgbouncer\n\
             Elsewhere: install it in any way and set WF_PGBOUNCER to its path"
        );
    }
    Ok(unpacked)
}

/// Where Debian's packages put each version.
fn newest(root: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(root.join("usr/lib/postgresql")).ok()?.flatten().map(|entry| entry.path());
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    versions
        .map(|path| (version(&path), path.join("bin")))
        .filter(|(_, bin)| is_complete(bin))
        .max()
        .map(|(_, bin)| bin)
}

fn is_complete(folder: &Path) -> bool {
    ["initdb", "postgres", "pg_basebackup"].iter().all(|program| folder.join(program).is_file())
}

/// PostgreSQL refuses to run as root, so root's tests run it as another user, who must be able to enter the folder.
fn reachable_directory() -> Result<PathBuf> {
    let beside = target_directory()?.join("xtask");
    std::fs::create_dir_all(&beside)?;
    let is_open = |folder: &Path| folder.metadata().is_ok_and(|metadata| metadata.mode() & 0o001 != 0);
    let is_root = Path::new("/proc/self").metadata().is_ok_and(|metadata| metadata.uid() == 0);
    if is_root && !beside.ancestors().all(is_open) {
        return Ok(PathBuf::from("/var/cache/onceflow"));
    }
    Ok(beside)
}

/// One cluster for all tests of a run that need a database and not a server of their own.
pub struct SharedPostgres {
    server: Child,
    pub url: String,
}

impl SharedPostgres {
    pub fn start(env: &[(&str, PathBuf)]) -> Result<SharedPostgres> {
        let program = run::shared_postgres()?;
        let mut command = run::command(program);
        command.envs(env.iter().map(|(name, value)| (name, value))).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn()?;
        let mut url = String::new();
        let output = server.stdout.take().context("no output")?;
        BufReader::new(output).read_line(&mut url)?;
        ensure!(!url.is_empty(), "the tests' PostgreSQL does not start; see above");
        Ok(SharedPostgres { server, url: url.trim().to_owned() })
    }
}

impl Drop for SharedPostgres {
    /// It ends when its input does, and so also when we are killed.
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}
