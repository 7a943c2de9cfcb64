//! Answers as bytes: what is stored under a key and sent to the client. Pure: the same outcome gives the same bytes.
//! It does not know routes. Next: the nouns, whose `render_*` functions the engine calls in its turn.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde::Serialize;
use wf_core::Outcome;
use wf_idempotency::record::Answer;

use crate::{Code, Problem};

type Header = (Arc<str>, Arc<str>);

pub const JSON: &str = "application/json";
pub const PROBLEM_JSON: &str = "application/problem+json";

// Shared, so that an answer costs no allocation per header.
static JSON_TYPE: LazyLock<Header> = LazyLock::new(|| (Arc::from("content-type"), Arc::from(JSON)));
static LOCATION: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("location"));

pub(crate) fn ok(body: Vec<u8>) -> Answer {
    json(200, body)
}

pub(crate) fn json(status: u16, body: Vec<u8>) -> Answer {
    Answer { status, headers: vec![JSON_TYPE.clone()], body: Bytes::from(body) }
}

pub(crate) fn with_location(mut answer: Answer, location: String) -> Answer {
    answer.headers.push((LOCATION.clone(), location.into()));
    answer
}

/// For shapes that are written seldom; the hot ones use `write.rs`.
pub fn of<T: Serialize>(status: u16, shape: &T) -> Answer {
    match serde_json::to_vec(shape) {
        Ok(body) => json(status, body),
        Err(_) => of_problem(&Problem::new(Code::Internal, "a stored value is no JSON")),
    }
}

pub fn of_problem(problem: &Problem) -> Answer {
    let headers = [("content-type", PROBLEM_JSON)];
    Answer::new(problem.status, headers, Bytes::from(problem.to_json()))
}

/// A command of one kind never has another kind's outcome; if the two tables ever disagree, the client learns that
/// something is wrong on our side.
pub(crate) fn unexpected(_outcome: &Outcome) -> Answer {
    of_problem(&Problem::new(Code::Internal, "the command had an outcome of another kind"))
}

/// A key in an answer that serde writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyText(pub wf_core::Key);

impl Serialize for KeyText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// 0 stands for *none* in rows.
pub(crate) fn unless_none(key: wf_core::Key) -> Option<KeyText> {
    (key != 0).then_some(KeyText(key))
}

/// One page of a list.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageOut<T> {
    pub items: Vec<T>,
    /// For `?cursor=`; `null` on the last page.
    #[schema(required)]
    pub next_cursor: Option<String>,
}
