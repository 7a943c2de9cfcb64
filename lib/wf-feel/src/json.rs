//! JSON in and out, numbers exactly as they are written.
//! It knows no expression. Depth and length are bounded in both directions.
//! Next: `value`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::number::Number;
use crate::temporal;
use crate::value::Value;

/// Lists and objects inside one another, in both directions.
pub(crate) const DEPTH_MAX: usize = 128;
/// Values share their parts, so a small value can have a huge text.
const BYTES_WRITTEN_MAX: usize = 32 << 20;
/// Objects with more members than this get an index while they are read.
const MEMBERS_SEARCHED_MAX: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    #[error("read JSON at offset {offset}: {message}")]
    Syntax { offset: usize, message: &'static str },
    #[error("handle JSON nested deeper than 128")]
    Depth,
    #[error("write JSON longer than {bytes_max} bytes")]
    Length { bytes_max: usize },
    #[error("write a {0} as JSON")]
    Unrepresentable(&'static str),
}

impl Value {
    /// Reads one JSON text. Numbers keep their text; of members with one name the last wins.
    pub fn from_json(text: &str) -> Result<Value, JsonError> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(0)?;
        reader.blank();
        if reader.at < text.len() { Err(reader.error("trailing characters")) } else { Ok(value) }
    }

    /// Compact JSON. Temporal values become their ISO strings; a range is an error.
    pub fn to_json(&self) -> Result<String, JsonError> {
        let mut out = String::new();
        write(self, 0, BYTES_WRITTEN_MAX, &mut out)?;
        Ok(out)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        if depth > DEPTH_MAX {
            return Err(JsonError::Depth);
        }
        self.blank();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Value::String(self.string()?.into())),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.error("a value is expected")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        let mut entries: Vec<(Arc<str>, Value)> = Vec::new();
        let mut index: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        self.at += 1;
        self.blank();
        if self.take(b'}') {
            return Ok(Value::context(entries));
        }
        loop {
            self.blank();
            if self.peek() != Some(b'"') {
                return Err(self.error("a member name is expected"));
            }
            let name: Arc<str> = self.string()?.into();
            self.blank();
            if !self.take(b':') {
                return Err(self.error("a colon is expected"));
            }
            let value = self.value(depth + 1)?;
            put_member(&mut entries, &mut index, name, value);
            self.blank();
            match (self.take(b','), self.take(b'}')) {
                (true, _) => {}
                (_, true) => return Ok(Value::context(entries)),
                _ => return Err(self.error("a comma or a brace is expected")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        self.at += 1;
        self.blank();
        if self.take(b']') {
            return Ok(Value::list(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blank();
            match (self.take(b','), self.take(b']')) {
                (true, _) => {}
                (_, true) => return Ok(Value::list(items)),
                _ => return Err(self.error("a comma or a bracket is expected")),
            }
        }
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        self.take(b'-');
        let whole = self.digits();
        let leading_zero = whole > 1 && self.byte(self.at - whole) == Some(b'0');
        let fraction = if self.take(b'.') { self.digits() } else { 1 };
        let exponent = if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()
        } else {
            1
        };
        if whole == 0 || leading_zero || fraction == 0 || exponent == 0 {
            return Err(self.error("not a number"));
        }
        let text = self.text.get(start..self.at).unwrap_or("");
        Number::parse_keeping_text(text).map(Value::Number).ok_or_else(|| self.error("the exponent is too large"))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let mut out = String::new();
        self.at += 1;
        loop {
            let rest = self.text.get(self.at..).unwrap_or("");
            let end = rest.find(|c: char| c == '"' || c == '\\' || c < ' ').unwrap_or(rest.len());
            out.push_str(rest.get(..end).unwrap_or(""));
            self.at += end;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return Err(self.error("a control character in a string")),
                None => return Err(self.error("the string does not end")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let kind = self.byte(self.at + 1);
        self.at += 2;
        Ok(match kind {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.error("an unknown escape")),
        })
    }

    fn unicode(&mut self) -> Result<char, JsonError> {
        let first = self.hex()?;
        let code = if (0xd800..0xdc00).contains(&first) && self.take(b'\\') && self.take(b'u') {
            let second = self.hex()?;
            match second.checked_sub(0xdc00) {
                Some(low) if low < 0x400 => 0x10000 + ((first - 0xd800) << 10) + low,
                _ => first,
            }
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| self.error("half of a surrogate pair"))
    }

    fn hex(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
        self.at += 4;
        code.ok_or_else(|| self.error("four hexadecimal digits are expected"))
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, JsonError> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.error("a value is expected"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<u8> {
        self.byte(self.at)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn error(&self, message: &'static str) -> JsonError {
        JsonError::Syntax { offset: self.at.min(self.text.len()), message }
    }
}

fn put_member(
    entries: &mut Vec<(Arc<str>, Value)>,
    index: &mut BTreeMap<Arc<str>, usize>,
    name: Arc<str>,
    value: Value,
) {
    if entries.len() == MEMBERS_SEARCHED_MAX && index.is_empty() {
        index.extend(entries.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)));
    }
    let known =
        if index.is_empty() { entries.iter().position(|(key, _)| *key == name) } else { index.get(&name).copied() };
    if let Some(entry) = known.and_then(|at| entries.get_mut(at)) {
        entry.1 = value;
        return;
    }
    if !index.is_empty() {
        index.insert(name.clone(), entries.len());
    }
    entries.push((name, value));
}

/// Appends the compact JSON of a value; `out` stays within `bytes_max`, give or take one scalar.
pub(crate) fn write(value: &Value, depth: usize, bytes_max: usize, out: &mut String) -> Result<(), JsonError> {
    if depth > DEPTH_MAX {
        return Err(JsonError::Depth);
    }
    if out.len() > bytes_max {
        return Err(JsonError::Length { bytes_max });
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.json_text()),
        Value::String(text) => write_string(text, out),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write(item, depth + 1, bytes_max, out)?;
            }
            out.push(']');
        }
        Value::Context(entries) => {
            out.push('{');
            for (at, (name, item)) in entries.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_string(name, out);
                out.push(':');
                write(item, depth + 1, bytes_max, out)?;
            }
            out.push('}');
        }
        Value::Range(_) => return Err(JsonError::Unrepresentable(value.type_name())),
        temporal => write_string(&temporal::text(temporal, true), out),
    }
    Ok(())
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}
