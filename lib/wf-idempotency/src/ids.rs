//! Ids that every retry computes again instead of storing: for rows that a worker inserts and for calls to a provider.
//! Does not know jobs or instances beyond their numbers. The algorithms are frozen: an id changed is an effect repeated.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The id of the `purpose` row of `scope` (a process instance's key): the same for every retry, different for every other pair.
///
/// A UUID version 8 (RFC 9562): the first 16 bytes of SHA-256 over the ASCII text `onceflow-id/1`, a zero byte, `scope`
/// as 8 bytes big-endian and the bytes of `purpose`; then version and variant are set. Lower-case, with hyphens.
pub fn deterministic_id(scope: u64, purpose: &str) -> String {
    let digest = Sha256::new()
        .chain_update(b"onceflow-id/1\0")
        .chain_update(scope.to_be_bytes())
        .chain_update(purpose.as_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = bytes[6] & 0x0F | 0x80;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    hyphenated(bytes)
}

fn hyphenated(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        let hyphen = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
        // Writing into a String cannot fail.
        let _ = write!(text, "{hyphen}{byte:02x}");
    }
    text
}

/// The key to hand to a provider: the same for every retry of the job, one more per purpose within it.
pub fn provider_key(job: u64, purpose: Option<&str>) -> String {
    match purpose {
        Some(purpose) => format!("wf-job-{job}-{purpose}"),
        None => format!("wf-job-{job}"),
    }
}
