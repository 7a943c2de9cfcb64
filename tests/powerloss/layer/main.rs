//! Preloaded into a program: passes on what it asks of files below one folder, and writes down what a disk would get to
//! hear of it. Syncs are written down and not done: the machine stays up, so the page cache is the disk.
//! It decides nothing. What a loss of power makes of the journal stands in `lose.rs`.
//!
//! Watched: open with O_CREAT or O_TRUNC, write, writev, pwrite, ftruncate, fsync, fdatasync, unlink, rename, mkdir (and
//! copy_file_range and sendfile, which are refused), in the spellings that the C library exports and this program uses. Not watched: memory maps (SQLite maps `-shm` alone, which is
//! no durable data), and whatever a program does without the C library. An end-to-end test compares the files with the
//! journal, so a call that is missing here shows.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "it takes the place of C functions: raw pointers come in, and the real ones are called")]
#![allow(clippy::missing_safety_doc, reason = "each function has the contract of the C function whose name it has")]

use std::cell::Cell;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use libc::{c_char, c_int, c_uint, c_void, iovec, mode_t, off_t, size_t, ssize_t};
use powerloss::journal::{CREATE, MAKE_FOLDER, REMOVE, RENAME, RESIZE, SYNC, WRITE, encode};

struct Layer {
    root: Vec<u8>,
    journal: c_int,
    lies: bool,
    /// The power goes when so many records are written.
    records_left: AtomicU64,
}

/// What was done and what is written down about it have the same order.
static ORDER: Mutex<()> = Mutex::new(());

/// The function of this name that comes after ours: the C library's. The type is the caller's word.
macro_rules! real {
    ($name:literal, $type:ty) => {{
        static REAL: OnceLock<usize> = OnceLock::new();
        std::mem::transmute::<usize, $type>(*REAL.get_or_init(|| find($name)))
    }};
}

fn find(name: &CStr) -> usize {
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
    assert!(address != 0, "the C library has no {name:?}");
    address
}

type Open = unsafe extern "C" fn(*const c_char, c_int, mode_t) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, mode_t) -> c_int;
type Write = unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
type WriteV = unsafe extern "C" fn(c_int, *const iovec, c_int) -> ssize_t;
type PWrite = unsafe extern "C" fn(c_int, *const c_void, size_t, off_t) -> ssize_t;
type Copy = unsafe extern "C" fn(c_int, *mut off_t, c_int, *mut off_t, size_t, c_uint) -> ssize_t;
type SendFile = unsafe extern "C" fn(c_int, c_int, *mut off_t, size_t) -> ssize_t;
type Resize = unsafe extern "C" fn(c_int, off_t) -> c_int;
type Sync = unsafe extern "C" fn(c_int) -> c_int;
type OnePath = unsafe extern "C" fn(*const c_char) -> c_int;
type TwoPaths = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
type PathMode = unsafe extern "C" fn(*const c_char, mode_t) -> c_int;

/// Opened with the first call. Nothing in here may call a function that is ours: it would wait for itself.
fn layer() -> Option<&'static Layer> {
    static LAYER: OnceLock<Option<Layer>> = OnceLock::new();
    let make = || {
        let root = std::env::var_os(powerloss::ROOT)?;
        let mut journal = std::env::var_os(powerloss::JOURNAL)?.as_bytes().to_vec();
        journal.push(0);
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
        let journal = unsafe { real!(c"open64", Open)(journal.as_ptr().cast(), flags, 0o600) };
        let lies = std::env::var_os(powerloss::LIES).is_some();
        let records = std::env::var(powerloss::RECORDS_MAX).ok().and_then(|text| text.parse().ok());
        let records_left = AtomicU64::new(records.unwrap_or(u64::MAX));
        (journal >= 0).then(|| Layer { root: root.as_bytes().to_vec(), journal, lies, records_left })
    };
    LAYER.get_or_init(make).as_ref()
}

impl Layer {
    /// The path below the watched folder; empty for the folder itself.
    fn below(&self, path: &[u8]) -> Option<Vec<u8>> {
        let rest = path.strip_prefix(&self.root[..])?;
        let rest = if rest.is_empty() { rest } else { rest.strip_prefix(b"/")? };
        let is_durable = !rest.ends_with(b"-shm") && !rest.ends_with(b" (deleted)");
        is_durable.then(|| rest.to_vec())
    }

    /// What the descriptor stands for, as the kernel knows it: it may have been moved, duplicated, removed.
    fn of_descriptor(&self, descriptor: c_int) -> Option<Vec<u8>> {
        let link = format!("/proc/self/fd/{descriptor}\0");
        let mut path = [0u8; 4096];
        let length = unsafe { libc::readlink(link.as_ptr().cast(), path.as_mut_ptr().cast(), path.len()) };
        self.below(path.get(..usize::try_from(length).ok()?)?)
    }

    /// What the name stands for, whose folder must be there.
    fn of_path(&self, path: *const c_char) -> Option<Vec<u8>> {
        let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let folder = folder.canonicalize().ok()?;
        self.below(folder.join(path.file_name()?).as_os_str().as_bytes())
    }

    fn note(&self, kind: u8, path: &[u8], number: u64, bytes: &[u8]) {
        if self.records_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            std::process::abort();
        }
        let record = encode(kind, path, number, bytes);
        let mut rest = &record[..];
        while !rest.is_empty() {
            let written = unsafe { real!(c"write", Write)(self.journal, rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(written) {
                Ok(written) => rest = &rest[written..],
                // A disk that is full: better no program than one whose writes nobody knows.
                Err(_) => std::process::abort(),
            }
        }
    }
}

/// Does it and, where it worked, writes it down; the caller's `errno` stays what the real call made of it.
fn noted<T: PartialOrd + From<i8>>(act: impl FnOnce() -> T, note: impl FnOnce(&Layer, &T)) -> T {
    let Some(layer) = layer() else { return act() };
    let _order = ORDER.lock().unwrap_or_else(PoisonError::into_inner);
    let outcome = act();
    if outcome >= T::from(0) {
        let errno = unsafe { *libc::__errno_location() };
        note(layer, &outcome);
        unsafe { *libc::__errno_location() = errno };
    }
    outcome
}

fn opened(is_there: impl FnOnce() -> bool, flags: c_int, open: impl FnOnce() -> c_int) -> c_int {
    if flags & (libc::O_CREAT | libc::O_TRUNC) == 0 {
        return open();
    }
    let was_there = Cell::new(true);
    let act = || {
        was_there.set(is_there());
        open()
    };
    noted(act, |layer, descriptor| {
        let Some(path) = layer.of_descriptor(*descriptor) else { return };
        if !was_there.get() {
            layer.note(CREATE, &path, 0, b"");
        } else if flags & libc::O_TRUNC != 0 {
            layer.note(RESIZE, &path, 0, b"");
        }
    })
}

fn is_there(folder: c_int, path: *const c_char) -> bool {
    unsafe { libc::faccessat(folder, path, libc::F_OK, 0) == 0 }
}

// In C these take the mode only where a file is made. On the systems that this is built for an argument more is harmless.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    opened(|| is_there(libc::AT_FDCWD, path), flags, || unsafe { real!(c"open", Open)(path, flags, mode) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    opened(|| is_there(libc::AT_FDCWD, path), flags, || unsafe { real!(c"open64", Open)(path, flags, mode) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    opened(|| is_there(folder, path), flags, || unsafe { real!(c"openat", OpenAt)(folder, path, flags, mode) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    opened(|| is_there(folder, path), flags, || unsafe { real!(c"openat64", OpenAt)(folder, path, flags, mode) })
}

/// Where the next `write` will stand: its own place, or the end.
fn place(descriptor: c_int) -> u64 {
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    let place = match flags & libc::O_APPEND {
        0 => unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) },
        _ => {
            let mut about = unsafe { std::mem::zeroed::<libc::stat>() };
            unsafe { libc::fstat(descriptor, &mut about) };
            about.st_size
        }
    };
    u64::try_from(place).unwrap_or(0)
}

/// The pieces as far as they were written.
fn written(layer: &Layer, descriptor: c_int, offset: u64, pieces: &[(*const c_void, size_t)], count: ssize_t) {
    let Some(path) = layer.of_descriptor(descriptor) else { return };
    let mut bytes = Vec::new();
    for (start, length) in pieces {
        let left = usize::try_from(count).unwrap_or(0) - bytes.len();
        let piece = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), left.min(*length)) };
        bytes.extend_from_slice(piece);
    }
    layer.note(WRITE, &path, offset, &bytes);
}

/// Sockets and pipes are most of what is written: they pass unlocked.
fn is_watched(descriptor: c_int) -> bool {
    let errno = unsafe { *libc::__errno_location() };
    let is_watched = layer().is_some_and(|layer| layer.of_descriptor(descriptor).is_some());
    unsafe { *libc::__errno_location() = errno };
    is_watched
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(descriptor: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
    let act = || unsafe { real!(c"write", Write)(descriptor, bytes, count) };
    if !is_watched(descriptor) {
        return act();
    }
    let offset = place(descriptor);
    noted(act, |layer, done| written(layer, descriptor, offset, &[(bytes, count)], *done))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(descriptor: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    let act = || unsafe { real!(c"writev", WriteV)(descriptor, pieces, count) };
    if !is_watched(descriptor) {
        return act();
    }
    let offset = place(descriptor);
    let pieces = unsafe { std::slice::from_raw_parts(pieces, usize::try_from(count).unwrap_or(0)) };
    let pieces: Vec<_> = pieces.iter().map(|piece| (piece.iov_base.cast_const(), piece.iov_len)).collect();
    noted(act, |layer, done| written(layer, descriptor, offset, &pieces, *done))
}

fn positioned(real: PWrite, descriptor: c_int, bytes: *const c_void, count: size_t, offset: off_t) -> ssize_t {
    let note = |layer: &Layer, done: &ssize_t| {
        written(layer, descriptor, u64::try_from(offset).unwrap_or(0), &[(bytes, count)], *done);
    };
    noted(|| unsafe { real(descriptor, bytes, count, offset) }, note)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(descriptor: c_int, bytes: *const c_void, count: size_t, offset: off_t) -> ssize_t {
    positioned(unsafe { real!(c"pwrite", PWrite) }, descriptor, bytes, count, offset)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(descriptor: c_int, bytes: *const c_void, count: size_t, offset: off_t) -> ssize_t {
    positioned(unsafe { real!(c"pwrite64", PWrite) }, descriptor, bytes, count, offset)
}

fn resized(real: Resize, descriptor: c_int, length: off_t) -> c_int {
    noted(
        || unsafe { real(descriptor, length) },
        |layer, _| {
            let path = layer.of_descriptor(descriptor);
            path.into_iter().for_each(|path| layer.note(RESIZE, &path, u64::try_from(length).unwrap_or(0), b""));
        },
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate(descriptor: c_int, length: off_t) -> c_int {
    resized(unsafe { real!(c"ftruncate", Resize) }, descriptor, length)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate64(descriptor: c_int, length: off_t) -> c_int {
    resized(unsafe { real!(c"ftruncate64", Resize) }, descriptor, length)
}

/// What is not watched is synced in earnest.
fn synced(real: Sync, descriptor: c_int) -> c_int {
    if !is_watched(descriptor) {
        return unsafe { real(descriptor) };
    }
    noted(
        || 0,
        |layer, _| {
            let path = layer.of_descriptor(descriptor).filter(|_| !layer.lies);
            path.into_iter().for_each(|path| layer.note(SYNC, &path, 0, b""));
        },
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(descriptor: c_int) -> c_int {
    synced(unsafe { real!(c"fsync", Sync) }, descriptor)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    synced(unsafe { real!(c"fdatasync", Sync) }, descriptor)
}

/// Refused where somebody watches: the caller then reads and writes, as it must between some file systems anyway.
fn refused(descriptor: c_int, error: c_int, act: impl FnOnce() -> ssize_t) -> ssize_t {
    if !is_watched(descriptor) {
        return act();
    }
    unsafe { *libc::__errno_location() = error };
    -1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_file_range(
    from: c_int,
    from_offset: *mut off_t,
    to: c_int,
    to_offset: *mut off_t,
    count: size_t,
    flags: c_uint,
) -> ssize_t {
    refused(to, libc::ENOSYS, || unsafe {
        real!(c"copy_file_range", Copy)(from, from_offset, to, to_offset, count, flags)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    refused(to, libc::EINVAL, || unsafe { real!(c"sendfile64", SendFile)(to, from, offset, count) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    let known = layer().and_then(|layer| layer.of_path(path));
    let note = |layer: &Layer, _: &c_int| known.iter().for_each(|path| layer.note(REMOVE, path, 0, b""));
    noted(|| unsafe { real!(c"unlink", OnePath)(path) }, note)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let known = layer().and_then(|layer| layer.of_path(from).zip(layer.of_path(to)));
    let note = |layer: &Layer, _: &c_int| known.iter().for_each(|(from, to)| layer.note(RENAME, from, 0, to));
    noted(|| unsafe { real!(c"rename", TwoPaths)(from, to) }, note)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    let known = layer().and_then(|layer| layer.of_path(path));
    let note = |layer: &Layer, _: &c_int| known.iter().for_each(|path| layer.note(MAKE_FOLDER, path, 0, b""));
    noted(|| unsafe { real!(c"mkdir", PathMode)(path, mode) }, note)
}
