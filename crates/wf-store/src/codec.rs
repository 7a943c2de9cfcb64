//! The stored forms: commands of the log, events of the audit, headers of remembered answers. Explicit and versioned;
//! golden tests hold them, so that what is on a disk stays readable. It knows no table and no SQL.
//! Next: `codec/command.rs` and `codec/event.rs`, which name every member; `codec/write.rs` and `codec/read.rs` below them.

mod command;
mod crossing;
mod event;
mod read;
mod write;

use std::sync::Arc;

use serde_json::value::RawValue;
use wf_core::rows::Variables;

use crate::codec::write::Writer;

pub use command::{command_from_json, command_to_json, logged_from_json, logged_origin, logged_to_json};
pub use event::{event_payload_json, events_of_json, events_to_json, events_to_json_each};

/// A stored text that cannot be read. Nothing is guessed: an unknown member is refused like a missing one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    #[error("malformed JSON: {0}")]
    Malformed(String),
    #[error("written in version {0}, which this program does not read")]
    Version(u32),
    #[error("unknown verb {0:?}")]
    Verb(String),
    #[error("member {0:?} is missing")]
    Missing(&'static str),
    #[error("member {0:?} is unknown")]
    Unknown(String),
    #[error("member {name:?}: {reason}")]
    Member { name: &'static str, reason: String },
}

impl From<serde_json::Error> for CodecError {
    fn from(error: serde_json::Error) -> CodecError {
        CodecError::Malformed(error.to_string())
    }
}

/// A remembered answer's headers, as `Answer::headers` holds them.
pub type Headers = Vec<(Arc<str>, Arc<str>)>;

/// Headers of a remembered answer as an array of pairs: order and repeats are kept.
pub fn headers_to_json(headers: &[(Arc<str>, Arc<str>)]) -> String {
    let mut out = Writer::with_capacity(16 + headers.len() * 48);
    out.open('[');
    for (name, value) in headers {
        out.open('[').item_text(name).item_text(value).close(']');
    }
    out.close(']');
    out.finish()
}

/// The inverse of [`headers_to_json`].
pub fn headers_from_json(text: &str) -> Result<Headers, CodecError> {
    Ok(serde_json::from_str(text)?)
}

/// A JSON object with the values byte for byte as they are: numbers stay exact. Values must be JSON.
pub fn variables_to_json(variables: &Variables) -> String {
    let mut out = Writer::with_capacity(variables.iter().map(|(name, value)| name.len() + value.len() + 4).sum());
    out.variables(variables);
    out.finish()
}

/// The inverse of [`variables_to_json`]; the order of the members is kept.
pub fn variables_from_json(text: &str) -> Result<Variables, CodecError> {
    read::variables(text)
}

/// The text under which a list finds a scalar variable: a string without its quotes and escapes, a number, a boolean
/// or `null` as written. `None` for objects and arrays.
pub fn scalar_text(json: &str) -> Option<String> {
    let value: &RawValue = serde_json::from_str(json).ok()?;
    match value.get().as_bytes().first()? {
        b'{' | b'[' => None,
        b'"' => serde_json::from_str(value.get()).ok(),
        _ => Some(value.get().to_owned()),
    }
}

/// 16 bytes as 32 lower-case hexadecimal digits.
fn hash_from_hex(text: &str) -> Option<[u8; 16]> {
    let bytes = bytes_from_hex(text)?;
    bytes.try_into().ok()
}

fn bytes_from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let pairs = digits?;
    let whole = pairs.len().is_multiple_of(2);
    whole.then(|| pairs.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}
