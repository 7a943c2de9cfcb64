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
    data: PathBuf,
}

impl FolderScratch {
    pub fn of(data: &Path) -> FolderScratch {
        FolderScratch { data: data.to_owned() }
    }
}

impl Scratch for FolderScratch {
    fn open(&self, partition: u16, before: u64) -> Result<ScratchStore, String> {
        let dir = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
        if let Some(checkpoint) = latest_before(&self.data, partition, before) {
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

fn latest_before(data: &Path, partition: u16, before: u64) -> Option<PathBuf> {
    let files = std::fs::read_dir(data.join(FOLDER)).ok()?.filter_map(Result::ok);
    let position = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(".db")?;
        // An earlier version knew of no partitions.
        let (of, position) = name.split_once('-').unwrap_or(("1", name));
        let position = position.parse::<u64>().ok().filter(|_| of.parse() == Ok(partition))?;
        Some((position, path))
    };
    let positions = files.filter_map(|file| position(file.path())).filter(|(position, _)| *position < before);
    positions.max().map(|(_, path)| path)
}
