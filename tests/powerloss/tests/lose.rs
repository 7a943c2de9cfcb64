//! The model of the disk by itself: what is synced stays, what is not may come in pieces. Journals are written by hand.

#![allow(clippy::unwrap_used, reason = "a test that is surprised fails")]

use std::collections::BTreeSet;
use std::path::Path;

use powerloss::journal::{CREATE, MAKE_FOLDER, REMOVE, RENAME, RESIZE, SYNC, WRITE, encode};
use powerloss::lose::{Fate, lose};

/// The folder after the loss: each file with its bytes.
fn after(before: &[(&str, &[u8])], journal: &[Vec<u8>], fate: Fate, seed: u64) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let [old, disk] = ["old", "disk"].map(|name| folder.path().join(name));
    std::fs::create_dir(&old).unwrap();
    std::fs::create_dir(&disk).unwrap();
    for (name, bytes) in before {
        std::fs::write(old.join(name), bytes).unwrap();
    }
    let records = folder.path().join("journal");
    std::fs::write(&records, journal.concat()).unwrap();
    lose(&old, &records, &disk, fate, seed).unwrap();
    let mut files = Vec::new();
    collect(&disk, &disk, &mut files);
    files.sort();
    files
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => collect(root, &entry.path(), files),
            false => {
                let name = entry.path().strip_prefix(root).unwrap().to_string_lossy().into_owned();
                files.push((name, std::fs::read(entry.path()).unwrap()));
            }
        }
    }
}

fn write(path: &str, offset: u64, bytes: &[u8]) -> Vec<u8> {
    encode(WRITE, path.as_bytes(), offset, bytes)
}

fn about(kind: u8, path: &str) -> Vec<u8> {
    encode(kind, path.as_bytes(), 0, b"")
}

#[test]
fn what_is_synced_stays_whatever_comes_later() {
    let journal = [write("f", 0, b"safe"), about(SYNC, "f"), write("f", 0, b"lost"), encode(RESIZE, b"f", 2, b"")];
    for seed in 0..50 {
        for (fate, wants) in [(Fate::Nothing, vec!["safe"]), (Fate::Everything, vec!["lo"])] {
            let files = after(&[("f", b"")], &journal, fate, seed);
            assert!(wants.iter().any(|want| files == [("f".to_owned(), want.as_bytes().to_vec())]), "{files:?}");
        }
    }
}

#[test]
fn a_file_that_was_cut_and_synced_stays_short() {
    let cut = [encode(RESIZE, b"f", 1, b""), about(SYNC, "f")];
    for fate in [Fate::Nothing, Fate::Everything, Fate::Sectors] {
        assert_eq!(after(&[("f", b"long")], &cut, fate, 0), [("f".to_owned(), b"l".to_vec())]);
    }
    let grown = [&cut[..], &[write("f", 3, b"x")]].concat();
    assert_eq!(after(&[("f", b"long")], &grown, Fate::Everything, 0), [("f".to_owned(), b"l\0\0x".to_vec())]);
}

/// Sectors of one write come for themselves, and an older write may stand where a later one is missing.
#[test]
fn what_is_not_synced_is_torn_and_overtaken() {
    let journal = [write("f", 0, &[1; 2048]), about(SYNC, "f"), write("f", 0, &[2; 2048]), write("f", 0, &[3; 2048])];
    let states: BTreeSet<Vec<u8>> = (0..200)
        .map(|seed| after(&[("f", b"")], &journal, Fate::Sectors, seed).remove(0).1)
        .map(|bytes| bytes.chunks(512).map(|sector| sector[0]).collect())
        .collect();
    assert!(states.iter().all(|state| state.len() == 4 && state.iter().all(|byte| (1..=3).contains(byte))));
    assert!(states.len() > 40, "{states:?}");
    let moments: BTreeSet<Vec<u8>> = (0..200)
        .map(|seed| after(&[("f", b"")], &journal, Fate::UpToAMoment, seed).remove(0).1)
        .map(|bytes| bytes.chunks(512).map(|sector| sector[0]).collect())
        .collect();
    assert!(moments.iter().all(|state| !(state.contains(&1) && state.contains(&3))), "in order: {moments:?}");
}

/// A name is its folder's: syncing the file does not keep it.
#[test]
fn names_are_safe_once_their_folder_is_synced() {
    let made = [about(MAKE_FOLDER, "d"), about(CREATE, "d/f"), write("d/f", 0, b"x"), about(SYNC, "d/f")];
    assert_eq!(after(&[], &made, Fate::Nothing, 0), []);
    let half = [&made[..], &[about(SYNC, "d")]].concat();
    assert_eq!(after(&[], &half, Fate::Nothing, 0), [], "the folder itself has no name yet");
    let whole = [&half[..], &[about(SYNC, "")]].concat();
    assert_eq!(after(&[], &whole, Fate::Nothing, 0), [("d/f".to_owned(), b"x".to_vec())]);
}

#[test]
fn a_removal_and_a_move_may_be_undone() {
    let old: [(&str, &[u8]); 2] = [("a", b"a"), ("b", b"b")];
    let journal = [about(REMOVE, "a"), encode(RENAME, b"b", 0, b"c")];
    let names =
        |fate, seed| after(&old, &journal, fate, seed).into_iter().map(|(name, _)| name).collect::<Vec<_>>().concat();
    assert_eq!((names(Fate::Nothing, 0), names(Fate::Everything, 0)), ("ab".to_owned(), "c".to_owned()));
    let some: BTreeSet<String> = (0..50).map(|seed| names(Fate::Sectors, seed)).collect();
    assert_eq!(some, ["ab", "ac", "b", "c"].map(str::to_owned).into());
}

/// A killed program leaves half a record.
#[test]
fn a_journal_may_end_in_the_middle() {
    let mut last = write("f", 0, b"never");
    last.truncate(last.len() - 1);
    let journal = [write("f", 0, b"x"), about(SYNC, "f"), last];
    assert_eq!(after(&[("f", b"")], &journal, Fate::Everything, 0), [("f".to_owned(), b"x".to_vec())]);
}
