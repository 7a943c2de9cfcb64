//! Taking the power away: a node runs over the layer of `tests/powerloss`, is killed, and finds what a disk could have kept.
//! Linux only. It knows no checker. Next: `powerloss::lose`, the model.

use std::io::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

use powerloss::lose::{Fate, Loss, lose};
use tempfile::TempDir;

use crate::node::Setup;
use crate::program;

/// The disk is this folder: also the store's own folder has to be made durable on it.
const DISK: &str = "disk";
pub const DATA: &str = "disk/wf-data";

#[derive(Clone, Debug)]
pub struct Power {
    layer: PathBuf,
    lies: bool,
}

/// A setup whose nodes run over the layer, until the power goes.
#[derive(Debug)]
pub struct Powered {
    pub setup: Setup,
    outside: TempDir,
}

impl Power {
    /// The layer is named by `WF_POWERLOSS_LAYER`.
    pub fn new() -> Power {
        Power { layer: program("WF_POWERLOSS_LAYER"), lies: false }
    }

    /// A disk that confirms and keeps nothing.
    pub fn that_lies() -> Power {
        Power { lies: true, ..Power::new() }
    }

    /// What lies on the disk now is safe.
    pub fn on(&self, setup: &Setup) -> Result<Powered> {
        let outside = tempfile::tempdir()?;
        let disk = setup.folder.path().join(DISK);
        std::fs::create_dir_all(&disk)?;
        copy(&disk, &outside.path().join(BEFORE))?;
        std::fs::write(outside.path().join(JOURNAL), "")?;
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        let powered = setup
            .clone()
            .data_in(DATA)
            .env("LD_PRELOAD", &path(self.layer.clone()))
            .env(powerloss::ROOT, &path(disk.canonicalize()?))
            .env(powerloss::JOURNAL, &path(outside.path().join(JOURNAL)));
        let setup = if self.lies { powered.env(powerloss::LIES, "1") } else { powered };
        Ok(Powered { setup, outside })
    }
}

impl Default for Power {
    fn default() -> Power {
        Power::new()
    }
}

const BEFORE: &str = "before";
const JOURNAL: &str = "journal";

impl Powered {
    /// Another program of the binary than a server, over the same disk.
    pub fn over(&self, command: &mut Command) {
        command.envs(self.setup.variables());
    }

    /// The node is dead already.
    pub fn off(self, fate: Fate, seed: u64) -> Result<Loss> {
        let [before, journal] = [BEFORE, JOURNAL].map(|name| self.outside.path().join(name));
        lose(&before, &journal, &self.setup.folder.path().join(DISK), fate, seed)
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to)?,
            false => drop(std::fs::copy(entry.path(), to)?),
        }
    }
    Ok(())
}
