//! Keys and deterministic ids. Nothing here is random: the same input gives the same id on every node and in a replay.

use std::sync::Arc;

use crate::partitions::Partitions;
use crate::planted::{self, Bug};
use crate::text::push_hex;

/// 12 bits partition, 51 bits counter; fits a signed 64-bit integer. 0 stands for *none*.
pub type Key = u64;
/// Milliseconds since 1970-01-01T00:00:00Z.
pub type Millis = i64;

pub const COUNTER_BITS: u32 = 51;
/// 2026-01-01T00:00:00Z, the zero of epoch counters.
pub const EPOCH_ZERO_MS: Millis = 1_767_225_600_000;
/// Counters are lifted to milliseconds times this when a partition is opened: a million ids per second, and never fewer
/// than the first version gave, which lifted by whole seconds.
pub const EPOCH_IDS_PER_MS: u64 = 1_049;
/// The version of this crate's behaviour, written into each epoch: a replay does as the version did that wrote the log.
pub const SEMANTICS: u32 = 2;

pub fn key(partition: u16, counter: u64) -> Key {
    (u64::from(partition) << COUNTER_BITS) | counter
}

pub fn partition_of(key: Key) -> u16 {
    (key >> COUNTER_BITS) as u16
}

/// The partition that a name is at home in: the same on every node and for ever.
pub fn home(parts: &[&[u8]], partitions: Partitions) -> u16 {
    let hash = hash16(parts);
    partitions.pick(u64::from_be_bytes([hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]]))
}

/// Where a message is received and its subscriptions stand. All names of one correlation key meet in one partition: there
/// the locks are that keep one instance per key. A message without a key has no lock, and is spread by its name.
pub fn home_of_message(tenant: &str, name: &str, correlation_key: &str, partitions: Partitions) -> u16 {
    match correlation_key {
        "" => home(&[b"message", tenant.as_bytes(), name.as_bytes()], partitions),
        key => home(&[b"correlation", tenant.as_bytes(), key.as_bytes()], partitions),
    }
}

/// Where instances with this unique value live: a twin is always found there.
pub fn home_of_unique(tenant: &str, process_id: &str, variable: &str, value: &[u8; 16], partitions: Partitions) -> u16 {
    home(&[b"unique", tenant.as_bytes(), process_id.as_bytes(), variable.as_bytes(), value], partitions)
}

/// Where counters start in a newly opened epoch: a store that was restored from a backup never gives an id of the
/// lost history to a different event, not even within the second in which it was lost.
pub fn epoch_floor(now: Millis, semantics: u32) -> u64 {
    if planted::is(Bug::IdsAgain) {
        return 0;
    }
    let ms = now.saturating_sub(EPOCH_ZERO_MS).max(0) as u64;
    match semantics {
        1 => (ms / 1_000) << 20,
        _ => ms.saturating_mul(EPOCH_IDS_PER_MS),
    }
}

/// 6 bytes time ‖ 10 bytes hash: time-ordered ids keep the unique index append-like.
pub fn command_id(time: Millis, parts: &[&[u8]]) -> [u8; 16] {
    let hash = hash16(parts);
    let mut id = [0; 16];
    id[..6].copy_from_slice(&time.to_be_bytes()[2..]);
    id[6..].copy_from_slice(&hash[..10]);
    id
}

/// The first 16 bytes of BLAKE3 over length-prefixed parts.
pub fn hash16(parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut out = [0; 16];
    out.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    out
}

/// `hash(tenant, start key or message id, element path, loop counter, occurrence)`: the same after a restore
/// when clients send their requests again. `origin` is the instance's own lineage.
pub fn lineage(origin: &[u8; 16], element_id: &str, occurrence: u64) -> [u8; 16] {
    hash16(&[origin, element_id.as_bytes(), &occurrence.to_le_bytes()])
}

pub fn hex(bytes: &[u8]) -> Arc<str> {
    let mut text = String::with_capacity(bytes.len() * 2);
    push_hex(&mut text, bytes);
    text.into()
}
