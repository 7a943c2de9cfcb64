//! Functions that make a list of a list, or look for something in one. Positions count from 1, or from the end.
//! It knows no sums.
//! Next: `aggregates`.

use super::Builtin;
use crate::decimal;
use crate::eval::{Outcome, Run};
use crate::expression::EvalError;
use crate::number::Number;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("list contains", &[&["list", "element"]], list_contains),
    Builtin::new("is empty", &[&["list"]], is_empty),
    Builtin::new("append", &[&["list", "items"]], append).variadic().growing(1),
    Builtin::new("concatenate", &[&["lists"]], concatenate).variadic().growing(1),
    Builtin::new("insert before", &[&["list", "position", "newItem"]], insert_before).growing(1),
    Builtin::new("remove", &[&["list", "position"]], remove),
    Builtin::new("reverse", &[&["list"]], reverse),
    Builtin::new("sublist", &[&["list", "start"], &["list", "start", "length"]], sublist),
    Builtin::new("index of", &[&["list", "match"]], index_of).growing(1),
    Builtin::new("union", &[&["lists"]], union).variadic().growing(1),
    Builtin::new("distinct values", &[&["list"]], distinct_values),
    Builtin::new("duplicate values", &[&["list"]], duplicate_values),
    Builtin::new("flatten", &[&["list"]], flatten),
    Builtin::new("partition", &[&["list", "size"]], partition).growing(1),
    // Only with a function as the second argument; the parser takes care of it.
    Builtin::new("sort", &[], |_, _| Ok(Value::Null)),
];

fn list_contains(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::List(items), element] => Ok(Value::Bool(contains(run, items, element)?)),
        _ => Ok(Value::Null),
    }
}

fn contains(run: &mut Run<'_>, items: &[Value], element: &Value) -> Result<bool, EvalError> {
    for item in items {
        if run.equal(item, element)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_empty(_run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    Ok(match arguments {
        [Value::List(items)] => Value::Bool(items.is_empty()),
        _ => Value::Null,
    })
}

fn append(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::List(items), Value::List(more)] => {
            run.allocate_items(items.len() + more.len())?;
            Ok(Value::list([items.as_slice(), more.as_slice()].concat()))
        }
        _ => Ok(Value::Null),
    }
}

fn concatenate(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::List(lists)] = arguments else {
        return Ok(Value::Null);
    };
    Ok(Value::list(joined(run, lists)?))
}

/// The items of the lists; what is no list counts as an item.
fn joined(run: &mut Run<'_>, lists: &[Value]) -> Result<Vec<Value>, EvalError> {
    let mut all = Vec::new();
    for list in lists {
        match list {
            Value::List(items) => {
                run.allocate_items(items.len())?;
                all.extend_from_slice(items);
            }
            item => {
                run.allocate_items(1)?;
                all.push(item.clone());
            }
        }
    }
    Ok(all)
}

/// How many items stand before a position; 0 is no position.
fn items_before(length: usize, position: &Number) -> Option<usize> {
    match decimal::truncate_to_i64(position)? {
        0 => None,
        positive if positive > 0 => usize::try_from(positive - 1).ok(),
        negative => Some(length.saturating_sub(usize::try_from(negative.unsigned_abs()).ok()?)),
    }
}

fn insert_before(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::List(items), Value::Number(position), item] = arguments else {
        return Ok(Value::Null);
    };
    let Some(at) = items_before(items.len(), position) else {
        return Ok(Value::Null);
    };
    let (before, after) = items.split_at(at.min(items.len()));
    run.items([before, std::slice::from_ref(item), after].concat())
}

fn remove(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::List(items), Value::Number(position)] = arguments else {
        return Ok(Value::Null);
    };
    let Some(at) = items_before(items.len(), position) else {
        return Ok(Value::Null);
    };
    let (before, after) = items.split_at(at.min(items.len()));
    run.items([before, after.get(1..).unwrap_or(&[])].concat())
}

fn sublist(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let (items, start, length) = match arguments {
        [Value::List(items), Value::Number(start)] => (items, start, None),
        [Value::List(items), Value::Number(start), Value::Number(length)] => (items, start, Some(length)),
        _ => return Ok(Value::Null),
    };
    let Some(at) = items_before(items.len(), start) else {
        return Ok(Value::Null);
    };
    let taken = match length.map(decimal::truncate_to_i64) {
        None => items.len(),
        Some(length) => length.and_then(|length| usize::try_from(length.max(0)).ok()).unwrap_or(0),
    };
    run.items(items.iter().skip(at).take(taken).cloned().collect())
}

fn reverse(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::List(items)] => run.items(items.iter().rev().cloned().collect()),
        _ => Ok(Value::Null),
    }
}

fn index_of(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::List(items), element] = arguments else {
        return Ok(Value::Null);
    };
    let mut found = Vec::new();
    for (at, item) in items.iter().enumerate() {
        if run.equal(item, element)? {
            found.push(Value::Number(Number::from(at + 1)));
        }
    }
    run.items(found)
}

fn union(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::List(lists)] = arguments else {
        return Ok(Value::Null);
    };
    let all = joined(run, lists)?;
    let distinct = distinct(run, &all)?;
    run.items(distinct)
}

fn distinct_values(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::List(items)] = arguments else {
        return Ok(Value::Null);
    };
    let distinct = distinct(run, items)?;
    run.items(distinct)
}

fn distinct(run: &mut Run<'_>, items: &[Value]) -> Result<Vec<Value>, EvalError> {
    let mut distinct = Vec::new();
    for item in items {
        if !contains(run, &distinct, item)? {
            distinct.push(item.clone());
        }
    }
    Ok(distinct)
}

fn duplicate_values(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::List(items)] = arguments else {
        return Ok(Value::Null);
    };
    let (mut seen, mut repeated) = (Vec::new(), Vec::new());
    for item in items.iter() {
        if !contains(run, &seen, item)? {
            seen.push(item.clone());
        } else if !contains(run, &repeated, item)? {
            repeated.push(item.clone());
        }
    }
    // In the order of their first occurrence.
    let mut ordered = Vec::with_capacity(repeated.len());
    for item in seen {
        if contains(run, &repeated, &item)? {
            ordered.push(item);
        }
    }
    run.items(ordered)
}

/// Walks with its own stack: nested lists may share their parts, and only the steps bound how often.
fn flatten(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::List(items)] = arguments else {
        return Ok(Value::Null);
    };
    let mut flat = Vec::new();
    let mut open = vec![items.iter()];
    while let Some(level) = open.last_mut() {
        match level.next() {
            Some(Value::List(inner)) => {
                run.step(1)?;
                open.push(inner.iter());
            }
            Some(item) => {
                run.allocate_items(1)?;
                flat.push(item.clone());
            }
            None => {
                open.pop();
            }
        }
    }
    Ok(Value::list(flat))
}

fn partition(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::List(items), Value::Number(size)] = arguments else {
        return Ok(Value::Null);
    };
    let size = decimal::truncate_to_i64(size).and_then(|size| usize::try_from(size).ok()).filter(|size| *size > 0);
    let Some(size) = size else {
        return Ok(Value::Null);
    };
    run.allocate_items(items.len())?;
    let parts = items.chunks(size).map(|part| Value::list(part.to_vec())).collect();
    run.items(parts)
}
