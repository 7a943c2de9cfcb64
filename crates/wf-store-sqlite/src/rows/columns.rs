//! Single columns: keys, names of states, and the small vectors that stand in one column as JSON text.
//! Texts are what a person at a shell reads. Next: back to the tables.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use rusqlite::types::Type;
use rusqlite::{Error, Result, Row};
use wf_core::Key;
use wf_core::rows::{After, Attached, AttachedKind, IncidentKind, JobState, Phase, ScopeState, Text};

/// Keys are 63 bits at most: they fit SQLite's integers.
pub fn sql_key(key: Key) -> i64 {
    key as i64
}

pub fn key_of(value: i64) -> Key {
    value as Key
}

pub fn key(row: &Row, column: usize) -> Result<Key> {
    row.get(column).map(key_of)
}

/// A text of the store that nothing of ours wrote.
pub fn malformed(column: usize, what: &str) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, what.to_owned().into())
}

/// A name of a fixed set.
pub fn named<T: Copy>(row: &Row, column: usize, all: &[(T, &str)]) -> Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    let found = all.iter().find(|(_, name)| *name == text);
    found.map(|(value, _)| *value).ok_or_else(|| malformed(column, &format!("unknown name {text:?}")))
}

fn name_in<T: PartialEq>(value: T, all: &'static [(T, &'static str)]) -> &'static str {
    all.iter().find(|(other, _)| *other == value).map_or("", |(_, name)| name)
}

pub const SCOPE_STATES: &[(ScopeState, &str)] = &[
    (ScopeState::Active, "ACTIVE"),
    (ScopeState::Terminating, "TERMINATING"),
    (ScopeState::Completed, "COMPLETED"),
    (ScopeState::Canceled, "CANCELED"),
];

pub fn scope_state_name(state: ScopeState) -> &'static str {
    name_in(state, SCOPE_STATES)
}

pub const JOB_STATES: &[(JobState, &str)] = &[
    (JobState::Ready, "READY"),
    (JobState::Activated, "ACTIVATED"),
    (JobState::Completed, "COMPLETED"),
    (JobState::Backoff, "BACKOFF"),
    (JobState::Failed, "FAILED"),
    (JobState::ErrorThrown, "ERROR_THROWN"),
    (JobState::Canceled, "CANCELED"),
];

pub fn job_state_name(state: JobState) -> &'static str {
    name_in(state, JOB_STATES)
}

pub const PHASES: &[(Phase, &str)] =
    &[(Phase::Active, "ACTIVE"), (Phase::Entering, "ENTERING"), (Phase::Leaving, "LEAVING")];

pub fn phase_name(phase: Phase) -> &'static str {
    name_in(phase, PHASES)
}

pub fn incident_kind(row: &Row, column: usize) -> Result<IncidentKind> {
    named(row, column, &IncidentKind::ALL.map(|kind| (kind, kind.name())))
}

const CONTINUE: &str = "CONTINUE ";

pub fn after_text(after: &After) -> Option<Cow<'static, str>> {
    match after {
        After::Nothing => None,
        After::Cancel => Some("CANCEL".into()),
        After::Complete => Some("COMPLETE".into()),
        After::Continue(element) => Some(format!("{CONTINUE}{element}").into()),
    }
}

pub fn after(row: &Row, column: usize) -> Result<After> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else { return Ok(After::Nothing) };
    match text {
        "CANCEL" => Ok(After::Cancel),
        "COMPLETE" => Ok(After::Complete),
        text => {
            let element = text.strip_prefix(CONTINUE).and_then(|element| element.parse().ok());
            element.map(After::Continue).ok_or_else(|| malformed(column, "not an afterwards"))
        }
    }
}

/// `[[a,b],...]`
pub fn pairs_text(pairs: &[(u32, u32)]) -> Cow<'static, str> {
    list_text(pairs, |out, (a, b)| write!(out, "[{a},{b}]"))
}

pub fn pairs(row: &Row, column: usize) -> Result<Vec<(u32, u32)>> {
    list(row, column)
}

pub fn attached_text(attached: &[Attached]) -> Cow<'static, str> {
    list_text(attached, |out, Attached { kind, key, target }| {
        let kind = match kind {
            AttachedKind::Timer => "timer",
            AttachedKind::Subscription => "subscription",
        };
        write!(out, "[\"{kind}\",{key},{target}]")
    })
}

pub fn attached(row: &Row, column: usize) -> Result<Vec<Attached>> {
    let list: Vec<(String, Key, u32)> = list(row, column)?;
    let parts = list.into_iter().map(|(kind, key, target)| {
        let kind = match kind.as_str() {
            "timer" => AttachedKind::Timer,
            "subscription" => AttachedKind::Subscription,
            _ => return Err(malformed(column, "neither timer nor subscription")),
        };
        Ok(Attached { kind, key, target })
    });
    parts.collect()
}

pub fn texts_text(texts: &[Text]) -> Result<Cow<'static, str>> {
    if texts.is_empty() {
        return Ok(EMPTY.into());
    }
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    let json = serde_json::to_string(&texts).map_err(|error| Error::ToSqlConversionFailure(error.into()))?;
    Ok(json.into())
}

pub fn texts(row: &Row, column: usize) -> Result<Vec<Text>> {
    let texts: Vec<String> = list(row, column)?;
    Ok(texts.into_iter().map(Arc::from).collect())
}

const EMPTY: &str = "[]";

fn list_text<T>(items: &[T], mut write: impl FnMut(&mut String, &T) -> std::fmt::Result) -> Cow<'static, str> {
    if items.is_empty() {
        return EMPTY.into();
    }
    let mut out = String::with_capacity(16 * items.len());
    for (i, item) in items.iter().enumerate() {
        out.push(if i == 0 { '[' } else { ',' });
        // Writing to a String does not fail.
        let _ = write(&mut out, item);
    }
    out.push(']');
    out.into()
}

/// Nearly every list is empty: that one is not parsed.
fn list<T: for<'de> serde::Deserialize<'de>>(row: &Row, column: usize) -> Result<Vec<T>> {
    match row.get_ref(column)?.as_str()? {
        EMPTY => Ok(Vec::new()),
        text => serde_json::from_str(text).map_err(|error| malformed(column, &error.to_string())),
    }
}
