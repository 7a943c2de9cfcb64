//! Programs that the tests start and cargo does not bring: found, fetched, or named with the command that installs them.
//! Does not install into the system: a package's own scripts would start a broker on its well-known port, and a broker
//! that somebody runs there is none of our business. Next: `packages.rs` unpacks Debian's packages, `postgres.rs` knows
//! what a server and a pool in front of it need.

mod packages;
mod postgres;

pub use postgres::{SharedPostgres, pgbouncer, postgres};

use crate::run;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// The path of a NATS server: `WF_NATS_SERVER`, the installed one, or the one from Debian's package unpacked beside the build.
pub fn nats_server() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("WF_NATS_SERVER").map(PathBuf::from) {
        ensure!(path.is_file(), "WF_NATS_SERVER names {}, which is no file", path.display());
        return Ok(path);
    }
    let folder = target_directory()?.join("xtask/nats-server");
    let unpacked = folder.join("usr/sbin/nats-server");
    if let Some(installed) = find("nats-server") {
        return Ok(installed);
    }
    if !unpacked.is_file() {
        packages::fetch("nats-server", &folder);
    }
    if !unpacked.is_file() {
        bail!(
            "nats-server is missing, and the tests of the NATS sink need it. On Debian or Ubuntu:\n  \
             apt-get update && apt-get install -y nats-server\n\
             Elsewhere: install it in any way and set WF_NATS_SERVER to its path"
        );
    }
    Ok(unpacked)
}

/// SQLite is compiled from its C source into the binary.
pub fn c_compiler() -> Result<()> {
    let named = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let program = named.split_whitespace().next().unwrap_or("cc");
    if Path::new(program).is_file() || find(program).is_some() {
        return Ok(());
    }
    bail!(
        "no C compiler ({program}), and SQLite needs one. On Debian or Ubuntu:\n  apt-get update && apt-get install -y gcc libc6-dev"
    )
}

/// The README's tour is done by a test as a reader does it.
pub fn curl() -> Result<()> {
    match find("curl") {
        Some(_) => Ok(()),
        None => bail!(
            "curl is missing, and the README's tour needs it. On Debian or Ubuntu:\n  \
             apt-get update && apt-get install -y curl"
        ),
    }
}

/// Also where Debian puts servers, which is not in every user's PATH.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    places.map(|place| place.join(program)).find(|candidate| candidate.is_file())
}

fn target_directory() -> Result<PathBuf> {
    let metadata = run::metadata()?;
    let directory = metadata["target_directory"].as_str().context("cargo names no target directory")?;
    Ok(directory.into())
}
