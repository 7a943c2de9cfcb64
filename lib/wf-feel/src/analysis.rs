//! What can be known of an expression before it runs: its free names and how deeply its value may be nested.
//! It knows no values.
//! Next: `eval`, which relies on both bounds: no tree and no value is deep enough to exhaust the stack.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ast::{Expr, Iteration, Source, Step, Test};
use crate::expression::ParseError;
use crate::functions::Builtin;

/// Expressions inside one another; the evaluator recurses at most this deep.
const DEPTH_MAX: usize = 200;
/// Levels by which a value may be nested deeper than the variables it is made of. Without this bound
/// `{a: [1], b: [a], c: [b], …}` would build a value that no recursion can walk.
const GROWTH_MAX: usize = 120;

pub(crate) struct Facts {
    /// The free names, sorted.
    pub variables: Arc<[Arc<str>]>,
    /// By how many levels the value may be nested deeper than the variables.
    pub growth: usize,
}

pub(crate) fn analyse(root: &Expr) -> Result<Facts, ParseError> {
    let mut analysis = Analysis { free: BTreeSet::new(), known: Vec::new(), depth: 0, too_deep: false };
    let growth = analysis.growth(root);
    if analysis.too_deep || growth > GROWTH_MAX {
        return Err(ParseError::new(0, "the expression is nested too deeply"));
    }
    Ok(Facts { variables: analysis.free.into_iter().collect(), growth })
}

/// What a call adds. A function that follows a list of keys adds as many levels as there are keys, if they are seen here.
fn call_growth(builtin: &Builtin, arguments: &[Expr]) -> usize {
    match arguments.get(1) {
        Some(Expr::Constant(_)) => builtin.growth.min(2),
        Some(Expr::List(keys)) => builtin.growth.min(keys.len().max(2)),
        _ => builtin.growth,
    }
}

struct Analysis {
    free: BTreeSet<Arc<str>>,
    known: Vec<Known>,
    depth: usize,
    too_deep: bool,
}

/// What a name may mean at a place, from the outermost to the innermost.
enum Known {
    Name(Arc<str>, usize),
    /// Inside a filter any name may be an entry of the item.
    Item(usize),
}

impl Analysis {
    /// How many levels the value of `expr` may have more than the deepest variable.
    fn growth(&mut self, expr: &Expr) -> usize {
        self.depth += 1;
        if self.depth > DEPTH_MAX || self.too_deep {
            self.too_deep = true;
            self.depth -= 1;
            return 0;
        }
        let growth = self.of(expr);
        self.too_deep |= growth > GROWTH_MAX;
        self.depth -= 1;
        growth
    }

    fn of(&mut self, expr: &Expr) -> usize {
        match expr {
            Expr::Constant(_) => 0,
            Expr::Name(name) => self.name(name),
            Expr::Steps(base, steps) => self.steps(base, steps),
            Expr::Negate(inner) | Expr::InstanceOf(inner, _) => self.growth(inner),
            Expr::Chain(first, rest) => {
                let first = self.growth(first);
                rest.iter().map(|(_, operand)| self.growth(operand)).fold(first, usize::max)
            }
            Expr::Any(operands) | Expr::All(operands) => self.all(operands),
            Expr::Compare(_, left, right) => self.growth(left).max(self.growth(right)),
            Expr::Between(value, low, high) => self.growth(value).max(self.growth(low)).max(self.growth(high)),
            Expr::In(value, tests) => self.tests(value, tests),
            Expr::If(cases, otherwise) => {
                let last = self.growth(otherwise);
                cases.iter().map(|(c, then)| self.growth(c).max(self.growth(then))).fold(last, usize::max)
            }
            Expr::For(each) => self.loops(&each.iterations, &each.body, each.reads_partial) + 1,
            Expr::Quantified(_, iterations, body) => self.loops(iterations, body, false) + 1,
            Expr::List(items) => self.all(items) + 1,
            Expr::Context(entries) => self.entries(entries) + 1,
            Expr::Range(range) => self.growth(&range.start).max(self.growth(&range.end)) + 1,
            Expr::Call(builtin, arguments) => self.all(arguments) + call_growth(builtin, arguments),
            Expr::Sort(sort) => {
                let list = self.growth(&sort.list);
                let before = self.known.len();
                self.known.push(Known::Name(sort.left.clone(), list));
                self.known.push(Known::Name(sort.right.clone(), list));
                self.growth(&sort.precedes);
                self.known.truncate(before);
                list
            }
        }
    }

    fn all(&mut self, operands: &[Expr]) -> usize {
        operands.iter().map(|operand| self.growth(operand)).max().unwrap_or(0)
    }

    fn name(&mut self, name: &Arc<str>) -> usize {
        let mut growth = 0;
        for known in self.known.iter().rev() {
            match known {
                Known::Name(bound, own) if bound == name => return growth.max(*own),
                Known::Name(..) => {}
                Known::Item(own) => growth = growth.max(*own),
            }
        }
        self.free.insert(name.clone());
        growth
    }

    fn steps(&mut self, base: &Expr, steps: &[Step]) -> usize {
        let mut growth = self.growth(base);
        for step in steps {
            if let Step::Filter(filter, _) = step {
                let before = self.known.len();
                self.known.push(Known::Item(growth));
                self.known.push(Known::Name("item".into(), growth));
                let inner = self.growth(filter);
                self.known.truncate(before);
                growth = growth.max(inner);
            }
        }
        growth
    }

    fn tests(&mut self, value: &Expr, tests: &[Test]) -> usize {
        let growth = self.growth(value);
        self.known.push(Known::Name("?".into(), growth));
        for test in tests {
            let (Test::Compare(_, expr) | Test::Is(expr)) = test;
            self.growth(expr);
        }
        self.known.pop();
        growth
    }

    /// What is in `partial` is bounded while the loop runs, like a variable.
    fn loops(&mut self, iterations: &[Iteration], body: &Expr, reads_partial: bool) -> usize {
        let before = self.known.len();
        for iteration in iterations {
            let growth = match &iteration.over {
                Source::Items(items) => self.growth(items),
                Source::Numbers(start, end) => self.growth(start).max(self.growth(end)),
            };
            self.known.push(Known::Name(iteration.name.clone(), growth));
        }
        if reads_partial {
            self.known.push(Known::Name("partial".into(), 0));
        }
        let growth = self.growth(body);
        self.known.truncate(before);
        growth
    }

    fn entries(&mut self, entries: &[(Arc<str>, Expr)]) -> usize {
        let before = self.known.len();
        let mut most = 0;
        for (name, value) in entries {
            let growth = self.growth(value);
            most = most.max(growth);
            self.known.push(Known::Name(name.clone(), growth));
        }
        self.known.truncate(before);
        most
    }
}
