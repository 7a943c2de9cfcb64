//! The disk after the loss: what was there before the program started, what it synced, and some of the rest.
//! The journal tells what the program did; the program's own files are not even read. Next: `layer/main.rs` writes it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};

use crate::journal::{self, Record};

const SECTOR: usize = 512;
const PAGE: usize = 4096;

/// What becomes of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Nothing,
    Everything,
    /// Each sector for itself: as any of the later writes left it, or as none did.
    Sectors,
    /// The same for whole pages.
    Pages,
    /// In the order of the writes up to some moment, the last one torn.
    UpToAMoment,
}

impl Fate {
    const ALL: [Fate; 5] = [Fate::Nothing, Fate::Everything, Fate::Sectors, Fate::Pages, Fate::UpToAMoment];

    pub fn of(seed: u64) -> Fate {
        Fate::ALL[(mix(seed, 0) % 5) as usize]
    }
}

/// How much there was to lose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Writes, resizes and changes of names that no sync had covered.
    pub unsynced: usize,
}

/// `folder` becomes what a disk may hold. `before` is a copy of it from before the program started, all of it safe.
pub fn lose(before: &Path, journal: &Path, folder: &Path, fate: Fate, seed: u64) -> Result<Loss> {
    let mut disk = Disk::default();
    disk.read(before, Path::new(""))?;
    journal::decode(&fs::read(journal)?).into_iter().for_each(|record| disk.apply(record));
    let loss = Loss { unsynced: disk.unsynced() };
    let dice = Dice { fate, seed };
    disk.write(folder, dice)?;
    Ok(loss)
}

/// What the program believes, and what of it is safe.
#[derive(Default)]
struct Disk {
    files: Vec<File>,
    names: BTreeMap<PathBuf, Entry>,
    safe_names: BTreeMap<PathBuf, Entry>,
    later_names: Vec<Rename>,
}

#[derive(Clone, Copy)]
enum Entry {
    Folder,
    File(usize),
}

#[derive(Default)]
struct File {
    safe: Vec<u8>,
    later: Vec<Change>,
}

enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Resize(usize),
}

/// A change of names: what was there goes, what comes is there.
#[derive(Clone)]
struct Rename {
    gone: Option<PathBuf>,
    come: Option<(PathBuf, Entry)>,
}

impl Disk {
    fn read(&mut self, root: &Path, path: &Path) -> Result<()> {
        for entry in fs::read_dir(root.join(path))? {
            let entry = entry?;
            let name = path.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.safe_names.insert(name.clone(), Entry::Folder);
                self.read(root, &name)?;
            } else {
                self.files.push(File { safe: fs::read(entry.path())?, later: Vec::new() });
                self.safe_names.insert(name, Entry::File(self.files.len() - 1));
            }
        }
        self.names = self.safe_names.clone();
        Ok(())
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Create { path } => {
                self.files.push(File::default());
                self.name(None, Some((path, Entry::File(self.files.len() - 1))));
            }
            Record::MakeFolder { path } => self.name(None, Some((path, Entry::Folder))),
            Record::Remove { path } => self.name(Some(path), None),
            Record::Rename { path, to } => {
                if let Some(entry) = self.names.get(&path).copied() {
                    self.name(Some(path), Some((to, entry)));
                }
            }
            Record::Write { path, offset, bytes } => {
                self.change(&path, Change::Write { offset: offset as usize, bytes });
            }
            Record::Resize { path, length } => self.change(&path, Change::Resize(length as usize)),
            Record::Sync { path } => self.sync(&path),
        }
    }

    fn name(&mut self, gone: Option<PathBuf>, come: Option<(PathBuf, Entry)>) {
        let rename = Rename { gone, come };
        rename.apply(&mut self.names);
        self.later_names.push(rename);
    }

    fn change(&mut self, path: &Path, change: Change) {
        if let Some(Entry::File(file)) = self.names.get(path) {
            self.files[*file].later.push(change);
        }
    }

    fn sync(&mut self, path: &Path) {
        match self.names.get(path) {
            Some(Entry::File(file)) => self.files[*file].sync(),
            Some(Entry::Folder) => self.sync_names(path),
            None if path.as_os_str().is_empty() => self.sync_names(path),
            None => (),
        }
    }

    fn sync_names(&mut self, folder: &Path) {
        let (synced, later) = std::mem::take(&mut self.later_names)
            .into_iter()
            .partition(|rename: &Rename| rename.folder() == Some(folder));
        self.later_names = later;
        let synced: Vec<Rename> = synced;
        synced.iter().for_each(|rename| rename.apply(&mut self.safe_names));
    }

    fn unsynced(&self) -> usize {
        self.later_names.len() + self.files.iter().map(|file| file.later.len()).sum::<usize>()
    }

    fn write(self, folder: &Path, dice: Dice) -> Result<()> {
        let mut names = self.safe_names;
        let moment = mix(dice.seed, 1) as usize % (self.later_names.len() + 1);
        for (n, rename) in self.later_names.iter().enumerate() {
            if dice.keeps_name(n, moment) {
                rename.apply(&mut names);
            }
        }
        for entry in fs::read_dir(folder)?.collect::<Result<Vec<_>>>()? {
            let path = entry.path();
            if entry.file_type()?.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        for (path, entry) in &names {
            // What stands in a folder that is gone is gone with it: a folder comes before what it holds.
            let place = folder.join(path);
            if !place.parent().is_some_and(Path::is_dir) {
                continue;
            }
            match entry {
                Entry::Folder => fs::create_dir(&place)?,
                Entry::File(file) => match is_shared_memory(path) {
                    true if mix(dice.seed, 2).is_multiple_of(2) => (),
                    true => fs::write(&place, noise(dice.seed))?,
                    false => fs::write(&place, self.files[*file].after(dice, *file as u64))?,
                },
            }
        }
        Ok(())
    }
}

impl Rename {
    fn apply(&self, names: &mut BTreeMap<PathBuf, Entry>) {
        if let Some(gone) = &self.gone {
            names.remove(gone);
        }
        if let Some((path, entry)) = &self.come {
            names.insert(path.clone(), *entry);
        }
    }

    fn folder(&self) -> Option<&Path> {
        let path = self.come.as_ref().map(|(path, _)| path).or(self.gone.as_ref());
        path.and_then(|path| path.parent())
    }
}

impl File {
    fn sync(&mut self) {
        for change in self.later.drain(..) {
            change.apply(&mut self.safe, |_| true);
            if let Change::Resize(length) = change {
                self.safe.truncate(length);
            }
        }
    }

    fn after(&self, dice: Dice, file: u64) -> Vec<u8> {
        let all = self.later.len();
        let mut bytes = self.safe.clone();
        let mut length = bytes.len();
        let length_until = dice.until(file, u64::MAX, all);
        let mut now = bytes.len();
        for (n, change) in self.later.iter().enumerate() {
            change.apply(&mut bytes, |sector| n < dice.until(file, sector as u64, all));
            now = match change {
                Change::Write { offset, bytes } => now.max(offset + bytes.len()),
                Change::Resize(length) => *length,
            };
            length = if n < length_until { now } else { length };
        }
        bytes.resize(length, 0);
        bytes
    }
}

impl Change {
    /// To the sectors that are chosen. What is cut off becomes zeros: the length is decided elsewhere.
    fn apply(&self, file: &mut Vec<u8>, is_chosen: impl Fn(usize) -> bool) {
        match self {
            Change::Write { offset, bytes } => {
                let end = offset + bytes.len();
                file.resize(file.len().max(end), 0);
                for sector in offset / SECTOR..end.div_ceil(SECTOR) {
                    let (from, to) = ((sector * SECTOR).max(*offset), ((sector + 1) * SECTOR).min(end));
                    if is_chosen(sector) {
                        file[from..to].copy_from_slice(&bytes[from - offset..to - offset]);
                    }
                }
            }
            Change::Resize(length) if *length < file.len() => {
                for sector in length / SECTOR..file.len().div_ceil(SECTOR) {
                    let (from, to) = ((sector * SECTOR).max(*length), ((sector + 1) * SECTOR).min(file.len()));
                    if is_chosen(sector) {
                        file[from..to].fill(0);
                    }
                }
            }
            Change::Resize(length) => file.resize(*length, 0),
        }
    }
}

#[derive(Clone, Copy)]
struct Dice {
    fate: Fate,
    seed: u64,
}

impl Dice {
    /// How many of the file's later changes this sector has seen.
    fn until(&self, file: u64, sector: u64, all: usize) -> usize {
        let thrown = |of: u64| mix(mix(self.seed, file), of) as usize % (all + 1);
        match self.fate {
            Fate::Nothing => 0,
            Fate::Everything => all,
            Fate::Sectors => thrown(sector),
            Fate::Pages if sector == u64::MAX => thrown(sector),
            Fate::Pages => thrown(sector / (PAGE / SECTOR) as u64),
            // The change at that moment reaches every other sector or so.
            Fate::UpToAMoment => (thrown(u64::MAX) + mix(self.seed, sector) as usize % 2).min(all),
        }
    }

    fn keeps_name(&self, n: usize, moment: usize) -> bool {
        match self.fate {
            Fate::Nothing => false,
            Fate::Everything => true,
            Fate::Sectors | Fate::Pages => mix(self.seed, n as u64).is_multiple_of(2),
            Fate::UpToAMoment => n < moment,
        }
    }
}

fn is_shared_memory(path: &Path) -> bool {
    path.to_string_lossy().ends_with("-shm")
}

fn noise(seed: u64) -> Vec<u8> {
    (0..4096).flat_map(|n| mix(seed, n).to_le_bytes()).collect()
}

/// Any number from two (the finaliser of splitmix64).
fn mix(a: u64, b: u64) -> u64 {
    let mut x = a ^ b.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
