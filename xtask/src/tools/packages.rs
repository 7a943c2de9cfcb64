//! Debian's packages, unpacked beside the build together with the libraries that this machine lacks. Nothing is installed.

use super::find;
use crate::run;
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Says why if it did not work; the caller looks for the file and says what to install.
pub fn fetch(package: &str, folder: &Path) {
    if find("apt-get").is_some() {
        try_fetch(package, folder).unwrap_or_else(|error| eprintln!("{package}: {error:#}"));
    }
}

/// Unpacks beside the place and moves at the end: an attempt that was interrupted is not taken for the package.
fn try_fetch(package: &str, folder: &Path) -> Result<()> {
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
    for file in std::fs::read_dir(&part)?.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_package(path)) {
        quietly("dpkg-deb", &["-x", &file.to_string_lossy(), "."], &part)?;
        std::fs::remove_file(file)?;
    }
    Ok(std::fs::rename(part, folder)?)
}

fn is_package(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "deb")
}

fn download(package: &str, folder: &Path) -> Result<()> {
    let wanted = missing(package, folder)?;
    quietly("apt-get", &[vec!["download"], wanted.iter().map(String::as_str).collect()].concat(), folder)?;
    Ok(())
}

/// What apt would install here for this package, cut down to what a server needs to run without being installed.
fn missing(package: &str, folder: &Path) -> Result<Vec<String>> {
    let said = quietly("apt-get", &["install", "--simulate", "--no-install-recommends", package], folder)?;
    let names = said.lines().filter_map(|line| line.strip_prefix("Inst ")?.split_whitespace().next());
    let wanted: Vec<String> = names.filter(|name| *name == package || is_needed(name)).map(str::to_owned).collect();
    ensure!(!wanted.is_empty(), "apt knows nothing to fetch");
    Ok(wanted)
}

/// Libraries, and the packages with a version that `postgresql` stands for. Not the C library, which must be the running
/// one; nor what compiles queries (100 MB), which the tests turn off; nor Perl, which only the installation uses.
fn is_needed(name: &str) -> bool {
    let is_versioned = ["postgresql-client-", "postgresql-"].iter().find_map(|prefix| name.strip_prefix(prefix));
    let unused = ["libc6", "libc-bin", "libc-l10n", "libllvm", "libz3", "libperl"];
    let is_library = name.starts_with("lib") && !name.ends_with("-perl");
    is_versioned.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit()))
        || is_library && !unused.iter().any(|prefix| name.starts_with(prefix))
}

/// What the program printed; what it complained about is shown only if it failed.
fn quietly(program: &str, args: &[&str], folder: &Path) -> Result<String> {
    let mut command = run::command(program);
    let output = command.args(args).current_dir(folder).output().with_context(|| program.to_owned())?;
    ensure!(
        output.status.success(),
        "{program} {} failed: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
