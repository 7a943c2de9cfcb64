//! Three-valued logic, `in` and `instance of`.
//! It knows no numbers.
//! Next: `compare`.

use super::locals::Local;
use super::{Outcome, Run};
use crate::ast::{Comparison, Expr, Test};
use crate::compare;
use crate::expression::EvalError;
use crate::value::{Range, Value};

impl Run<'_> {
    /// True if one is true; else null if one is no boolean; else false. Stops at the first true.
    pub(super) fn any(&mut self, operands: &[Expr]) -> Outcome {
        let mut result = Value::Bool(false);
        for operand in operands {
            result = or(&result, &self.eval(operand)?);
            if result == Value::Bool(true) {
                break;
            }
        }
        Ok(result)
    }

    /// False if one is false; else null if one is no boolean; else true. Stops at the first false.
    pub(super) fn all(&mut self, operands: &[Expr]) -> Outcome {
        let mut result = Value::Bool(true);
        for operand in operands {
            result = and(&result, &self.eval(operand)?);
            if result == Value::Bool(false) {
                break;
            }
        }
        Ok(result)
    }

    /// True if one of the tests holds for the value.
    pub(super) fn in_tests(&mut self, value: &Expr, tests: &[Test]) -> Outcome {
        let input = self.eval(value)?;
        let mut result = Value::Bool(false);
        for test in tests {
            let local = Local::Name("?".into(), input.clone());
            let held = self.with([local], |run| match test {
                Test::Compare(comparison, expr) => {
                    let bound = run.eval(expr)?;
                    compare::apply(run, *comparison, &input, &bound)
                }
                Test::Is(expr) => {
                    let tested = run.eval(expr)?;
                    run.meets(&input, &tested)
                }
            })?;
            result = or(&result, &held);
            if result == Value::Bool(true) {
                break;
            }
        }
        Ok(result)
    }

    /// Does the input meet the value of a test: lie in the range, be in the list, equal it, or did a condition hold?
    fn meets(&mut self, input: &Value, test: &Value) -> Outcome {
        match test {
            Value::Bool(true) => Ok(Value::Bool(true)),
            Value::Range(range) => Ok(includes(range, input)),
            Value::List(items) => Ok(Value::Bool(self.among(input, items)? || self.equal(input, test)?)),
            other => match compare::equal(self, input, other)? {
                Some(equal) => Ok(Value::Bool(equal)),
                None if *other == Value::Bool(false) => Ok(Value::Bool(false)),
                None => Ok(Value::Null),
            },
        }
    }

    fn among(&mut self, input: &Value, items: &[Value]) -> Result<bool, EvalError> {
        for item in items {
            let found = match item {
                Value::Range(range) if !matches!(input, Value::Range(_)) => includes(range, input) == Value::Bool(true),
                item => self.equal(input, item)?,
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Equality where values of different types are simply not equal.
    pub(crate) fn equal(&mut self, left: &Value, right: &Value) -> Result<bool, EvalError> {
        Ok(compare::equal(self, left, right)? == Some(true))
    }

    pub(super) fn instance_of(&mut self, value: &Expr, name: &str) -> Outcome {
        let value = self.eval(value)?;
        let wanted = match name {
            "Any" => return Ok(Value::Bool(!value.is_null())),
            "date time" => "date and time",
            other => other,
        };
        Ok(Value::Bool(value.type_name() == wanted))
    }
}

pub(super) fn or(left: &Value, right: &Value) -> Value {
    match (left, right) {
        (Value::Bool(true), _) | (_, Value::Bool(true)) => Value::Bool(true),
        (Value::Bool(false), Value::Bool(false)) => Value::Bool(false),
        _ => Value::Null,
    }
}

pub(super) fn and(left: &Value, right: &Value) -> Value {
    match (left, right) {
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
        (Value::Bool(true), Value::Bool(true)) => Value::Bool(true),
        _ => Value::Null,
    }
}

/// Null if the value is of another type than the range's ends.
pub(crate) fn includes(range: &Range, value: &Value) -> Value {
    let from = if range.start_included { Comparison::GreaterOrEqual } else { Comparison::Greater };
    let to = if range.end_included { Comparison::LessOrEqual } else { Comparison::Less };
    and(&compare::ordered(from, value, &range.start), &compare::ordered(to, value, &range.end))
}
