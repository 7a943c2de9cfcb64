//! FEEL expressions in Camunda's dialect: parse once, evaluate often, within a budget.
//! It knows no file, no clock, no random source and no engine: time and seed arrive in `Env`, variables through `Scope`.
//! The path: `lexer` → `parser` (→ `analysis`) → `ast` → `eval`, which calls `functions`, `number` and `temporal`.
#![forbid(unsafe_code)]

mod expression;
mod scope;
mod value;

mod lexer;
mod parser;
mod ast;
mod analysis;

mod eval;
mod functions;
mod compare;
mod arithmetic;

mod number;
mod decimal;
mod temporal;
mod iso;
mod timer;
mod json;

pub use expression::{Budget, Env, EvalError, Expression, ParseError, Spent};
pub use json::JsonError;
pub use number::Number;
pub use scope::Scope;
pub use temporal::{FeelDateTime, FeelTime};
pub use timer::{CalendarDuration, add_duration_ms, parse_duration, parse_instant_ms};
pub use value::{Range, Value};

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
