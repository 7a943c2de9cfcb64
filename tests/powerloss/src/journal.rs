//! What the layer writes down: one record per thing that was asked of a file, in the order in which it happened.
//! It is read after the program was killed, so the last record may be cut off. Next: `lose.rs`.

use std::path::{Path, PathBuf};

/// Paths are relative to the folder that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Create {
        path: PathBuf,
    },
    Write {
        path: PathBuf,
        offset: u64,
        bytes: Vec<u8>,
    },
    Resize {
        path: PathBuf,
        length: u64,
    },
    /// Of a file or of a folder.
    Sync {
        path: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    Rename {
        path: PathBuf,
        to: PathBuf,
    },
    MakeFolder {
        path: PathBuf,
    },
}

pub const CREATE: u8 = 1;
pub const WRITE: u8 = 2;
pub const RESIZE: u8 = 3;
pub const SYNC: u8 = 4;
pub const REMOVE: u8 = 5;
pub const RENAME: u8 = 6;
pub const MAKE_FOLDER: u8 = 7;

/// Kind, length of the path, number, length of the bytes; then the path and the bytes.
const HEAD: usize = 1 + 4 + 8 + 4;

pub fn encode(kind: u8, path: &[u8], number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + path.len() + bytes.len());
    out.push(kind);
    out.extend_from_slice(&(path.len() as u32).to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(path);
    out.extend_from_slice(bytes);
    out
}

/// All whole records.
pub fn decode(mut rest: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some((record, behind)) = first(rest) {
        records.push(record);
        rest = behind;
    }
    records
}

fn first(rest: &[u8]) -> Option<(Record, &[u8])> {
    let (head, rest) = rest.split_at_checked(HEAD)?;
    let length = |at: usize| head[at..at + 4].try_into().map(u32::from_le_bytes).ok();
    let number = head[5..13].try_into().map(u64::from_le_bytes).ok()?;
    let (path, rest) = rest.split_at_checked(length(1)? as usize)?;
    let (bytes, rest) = rest.split_at_checked(length(13)? as usize)?;
    let path = path_of(path);
    let record = match head[0] {
        CREATE => Record::Create { path },
        WRITE => Record::Write { path, offset: number, bytes: bytes.to_vec() },
        RESIZE => Record::Resize { path, length: number },
        SYNC => Record::Sync { path },
        REMOVE => Record::Remove { path },
        RENAME => Record::Rename { path, to: path_of(bytes) },
        MAKE_FOLDER => Record::MakeFolder { path },
        _ => return None,
    };
    Some((record, rest))
}

fn path_of(bytes: &[u8]) -> PathBuf {
    Path::new(&*String::from_utf8_lossy(bytes)).to_owned()
}
