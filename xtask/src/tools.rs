//! Programs that the tests start and cargo does not bring: found, fetched, or named with the command that installs them.
//! Does not install into the system: a package's own scripts would start a broker on its well-known port, and a broker
//! that somebody runs there is none of our business.

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
    if !unpacked.is_file() && find("apt-get").is_some() {
        fetch("nats-server", &folder).unwrap_or_else(|error| eprintln!("nats-server: {error:#}"));
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

/// Unpacks beside the place and moves at the end: an attempt that was interrupted is not taken for the package.
fn fetch(package: &str, folder: &Path) -> Result<()> {
    eprintln!("fetching Debian's package {package} into {}", folder.display());
    let part = folder.with_extension("part");
    for leftover in [folder, &part] {
        if leftover.exists() {
            std::fs::remove_dir_all(leftover)?;
        }
    }
    std::fs::create_dir_all(&part)?;
    // A fresh machine has no package lists yet.
    download(package, &part).or_else(|_| {
        quietly("apt-get", &["update"], &part)?;
        download(package, &part)
    })?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
    let files = std::fs::read_dir(&part)?.filter_map(|entry| Some(entry.ok()?.path()));
    let file = files.into_iter().find(is_package).context("apt-get brought no file")?;
    quietly("dpkg-deb", &["-x", &file.to_string_lossy(), "."], &part)?;
    Ok(std::fs::rename(part, folder)?)
}

fn download(package: &str, folder: &Path) -> Result<()> {
    quietly("apt-get", &["download", package], folder)
}

/// Shows what the program said only if it failed.
fn quietly(program: &str, args: &[&str], folder: &Path) -> Result<()> {
    let output = run::command(program).args(args).current_dir(folder).output().with_context(|| program.to_owned())?;
    ensure!(
        output.status.success(),
        "{program} {} failed: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

fn target_directory() -> Result<PathBuf> {
    let metadata = run::metadata()?;
    let directory = metadata["target_directory"].as_str().context("cargo names no target directory")?;
    Ok(directory.into())
}
