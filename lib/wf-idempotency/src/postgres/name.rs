//! Names of tables and columns, quoted so that any text is a name and none is a piece of SQL.

use std::fmt;

/// PostgreSQL cuts longer names off without an error, and two of them might then be one.
const NAME_BYTES_MAX: usize = 63;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a name must not be empty")]
    Empty,
    #[error("a name must not contain the character NUL")]
    Nul,
    #[error("the name {0:?} is longer than {max} bytes", max = NAME_BYTES_MAX)]
    TooLong(String),
}

/// A table, with its schema or where `search_path` finds it. Shown as SQL, quoted; its case counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    schema: Option<String>,
    name: String,
}

impl Table {
    pub fn new(name: &str) -> Result<Table, NameError> {
        Ok(Table { schema: None, name: checked(name)? })
    }

    pub fn in_schema(schema: &str, name: &str) -> Result<Table, NameError> {
        Ok(Table { schema: Some(checked(schema)?), name: checked(name)? })
    }

    /// Another table beside this one: an index, a partition.
    pub(super) fn beside(&self, suffix: &str) -> Result<Table, NameError> {
        Ok(Table { schema: self.schema.clone(), name: checked(&format!("{}{suffix}", self.name))? })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The last part alone, quoted: the name that an index gets, which lies where its table does.
    pub(super) fn short(&self) -> String {
        quoted(&self.name)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(out, "{}.{}", quoted(schema), quoted(&self.name)),
            None => out.write_str(&quoted(&self.name)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column(String);

impl Column {
    pub fn new(name: &str) -> Result<Column, NameError> {
        Ok(Column(checked(name)?))
    }
}

impl fmt::Display for Column {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&quoted(&self.0))
    }
}

fn checked(name: &str) -> Result<String, NameError> {
    match name {
        "" => Err(NameError::Empty),
        _ if name.contains('\0') => Err(NameError::Nul),
        _ if name.len() > NAME_BYTES_MAX => Err(NameError::TooLong(name.to_owned())),
        _ => Ok(name.to_owned()),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Fills a statement's `{placeholders}` in one pass: a name that looks like a placeholder is not filled again. Values
/// must be SQL already, as names are when they are shown. What is not named stays as it is (`'{}'` is an empty array).
pub(super) fn fill(sql: &str, names: &[(&str, &dyn fmt::Display)]) -> String {
    let mut filled = String::with_capacity(sql.len() * 2);
    let mut rest = sql;
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        let name = names.iter().find(|(placeholder, _)| rest.starts_with(placeholder));
        let (text, len) = name.map_or_else(|| ("{".to_owned(), 1), |(key, value)| (value.to_string(), key.len()));
        filled.push_str(&text);
        rest = &rest[len..];
    }
    filled + rest
}
