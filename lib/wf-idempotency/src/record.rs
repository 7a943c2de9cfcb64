//! What is remembered of a request under its key, and which of an answer's headers are remembered with it.
//! Does not know how it is stored (no serde here; each store writes its own versioned form) or when it expires.
//! Next: `decide`, which reads it.

use crate::fingerprint::Fingerprint;
use bytes::Bytes;
use std::sync::Arc;

/// One record per (tenant, key). Times are Unix milliseconds on the store's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Written when the key is claimed, so that a mismatch is seen while the first request still runs.
    pub fingerprint: Fingerprint,
    /// Which secret made the fingerprint: a repeat is fingerprinted with the same one.
    pub mac_key_id: u32,
    pub created_ms: i64,
    /// The first millisecond at which the key is new again.
    pub expires_ms: i64,
    pub state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Somebody runs it now. Until `lease_until_ms` (exclusive) nobody else may.
    InProgress { owner: [u8; 16], lease_until_ms: i64 },
    /// Done; never overwritten, only expired.
    Completed(Answer),
    /// Done, but its answer comes later (a workflow was started): a repeat attaches to `subject` and waits with it.
    Started { subject: u64 },
    /// The effect may have happened, and nobody knows its answer.
    Unknown { since_ms: i64 },
}

/// An answer to give again, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Allow-listed ones only, lower-case names, in their order; a repeated header stands here repeatedly.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    pub body: Bytes,
}

impl Answer {
    /// Keeps those headers that may be given again; values must already be text.
    pub fn new<'a>(status: u16, headers: impl IntoIterator<Item = (&'a str, &'a str)>, body: Bytes) -> Answer {
        let kept = headers.into_iter().filter(|(name, _)| allowed_header(name));
        Answer {
            status,
            headers: kept.map(|(name, value)| (name.to_ascii_lowercase().into(), value.into())).collect(),
            body,
        }
    }
}

/// Headers that describe the stored bytes or the thing made, in any case. The rest belongs to one connection
/// (`Connection`, `Transfer-Encoding`), one moment (`Date`, `Age`), one browser (`Set-Cookie`, CORS), or is computed
/// anew (`Content-Length`). Headers of the application's own are opted in by the route, not here.
pub fn allowed_header(name: &str) -> bool {
    const ALLOWED: [&str; 8] = [
        "content-type",
        "content-encoding",
        "content-language",
        "location",
        "etag",
        "last-modified",
        "link",
        "retry-after",
    ];
    ALLOWED.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
}
