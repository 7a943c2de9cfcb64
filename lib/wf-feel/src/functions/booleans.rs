//! `not`, `is defined`, `get or else`, `assert` and `fromAi`.
//! It knows no other types.
//! Next: `strings`.

use super::Builtin;
use crate::eval::{Outcome, Run};
use crate::expression::EvalError;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("not", &[&["negand"]], not),
    Builtin::new("is defined", &[&["value"]], is_defined),
    Builtin::new("get or else", &[&["value", "default"]], get_or_else),
    Builtin::new("assert", &[&["value", "condition"], &["value", "condition", "cause"]], assert),
    Builtin::new(
        "fromAi",
        &[
            &["value"],
            &["value", "description"],
            &["value", "description", "type"],
            &["value", "description", "type", "schema"],
            &["value", "description", "type", "schema", "options"],
        ],
        from_ai,
    ),
];

fn not(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    Ok(match arguments {
        [Value::Bool(value)] => Value::Bool(!value),
        _ => Value::Null,
    })
}

fn is_defined(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    Ok(Value::Bool(arguments.iter().any(|value| !value.is_null())))
}

fn get_or_else(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    Ok(arguments.iter().find(|value| !value.is_null()).cloned().unwrap_or(Value::Null))
}

/// The one function whose failure is an error of the whole expression.
fn assert(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [value, Value::Bool(true), ..] => Ok(value.clone()),
        [_, _, Value::String(cause)] => Err(EvalError::Assert(cause.to_string())),
        _ => Err(EvalError::Assert("the condition is not fulfilled".to_owned())),
    }
}

/// Marks a value that an agent provides; for the evaluation it is just the value.
fn from_ai(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    Ok(arguments.first().cloned().unwrap_or(Value::Null))
}
