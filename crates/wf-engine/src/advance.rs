//! What a command leaves of the partition's sums: the key counter and the digest after it. Shared by the turn and by the
//! replay, so that both mean the same. Next: back to `partition.rs`.

use wf_core::canonical;
use wf_core::draft::Changes;
use wf_store::Head;

use crate::cache::Cache;

/// Applies the changes to what is in memory, and moves counter and digest along.
pub fn advance(cache: &mut Cache, partition: u16, head: &mut Head, changes: Changes) {
    let (counter, next_counter) = (head.next_counter, changes.next_counter);
    let mut digest = head.digest;
    if counter != next_counter {
        digest = digest.wrapping_sub(canonical::digest_of_counters(partition, counter));
        digest = digest.wrapping_add(canonical::digest_of_counters(partition, next_counter));
    }
    cache.apply(changes, |old, new| digest = canonical::shift(digest, old, new));
    (head.next_counter, head.digest) = (next_counter, digest);
}

/// A partition that was never used has the digest of its counters: its row cannot know it.
pub fn head_of(partition: u16, position: u64, mut head: Head) -> Head {
    if position == 0 {
        head.digest = canonical::digest_of_counters(partition, head.next_counter);
    }
    head
}
