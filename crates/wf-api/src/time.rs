//! Instants: milliseconds inside, RFC 3339 in UTC outside. It reads no clock.
//! Next: the nouns.

use serde::{Serialize, Serializer};
use wf_core::Millis;
use wf_core::text::rfc3339;

/// An instant that serialises as RFC 3339 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant(pub Millis);

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(self.0))
    }
}

/// 0 stands for *not yet* in rows.
pub fn unless_zero(ms: Millis) -> Option<Instant> {
    (ms != 0).then_some(Instant(ms))
}

/// With any offset; finer than a millisecond is cut.
pub fn parse(text: &str) -> Option<Millis> {
    let instant: jiff::Timestamp = text.parse().ok()?;
    Some(instant.as_millisecond())
}
