//! The built-in functions: their names, parameters and where to find them.
//! It knows no syntax; a call whose arguments do not fit gives null.
//! Next: one file per kind of argument.

mod aggregates;
mod base64;
mod booleans;
mod contexts;
mod conversions;
mod lists;
mod numbers;
mod patterns;
mod ranges;
mod strings;
mod temporal;

use crate::eval::{Outcome, Run};
use crate::value::Value;

/// The longest name, `years and months duration`, and one more.
pub(crate) const NAME_WORDS_MAX: usize = 5;

pub(crate) struct Builtin {
    pub name: &'static str,
    /// The lists of parameter names that the function may be called with.
    pub variants: &'static [&'static [&'static str]],
    /// The last parameter takes all further arguments.
    pub variadic: bool,
    /// Levels by which the result may be nested deeper than the deepest argument.
    pub growth: usize,
    pub call: fn(&mut Run<'_>, &[Value]) -> Outcome,
}

impl Builtin {
    const fn new(
        name: &'static str,
        variants: &'static [&'static [&'static str]],
        call: fn(&mut Run<'_>, &[Value]) -> Outcome,
    ) -> Builtin {
        Builtin { name, variants, variadic: false, growth: 0, call }
    }

    const fn variadic(self) -> Builtin {
        Builtin { variadic: true, ..self }
    }

    const fn growing(self, growth: usize) -> Builtin {
        Builtin { growth, ..self }
    }

    /// Puts the further arguments into one list; a single list for a single parameter is taken as that list.
    pub(crate) fn gather(&self, values: &mut Vec<Value>) {
        let fixed = self.variants.first().map_or(0, |parameters| parameters.len().saturating_sub(1));
        let further = values.split_off(fixed.min(values.len()));
        match further.as_slice() {
            [Value::List(items)] if fixed == 0 => values.push(Value::List(items.clone())),
            _ => values.push(Value::list(further)),
        }
    }
}

pub(crate) fn find(name: &str) -> Option<&'static Builtin> {
    const TABLES: [&[Builtin]; 11] = [
        booleans::FUNCTIONS,
        strings::FUNCTIONS,
        patterns::FUNCTIONS,
        base64::FUNCTIONS,
        numbers::FUNCTIONS,
        lists::FUNCTIONS,
        aggregates::FUNCTIONS,
        contexts::FUNCTIONS,
        ranges::FUNCTIONS,
        temporal::FUNCTIONS,
        conversions::FUNCTIONS,
    ];
    TABLES.into_iter().flatten().find(|builtin| builtin.name == name)
}
