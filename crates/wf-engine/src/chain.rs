//! The audit's hash chain: each row's header and then each of its events moves it on. It covers hashes of events, so that
//! a payload can be erased and the chain still be verified. Next: back to `decided.rs`; `proof/audit.rs` computes it again.

use wf_core::Millis;
use wf_core::ids::hash16;

pub type Link = [u8; 32];

/// Who, when and for whom: what an audit row says besides its events.
pub fn begin_row(chain: &Link, event_id: &str, time: Millis, tenant: &str, actor: &str) -> Link {
    let header = hash16(&[&time.to_le_bytes(), tenant.as_bytes(), actor.as_bytes()]);
    let mut hasher = blake3::Hasher::new();
    hasher.update(chain).update(event_id.as_bytes()).update(&header);
    *hasher.finalize().as_bytes()
}

pub fn link(chain: &Link, event_id: &str, event: &str) -> Link {
    let mut hasher = blake3::Hasher::new();
    hasher.update(chain).update(event_id.as_bytes()).update(blake3::hash(event.as_bytes()).as_bytes());
    *hasher.finalize().as_bytes()
}
