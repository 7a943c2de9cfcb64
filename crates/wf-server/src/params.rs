//! Query parameters, taken one by one like a body's fields: an unknown one is refused by name, so that a misspelt
//! filter is never silently none. Paths' keys likewise. Next: `routes/*.rs`.

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use wf_api::Problem;
use wf_api::body::parse_key;
use wf_api::problem::FieldError;
use wf_core::Key;
use wf_store::Slice;

use crate::door::{self, Refused};
use crate::page;

const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1000;

pub(crate) struct Params {
    pairs: Vec<(String, String)>,
    errors: Vec<FieldError>,
}

impl Params {
    pub fn of(uri: &Uri) -> Result<Params, Problem> {
        let query: Result<Query<Vec<(String, String)>>, _> = Query::try_from_uri(uri);
        let pairs = query.map_err(|_| Problem::validation("query", "cannot be read"))?.0;
        Ok(Params { pairs, errors: Vec::new() })
    }

    pub fn text(&mut self, name: &str) -> Option<String> {
        let at = self.pairs.iter().position(|(other, _)| other == name)?;
        let (_, value) = self.pairs.remove(at);
        if self.pairs.iter().any(|(other, _)| other == name) {
            self.pairs.retain(|(other, _)| other != name);
            self.refuse(name, "stands more than once");
        }
        Some(value)
    }

    /// `wanted`: what the value must be, for the message.
    pub fn parsed<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Option<T>, wanted: &str) -> Option<T> {
        let text = self.text(name)?;
        let value = parse(&text);
        if value.is_none() {
            self.refuse(name, &format!("must be {wanted}"));
        }
        value
    }

    pub fn key(&mut self, name: &str) -> Option<Key> {
        self.parsed(name, parse_key, "a key")
    }

    /// All parameters whose name begins with `prefix`, without it.
    pub fn prefixed(&mut self, prefix: &str) -> Vec<(String, String)> {
        let (taken, rest) = std::mem::take(&mut self.pairs).into_iter().partition(|(name, _)| name.starts_with(prefix));
        self.pairs = rest;
        let without =
            |(name, value): (String, String)| (name.strip_prefix(prefix).unwrap_or_default().to_owned(), value);
        Vec::into_iter(taken).map(without).collect()
    }

    pub fn slice(&mut self) -> Slice {
        let after = self.parsed("cursor", page::unwrap_cursor, "the nextCursor of an earlier page");
        Slice { after, limit: self.limit() }
    }

    pub fn limit(&mut self) -> usize {
        let parse = |text: &str| text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
        self.parsed("limit", parse, "a number from 1 to 1000").unwrap_or(LIMIT)
    }

    pub fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.pairs) {
            self.refuse(&name, "is unknown here");
        }
        if self.errors.is_empty() { Ok(()) } else { Err(Problem::validation_of(self.errors)) }
    }

    fn refuse(&mut self, field: &str, message: &str) {
        self.errors.push(FieldError { field: field.to_owned(), message: message.to_owned() });
    }
}

/// The key in a path. What is no key is nothing under this address.
pub(crate) struct PathKey(pub Key);

impl<S: Send + Sync> FromRequestParts<S> for PathKey {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<PathKey, Refused> {
        let PathText(text) = PathText::from_request_parts(parts, state).await?;
        parse_key(&text).map(PathKey).ok_or_else(malformed)
    }
}

/// The text in a path, decoded.
pub(crate) struct PathText(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathText {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<PathText, Refused> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        path.map(|Path(text)| PathText(text)).map_err(|_| malformed())
    }
}

/// A job's key and a step's name.
pub(crate) struct PathStep(pub Key, pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathStep {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<PathStep, Refused> {
        let path: Result<Path<(String, String)>, PathRejection> = Path::from_request_parts(parts, state).await;
        let Path((key, name)) = path.map_err(|_| malformed())?;
        parse_key(&key).map(|key| PathStep(key, name)).ok_or_else(malformed)
    }
}

fn malformed() -> Refused {
    Refused(door::not_found("the key in the path is no key"))
}
