//! The store that a replay works on: in a folder of the system's for temporary things, empty or begun from a checkpoint.
//! Checkpoints are stores too, one file each, named by partition and position. Next: `archive.rs`, which writes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use wf_server::{Folder, Scratch, ScratchStore};
use wf_store_sqlite::{Durability, Options, STORE_FILE, SqliteStore};

const FOLDER: &str = "checkpoints";

/// Scratch stores for the replay of one data folder.
pub struct FolderScratch {
    /// Where checkpoints may lie.
    data: Option<PathBuf>,
}

impl FolderScratch {
    pub fn of(data: &Path) -> FolderScratch {
        FolderScratch { data: Some(data.to_owned()) }
    }

    pub fn without_checkpoints() -> FolderScratch {
        FolderScratch { data: None }
    }
}

impl Scratch for FolderScratch {
    fn open(&self, partition: u16, before: u64) -> Result<ScratchStore, String> {
        let dir = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
        let checkpoint = self.data.as_ref().and_then(|data| latest_before(data, partition, before));
        if let Some(checkpoint) = checkpoint {
            let copied = std::fs::copy(&checkpoint, dir.path().join(STORE_FILE));
            copied.map_err(|error| format!("copy {}: {error}", checkpoint.display()))?;
        }
        let store = open_in(dir.path())?;
        Ok(ScratchStore { store: Arc::new(store), guard: Box::new(TempFolder(dir)) })
    }
}

struct TempFolder(TempDir);

impl Folder for TempFolder {
    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn open_in(dir: &Path) -> Result<SqliteStore, String> {
    let options = Options { dir: dir.to_owned(), durability: Durability::Scratch, pages_max: None };
    SqliteStore::open(options).map_err(|error| error.to_string())
}

pub fn checkpoint_path(data: &Path, partition: u16, position: u64) -> PathBuf {
    data.join(FOLDER).join(format!("{partition}-{position}.db"))
}

/// Whether there is one of this position.
pub fn is_checkpoint(data: &Path, partition: u16, position: u64) -> bool {
    checkpoints(data, partition).any(|(of, _)| of == position)
}

fn latest_before(data: &Path, partition: u16, before: u64) -> Option<PathBuf> {
    checkpoints(data, partition).filter(|(position, _)| *position < before).max().map(|(_, path)| path)
}

fn checkpoints(data: &Path, partition: u16) -> impl Iterator<Item = (u64, PathBuf)> {
    let files = std::fs::read_dir(data.join(FOLDER)).into_iter().flatten().filter_map(Result::ok);
    files.filter_map(move |file| Some((position_of(file.file_name().to_str()?, partition)?, file.path())))
}

/// An earlier version knew of no partitions: `<position>.db`.
fn position_of(name: &str, partition: u16) -> Option<u64> {
    let name = name.strip_suffix(".db")?;
    let (of, position) = name.split_once('-').unwrap_or(("1", name));
    position.parse().ok().filter(|_| of.parse() == Ok(partition))
}

#[cfg(test)]
mod tests {
    #[test]
    fn checkpoints_are_named_by_partition_and_position() {
        let of = super::position_of;
        assert_eq!((of("7-12.db", 7), of("7-12.db", 1), of("7-12.part", 7)), (Some(12), None, None));
        assert_eq!((of("12.db", 1), of("12.db", 2), of("x.db", 1)), (Some(12), None, None));
    }
}
