//! Single columns: keys, names of states, and the small vectors that stand in one column as JSON text.
//! Texts are what a person at a shell reads. Next: back to the tables.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};
use wf_core::Key;
use wf_core::rows::{After, Attached, AttachedKind, IncidentKind, JobState, Phase, ScopeState, Text};
use wf_store::StoreError;

use crate::connect::shown;
use crate::connection::Values;

pub type Result<T> = std::result::Result<T, StoreError>;

/// Rows of one type on their way into columns, each with its partition.
pub struct Columns<'a, T> {
    rows: Vec<(u16, &'a T)>,
    values: Values<'a>,
}

impl<'a, T> Columns<'a, T> {
    /// The first column is the partition.
    pub fn of(rows: Vec<(u16, &'a T)>) -> Columns<'a, T> {
        let partitions: Vec<i16> = rows.iter().map(|(partition, _)| sql_partition(*partition)).collect();
        Columns { rows, values: Values::none().with(partitions) }
    }

    pub fn with<V: ToSql + Sync + Send + 'a>(mut self, value: impl Fn(&'a T) -> V) -> Columns<'a, T> {
        let column: Vec<V> = self.rows.iter().map(|(_, row)| value(row)).collect();
        self.values = self.values.with(column);
        self
    }

    pub fn values(self) -> Values<'a> {
        self.values
    }
}

/// Partitions have 12 bits.
pub fn sql_partition(partition: u16) -> i16 {
    partition as i16
}

/// Keys are 63 bits at most: they fit the database's integers.
pub fn sql_key(key: Key) -> i64 {
    key as i64
}

/// A value of the store that nothing of ours wrote.
pub fn malformed(column: usize, what: &str) -> StoreError {
    StoreError(format!("column {column}: {what}"))
}

pub fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(|error| malformed(column, &shown(&error)))
}

pub fn key(row: &Row, column: usize) -> Result<Key> {
    get::<i64>(row, column).map(|value| value as Key)
}

/// Columns are as wide as a key, whatever narrower number stands in them.
pub fn number<T: TryFrom<i64>>(row: &Row, column: usize) -> Result<T> {
    let value: i64 = get(row, column)?;
    T::try_from(value).map_err(|_| malformed(column, &format!("{value} is out of range")))
}

pub fn number_or_null<T: TryFrom<i64>>(row: &Row, column: usize) -> Result<Option<T>> {
    match get::<Option<i64>>(row, column)? {
        None => Ok(None),
        Some(_) => number(row, column).map(Some),
    }
}

pub fn partition(row: &Row, column: usize) -> Result<u16> {
    get::<i16>(row, column).map(|value| value as u16)
}

pub fn text(row: &Row, column: usize) -> Result<Text> {
    get::<&str>(row, column).map(Text::from)
}

pub fn text_or_null(row: &Row, column: usize) -> Result<Option<Text>> {
    Ok(get::<Option<&str>>(row, column)?.map(Text::from))
}

pub fn hash<const N: usize>(row: &Row, column: usize) -> Result<[u8; N]> {
    let bytes: &[u8] = get(row, column)?;
    bytes.try_into().map_err(|_| malformed(column, &format!("{} bytes instead of {N}", bytes.len())))
}

pub fn hash_or_null<const N: usize>(row: &Row, column: usize) -> Result<Option<[u8; N]>> {
    match get::<Option<&[u8]>>(row, column)? {
        None => Ok(None),
        Some(_) => hash(row, column).map(Some),
    }
}

/// A name of a fixed set.
pub fn named<T: Copy>(row: &Row, column: usize, all: &[(T, &str)]) -> Result<T> {
    let text: &str = get(row, column)?;
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
    match get::<Option<&str>>(row, column)? {
        None => Ok(After::Nothing),
        Some("CANCEL") => Ok(After::Cancel),
        Some("COMPLETE") => Ok(After::Complete),
        Some(text) => {
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

pub fn texts_text(texts: &[Text]) -> Cow<'static, str> {
    if texts.is_empty() {
        return EMPTY.into();
    }
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    // Strings are always JSON.
    serde_json::to_string(&texts).unwrap_or_else(|_| EMPTY.to_owned()).into()
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
    match get(row, column)? {
        EMPTY => Ok(Vec::new()),
        text => serde_json::from_str(text).map_err(|error| malformed(column, &error.to_string())),
    }
}
