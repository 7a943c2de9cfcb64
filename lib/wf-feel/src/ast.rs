//! The compiled form of an expression.
//! It knows no text and no evaluation. Chains of operators and of path steps are lists, so that the depth of the tree
//! is the depth to which the author nested it. Next: `eval`.

use std::sync::Arc;

use crate::functions::Builtin;
use crate::value::Value;

pub(crate) enum Expr {
    Constant(Value),
    Name(Arc<str>),
    Steps(Box<Expr>, Vec<Step>),
    Negate(Box<Expr>),
    /// Operators of one precedence, applied from left to right.
    Chain(Box<Expr>, Vec<(Operator, Expr)>),
    Any(Vec<Expr>),
    All(Vec<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    Between(Box<Expr>, Box<Expr>, Box<Expr>),
    In(Box<Expr>, Vec<Test>),
    InstanceOf(Box<Expr>, String),
    /// `if` and each `else if` with its condition, then the last `else`.
    If(Vec<(Expr, Expr)>, Box<Expr>),
    For(Box<ForExpr>),
    Quantified(Quantifier, Vec<Iteration>, Box<Expr>),
    List(Vec<Expr>),
    Context(Vec<(Arc<str>, Expr)>),
    Range(Box<RangeExpr>),
    Call(&'static Builtin, Vec<Expr>),
    /// `sort(list, function(a, b) …)`: the only place where a function may be written.
    Sort(Box<SortExpr>),
}

pub(crate) enum Step {
    Path(Arc<str>),
    Filter(Expr, FilterKind),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterKind {
    /// Evaluated per item, even if the first answer is a number (then it is the index).
    PerItem,
    /// Evaluated outside of the list first: a number is the index, anything else means per item.
    IndexFirst,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// One alternative of `in`: `> 5`, or an expression that is a value, a list, a range or a condition on `?`.
pub(crate) enum Test {
    Compare(Comparison, Expr),
    Is(Expr),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantifier {
    Some,
    Every,
}

pub(crate) struct ForExpr {
    pub iterations: Vec<Iteration>,
    pub body: Expr,
    /// The body reads `partial`, the list of the results so far.
    pub reads_partial: bool,
}

pub(crate) struct Iteration {
    pub name: Arc<str>,
    pub over: Source,
}

pub(crate) enum Source {
    Items(Expr),
    /// `start..end`, counted up or down.
    Numbers(Expr, Expr),
}

pub(crate) struct RangeExpr {
    pub start: Expr,
    pub start_included: bool,
    pub end: Expr,
    pub end_included: bool,
}

pub(crate) struct SortExpr {
    pub list: Expr,
    pub left: Arc<str>,
    pub right: Arc<str>,
    pub precedes: Expr,
}
