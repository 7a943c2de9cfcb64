//! FEEL's values, their types' names and the accessors that callers need.
//! It knows no operator and no text form.
//! Next: `json` for reading and writing them, `compare` and `arithmetic` for the operators.

use std::sync::Arc;

use jiff::SignedDuration;
use jiff::civil::Date;

use crate::number::Number;
use crate::temporal::{FeelDateTime, FeelTime};

/// A FEEL value. Cheap to clone. `==` here is structural; FEEL's own equality is three-valued and lives in the evaluator.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    String(Arc<str>),
    List(Arc<Vec<Value>>),
    /// Entries in the order in which they were written, names unique.
    Context(Arc<Vec<(Arc<str>, Value)>>),
    Date(Date),
    Time(FeelTime),
    DateTime(FeelDateTime),
    /// A days-and-time duration.
    DaysDuration(SignedDuration),
    /// A years-and-months duration, in months.
    YearsDuration(i64),
    Range(Arc<Range>),
}

/// A range of comparable values, such as `[1..5)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    pub start: Value,
    pub start_included: bool,
    pub end: Value,
    pub end_included: bool,
}

impl Value {
    /// FEEL's name of the value's type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::List(_) => "list",
            Value::Context(_) => "context",
            Value::Date(_) => "date",
            Value::Time(_) => "time",
            Value::DateTime(_) => "date and time",
            Value::DaysDuration(_) => "days and time duration",
            Value::YearsDuration(_) => "years and months duration",
            Value::Range(_) => "range",
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// A whole number that fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(Number::to_i64)
    }

    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_context(&self) -> Option<&[(Arc<str>, Value)]> {
        match self {
            Value::Context(entries) => Some(entries),
            _ => None,
        }
    }

    /// An entry of a context.
    pub fn entry(&self, name: &str) -> Option<&Value> {
        self.as_context()?.iter().find(|(key, _)| key.as_ref() == name).map(|(_, value)| value)
    }

    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Arc::new(items))
    }

    /// The caller sees to it that the names are unique.
    pub fn context(entries: Vec<(Arc<str>, Value)>) -> Value {
        Value::Context(Arc::new(entries))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Number(Number::from(value))
    }
}

impl From<Number> for Value {
    fn from(value: Number) -> Value {
        Value::Number(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::String(Arc::from(value))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::String(Arc::from(value))
    }
}

/// Sets an entry, in place if the name is known, else at the end.
pub(crate) fn put_entry(entries: &mut Vec<(Arc<str>, Value)>, name: Arc<str>, value: Value) {
    match entries.iter_mut().find(|(key, _)| *key == name) {
        Some(entry) => entry.1 = value,
        None => entries.push((name, value)),
    }
}
