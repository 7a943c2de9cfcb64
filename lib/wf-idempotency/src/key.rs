//! The `Idempotency-Key` header: its two spellings, its limits, and the warnings about bad keys.
//! Does not know tenants' scopes, stores or HTTP frameworks: it gets the raw field lines.
//! Next: `fingerprint`, which says what the key was used for.

mod structured;
mod time_based;

pub use time_based::looks_time_based;

use crate::mac::Mac;
use std::fmt;
use std::sync::Arc;

/// The longest key in bytes, after unquoting.
pub const KEY_BYTES_MAX: usize = 255;

/// A well-formed key: 1 to 255 bytes of 0x20-0x7E, at least one of them no space. Case-sensitive; never folded or cut.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// How the header may be spelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// `"k"` and `k` are both accepted and are the same key.
    #[default]
    Lenient,
    /// Only the structured-field string `"k"`.
    Strict,
}

/// Why a key is refused. Never carries the key itself: it may hold anything and ends in logs and answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the header stands on more than one line")]
    MoreThanOneLine,
    #[error("the key is empty")]
    Empty,
    #[error("the key has {bytes} bytes, {KEY_BYTES_MAX} are allowed")]
    TooLong { bytes: usize },
    /// `offset` counts bytes from the start of the field value as it was received.
    #[error("{what} at byte {offset}")]
    Malformed { offset: usize, what: &'static str },
}

/// Reads all field lines of the header; `None` when there is none.
///
/// Several lines are refused before they are looked at, even equal ones: `"a` and `b"` on two lines would join into
/// the valid string `"a, b"`, and a field that is ignored because it does not parse means an effect executed twice.
pub fn parse_header<'a>(lines: impl Iterator<Item = &'a [u8]>, syntax: Syntax) -> Result<Option<Key>, KeyError> {
    let mut lines = lines;
    let Some(line) = lines.next() else { return Ok(None) };
    match lines.next() {
        Some(_) => Err(KeyError::MoreThanOneLine),
        None => parse_line(line, syntax).map(Some),
    }
}

fn parse_line(line: &[u8], syntax: Syntax) -> Result<Key, KeyError> {
    // Blanks and tabs only: a form feed at the end is no white space to HTTP.
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let end = line.iter().rposition(|byte| !blank(byte)).map_or(0, |last| last + 1);
    let (value, start) = (&line[..end], line[..end].iter().take_while(|byte| blank(byte)).count());
    match (value.get(start), syntax) {
        (None, _) => Err(KeyError::Empty),
        (Some(b'"'), _) => sized(structured::string_item(value, start)?),
        (Some(_), Syntax::Lenient) => sized(bare(value, start)?),
        (Some(_), Syntax::Strict) => Err(KeyError::Malformed { offset: start, what: "a key without quotes" }),
    }
}

/// A bare key holds no quote and no comma, so that it is never half of a string or a list of two.
fn bare(value: &[u8], start: usize) -> Result<String, KeyError> {
    let wrong = |&(_, &byte): &(usize, &u8)| !matches!(byte, 0x21..=0x7E) || matches!(byte, b'"' | b',');
    match value.iter().enumerate().skip(start).find(wrong) {
        Some((offset, &byte)) => Err(KeyError::Malformed { offset, what: name_of(byte) }),
        None => Ok(value[start..].iter().map(|&byte| char::from(byte)).collect()),
    }
}

fn name_of(byte: u8) -> &'static str {
    match byte {
        b'"' => "a quote inside a key without quotes",
        b',' => "a comma: one key, not a list",
        b' ' => "a space inside a key without quotes",
        0x80.. => "a byte that is not ASCII",
        _ => "a control character",
    }
}

fn sized(text: String) -> Result<Key, KeyError> {
    match text.len() {
        _ if text.bytes().all(|byte| byte == b' ') => Err(KeyError::Empty),
        bytes if bytes > KEY_BYTES_MAX => Err(KeyError::TooLong { bytes }),
        _ => Ok(Key(text.into())),
    }
}

impl Key {
    /// A key that did not come by the header: from a stored record, a path or a body field. Taken as it stands, unquoted.
    pub fn new(text: &str) -> Result<Key, KeyError> {
        match text.bytes().position(|byte| !matches!(byte, 0x20..=0x7E)) {
            Some(offset) => Err(KeyError::Malformed { offset, what: name_of(text.as_bytes()[offset]) }),
            None => sized(text.to_owned()),
        }
    }

    /// The key of a part of this key's request, for those who do it in parts: one that no client can send, as U+001F is
    /// in no key that comes from outside. May be longer than [`KEY_BYTES_MAX`].
    pub fn of_part(&self, part: u16) -> Key {
        Key(format!("{}\u{1f}{part}", self.0).into())
    }

    /// The key's text, shared: for those who keep it.
    pub fn text(&self) -> Arc<str> {
        self.0.clone()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A raw key in a log is a capability for whoever reads the log: see `hash_for_logs`.
        f.write_str("Key(..)")
    }
}

/// The name under which logs and listings show a key: HMAC-SHA256 over tenant and key, its first 16 bytes.
/// Equal keys of two tenants get different names.
pub fn hash_for_logs(secret: &[u8; 32], tenant: &str, key: &Key) -> [u8; 16] {
    let mut mac = Mac::new(secret, "key-hash/1");
    mac.part(tenant.as_bytes());
    mac.part(key.as_str().as_bytes());
    let mut hash = [0; 16];
    hash.copy_from_slice(&mac.finish()[..16]);
    hash
}

/// Lower-case hexadecimal, for `hash_for_logs` and fingerprints.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |nibble: u8| DIGITS[usize::from(nibble & 15)];
    bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte)]).collect()
}
