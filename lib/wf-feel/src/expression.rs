//! The door of the crate: parse an expression once, evaluate it against a scope within a budget.
//! It knows no grammar and no operator.
//! Next: `parser` for the one, `eval` for the other.

use std::fmt;
use std::sync::Arc;

use crate::analysis::Facts;
use crate::ast::Expr;
use crate::scope::Scope;
use crate::value::Value;
use crate::{analysis, eval, parser};

/// A parsed expression. Cheap to clone; may be evaluated by many threads at once.
#[derive(Clone)]
pub struct Expression {
    source: Arc<str>,
    root: Arc<Expr>,
    variables: Arc<[Arc<str>]>,
    /// The value may be nested deeper than the variables that it is made of.
    grows: bool,
}

impl Expression {
    /// Parses an expression (without the leading `=`). All names of functions and their arities are checked here,
    /// so that a model with an unknown function is refused when it is deployed and not when it runs.
    pub fn parse(source: &str) -> Result<Expression, ParseError> {
        let root = parser::parse(source)?;
        let Facts { variables, growth } = analysis::analyse(&root)?;
        Ok(Expression { source: source.into(), root: Arc::new(root), variables, grows: growth > 0 })
    }

    /// The text that was parsed, without the leading `=`.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Names of the variables that the expression reads from its scope (free names, the first segment of a path),
    /// sorted, without duplicates. A name inside a filter counts too, although a list item may provide it.
    pub fn variables(&self) -> &[Arc<str>] {
        &self.variables
    }

    /// Evaluates the expression. What the dialect calls a failure (an unknown variable, operands of wrong types) is
    /// `Value::Null`; only an exhausted budget, an unfulfilled `assert` and numbers out of range are errors.
    /// A value is never nested deeper than JSON may be here, 128 levels.
    pub fn evaluate(&self, scope: &dyn Scope, env: &Env) -> Result<Value, EvalError> {
        self.evaluate_counted(scope, env).0
    }

    /// The same with what it took of its budget, also where it failed: for a budget over several evaluations.
    pub fn evaluate_counted(&self, scope: &dyn Scope, env: &Env) -> (Result<Value, EvalError>, Spent) {
        eval::run(&self.root, self.grows, scope, env)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({:?})", self.source)
    }
}

/// Why a text is not an expression; `offset` is a byte position in the source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at offset {offset})")]
pub struct ParseError {
    pub offset: usize,
    pub message: String,
}

impl ParseError {
    pub(crate) fn new(offset: usize, message: impl Into<String>) -> ParseError {
        ParseError { offset, message: message.into() }
    }
}

/// Why an evaluation ended without a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The expression took more than `Budget::steps_max` steps.
    #[error("evaluate the expression within {steps_max} steps")]
    Budget { steps_max: u32 },
    /// Expressions or values are nested deeper than `Budget::depth_max` or the crate's own bound.
    #[error("evaluate the expression: nested deeper than {depth_max}")]
    Depth { depth_max: u16 },
    /// The expression made more than `Budget::bytes_max` bytes of strings and lists.
    #[error("evaluate the expression: its values take more than {bytes_max} bytes")]
    Size { bytes_max: usize },
    /// A number has too many digits or too large an exponent to be calculated with.
    #[error("calculate: the number is out of range")]
    Range,
    /// An `assert` was not fulfilled; its cause.
    #[error("{0}")]
    Assert(String),
}

/// What an evaluation takes from outside besides its variables.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// Unix milliseconds, UTC: what `now()` and `today()` answer.
    pub now_ms: i64,
    /// `uuid()` and `random number()` are derived from it and a counter: the same seed gives the same values.
    pub seed: [u8; 16],
    pub budget: Budget,
}

/// The most that one evaluation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Evaluated nodes plus the items that functions look at. Default 1,000,000.
    pub steps_max: u32,
    /// Nested expressions. Default 200, which is also the most that the parser lets through.
    pub depth_max: u16,
    /// Bytes of strings, lists and contexts made during the evaluation. Default 16 MiB.
    pub bytes_max: usize,
}

/// What one evaluation used of its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub steps: u32,
    pub bytes: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { steps_max: 1_000_000, depth_max: 200, bytes_max: 16 << 20 }
    }
}
