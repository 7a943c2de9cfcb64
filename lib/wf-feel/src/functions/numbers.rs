//! Functions on single numbers.
//! It knows no lists.
//! Next: `lists`.

use super::Builtin;
use crate::decimal::{self, Rounding};
use crate::eval::{Outcome, Run};
use crate::expression::EvalError;
use crate::number::Number;
use crate::value::Value;

const SCALED: &[&[&str]] = &[&["n", "scale"]];
const SCALED_OR_NOT: &[&[&str]] = &[&["n"], &["n", "scale"]];

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("decimal", &[&["n", "scale"], &["n", "scale", "mode"]], decimal_places),
    Builtin::new("floor", SCALED_OR_NOT, |run, arguments| rounded(run, arguments, Rounding::Floor)),
    Builtin::new("ceiling", SCALED_OR_NOT, |run, arguments| rounded(run, arguments, Rounding::Ceiling)),
    Builtin::new("round up", SCALED, |run, arguments| rounded(run, arguments, Rounding::Up)),
    Builtin::new("round down", SCALED, |run, arguments| rounded(run, arguments, Rounding::Down)),
    Builtin::new("round half up", SCALED, |run, arguments| rounded(run, arguments, Rounding::HalfUp)),
    Builtin::new("round half down", SCALED, |run, arguments| rounded(run, arguments, Rounding::HalfDown)),
    Builtin::new("abs", &[&["number"], &["n"]], abs),
    Builtin::new("modulo", &[&["dividend", "divisor"]], modulo),
    Builtin::new("sqrt", &[&["number"]], sqrt),
    Builtin::new("log", &[&["number"]], |run, arguments| through_float(run, arguments, libm::log)),
    Builtin::new("exp", &[&["number"]], |run, arguments| through_float(run, arguments, libm::exp)),
    Builtin::new("odd", &[&["number"]], |run, arguments| parity(run, arguments, 1)),
    Builtin::new("even", &[&["number"]], |run, arguments| parity(run, arguments, 0)),
    Builtin::new("random number", &[&[]], random_number),
];

/// Steps that a function on numbers of many digits may cost.
const STEPS_HEAVY: usize = 20;

fn decimal_places(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::Number(_), Value::Number(_)] => rounded(run, arguments, Rounding::HalfEven),
        [number, scale, Value::String(mode)] => match rounding(&mode.to_uppercase()) {
            Some(rounding) => rounded(run, &[number.clone(), scale.clone()], rounding),
            None => Ok(Value::Null),
        },
        _ => Ok(Value::Null),
    }
}

fn rounding(mode: &str) -> Option<Rounding> {
    Some(match mode {
        "UP" => Rounding::Up,
        "DOWN" => Rounding::Down,
        "CEILING" => Rounding::Ceiling,
        "FLOOR" => Rounding::Floor,
        "HALF_UP" => Rounding::HalfUp,
        "HALF_DOWN" => Rounding::HalfDown,
        "HALF_EVEN" => Rounding::HalfEven,
        _ => return None,
    })
}

fn rounded(run: &mut Run<'_>, arguments: &[Value], rounding: Rounding) -> Outcome {
    run.step(1)?;
    let scale = match arguments {
        [Value::Number(_)] => Some(0),
        [Value::Number(_), Value::Number(scale)] => decimal::truncate_to_i64(scale),
        _ => None,
    };
    let result = match (arguments, scale) {
        ([Value::Number(number), ..], Some(scale)) => decimal::round(number, scale, rounding),
        _ => None,
    };
    Ok(result.map_or(Value::Null, Value::Number))
}

fn abs(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    Ok(match arguments {
        [Value::Number(number)] => Value::Number(decimal::abs(number)),
        [Value::DaysDuration(duration)] if duration.is_negative() => {
            duration.checked_neg().map_or(Value::Null, Value::DaysDuration)
        }
        [Value::YearsDuration(months)] => months.checked_abs().map_or(Value::Null, Value::YearsDuration),
        [duration @ Value::DaysDuration(_)] => duration.clone(),
        _ => Value::Null,
    })
}

fn modulo(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::Number(_), Value::Number(divisor)] if divisor.is_zero() => Ok(Value::Null),
        [Value::Number(dividend), Value::Number(divisor)] => {
            run.step(STEPS_HEAVY)?;
            decimal::modulo(dividend, divisor).map(Value::Number).ok_or(EvalError::Range)
        }
        _ => Ok(Value::Null),
    }
}

fn parity(run: &mut Run<'_>, arguments: &[Value], wanted: i64) -> Outcome {
    let [Value::Number(number)] = arguments else {
        return Ok(Value::Null);
    };
    run.step(STEPS_HEAVY)?;
    let rest = decimal::modulo(number, &Number::from(2)).ok_or(EvalError::Range)?;
    Ok(Value::Bool(rest == Number::from(wanted)))
}

fn sqrt(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::Number(number)] if !number.is_negative() => {
            run.step(STEPS_HEAVY)?;
            decimal::square_root(number).map(Value::Number).ok_or(EvalError::Range)
        }
        _ => Ok(Value::Null),
    }
}

fn through_float(run: &mut Run<'_>, arguments: &[Value], function: fn(f64) -> f64) -> Outcome {
    run.step(STEPS_HEAVY)?;
    Ok(match arguments {
        [Value::Number(number)] => {
            let result = decimal::to_f64(number).and_then(|float| decimal::from_f64(function(float)));
            result.map_or(Value::Null, Value::Number)
        }
        _ => Value::Null,
    })
}

/// From 0 inclusive to 1 exclusive, drawn from the seed.
fn random_number(run: &mut Run<'_>, _arguments: &[Value]) -> Outcome {
    let billionths = (run.draw() >> 64) % 1_000_000_000_000_000_000;
    Ok(Value::Number(Number::from_digits(false, &billionths.to_string(), -18)))
}
