//! Equality and order of values; `None` says that they cannot be compared, which the dialect answers with null.
//! It knows no expression.
//! Next: back to `eval`.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::ast::Comparison;
use crate::eval::{Outcome, Run};
use crate::expression::EvalError;
use crate::value::Value;

/// Values made by Rust code may be nested deeper than any expression makes them; they are not walked further.
const DEPTH_MAX: usize = 400;

pub(crate) fn apply(run: &mut Run<'_>, comparison: Comparison, left: &Value, right: &Value) -> Outcome {
    match comparison {
        Comparison::Equal => Ok(boolean(equal(run, left, right)?)),
        Comparison::NotEqual => Ok(boolean(equal(run, left, right)?.map(|equal| !equal))),
        order => {
            run.step(weight(left, right))?;
            Ok(ordered(order, left, right))
        }
    }
}

/// Long texts and numbers cost more than a step, as far as they must be looked at.
fn weight(left: &Value, right: &Value) -> usize {
    match (left, right) {
        (Value::String(a), Value::String(b)) => a.len().min(b.len()) / 256,
        (Value::Number(a), Value::Number(b)) => a.weight().min(b.weight()) / 16,
        _ => 0,
    }
}

fn boolean(value: Option<bool>) -> Value {
    value.map_or(Value::Null, Value::Bool)
}

/// `<`, `<=`, `>`, `>=`: null unless both values are of one ordered type.
pub(crate) fn ordered(comparison: Comparison, left: &Value, right: &Value) -> Value {
    boolean(order(left, right).map(|order| match comparison {
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
    }))
}

pub(crate) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Date(a), Value::Date(b)) => Some(a.cmp(b)),
        (Value::Time(a), Value::Time(b)) => a.compare(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.compare(b),
        (Value::DaysDuration(a), Value::DaysDuration(b)) => Some(a.cmp(b)),
        (Value::YearsDuration(a), Value::YearsDuration(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Everything may be compared with null; otherwise the types must be the same. Inside lists and contexts a difference
/// of types is only a difference.
pub(crate) fn equal(run: &mut Run<'_>, left: &Value, right: &Value) -> Result<Option<bool>, EvalError> {
    equal_at(run, left, right, 0)
}

fn equal_at(run: &mut Run<'_>, left: &Value, right: &Value, depth: usize) -> Result<Option<bool>, EvalError> {
    run.step(1 + weight(left, right))?;
    if depth > DEPTH_MAX {
        return Err(run.too_deep());
    }
    Ok(match (left, right) {
        (Value::Null, other) | (other, Value::Null) => Some(other.is_null()),
        (Value::Bool(a), Value::Bool(b)) => Some(a == b),
        (Value::List(a), Value::List(b)) => Some(Arc::ptr_eq(a, b) || lists(run, a, b, depth)?),
        (Value::Context(a), Value::Context(b)) => Some(Arc::ptr_eq(a, b) || contexts(run, a, b, depth)?),
        (Value::Range(a), Value::Range(b)) => Some(a == b),
        _ => order(left, right).map(Ordering::is_eq),
    })
}

fn lists(run: &mut Run<'_>, a: &[Value], b: &[Value], depth: usize) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (left, right) in a.iter().zip(b) {
        if equal_at(run, left, right, depth + 1)? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

type Entries = [(Arc<str>, Value)];

/// The order of the entries does not count.
fn contexts(run: &mut Run<'_>, a: &Entries, b: &Entries, depth: usize) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (at, (name, left)) in a.iter().enumerate() {
        let in_place = b.get(at).filter(|(other, _)| other == name);
        let found = match in_place {
            Some(entry) => Some(entry),
            None => {
                run.step(b.len() / 16)?;
                b.iter().find(|(other, _)| other == name)
            }
        };
        let Some((_, right)) = found else {
            return Ok(false);
        };
        if equal_at(run, left, right, depth + 1)? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}
