//! Files and folders that stand whole or not at all, also after a loss of power. It knows nothing of what they hold.
//! Next: back to `open.rs`, or to `backup.rs`.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// As `create_dir_all`, and what it makes is still there after a loss of power.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).collect();
    fs::create_dir_all(dir)?;
    for parent in missing.iter().filter_map(|made| made.parent()) {
        sync_dir(named(parent));
    }
    Ok(())
}

/// Files keep their names over a loss of power only when their folder is synced too. As in SQLite a failure is none of the
/// store: there are file systems that cannot, and folders that may be written but not opened.
pub fn sync_dir(dir: &Path) {
    if let Err(error) = File::open(dir).and_then(|dir| dir.sync_all()) {
        tracing::debug!(%error, dir = %dir.display(), "a folder was not synced");
    }
}

/// A file that is written under another name gets its own: synced before, and its folder afterwards.
pub fn put_in_place(part: &Path, to: &Path) -> io::Result<()> {
    File::open(part)?.sync_all()?;
    fs::rename(part, to)?;
    File::open(to.parent().map_or(Path::new("."), named))?.sync_all()
}

fn named(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
}
