//! What happened, line by line: virtual time, who, what. Always hashed, so that two runs can be compared without keeping
//! them; printed as it happens where somebody wants to read it. Next: `world.rs`.

use std::fmt::{Arguments, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub struct Trace(Mutex<Lines>);

struct Lines {
    hasher: blake3::Hasher,
    is_shown: bool,
    line: String,
}

impl Trace {
    pub fn new(is_shown: bool) -> Trace {
        Trace(Mutex::new(Lines { hasher: blake3::Hasher::new(), is_shown, line: String::new() }))
    }

    pub fn say(&self, now_ms: u64, who: &str, what: Arguments<'_>) {
        let mut lines = lock(&self.0);
        let lines = &mut *lines;
        lines.line.clear();
        // Writing into a string does not fail.
        let _ = writeln!(lines.line, "{:>4}.{:03} {who:<8} {what}", now_ms / 1000, now_ms % 1000);
        lines.hasher.update(lines.line.as_bytes());
        if lines.is_shown {
            print!("{}", lines.line);
        }
    }

    pub fn hash(&self) -> [u8; 32] {
        *lock(&self.0).hasher.finalize().as_bytes()
    }
}

/// A poisoned lock only says that something panicked; that is reported by itself.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
