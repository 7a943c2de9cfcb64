//! The operators + - * / ** on numbers, strings, dates and durations.
//! It knows no expression; operands that do not fit together give null.
//! Next: `decimal` for the numbers.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span};

use crate::ast::Operator;
use crate::decimal;
use crate::eval::{Outcome, Run};
use crate::expression::EvalError;
use crate::number::Number;
use crate::temporal::{FeelDateTime, FeelTime, millis};
use crate::value::Value;

/// Steps that a power costs: some sixty multiplications of long numbers.
const STEPS_POWER: usize = 200;

pub(crate) fn apply(run: &mut Run<'_>, operator: Operator, left: &Value, right: &Value) -> Outcome {
    run.step(1)?;
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => numbers(run, operator, a, b),
        (Value::String(a), Value::String(b)) if operator == Operator::Add => {
            run.allocate(a.len().saturating_add(b.len()))?;
            Ok(Value::String([a.as_ref(), b.as_ref()].concat().into()))
        }
        _ => Ok(temporals(operator, left, right).unwrap_or(Value::Null)),
    }
}

pub(crate) fn negate(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(decimal::negate(number)),
        Value::DaysDuration(duration) => duration.checked_neg().map_or(Value::Null, Value::DaysDuration),
        Value::YearsDuration(months) => months.checked_neg().map_or(Value::Null, Value::YearsDuration),
        _ => Value::Null,
    }
}

fn numbers(run: &mut Run<'_>, operator: Operator, a: &Number, b: &Number) -> Outcome {
    run.step(a.weight().saturating_add(b.weight()))?;
    let result = match operator {
        Operator::Add => decimal::add(a, b),
        Operator::Subtract => decimal::subtract(a, b),
        Operator::Multiply => decimal::multiply(a, b),
        Operator::Divide if b.is_zero() => return Ok(Value::Null),
        Operator::Divide => {
            run.step(1)?;
            decimal::divide(a, b)
        }
        Operator::Power => {
            run.step(STEPS_POWER)?;
            return power(a, b);
        }
    };
    result.map(Value::Number).ok_or(EvalError::Range)
}

/// Whole powers are exact to 34 digits, others go through the logarithm as in the reference implementation.
fn power(a: &Number, b: &Number) -> Outcome {
    if a.is_zero() && b.is_negative() {
        return Ok(Value::Null);
    }
    match b.to_i64() {
        Some(whole) => decimal::power(a, whole).map(Value::Number).ok_or(EvalError::Range),
        None => {
            let floats = decimal::to_f64(a).zip(decimal::to_f64(b));
            let result = floats.and_then(|(a, b)| decimal::from_f64(libm::pow(a, b)));
            Ok(result.map_or(Value::Null, Value::Number))
        }
    }
}

fn temporals(operator: Operator, left: &Value, right: &Value) -> Option<Value> {
    match (operator, left, right) {
        (Operator::Add, duration, base) if is_duration(duration) && !is_duration(base) => shift(base, duration),
        (Operator::Add, base, duration) => shift(base, duration),
        (Operator::Subtract, base, duration) if is_duration(duration) => shift(base, &negate(duration)),
        (Operator::Subtract, a, b) => difference(a, b),
        (Operator::Multiply, duration, Value::Number(factor))
        | (Operator::Multiply, Value::Number(factor), duration) => scale(duration, factor),
        (Operator::Divide, duration, divisor) => divide(duration, divisor),
        _ => None,
    }
}

fn is_duration(value: &Value) -> bool {
    matches!(value, Value::DaysDuration(_) | Value::YearsDuration(_))
}

/// A date, time, date-time or duration plus a duration.
fn shift(base: &Value, duration: &Value) -> Option<Value> {
    match (base, duration) {
        (Value::YearsDuration(a), Value::YearsDuration(b)) => a.checked_add(*b).map(Value::YearsDuration),
        (Value::DaysDuration(a), Value::DaysDuration(b)) => a.checked_add(*b).map(Value::DaysDuration),
        (Value::Date(date), Value::YearsDuration(months)) => date.checked_add(span(*months)?).ok().map(Value::Date),
        (Value::Date(date), Value::DaysDuration(duration)) => {
            midnight(*date).checked_add(*duration).ok().map(|shifted| Value::Date(shifted.date()))
        }
        (Value::Time(time), Value::DaysDuration(duration)) => {
            let within_a_day = SignedDuration::new(duration.as_secs() % 86_400, duration.subsec_nanos());
            Some(Value::Time(time.with_time(time.time().wrapping_add(within_a_day))))
        }
        (Value::DateTime(date_time), duration) => shift_date_time(date_time, duration).map(Value::DateTime),
        _ => None,
    }
}

fn shift_date_time(date_time: &FeelDateTime, duration: &Value) -> Option<FeelDateTime> {
    match (date_time, duration) {
        (FeelDateTime::Local(local), Value::YearsDuration(months)) => {
            local.checked_add(span(*months)?).ok().map(FeelDateTime::Local)
        }
        (FeelDateTime::Local(local), Value::DaysDuration(duration)) => {
            local.checked_add(*duration).ok().map(FeelDateTime::Local)
        }
        (FeelDateTime::Zoned(zoned), Value::YearsDuration(months)) => {
            zoned.checked_add(span(*months)?).ok().map(FeelDateTime::Zoned)
        }
        (FeelDateTime::Zoned(zoned), Value::DaysDuration(duration)) => {
            zoned.checked_add(*duration).ok().map(FeelDateTime::Zoned)
        }
        _ => None,
    }
}

fn span(months: i64) -> Option<Span> {
    Span::new().try_months(months).ok()
}

fn midnight(date: Date) -> DateTime {
    DateTime::from_parts(date, Time::midnight())
}

/// What lies between two dates, times or date-times, as a days-and-time duration. A date stands for its midnight.
fn difference(a: &Value, b: &Value) -> Option<Value> {
    let duration = match (a, b) {
        (Value::Date(a), Value::Date(b)) => midnight(*a).duration_since(midnight(*b)),
        (Value::Time(a @ FeelTime::Local(_)), Value::Time(b @ FeelTime::Local(_)))
        | (Value::Time(a @ FeelTime::Zoned(..)), Value::Time(b @ FeelTime::Zoned(..))) => {
            a.since_midnight().checked_sub(b.since_midnight())?
        }
        (Value::DateTime(FeelDateTime::Local(a)), Value::DateTime(FeelDateTime::Local(b))) => a.duration_since(*b),
        (Value::DateTime(FeelDateTime::Zoned(a)), Value::DateTime(FeelDateTime::Zoned(b))) => a.duration_since(b),
        (Value::DateTime(a), Value::Date(b)) => midnight_difference(a, *b)?,
        (Value::Date(a), Value::DateTime(b)) => midnight_difference(b, *a)?.checked_neg()?,
        _ => return None,
    };
    Some(Value::DaysDuration(duration))
}

/// A date next to a date-time with a zone is midnight UTC.
fn midnight_difference(date_time: &FeelDateTime, date: Date) -> Option<SignedDuration> {
    match date_time {
        FeelDateTime::Local(local) => Some(local.duration_since(midnight(date))),
        FeelDateTime::Zoned(zoned) => {
            let start = TimeZone::UTC.to_timestamp(midnight(date)).ok()?;
            Some(zoned.timestamp().duration_since(start))
        }
    }
}

/// A duration times the whole part of a number.
fn scale(duration: &Value, factor: &Number) -> Option<Value> {
    let factor = decimal::truncate_to_i64(factor)?;
    match duration {
        Value::YearsDuration(months) => months.checked_mul(factor).map(Value::YearsDuration),
        Value::DaysDuration(duration) => {
            let nanos = duration.as_nanos().checked_mul(i128::from(factor))?;
            SignedDuration::try_from_nanos_i128(nanos).map(Value::DaysDuration)
        }
        _ => None,
    }
}

/// A duration by a number is a duration of whole months or milliseconds; a duration by one of its kind is a number.
fn divide(dividend: &Value, divisor: &Value) -> Option<Value> {
    match (dividend, divisor) {
        (Value::YearsDuration(months), Value::Number(by)) if !by.is_zero() => {
            let quotient = decimal::divide(&Number::from(*months), by)?;
            decimal::truncate_to_i64(&quotient).map(Value::YearsDuration)
        }
        (Value::DaysDuration(duration), Value::Number(by)) if !by.is_zero() => {
            let quotient = decimal::divide(&millis(*duration), by)?;
            decimal::truncate_to_i64(&quotient).map(|ms| Value::DaysDuration(SignedDuration::from_millis(ms)))
        }
        (Value::YearsDuration(a), Value::YearsDuration(b)) if *b != 0 => {
            decimal::divide(&Number::from(*a), &Number::from(*b)).map(Value::Number)
        }
        (Value::DaysDuration(a), Value::DaysDuration(b)) if b.as_millis() != 0 => {
            decimal::divide(&millis(*a), &millis(*b)).map(Value::Number)
        }
        _ => None,
    }
}
