//! Why a call did not succeed: the server's own problem, or no answer at all.
//! It decides nothing about repeating; that is `client.rs`.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The server's refusal, RFC 9457. `code` is stable; fields of the case's own stand in `more`.
#[derive(Clone, Debug, Deserialize)]
pub struct Problem {
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub status: u16,
    #[serde(default)]
    pub detail: String,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{url} is not a server's address: {reason}")]
    Address { url: String, reason: String },
    /// Every attempt failed on its way. The operation may have happened: repeat it with the same key.
    #[error("no answer from {url} after {attempts} attempt(s): {reason}")]
    NoAnswer { url: String, attempts: u32, reason: String },
    /// Nothing was sent: no header may hold what it would have to hold.
    #[error("the request cannot be sent: {reason}")]
    Unsendable { reason: String },
    #[error("{0}")]
    Refused(Box<Problem>),
    #[error("the answer is not understood: {0}")]
    Malformed(String),
}

impl ClientError {
    /// The problem's code, or an empty text where the server refused nothing.
    pub fn code(&self) -> &str {
        match self {
            ClientError::Refused(problem) => &problem.code,
            _ => "",
        }
    }

    /// Another worker owns the job, or it is finished: nothing to repeat and nothing to repair.
    pub fn is_lease_lost(&self) -> bool {
        self.code() == "job-lease-lost"
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = if self.detail.is_empty() { &self.title } else { &self.detail };
        write!(out, "{} ({}): {text}", self.code, self.status)?;
        let errors = self.more.get("errors").and_then(Value::as_array);
        errors.into_iter().flatten().try_for_each(|error| write!(out, "\n  {}", item(error)))
    }
}

/// One entry of `errors`: of a field of the body, or of an element of a model.
fn item(error: &Value) -> String {
    let text = |name: &str| match error.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Null) | None => None,
        Some(other) => Some(other.to_string()),
    };
    let line = text("line").map(|line| format!("line {line}"));
    let place: Vec<String> = [line, text("elementId"), text("field")].into_iter().flatten().collect();
    format!("{}: {}", place.join(", "), text("message").unwrap_or_default())
}

/// What a server says that is not our problem format (a proxy in between): still one shape for the caller.
pub(crate) fn problem(status: u16, body: &[u8]) -> Problem {
    let read = serde_json::from_slice::<Problem>(body).ok().filter(|problem| !problem.code.is_empty());
    read.unwrap_or_else(|| Problem {
        code: "http".to_owned(),
        title: format!("HTTP status {status}"),
        status,
        detail: String::from_utf8_lossy(body).chars().take(300).collect(),
        more: Map::new(),
    })
}
