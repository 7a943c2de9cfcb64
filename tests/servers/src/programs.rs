//! Where the servers' programs are, and as whom they run: PostgreSQL refuses root, so root hands it to another user.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const POSTGRES_MISSING: &str = "PostgreSQL is missing, and this test needs a server of its own. On Debian or Ubuntu:\n  \
     apt-get update && apt-get install -y postgresql\n\
     Elsewhere: install it in any way and set WF_POSTGRES_BIN to the folder with initdb and postgres; \
     `cargo xtask test` fetches it on Debian";

const PGBOUNCER_MISSING: &str = "PgBouncer is missing, and this test needs it. On Debian or Ubuntu:\n  \
     apt-get update && apt-get install -y pgbouncer\n\
     Elsewhere: install it in any way and set WF_PGBOUNCER to its path; `cargo xtask test` fetches it on Debian";

/// `WF_POSTGRES_BIN`, else from PATH, else the newest that Debian's packages installed.
pub fn postgres(program: &str) -> PathBuf {
    let named = std::env::var_os("WF_POSTGRES_BIN").map(PathBuf::from);
    let folder = named.or_else(folder_in_path).or_else(newest_of_debian);
    let path = folder.unwrap_or_else(|| panic!("{POSTGRES_MISSING}")).join(program);
    assert!(path.is_file(), "{} is missing.\n{POSTGRES_MISSING}", path.display());
    path
}

pub fn pgbouncer() -> PathBuf {
    let named = std::env::var_os("WF_PGBOUNCER").map(PathBuf::from);
    let path = named.or_else(|| in_path("pgbouncer")).unwrap_or_else(|| panic!("{PGBOUNCER_MISSING}"));
    assert!(path.is_file(), "{} is missing.\n{PGBOUNCER_MISSING}", path.display());
    path
}

/// A link into another folder is followed: not every program need have one.
fn folder_in_path() -> Option<PathBuf> {
    Some(in_path("initdb")?.canonicalize().ok()?.parent()?.to_owned())
}

fn newest_of_debian() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path());
    let newest = versions.max_by_key(|path| path.file_name()?.to_str()?.parse::<u32>().ok())?;
    Some(newest.join("bin")).filter(|folder| folder.join("initdb").is_file())
}

/// Also where Debian puts servers, which is not in every user's PATH.
fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    places.map(|place| place.join(program)).find(|candidate| candidate.is_file())
}

/// Runs the program as somebody whom servers accept, with the libraries that were unpacked beside it, in a process group
/// of its own: an interrupt at the terminal goes to the test, and the test ends its servers.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).process_group(0).current_dir("/").env("LC_ALL", "C");
    if let Some((user, group)) = somebody() {
        command.uid(user).gid(group);
    }
    if let Some(libraries) = unpacked_libraries(program) {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    command
}

/// For root: the user and group of `postgres`, or of `nobody` where that user does not exist.
fn somebody() -> Option<(u32, u32)> {
    let users =
        rustix::process::geteuid().is_root().then(|| std::fs::read_to_string("/etc/passwd").unwrap_or_default())?;
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).unwrap_or((65_534, 65_534)))
}

/// A folder of the servers' own: PostgreSQL takes no data folder that others may read.
pub fn own_folder(path: &Path) {
    std::fs::create_dir_all(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    std::fs::set_permissions(path, Permissions::from_mode(0o700)).expect("permissions");
    hand_over(path);
}

/// Gives a folder or file to whom the servers run as.
pub fn hand_over(path: &Path) {
    if let Some((user, group)) = somebody() {
        std::os::unix::fs::chown(path, Some(user), Some(group))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// A package that was unpacked and not installed has its libraries under its own root: `ROOT/usr/lib/x86_64-linux-gnu`.
fn unpacked_libraries(program: &Path) -> Option<OsString> {
    let root = program.ancestors().skip_while(|path| !path.ends_with("usr")).nth(1)?;
    root.parent()?;
    let folders =
        ["usr/lib", "lib"].into_iter().filter_map(|folder| root.join(folder).read_dir().ok()).flatten().flatten();
    let libraries = folders.map(|entry| entry.path()).filter(|path| path.to_string_lossy().ends_with("-linux-gnu"));
    std::env::join_paths(libraries).ok().filter(|paths| !paths.is_empty())
}

/// Runs a program to its end; what it said is in the panic if it failed.
pub fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", shown(command)));
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{} ({}): {}", shown(command), output.status, String::from_utf8_lossy(&said));
}

fn shown(command: &Command) -> String {
    let reachable = "can the user that it runs as reach it?";
    format!("{} ({reachable})", command.get_program().to_string_lossy())
}
