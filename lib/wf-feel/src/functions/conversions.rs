//! `string`, `number`, `to json` and `from json`.
//! It knows no temporal texts; `functions::temporal` makes those values.
//! Next: back to `eval`.

use super::Builtin;
use crate::eval::{Outcome, Run};
use crate::expression::EvalError;
use crate::json;
use crate::number::Number;
use crate::temporal;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("string", &[&["from"]], string),
    Builtin::new(
        "number",
        &[&["from"], &["from", "grouping separator"], &["from", "grouping separator", "decimal separator"]],
        number,
    ),
    Builtin::new("to json", &[&["value"]], to_json),
    Builtin::new("from json", &[&["json"]], from_json),
];

/// Deeper values come only from Rust code.
const DEPTH_MAX: usize = 400;

fn string(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [value @ (Value::Null | Value::String(_))] => Ok(value.clone()),
        [value] => {
            let mut out = String::new();
            write(run, value, 0, &mut out)?;
            run.string(out)
        }
        _ => Ok(Value::Null),
    }
}

fn write(run: &mut Run<'_>, value: &Value, depth: usize, out: &mut String) -> Result<(), EvalError> {
    run.step(1)?;
    if depth > DEPTH_MAX {
        return Err(run.too_deep());
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => {
            run.allocate(text.len())?;
            out.extend(["\"", text.as_ref(), "\""]);
        }
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write(run, item, depth + 1, out)?;
            }
            out.push(']');
        }
        Value::Context(entries) => {
            out.push('{');
            for (at, (name, item)) in entries.iter().enumerate() {
                run.allocate(name.len())?;
                out.extend([if at > 0 { ", " } else { "" }, name.as_ref(), ":"]);
                write(run, item, depth + 1, out)?;
            }
            out.push('}');
        }
        Value::Range(range) => {
            out.push(if range.start_included { '[' } else { '(' });
            write(run, &range.start, depth + 1, out)?;
            out.push_str("..");
            write(run, &range.end, depth + 1, out)?;
            out.push(if range.end_included { ']' } else { ')' });
        }
        temporal => out.push_str(&temporal::text(temporal, false)),
    }
    Ok(())
}

fn number(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let (text, grouping, decimal) = match arguments {
        [Value::String(text)] => (text, None, None),
        [Value::String(text), grouping] => (text, Some(grouping), None),
        [Value::String(text), grouping, decimal] => (text, Some(grouping), Some(decimal)),
        [value @ Value::Number(_)] => return Ok(value.clone()),
        _ => return Ok(Value::Null),
    };
    run.step(text.len() / 16)?;
    run.allocate(text.len())?;
    let (Some(grouping), Some(decimal)) = (separator(grouping, &[" ", ",", "."]), separator(decimal, &[",", "."]))
    else {
        return Ok(Value::Null);
    };
    if !grouping.is_empty() && grouping == decimal {
        return Ok(Value::Null);
    }
    let mut plain = text.to_string();
    if !grouping.is_empty() {
        plain = plain.replace(grouping, "");
    }
    if !decimal.is_empty() {
        plain = plain.replace(decimal, ".");
    }
    Ok(Number::parse(plain.strip_prefix('+').unwrap_or(&plain)).map_or(Value::Null, Value::Number))
}

/// An absent separator is empty; `None` for one that is not allowed.
fn separator<'a>(value: Option<&'a Value>, allowed: &[&str]) -> Option<&'a str> {
    match value {
        None | Some(Value::Null) => Some(""),
        Some(Value::String(text)) if allowed.contains(&text.as_ref()) => Some(text),
        Some(_) => None,
    }
}

fn to_json(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [value] = arguments else {
        return Ok(Value::Null);
    };
    let mut out = String::new();
    let bytes_max = run.bytes_left();
    match json::write(value, 0, bytes_max, &mut out) {
        Ok(()) => {
            run.step(out.len() / 8)?;
            run.string(out)
        }
        Err(json::JsonError::Length { .. }) => run.allocate(usize::MAX).map(|()| Value::Null),
        Err(_) => Ok(Value::Null),
    }
}

fn from_json(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else {
        return Ok(Value::Null);
    };
    // A value of two characters takes one slot of a list.
    run.step(text.len() / 4)?;
    run.allocate(text.len().saturating_mul(size_of::<Value>() / 4))?;
    Ok(Value::from_json(text).unwrap_or(Value::Null))
}
