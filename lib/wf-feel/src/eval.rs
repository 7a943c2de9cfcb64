//! The evaluator: a tree, a scope and a budget give a value.
//! It knows no text. What the dialect calls a failure is null; only the budget ends an evaluation early.
//! Next: `arithmetic` and `compare` for the operators, `functions` for the calls; `eval::{lists, locals}` for the loops.

mod lists;
mod locals;
mod logic;

use std::sync::Arc;

use regex::Regex;

use self::locals::Local;
use crate::ast::{Comparison, Expr, RangeExpr, Step};
use crate::expression::{Env, EvalError, Spent};
use crate::number::Number;
use crate::scope::Scope;
use crate::value::{Range, Value, put_entry};
use crate::{arithmetic, compare, json, temporal};

pub(crate) type Outcome = Result<Value, EvalError>;

/// `grows` says that the value may be nested deeper than the variables: then its depth is checked. So a value that goes
/// through a thousand evaluations without ever being written is still one that may be dropped and compared.
/// With what it took of the budget, also where it failed.
pub(crate) fn run(root: &Expr, grows: bool, scope: &dyn Scope, env: &Env) -> (Outcome, Spent) {
    let mut run = Run {
        scope,
        env,
        steps_left: env.budget.steps_max,
        bytes_left: env.budget.bytes_max,
        depth: 0,
        drawn: 0,
        locals: Vec::new(),
        patterns: Vec::new(),
    };
    let outcome = run.whole(root, grows);
    let spent = Spent { steps: env.budget.steps_max - run.steps_left, bytes: env.budget.bytes_max - run.bytes_left };
    (outcome, spent)
}

/// One evaluation: what it may still use, and the names that it has bound.
pub(crate) struct Run<'a> {
    scope: &'a dyn Scope,
    pub(crate) env: &'a Env,
    steps_left: u32,
    bytes_left: usize,
    depth: u16,
    /// How many values were drawn from the seed.
    pub(crate) drawn: u64,
    locals: Vec<Local>,
    /// Compiled patterns of this evaluation, so that a filter over a list compiles its pattern once.
    pub(crate) patterns: Vec<(String, Regex)>,
}

impl Run<'_> {
    fn whole(&mut self, root: &Expr, grows: bool) -> Outcome {
        let value = self.eval(root)?;
        if grows {
            self.check_depth(&value, 0)?;
        }
        Ok(value)
    }

    pub(crate) fn eval(&mut self, expr: &Expr) -> Outcome {
        self.step(1)?;
        self.enter()?;
        let outcome = self.node(expr);
        self.leave();
        outcome
    }

    /// One level deeper. An error ends the evaluation, so nobody needs to leave after one.
    fn enter(&mut self) -> Result<(), EvalError> {
        if self.depth >= self.env.budget.depth_max {
            return Err(self.too_deep());
        }
        self.depth += 1;
        Ok(())
    }

    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// One arm per kind of node, each a call: the frame of this function is on the stack once per level.
    fn node(&mut self, expr: &Expr) -> Outcome {
        match expr {
            Expr::Constant(value) => Ok(value.clone()),
            Expr::Name(name) => self.name(name),
            Expr::Steps(base, steps) => self.steps(base, steps),
            Expr::Negate(inner) => self.negate(inner),
            Expr::Chain(first, rest) => self.chain(first, rest),
            Expr::Any(operands) => self.any(operands),
            Expr::All(operands) => self.all(operands),
            Expr::Compare(comparison, left, right) => self.compare(*comparison, left, right),
            Expr::Between(value, low, high) => self.between(value, low, high),
            Expr::In(value, tests) => self.in_tests(value, tests),
            Expr::InstanceOf(value, name) => self.instance_of(value, name),
            Expr::If(cases, otherwise) => self.conditional(cases, otherwise),
            Expr::For(each) => self.for_each(each),
            Expr::Quantified(quantifier, iterations, body) => self.quantified(*quantifier, iterations, body),
            Expr::List(items) => self.list(items),
            Expr::Context(entries) => self.context(entries),
            Expr::Range(range) => self.range(range),
            Expr::Call(builtin, arguments) => self.call(builtin, arguments),
            Expr::Sort(sort) => self.sort(sort),
        }
    }

    /// Takes `count` steps from the budget.
    pub(crate) fn step(&mut self, count: usize) -> Result<(), EvalError> {
        let left = u32::try_from(count).ok().and_then(|count| self.steps_left.checked_sub(count));
        self.steps_left = left.unwrap_or(0);
        left.map(drop).ok_or(EvalError::Budget { steps_max: self.env.budget.steps_max })
    }

    /// Takes bytes from the budget; called before they are allocated.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<(), EvalError> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.unwrap_or(0);
        left.map(drop).ok_or(EvalError::Size { bytes_max: self.env.budget.bytes_max })
    }

    pub(crate) fn bytes_left(&self) -> usize {
        self.bytes_left
    }

    /// Takes room for `count` items of a list or context.
    pub(crate) fn allocate_items(&mut self, count: usize) -> Result<(), EvalError> {
        self.step(count)?;
        self.allocate(count.saturating_mul(size_of::<Value>()))
    }

    pub(crate) fn too_deep(&self) -> EvalError {
        EvalError::Depth { depth_max: self.env.budget.depth_max }
    }

    /// An error if lists and contexts are nested deeper than JSON may be. Each is a step: values share their parts.
    pub(crate) fn check_depth(&mut self, value: &Value, depth: usize) -> Result<(), EvalError> {
        match value {
            Value::List(items) => {
                self.check_level(depth)?;
                items.iter().try_for_each(|item| self.check_depth(item, depth + 1))
            }
            Value::Context(entries) => {
                self.check_level(depth)?;
                entries.iter().try_for_each(|(_, item)| self.check_depth(item, depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn check_level(&mut self, depth: usize) -> Result<(), EvalError> {
        self.step(1)?;
        if depth >= json::DEPTH_MAX { Err(EvalError::Depth { depth_max: 128 }) } else { Ok(()) }
    }

    /// A string as a value, charged.
    pub(crate) fn string(&mut self, text: impl Into<Arc<str>> + AsRef<str>) -> Outcome {
        self.allocate(text.as_ref().len())?;
        Ok(Value::String(text.into()))
    }

    /// A list as a value, charged.
    pub(crate) fn items(&mut self, items: Vec<Value>) -> Outcome {
        self.allocate_items(items.len())?;
        Ok(Value::list(items))
    }

    fn steps(&mut self, base: &Expr, steps: &[Step]) -> Outcome {
        let mut value = self.eval(base)?;
        for step in steps {
            value = match step {
                Step::Path(name) => self.path(&value, name)?,
                Step::Filter(filter, kind) => self.filter(value, filter, *kind)?,
            };
        }
        Ok(value)
    }

    /// An entry of a context, a property of a temporal value, or the same of each item of a list.
    fn path(&mut self, value: &Value, name: &str) -> Outcome {
        self.step(1)?;
        match value {
            Value::Context(entries) => {
                self.step(entries.len() / 16)?;
                Ok(value.entry(name).cloned().unwrap_or(Value::Null))
            }
            Value::List(items) => {
                self.enter()?;
                self.allocate_items(items.len())?;
                let found: Result<Vec<Value>, EvalError> = items.iter().map(|item| self.path(item, name)).collect();
                self.leave();
                Ok(Value::list(found?))
            }
            Value::Range(range) => Ok(range_property(range, name)),
            other => Ok(temporal::property(other, name).unwrap_or(Value::Null)),
        }
    }

    fn negate(&mut self, inner: &Expr) -> Outcome {
        let value = self.eval(inner)?;
        self.step(value.as_number().map_or(0, Number::weight))?;
        Ok(arithmetic::negate(&value))
    }

    fn chain(&mut self, first: &Expr, rest: &[(crate::ast::Operator, Expr)]) -> Outcome {
        let mut left = self.eval(first)?;
        for (operator, operand) in rest {
            let right = self.eval(operand)?;
            left = arithmetic::apply(self, *operator, &left, &right)?;
        }
        Ok(left)
    }

    fn compare(&mut self, comparison: Comparison, left: &Expr, right: &Expr) -> Outcome {
        let left = self.eval(left)?;
        let right = self.eval(right)?;
        compare::apply(self, comparison, &left, &right)
    }

    fn between(&mut self, value: &Expr, low: &Expr, high: &Expr) -> Outcome {
        let value = self.eval(value)?;
        let (low, high) = (self.eval(low)?, self.eval(high)?);
        let above = compare::apply(self, Comparison::GreaterOrEqual, &value, &low)?;
        let below = compare::apply(self, Comparison::LessOrEqual, &value, &high)?;
        Ok(logic::and(&above, &below))
    }

    fn conditional(&mut self, cases: &[(Expr, Expr)], otherwise: &Expr) -> Outcome {
        for (condition, then) in cases {
            if self.eval(condition)? == Value::Bool(true) {
                return self.eval(then);
            }
        }
        self.eval(otherwise)
    }

    fn list(&mut self, items: &[Expr]) -> Outcome {
        self.allocate_items(items.len())?;
        let values: Result<Vec<Value>, EvalError> = items.iter().map(|item| self.eval(item)).collect();
        Ok(Value::list(values?))
    }

    /// Each entry sees the ones before it.
    fn context(&mut self, entries: &[(Arc<str>, Expr)]) -> Outcome {
        self.allocate_items(entries.len())?;
        let before = self.locals.len();
        let mut built = Vec::with_capacity(entries.len());
        for (name, expr) in entries {
            let value = self.eval(expr)?;
            self.step(built.len() / 16)?;
            self.locals.push(Local::Name(name.clone(), value.clone()));
            put_entry(&mut built, name.clone(), value);
        }
        self.locals.truncate(before);
        Ok(Value::context(built))
    }

    /// Null unless both ends are comparable and of one type.
    fn range(&mut self, range: &RangeExpr) -> Outcome {
        let (start, end) = (self.eval(&range.start)?, self.eval(&range.end)?);
        if compare::order(&start, &end).is_none() || matches!(start, Value::String(_)) {
            return Ok(Value::Null);
        }
        let (start_included, end_included) = (range.start_included, range.end_included);
        Ok(Value::Range(Arc::new(Range { start, start_included, end, end_included })))
    }

    fn call(&mut self, builtin: &'static crate::functions::Builtin, arguments: &[Expr]) -> Outcome {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let value = self.eval(argument)?;
            self.step(value.as_number().map_or(0, Number::weight))?;
            values.push(value);
        }
        if builtin.variadic {
            builtin.gather(&mut values);
        }
        (builtin.call)(self, &values)
    }
}

fn range_property(range: &Range, name: &str) -> Value {
    match name {
        "start" => range.start.clone(),
        "end" => range.end.clone(),
        "start included" => range.start_included.into(),
        "end included" => range.end_included.into(),
        _ => Value::Null,
    }
}
