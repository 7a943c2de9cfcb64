//! A table of values from file, environment and flags, read key by key; what is left over was misspelt.
//! It knows no key's meaning. `config.rs` asks for each and gets all problems in one list.

use std::collections::BTreeMap;

use toml::{Table, Value};

const PREFIX: &str = "WF__";

/// Everything that was given, and everything that is wrong with it.
#[derive(Debug, Default)]
pub struct Raw {
    root: Table,
    /// Path → the environment variable that set it, for messages.
    origins: BTreeMap<String, String>,
    pub problems: Vec<String>,
}

impl Raw {
    pub fn from_file(name: &str, text: &str) -> Raw {
        let mut raw = Raw::default();
        match text.parse::<Table>() {
            Ok(root) => raw.root = root,
            Err(error) => raw.problems.push(format!("{name}: {}", error.to_string().trim_end())),
        }
        raw
    }

    /// `WF__SERVER__LISTEN` sets `server.listen`; a number as a part addresses an entry (`WF__SINK__0__SECRET`).
    pub fn overlay_environment(&mut self, variables: impl Iterator<Item = (String, String)>) {
        let ours = variables.filter(|(name, _)| name.starts_with(PREFIX));
        let sorted: BTreeMap<String, String> = ours.collect();
        for (name, text) in sorted {
            let path: Vec<String> = name[PREFIX.len()..].split("__").map(str::to_lowercase).collect();
            self.origins.insert(path.join("."), name.clone());
            if path.iter().any(String::is_empty) || !set(&mut self.root, &path, meant(&text)) {
                self.problems.push(format!("{name}: names no place in the configuration"));
            }
        }
    }

    pub fn set(&mut self, path: &[&str], value: impl Into<Value>) {
        let path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
        if !set(&mut self.root, &path, value.into()) {
            self.problems.push(format!("{}: is no section", path.join(".")));
        }
    }

    pub fn section(&mut self, name: &str) -> Section<'_> {
        let table = match self.root.remove(name) {
            None => Table::new(),
            Some(Value::Table(table)) => table,
            Some(_) => {
                self.problems.push(format!("{name}: must be a section, [{name}]"));
                Table::new()
            }
        };
        self.open(name.to_owned(), table)
    }

    /// The entries of `[[name]]`.
    pub fn entries(&mut self, name: &str) -> Vec<(String, Table)> {
        match self.root.remove(name) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                let tables = items.into_iter().enumerate().filter_map(|(index, item)| match item {
                    Value::Table(table) => Some((format!("{name}[{index}]"), table)),
                    _ => None,
                });
                tables.collect()
            }
            Some(_) => {
                self.problems.push(format!("{name}: must be a list of entries, [[{name}]]"));
                Vec::new()
            }
        }
    }

    pub fn open(&mut self, path: String, table: Table) -> Section<'_> {
        Section { path, table, asked: Vec::new(), raw: self }
    }

    /// Sections that nobody asked for.
    pub fn finish(mut self, known: &[&str]) -> Vec<String> {
        for name in self.root.keys() {
            let known = known.join(", ");
            self.problems.push(format!("unknown section {name}{} (there are: {known})", origin(&self.origins, name)));
        }
        self.problems
    }
}

fn origin(origins: &BTreeMap<String, String>, path: &str) -> String {
    let below = format!("{path}.");
    let found = origins.iter().find(|(set, _)| *set == path || set.starts_with(&below));
    found.map(|(_, variable)| format!(" (from {variable})")).unwrap_or_default()
}

/// A number, a truth value or a list where the text is one in TOML, else the text itself.
fn meant(text: &str) -> Value {
    let read = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    match read {
        Some(value @ (Value::Integer(_) | Value::Boolean(_) | Value::Array(_) | Value::String(_))) => value,
        _ => Value::String(text.to_owned()),
    }
}

fn set(table: &mut Table, path: &[String], value: Value) -> bool {
    match path {
        [] => false,
        [name] => {
            table.insert(name.clone(), value);
            true
        }
        [name, index, rest @ ..] if index.parse::<usize>().is_ok() && !rest.is_empty() => {
            let list = table.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
            let (Some(list), Ok(index)) = (list.as_array_mut(), index.parse::<usize>()) else { return false };
            // An index past the next free entry is a mistake, not an order to make a thousand empty ones.
            if index == list.len() {
                list.push(Value::Table(Table::new()));
            }
            list.get_mut(index).and_then(Value::as_table_mut).is_some_and(|entry| set(entry, rest, value))
        }
        [name, rest @ ..] => {
            let inner = table.entry(name.clone()).or_insert_with(|| Value::Table(Table::new()));
            inner.as_table_mut().is_some_and(|inner| set(inner, rest, value))
        }
    }
}

/// One section while it is read. Dropping it reports the keys that nobody asked for.
pub struct Section<'r> {
    path: String,
    table: Table,
    asked: Vec<&'static str>,
    raw: &'r mut Raw,
}

impl Section<'_> {
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.take(key, "a text", |value| value.as_str().map(str::to_owned))
    }

    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.take(key, "true or false", Value::as_bool)
    }

    pub fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        self.take(key, "a list of texts", |value| match value {
            Value::String(text) => Some(text.split(',').map(|item| item.trim().to_owned()).collect()),
            Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
            _ => None,
        })
    }

    /// One text or a list of them, as they are.
    pub fn lines(&mut self, key: &'static str) -> Option<Vec<String>> {
        self.take(key, "a text or a list of texts", |value| match value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
            _ => None,
        })
    }

    pub fn number(&mut self, key: &'static str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let number = self.take(key, "a whole number", Value::as_integer)?;
        if range.contains(&number) {
            return Some(number);
        }
        self.problem(key, format!("must be from {} to {}, not {number}", range.start(), range.end()));
        None
    }

    pub fn required(&mut self, key: &'static str) -> Option<String> {
        let missing = !self.table.contains_key(key);
        let value = self.text(key);
        if missing || value.as_ref().is_some_and(|text| text.trim().is_empty()) {
            self.problem(key, "is required".to_owned());
            return None;
        }
        value
    }

    /// Sub-sections under `key`, by name.
    pub fn tables(&mut self, key: &'static str) -> Vec<(String, Table)> {
        let all = self.take(key, "a section", |value| value.as_table().cloned()).unwrap_or_default();
        let mut tables = Vec::with_capacity(all.len());
        for (name, value) in all {
            match value {
                Value::Table(table) => tables.push((name, table)),
                _ => self.problem(&format!("{key}.{name}"), "must be a section".to_owned()),
            }
        }
        tables
    }

    pub fn problem(&mut self, key: &str, what: String) {
        let path = format!("{}.{key}", self.path);
        let from = origin(&self.raw.origins, &path);
        self.raw.problems.push(format!("{path}{from}: {what}"));
    }

    fn take<T>(&mut self, key: &'static str, expected: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        self.asked.push(key);
        let value = self.table.remove(key)?;
        let taken = read(&value);
        if taken.is_none() {
            self.problem(key, format!("must be {expected}"));
        }
        taken
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        let known = self.asked.join(", ");
        let unknown: Vec<String> = self.table.keys().map(|key| format!("{}.{key}", self.path)).collect();
        for path in unknown {
            let from = origin(&self.raw.origins, &path);
            self.raw.problems.push(format!("unknown key {path}{from} (there are: {known})"));
        }
    }
}
