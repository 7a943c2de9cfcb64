//! Functions with regular expressions, in time linear in the text. Patterns are Java's as far as they are regular:
//! no look-around and no back-references, which give null.
//! Next: `base64`.

use regex::{Captures, Regex, RegexBuilder};

use super::Builtin;
use crate::eval::{Outcome, Run};
use crate::expression::EvalError;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("matches", &[&["input", "pattern"], &["input", "pattern", "flags"]], matches),
    Builtin::new(
        "replace",
        &[&["input", "pattern", "replacement"], &["input", "pattern", "replacement", "flags"]],
        replace,
    ),
    Builtin::new("split", &[&["string", "delimiter"]], split).growing(1),
    Builtin::new("extract", &[&["input", "pattern"]], extract).growing(1),
];

/// Memory of one compiled pattern; it also bounds the time per character.
const PATTERN_BYTES_MAX: usize = 256 << 10;
const PATTERNS_KEPT_MAX: usize = 16;
const PATTERN_LENGTH_MAX: usize = 4_096;
/// What compiling a pattern costs, in steps.
const STEPS_COMPILE: usize = 200;

fn matches(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let (text, pattern, flags) = match arguments {
        [Value::String(text), Value::String(pattern)] => (text, pattern, ""),
        [Value::String(text), Value::String(pattern), Value::String(flags)] => (text, pattern, flags.as_ref()),
        _ => return Ok(Value::Null),
    };
    Ok(match compiled(run, text, pattern, flags)? {
        Some(regex) => Value::Bool(regex.is_match(text)),
        None => Value::Null,
    })
}

fn replace(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let (text, pattern, replacement, flags) = match arguments {
        [Value::String(text), Value::String(pattern), Value::String(by)] => (text, pattern, by, ""),
        [Value::String(text), Value::String(pattern), Value::String(by), Value::String(flags)] => {
            (text, pattern, by, flags.as_ref())
        }
        _ => return Ok(Value::Null),
    };
    let Some(regex) = compiled(run, text, pattern, flags)? else {
        return Ok(Value::Null);
    };
    let mut out = String::new();
    let mut end = 0;
    for captures in regex.captures_iter(text) {
        let Some(whole) = captures.get(0) else { continue };
        out.push_str(text.get(end..whole.start()).unwrap_or(""));
        end = whole.end();
        run.step(1)?;
        if expand(replacement, &captures, &mut out).is_none() {
            return Ok(Value::Null);
        }
        if out.len() > run.bytes_left() {
            run.allocate(out.len())?;
        }
    }
    out.push_str(text.get(end..).unwrap_or(""));
    run.string(out)
}

fn split(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text), Value::String(delimiter)] = arguments else {
        return Ok(Value::Null);
    };
    let Some(regex) = compiled(run, text, delimiter, "")? else {
        return Ok(Value::Null);
    };
    let mut parts = Vec::new();
    let mut end = 0;
    for found in regex.find_iter(text) {
        // As in Java, nothing stands before an empty match at the very start.
        if found.end() > 0 {
            parts.push(run.string(text.get(end..found.start()).unwrap_or(""))?);
            run.allocate_items(1)?;
        }
        end = found.end();
    }
    parts.push(run.string(text.get(end..).unwrap_or(""))?);
    run.items(parts)
}

fn extract(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text), Value::String(pattern)] = arguments else {
        return Ok(Value::Null);
    };
    let Some(regex) = compiled(run, text, pattern, "")? else {
        return Ok(Value::Null);
    };
    let mut parts = Vec::new();
    for found in regex.find_iter(text) {
        parts.push(run.string(found.as_str())?);
        run.allocate_items(1)?;
    }
    run.items(parts)
}

/// The compiled pattern, from this evaluation's memory if it is there. `None` if it is no (regular) pattern.
fn compiled(run: &mut Run<'_>, text: &str, pattern: &str, flags: &str) -> Result<Option<Regex>, EvalError> {
    if pattern.len() > PATTERN_LENGTH_MAX {
        return Ok(None);
    }
    run.step((text.len() / 16).saturating_mul(1 + pattern.len() / 32))?;
    let key = format!("{flags}/{pattern}");
    if let Some((_, regex)) = run.patterns.iter().find(|(known, _)| *known == key) {
        return Ok(Some(regex.clone()));
    }
    run.step(STEPS_COMPILE + pattern.len())?;
    let built = RegexBuilder::new(&ascii_classes(pattern))
        .size_limit(PATTERN_BYTES_MAX)
        .nest_limit(64)
        .dot_matches_new_line(flags.contains('s'))
        .multi_line(flags.contains('m'))
        .case_insensitive(flags.contains('i'))
        .ignore_whitespace(flags.contains('x'))
        .build();
    let Ok(regex) = built else {
        return Ok(None);
    };
    if run.patterns.len() < PATTERNS_KEPT_MAX {
        run.patterns.push((key, regex.clone()));
    }
    Ok(Some(regex))
}

/// Java's `\d`, `\w` and `\s` mean ASCII.
fn ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('s') => out.push_str("[\\t\\n\\x0b\\x0c\\r\\x20]"),
            Some('S') => out.push_str("[^\\t\\n\\x0b\\x0c\\r\\x20]"),
            Some('Z') => out.push_str("\\z"),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

/// Appends the replacement with its `$1`, `${name}` and `\$`. `None` for a group that the pattern has not.
fn expand(replacement: &str, captures: &Captures<'_>, out: &mut String) -> Option<()> {
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(chars.next()?),
            '$' if chars.peek() == Some(&'{') => {
                let name: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                out.push_str(captures.name(&name)?.as_str());
            }
            '$' => {
                let mut group = usize::try_from(chars.next()?.to_digit(10)?).ok()?;
                if group >= captures.len() {
                    return None;
                }
                // Further digits belong to the group only as long as there is such a group.
                while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                    let longer = group * 10 + usize::try_from(digit).ok()?;
                    if longer >= captures.len() {
                        break;
                    }
                    group = longer;
                    chars.next();
                }
                out.push_str(captures.get(group).map_or("", |found| found.as_str()));
            }
            other => out.push(other),
        }
    }
    Some(())
}
