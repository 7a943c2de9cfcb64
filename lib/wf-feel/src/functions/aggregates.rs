//! Functions that make one value of a list: sums, extremes, all and any, joined strings.
//! It knows no positions.
//! Next: `contexts`.

use super::Builtin;
use crate::compare;
use crate::decimal;
use crate::eval::{Outcome, Run};
use crate::expression::EvalError;
use crate::number::Number;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("count", &[&["list"]], count),
    Builtin::new("min", &[&["list"]], |run, arguments| extreme(run, arguments, std::cmp::Ordering::Less)).variadic(),
    Builtin::new("max", &[&["list"]], |run, arguments| extreme(run, arguments, std::cmp::Ordering::Greater)).variadic(),
    Builtin::new("sum", &[&["list"]], |run, arguments| numbers(run, arguments, sum)).variadic(),
    Builtin::new("product", &[&["list"]], |run, arguments| numbers(run, arguments, product)).variadic(),
    Builtin::new("mean", &[&["list"]], |run, arguments| numbers(run, arguments, mean)).variadic(),
    Builtin::new("median", &[&["list"]], |run, arguments| numbers(run, arguments, median)).variadic(),
    Builtin::new("stddev", &[&["list"]], |run, arguments| numbers(run, arguments, stddev)).variadic(),
    Builtin::new("mode", &[&["list"]], mode).variadic().growing(1),
    Builtin::new("and", &[&["list"]], |run, arguments| fold(run, arguments, false)).variadic(),
    Builtin::new("all", &[&["list"]], |run, arguments| fold(run, arguments, false)).variadic(),
    Builtin::new("or", &[&["list"]], |run, arguments| fold(run, arguments, true)).variadic(),
    Builtin::new("any", &[&["list"]], |run, arguments| fold(run, arguments, true)).variadic(),
    Builtin::new(
        "string join",
        &[&["list"], &["list", "delimiter"], &["list", "delimiter", "prefix", "suffix"]],
        string_join,
    ),
];

fn count(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    Ok(match arguments {
        [Value::List(items)] => Number::from(items.len()).into(),
        _ => Value::Null,
    })
}

/// Null for no items and for items that are not of one ordered type.
fn extreme(run: &mut Run<'_>, arguments: &[Value], wanted: std::cmp::Ordering) -> Outcome {
    let [Value::List(items)] = arguments else {
        return Ok(Value::Null);
    };
    run.step(items.len())?;
    let Some(mut best) = items.first() else {
        return Ok(Value::Null);
    };
    for item in items.iter() {
        match compare::order(item, best) {
            Some(order) if order == wanted => best = item,
            Some(_) => {}
            None => return Ok(Value::Null),
        }
    }
    Ok(best.clone())
}

/// Null for no items and for items that are no numbers.
fn numbers(run: &mut Run<'_>, arguments: &[Value], of: fn(&[&Number]) -> Option<Number>) -> Outcome {
    let [Value::List(items)] = arguments else {
        return Ok(Value::Null);
    };
    run.step(items.len().saturating_mul(2))?;
    let numbers: Option<Vec<&Number>> = items.iter().map(Value::as_number).collect();
    let weight = items.iter().filter_map(Value::as_number).map(Number::weight).sum();
    run.step(weight)?;
    match numbers {
        Some(numbers) if !numbers.is_empty() => of(&numbers).map(Value::Number).ok_or(EvalError::Range),
        _ => Ok(Value::Null),
    }
}

fn sum(numbers: &[&Number]) -> Option<Number> {
    numbers.iter().try_fold(Number::ZERO, |sum, number| decimal::add(&sum, number))
}

fn product(numbers: &[&Number]) -> Option<Number> {
    numbers.iter().try_fold(Number::from(1), |product, number| decimal::multiply(&product, number))
}

fn mean(numbers: &[&Number]) -> Option<Number> {
    decimal::divide(&sum(numbers)?, &Number::from(numbers.len()))
}

fn median(numbers: &[&Number]) -> Option<Number> {
    let mut sorted = numbers.to_vec();
    sorted.sort();
    let upper = sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some((*upper).clone());
    }
    let lower = sorted.get(sorted.len() / 2 - 1)?;
    decimal::divide(&decimal::add(lower, upper)?, &Number::from(2))
}

/// Of a sample. A single number has no deviation that could be divided by zero.
fn stddev(numbers: &[&Number]) -> Option<Number> {
    let mean = mean(numbers)?;
    let squares = numbers.iter().try_fold(Number::ZERO, |sum, number| {
        let deviation = decimal::subtract(number, &mean)?;
        decimal::add(&sum, &decimal::multiply(&deviation, &deviation)?)
    })?;
    if numbers.len() < 2 {
        return Some(Number::ZERO);
    }
    decimal::square_root(&decimal::divide(&squares, &Number::from(numbers.len() - 1))?)
}

/// The most frequent numbers, in ascending order.
fn mode(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::List(items)] = arguments else {
        return Ok(Value::Null);
    };
    run.step(items.len().saturating_mul(4))?;
    let Some(mut sorted) = items.iter().map(Value::as_number).collect::<Option<Vec<&Number>>>() else {
        return Ok(Value::Null);
    };
    sorted.sort();
    let groups: Vec<&[&Number]> = sorted.chunk_by(|a, b| a == b).collect();
    let most = groups.iter().map(|group| group.len()).max().unwrap_or(0);
    let modes = groups.iter().filter(|group| group.len() == most).filter_map(|group| group.first());
    run.items(modes.map(|number| Value::Number((*number).clone())).collect())
}

/// `all` decides on the first false, `any` on the first true; what is no boolean makes it null.
fn fold(run: &mut Run<'_>, arguments: &[Value], decisive: bool) -> Outcome {
    let [Value::List(items)] = arguments else {
        return Ok(Value::Null);
    };
    run.step(items.len())?;
    if items.iter().any(|item| *item == Value::Bool(decisive)) {
        return Ok(Value::Bool(decisive));
    }
    let booleans = items.iter().all(|item| matches!(item, Value::Bool(_)));
    Ok(if booleans { Value::Bool(!decisive) } else { Value::Null })
}

/// Strings joined, nulls left out; anything else in the list makes it null.
fn string_join(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let Some((Value::List(items), further)) = arguments.split_first() else {
        return Ok(Value::Null);
    };
    let mut around = ["", "", ""];
    for (place, argument) in around.iter_mut().zip(further) {
        *place = match argument {
            Value::String(text) => text,
            Value::Null => "",
            _ => return Ok(Value::Null),
        };
    }
    let [delimiter, prefix, suffix] = around;
    let mut parts = Vec::new();
    for item in items.iter() {
        match item {
            Value::String(text) => {
                run.step(1)?;
                run.allocate(text.len().saturating_add(delimiter.len()))?;
                parts.push(text.as_ref());
            }
            Value::Null => {}
            _ => return Ok(Value::Null),
        }
    }
    run.string([prefix, &parts.join(delimiter), suffix].concat())
}
