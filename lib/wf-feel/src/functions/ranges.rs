//! How two points or ranges lie to one another. A point counts as the closed range from itself to itself.
//! It knows only the order of values.
//! Next: `temporal`.

use std::cmp::Ordering;

use super::Builtin;
use crate::compare;
use crate::eval::Outcome;
use crate::value::Value;

const ANY: &[&[&str]] = &[&["point1", "point2"], &["point", "range"], &["range", "point"], &["range1", "range2"]];
const POINT_FIRST: &[&[&str]] = &[&["point", "range"], &["range1", "range2"]];
const POINT_LAST: &[&[&str]] = &[&["range", "point"], &["range1", "range2"]];
const RANGES: &[&[&str]] = &[&["range1", "range2"]];
const ALIKE: &[&[&str]] = &[&["point1", "point2"], &["range1", "range2"]];

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("before", ANY, |_, arguments| relate(arguments, ANY, before)),
    Builtin::new("after", ANY, |_, arguments| relate(arguments, ANY, |a, b| before(b, a))),
    Builtin::new("meets", RANGES, |_, arguments| relate(arguments, RANGES, meets)),
    Builtin::new("met by", RANGES, |_, arguments| relate(arguments, RANGES, |a, b| meets(b, a))),
    Builtin::new("overlaps", RANGES, |_, arguments| {
        relate(arguments, RANGES, |a, b| Some(!before(a, b)? && !before(b, a)?))
    }),
    Builtin::new("overlaps before", RANGES, |_, arguments| relate(arguments, RANGES, overlaps_before)),
    Builtin::new("overlaps after", RANGES, |_, arguments| relate(arguments, RANGES, |a, b| overlaps_before(b, a))),
    Builtin::new("finishes", POINT_FIRST, |_, arguments| relate(arguments, POINT_FIRST, finishes)),
    Builtin::new("finished by", POINT_LAST, |_, arguments| relate(arguments, POINT_LAST, |a, b| finishes(b, a))),
    Builtin::new("includes", POINT_LAST, |_, arguments| relate(arguments, POINT_LAST, includes)),
    Builtin::new("during", POINT_FIRST, |_, arguments| relate(arguments, POINT_FIRST, |a, b| includes(b, a))),
    Builtin::new("starts", POINT_FIRST, |_, arguments| relate(arguments, POINT_FIRST, starts)),
    Builtin::new("started by", POINT_LAST, |_, arguments| relate(arguments, POINT_LAST, |a, b| starts(b, a))),
    Builtin::new("coincides", ALIKE, |_, arguments| relate(arguments, ALIKE, coincides)),
];

#[derive(Clone, Copy)]
struct Span<'a> {
    start: &'a Value,
    start_closed: bool,
    end: &'a Value,
    end_closed: bool,
}

/// Null if a point stands where a range must, or the values have no order among themselves.
fn relate(arguments: &[Value], shapes: &[&[&str]], holds: fn(Span<'_>, Span<'_>) -> Option<bool>) -> Outcome {
    let [left, right] = arguments else {
        return Ok(Value::Null);
    };
    let is_range = |value: &Value| matches!(value, Value::Range(_));
    let fits = shapes.iter().any(|names| {
        let wanted = names.iter().map(|name| name.starts_with("range"));
        wanted.eq([is_range(left), is_range(right)])
    });
    if !fits || matches!(left, Value::String(_)) {
        return Ok(Value::Null);
    }
    Ok(holds(span(left), span(right)).map_or(Value::Null, Value::Bool))
}

fn span(value: &Value) -> Span<'_> {
    match value {
        Value::Range(range) => Span {
            start: &range.start,
            start_closed: range.start_included,
            end: &range.end,
            end_closed: range.end_included,
        },
        point => Span { start: point, start_closed: true, end: point, end_closed: true },
    }
}

/// An open start begins after a closed one.
fn starts_order(a: Span<'_>, b: Span<'_>) -> Option<Ordering> {
    Some(compare::order(a.start, b.start)?.then(b.start_closed.cmp(&a.start_closed)))
}

/// An open end ends before a closed one.
fn ends_order(a: Span<'_>, b: Span<'_>) -> Option<Ordering> {
    Some(compare::order(a.end, b.end)?.then(a.end_closed.cmp(&b.end_closed)))
}

fn before(a: Span<'_>, b: Span<'_>) -> Option<bool> {
    let order = compare::order(a.end, b.start)?;
    Some(order.is_lt() || (order.is_eq() && !(a.end_closed && b.start_closed)))
}

fn meets(a: Span<'_>, b: Span<'_>) -> Option<bool> {
    Some(compare::order(a.end, b.start)?.is_eq() && a.end_closed && b.start_closed)
}

fn overlaps_before(a: Span<'_>, b: Span<'_>) -> Option<bool> {
    Some(starts_order(a, b)?.is_lt() && !before(a, b)? && ends_order(a, b)?.is_le())
}

fn finishes(a: Span<'_>, b: Span<'_>) -> Option<bool> {
    Some(ends_order(a, b)?.is_eq() && starts_order(a, b)?.is_ge())
}

fn includes(a: Span<'_>, b: Span<'_>) -> Option<bool> {
    Some(starts_order(a, b)?.is_le() && ends_order(a, b)?.is_ge())
}

fn starts(a: Span<'_>, b: Span<'_>) -> Option<bool> {
    Some(starts_order(a, b)?.is_eq() && ends_order(a, b)?.is_le())
}

fn coincides(a: Span<'_>, b: Span<'_>) -> Option<bool> {
    Some(starts_order(a, b)?.is_eq() && ends_order(a, b)?.is_eq())
}
