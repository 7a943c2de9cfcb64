//! Loops: `for`, `some`, `every`, filters and `sort`.
//! It knows no functions.
//! Next: back to `eval`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::locals::Local;
use super::{Outcome, Run};
use crate::ast::{Expr, FilterKind, ForExpr, Iteration, Quantifier, SortExpr, Source};
use crate::decimal;
use crate::expression::EvalError;
use crate::number::Number;
use crate::value::Value;

/// What a loop runs over; numbers are counted, never listed.
enum Items {
    List(Arc<Vec<Value>>),
    Count { next: Number, end: Number, step: Number },
}

impl Items {
    fn get(&mut self, at: usize) -> Result<Option<Value>, EvalError> {
        match self {
            Items::List(items) => Ok(items.get(at).cloned()),
            Items::Count { next, end, step } => {
                let past = if step.is_negative() { *next < *end } else { *next > *end };
                if past {
                    return Ok(None);
                }
                let following = decimal::add(next, step).ok_or(EvalError::Range)?;
                Ok(Some(Value::Number(std::mem::replace(next, following))))
            }
        }
    }
}

impl Run<'_> {
    pub(super) fn for_each(&mut self, each: &ForExpr) -> Outcome {
        let mut results = Arc::new(Vec::new());
        let complete = self.iterate(&each.iterations, &mut |run| {
            let value = match each.reads_partial {
                true => run.eval_with_partial(&each.body, &results)?,
                false => run.eval(&each.body)?,
            };
            run.allocate(size_of::<Value>())?;
            if Arc::strong_count(&results) > 1 {
                // A result kept the list so far: it stays as it is, the next one is a copy.
                run.allocate_items(results.len())?;
            }
            Arc::make_mut(&mut results).push(value);
            Ok(true)
        })?;
        Ok(complete.map_or(Value::Null, |_| Value::List(results)))
    }

    /// The body sees the results so far. Only here a value could nest once more with each round.
    fn eval_with_partial(&mut self, body: &Expr, results: &Arc<Vec<Value>>) -> Outcome {
        let partial = Local::Name("partial".into(), Value::List(results.clone()));
        let value = self.with([partial], |run| run.eval(body))?;
        self.check_depth(&value, 1)?;
        Ok(value)
    }

    pub(super) fn quantified(&mut self, quantifier: Quantifier, iterations: &[Iteration], body: &Expr) -> Outcome {
        let decisive = Value::Bool(quantifier == Quantifier::Some);
        let mut result = Value::Bool(quantifier == Quantifier::Every);
        let complete = self.iterate(iterations, &mut |run| {
            let value = run.eval(body)?;
            match value {
                value if value == decisive => result = value,
                Value::Bool(_) => {}
                _ => result = Value::Null,
            }
            Ok(result != decisive)
        })?;
        Ok(complete.map_or(Value::Null, |_| result))
    }

    /// Calls `body` for each combination, the last iterator running fastest, until it says stop.
    /// `None` if something that is iterated over is no list.
    fn iterate(
        &mut self,
        iterations: &[Iteration],
        body: &mut dyn FnMut(&mut Self) -> Result<bool, EvalError>,
    ) -> Result<Option<bool>, EvalError> {
        let Some((first, rest)) = iterations.split_first() else {
            return body(self).map(Some);
        };
        let Some(mut items) = self.source(&first.over)? else {
            return Ok(None);
        };
        self.enter()?;
        let mut at = 0;
        while let Some(item) = items.get(at)? {
            self.step(1)?;
            at += 1;
            let local = Local::Name(first.name.clone(), item);
            match self.with([local], |run| run.iterate(rest, body))? {
                Some(true) => {}
                stopped => {
                    self.leave();
                    return Ok(stopped);
                }
            }
        }
        self.leave();
        Ok(Some(true))
    }

    fn source(&mut self, source: &Source) -> Result<Option<Items>, EvalError> {
        match source {
            Source::Items(expr) => Ok(match self.eval(expr)? {
                Value::List(items) => Some(Items::List(items)),
                Value::Range(range) => match (&range.start, &range.end) {
                    (Value::Number(start), Value::Number(end)) => {
                        let step = direction(start, end);
                        let first = if range.start_included { Some(start.clone()) } else { decimal::add(start, &step) };
                        let back = decimal::negate(&step);
                        let last = if range.end_included { Some(end.clone()) } else { decimal::add(end, &back) };
                        first.zip(last).map(|(next, end)| Items::Count { next, end, step })
                    }
                    _ => None,
                },
                _ => None,
            }),
            Source::Numbers(start, end) => Ok(match (self.eval(start)?, self.eval(end)?) {
                (Value::Number(next), Value::Number(end)) => {
                    let step = direction(&next, &end);
                    Some(Items::Count { next, end, step })
                }
                _ => None,
            }),
        }
    }

    pub(super) fn filter(&mut self, value: Value, filter: &Expr, kind: FilterKind) -> Outcome {
        let items = match value {
            Value::List(items) => items,
            _ => return Ok(Value::Null),
        };
        if kind == FilterKind::IndexFirst
            && let Value::Number(index) = self.eval(filter)?
        {
            return Ok(pick(&items, &index));
        }
        let mut kept = Vec::new();
        for (at, item) in items.iter().enumerate() {
            self.step(1)?;
            match self.with(item_names(item), |run| run.eval(filter))? {
                Value::Number(index) if at == 0 => return Ok(pick(&items, &index)),
                Value::Bool(true) => kept.push(item.clone()),
                _ => {}
            }
        }
        self.items(kept)
    }

    /// A stable merge sort by the author's comparison; anything but a boolean makes the result null.
    pub(super) fn sort(&mut self, sort: &SortExpr) -> Outcome {
        let Value::List(items) = self.eval(&sort.list)? else {
            return Ok(Value::Null);
        };
        let mut runs: Vec<Vec<Value>> = items.iter().map(|item| vec![item.clone()]).collect();
        while runs.len() > 1 {
            let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
            let mut pending = runs.into_iter();
            while let Some(left) = pending.next() {
                let right = pending.next().unwrap_or_default();
                match self.merge(sort, left, right)? {
                    Some(run) => merged.push(run),
                    None => return Ok(Value::Null),
                }
            }
            runs = merged;
        }
        self.items(runs.pop().unwrap_or_default())
    }

    fn merge(&mut self, sort: &SortExpr, a: Vec<Value>, b: Vec<Value>) -> Result<Option<Vec<Value>>, EvalError> {
        let mut merged = Vec::with_capacity(a.len() + b.len());
        let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
        self.step(a.len() + b.len())?;
        while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
            let locals = [Local::Name(sort.left.clone(), right.clone()), Local::Name(sort.right.clone(), left.clone())];
            match self.with(locals, |run| run.eval(&sort.precedes))? {
                Value::Bool(true) => merged.extend(b.next()),
                Value::Bool(false) => merged.extend(a.next()),
                _ => return Ok(None),
            }
        }
        merged.extend(a.chain(b));
        Ok(Some(merged))
    }
}

fn direction(start: &Number, end: &Number) -> Number {
    Number::from(if start.cmp(end) == Ordering::Greater { -1 } else { 1 })
}

/// Inside a filter the item is `item`, and its entries are names.
fn item_names(item: &Value) -> Vec<Local> {
    let mut locals = vec![Local::Name("item".into(), item.clone())];
    if let Value::Context(_) = item {
        locals.push(Local::Entries(item.clone()));
    }
    locals
}

/// The item at a position counted from 1, or from the end if negative; else null.
fn pick(items: &[Value], index: &Number) -> Value {
    let at = match decimal::truncate_to_i64(index) {
        Some(index) if index > 0 => usize::try_from(index - 1).ok(),
        Some(index) if index < 0 => usize::try_from(index.unsigned_abs()).ok().and_then(|n| items.len().checked_sub(n)),
        _ => None,
    };
    at.and_then(|at| items.get(at)).cloned().unwrap_or(Value::Null)
}
