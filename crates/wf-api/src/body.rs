//! A JSON body as fields that are taken one by one: everything that is wrong with it is found in one go and named.
//! It does not know which route it serves. Next: `variables.rs` for the values that stay text, then a noun's file.

use std::ops::RangeInclusive;
use std::sync::Arc;

use wf_core::Key;
use wf_core::rows::{Json, Text};

use crate::problem::{FieldError, Problem};
use crate::scan::{self, Flaw, Member};

/// Bytes of names, ids, types.
pub const NAME_BYTES_MAX: usize = 255;
/// A body's flaws that are listed; nobody reads more.
const ERRORS_MAX: usize = 20;

/// What a text field may hold.
#[derive(Clone, Copy, Debug)]
pub struct TextRule {
    pub bytes_max: usize,
    pub empty: bool,
    /// Line breaks and the like; a NUL never.
    pub controls: bool,
}

/// Names, ids, types.
pub const NAME: TextRule = TextRule { bytes_max: NAME_BYTES_MAX, empty: false, controls: false };
/// As a name, or nothing.
pub const NAME_OR_EMPTY: TextRule = TextRule { empty: true, ..NAME };
/// What people write.
pub const PROSE: TextRule = TextRule { bytes_max: 64 << 10, empty: true, controls: true };

/// The fields of one JSON object. Take each known one, then `finish`.
#[derive(Debug)]
pub struct Fields<'a> {
    members: Vec<Member<'a>>,
    pub(crate) errors: Vec<FieldError>,
    /// Where this object stands in the body, for the names in errors: empty, or `jobs[3].`.
    prefix: String,
    pub(crate) depth: usize,
}

/// Reads a whole body. An absent one counts as `{}`.
pub fn read<T>(body: &[u8], take: impl FnOnce(&mut Fields<'_>) -> T) -> Result<T, Problem> {
    let text = std::str::from_utf8(body)
        .map_err(|error| Problem::validation("body", format!("not UTF-8 at byte {}", error.valid_up_to())))?;
    let members = match text.trim_ascii().is_empty() {
        true => Vec::new(),
        false => scan::members(text, 0).map_err(|flaw| Problem::validation("body", describe(flaw, text)))?,
    };
    let mut fields = Fields { members, errors: Vec::new(), prefix: String::new(), depth: 0 };
    let value = take(&mut fields);
    match fields.finish() {
        errors if errors.is_empty() => Ok(value),
        errors => Err(Problem::validation_of(errors)),
    }
}

fn describe(flaw: Flaw, text: &str) -> String {
    match flaw {
        Flaw::Malformed { at } if at == 0 && !text.starts_with('{') => "must be a JSON object".to_owned(),
        Flaw::Malformed { at } => format!("not JSON at byte {at}"),
        Flaw::TooDeep => format!("nested deeper than {} levels", scan::DEPTH_MAX),
        Flaw::Surrogate { at } => format!("half a surrogate pair at byte {at}"),
    }
}

impl<'a> Fields<'a> {
    pub fn refuse(&mut self, field: &str, message: impl Into<String>) {
        self.errors.push(FieldError { field: format!("{}{field}", self.prefix), message: message.into() });
    }

    pub fn text(&mut self, name: &str, rule: TextRule) -> Option<Text> {
        let member = self.take(name)?;
        if !member.value.starts_with('"') {
            self.refuse(name, "must be a string");
            return None;
        }
        let text = scan::unescape(member.value);
        match rule.check(&text) {
            Ok(()) => Some(Arc::from(text)),
            Err(message) => {
                self.refuse(name, message);
                None
            }
        }
    }

    /// An empty text stands in where it is missing: `finish` reports it.
    pub fn required_text(&mut self, name: &str, rule: TextRule) -> Text {
        let errors = self.errors.len();
        let text = self.text(name, rule);
        if text.is_none() && self.errors.len() == errors {
            self.refuse(name, "is required");
        }
        text.unwrap_or_else(|| Arc::from(""))
    }

    pub fn int(&mut self, name: &str, range: RangeInclusive<i64>) -> Option<i64> {
        let member = self.take(name)?;
        let number: Option<i64> = member.value.parse().ok();
        match number {
            Some(number) if range.contains(&number) => return Some(number),
            _ => self.refuse(name, format!("must be a whole number from {} to {}", range.start(), range.end())),
        }
        None
    }

    pub fn required_int(&mut self, name: &str, range: RangeInclusive<i64>) -> i64 {
        let errors = self.errors.len();
        let number = self.int(name, range);
        if number.is_none() && self.errors.len() == errors {
            self.refuse(name, "is required");
        }
        number.unwrap_or_default()
    }

    pub fn bool(&mut self, name: &str) -> Option<bool> {
        match self.take(name)?.value {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.refuse(name, "must be true or false");
                None
            }
        }
    }

    /// A key or another 64-bit number, as string or as number.
    pub fn key(&mut self, name: &str) -> Option<Key> {
        let member = self.take(name)?;
        let digits = member.value.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(member.value);
        let key = parse_key(digits);
        if key.is_none() {
            self.refuse(name, "must be a key: a decimal number, best as a string");
        }
        key
    }

    pub fn required_key(&mut self, name: &str) -> Key {
        let errors = self.errors.len();
        let key = self.key(name);
        if key.is_none() && self.errors.len() == errors {
            self.refuse(name, "is required");
        }
        key.unwrap_or_default()
    }

    /// Any JSON, `null` too, compact.
    pub fn required_json(&mut self, name: &str) -> Json {
        match self.take_any(name) {
            Some(member) if member.nul => self.refuse(name, "must hold no NUL character"),
            Some(member) => return Arc::from(scan::compact(member.value)),
            None => self.refuse(name, "is required"),
        }
        Arc::from("null")
    }

    pub fn texts(&mut self, name: &str, count_max: usize) -> Option<Vec<Text>> {
        let member = self.take(name)?;
        let items = scan::items(member.value, self.depth + 1).unwrap_or_default();
        let texts: Option<Vec<Text>> = items.iter().map(|raw| text_item(raw)).collect();
        match texts {
            Some(texts) if member.value.starts_with('[') && texts.len() <= count_max => Some(texts),
            _ => {
                self.refuse(name, format!("must be an array of at most {count_max} names"));
                None
            }
        }
    }

    /// An array of objects, each read on its own.
    pub fn objects<T>(
        &mut self,
        name: &str,
        counts: RangeInclusive<usize>,
        mut take: impl FnMut(&mut Fields<'_>) -> T,
    ) -> Vec<T> {
        let member = self.take(name);
        let items = member.and_then(|member| scan::items(member.value, self.depth + 1).ok());
        let items = items.filter(|items| counts.contains(&items.len()));
        let Some(items) = items else {
            self.refuse(name, format!("must be an array of {} to {} objects", counts.start(), counts.end()));
            return Vec::new();
        };
        let depth = self.depth + 2;
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let Ok(members) = scan::members(item, depth) else {
                self.refuse(&format!("{name}[{index}]"), "must be an object");
                continue;
            };
            let prefix = format!("{}{name}[{index}].", self.prefix);
            let mut fields = Fields { members, errors: Vec::new(), prefix, depth };
            values.push(take(&mut fields));
            self.errors.append(&mut fields.finish());
            if self.errors.len() >= ERRORS_MAX {
                break;
            }
        }
        values
    }

    /// `null` counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<Member<'a>> {
        self.take_any(name).filter(|member| member.value != "null")
    }

    fn take_any(&mut self, name: &str) -> Option<Member<'a>> {
        let at = self.members.iter().position(|member| member.name == name)?;
        let member = self.members.remove(at);
        if self.members.iter().any(|other| other.name == name) {
            self.refuse(name, "stands more than once");
            self.members.retain(|other| other.name != name);
        }
        Some(member)
    }

    /// Everything that is wrong: what was refused, and what nobody asked for.
    fn finish(mut self) -> Vec<FieldError> {
        for member in std::mem::take(&mut self.members).into_iter().take(ERRORS_MAX) {
            let name: String = member.name.chars().take(NAME_BYTES_MAX).collect();
            self.refuse(&name, "is unknown here");
        }
        self.errors.truncate(ERRORS_MAX);
        self.errors
    }
}

impl TextRule {
    /// The message names what is wrong, without the text itself.
    pub fn check(self, text: &str) -> Result<(), String> {
        match text {
            "" if !self.empty => Err("must not be empty".to_owned()),
            _ if text.len() > self.bytes_max => Err(format!("has more than {} bytes", self.bytes_max)),
            _ if text.contains('\0') => Err("must hold no NUL character".to_owned()),
            _ if !self.controls && text.contains(char::is_control) => Err("must hold no control characters".to_owned()),
            _ => Ok(()),
        }
    }
}

fn text_item(raw: &str) -> Option<Text> {
    let text = raw.starts_with('"').then(|| scan::unescape(raw))?;
    NAME.check(&text).is_ok().then(|| Arc::from(text))
}

/// Digits only: no sign, no white space; fits a signed 64-bit integer.
pub fn parse_key(digits: &str) -> Option<Key> {
    let plain = (1..=19).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let key = plain.then(|| digits.parse().ok())?;
    key.filter(|key| *key <= i64::MAX as u64)
}
