//! Operands: literals, names, calls, lists, contexts, parentheses, and the paths and filters behind them.
//! It knows no operators.
//! Next: `functions::find`, which knows the names of the functions.

use std::sync::Arc;

use super::{Parsed, Parser, RESERVED, excerpt};
use crate::ast::{Expr, FilterKind, SortExpr, Step};
use crate::functions::{self, Builtin};
use crate::lexer::Token;
use crate::number::Number;
use crate::temporal;
use crate::value::Value;

impl Parser<'_> {
    pub(super) fn operand(&mut self) -> Parsed<Expr> {
        let base = self.primary()?;
        let mut steps = Vec::new();
        loop {
            if self.is_symbol(".") {
                self.advance();
                steps.push(Step::Path(self.property()?));
            } else if self.is_symbol("[") && self.filter_follows() {
                self.advance();
                let filter = self.expression()?;
                self.expect_symbol("]")?;
                let kind = filter_kind(&filter);
                steps.push(Step::Filter(filter, kind));
            } else {
                return Ok(if steps.is_empty() { base } else { Expr::Steps(Box::new(base), steps) });
            }
        }
    }

    /// In `]1..5[` the last bracket ends the range: no expression follows it.
    fn filter_follows(&self) -> bool {
        match self.peek_at(1) {
            Token::End | Token::Unknown(_) => false,
            Token::Symbol(symbol) => matches!(*symbol, "(" | "[" | "{" | "-" | "@" | "?"),
            Token::Word(word) => !matches!(word.as_str(), "and" | "or" | "then" | "else" | "return" | "satisfies"),
            Token::Quoted(_) | Token::Number(_) | Token::Text(_) => true,
        }
    }

    /// Any word may be a property, keywords too; one property has two words.
    fn property(&mut self) -> Parsed<Arc<str>> {
        if self.is_word("time") && self.is_word_at(1, "offset") {
            self.at += 2;
            return Ok("time offset".into());
        }
        if let Token::Word(word) = self.peek() {
            let name = Arc::from(word.as_str());
            self.advance();
            return Ok(name);
        }
        self.name()
    }

    fn primary(&mut self) -> Parsed<Expr> {
        match self.peek() {
            Token::Number(text) => {
                let number = Number::parse(text).ok_or_else(|| self.error("not a number"))?;
                self.constant(Value::Number(number))
            }
            Token::Text(text) => {
                let text = Value::from(text.as_str());
                self.constant(text)
            }
            Token::Symbol("@") => self.temporal(),
            Token::Symbol("?") => {
                self.advance();
                Ok(Expr::Name("?".into()))
            }
            Token::Symbol("(") => self.parenthesised(),
            Token::Symbol("[") => self.bracketed(),
            Token::Symbol("]") => {
                self.advance();
                let start = self.nested(Parser::sum)?;
                self.range_end(start, false)
            }
            Token::Symbol("{") => self.context(),
            Token::Word(_) | Token::Quoted(_) => self.word(),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn constant(&mut self, value: Value) -> Parsed<Expr> {
        self.advance();
        Ok(Expr::Constant(value))
    }

    fn temporal(&mut self) -> Parsed<Expr> {
        self.advance();
        match self.peek() {
            Token::Text(text) => {
                let value = temporal::literal(text).unwrap_or(Value::Null);
                self.constant(value)
            }
            _ => Err(self.unexpected("a string")),
        }
    }

    fn parenthesised(&mut self) -> Parsed<Expr> {
        self.advance();
        let inner = self.expression()?;
        if self.is_symbol("..") {
            return self.range_end(inner, false);
        }
        self.expect_symbol(")")?;
        Ok(inner)
    }

    fn bracketed(&mut self) -> Parsed<Expr> {
        self.advance();
        let mut items = Vec::new();
        if self.take_symbol("]") {
            return Ok(Expr::List(items));
        }
        items.push(self.expression()?);
        if self.is_symbol("..")
            && let Some(start) = items.pop()
        {
            return self.range_end(start, true);
        }
        while self.take_symbol(",") {
            items.push(self.expression()?);
        }
        self.expect_symbol("]")?;
        Ok(Expr::List(items))
    }

    fn context(&mut self) -> Parsed<Expr> {
        self.advance();
        let mut entries = Vec::new();
        if self.take_symbol("}") {
            return Ok(Expr::Context(entries));
        }
        loop {
            let key = self.key()?;
            self.expect_symbol(":")?;
            entries.push((key, self.expression()?));
            if !self.take_symbol(",") {
                self.expect_symbol("}")?;
                return Ok(Expr::Context(entries));
            }
        }
    }

    /// A string, a quoted name, or whatever stands before the colon: `content-type` and `a b` need no quotes.
    fn key(&mut self) -> Parsed<Arc<str>> {
        if let Token::Text(text) | Token::Quoted(text) = self.peek() {
            let key = Arc::from(text.as_str());
            self.advance();
            return Ok(key);
        }
        let start = self.position();
        while !matches!(
            self.peek(),
            Token::End | Token::Text(_) | Token::Quoted(_) | Token::Symbol("{" | "}" | ":" | "," | "[" | "]")
        ) {
            self.advance();
        }
        let key = self.source.get(start..self.position()).unwrap_or("").trim();
        if key.is_empty() { Err(self.unexpected("a key")) } else { Ok(key.into()) }
    }

    /// A literal, a call or a variable.
    fn word(&mut self) -> Parsed<Expr> {
        if let Some((builtin, words)) = self.known_call() {
            self.at += words + 1;
            return self.call(builtin);
        }
        let literal = match self.peek() {
            Token::Word(word) if word == "null" => Some(Value::Null),
            Token::Word(word) if word == "true" => Some(Value::Bool(true)),
            Token::Word(word) if word == "false" => Some(Value::Bool(false)),
            _ => None,
        };
        if let Some(value) = literal {
            return self.constant(value);
        }
        if self.is_word("function") {
            return Err(self.error("a function may be defined only as the second argument of sort"));
        }
        let at = self.position();
        let name = self.name()?;
        if self.is_symbol("(") || self.unknown_call_follows() {
            let full = self.call_name(at);
            return Err(crate::ParseError::new(at, format!("unknown function '{}'", excerpt(full.trim()))));
        }
        self.reads_partial |= name.as_ref() == "partial";
        Ok(Expr::Name(name))
    }

    /// The longest known function name here that is followed by a parenthesis, and its number of words.
    fn known_call(&self) -> Option<(&'static Builtin, usize)> {
        let mut name = String::new();
        let mut words = 0;
        while let Token::Word(word) = self.peek_at(words) {
            if words > 0 {
                name.push(' ');
            }
            name.push_str(word);
            words += 1;
            if *self.peek_at(words) == Token::Symbol("(") {
                return functions::find(&name).map(|builtin| (builtin, words));
            }
            if words > functions::NAME_WORDS_MAX {
                return None;
            }
        }
        None
    }

    /// Several words before a parenthesis, none of them reserved: a misspelt function.
    fn unknown_call_follows(&self) -> bool {
        let mut ahead = 0;
        while let Token::Word(word) = self.peek_at(ahead) {
            if RESERVED.contains(&word.as_str()) || matches!(word.as_str(), "between" | "instance" | "if") {
                return false;
            }
            ahead += 1;
            if ahead > functions::NAME_WORDS_MAX {
                return false;
            }
        }
        ahead > 0 && *self.peek_at(ahead) == Token::Symbol("(")
    }

    fn call_name(&self, start: usize) -> &str {
        let tail = self.source.get(start..).unwrap_or("");
        tail.split('(').next().unwrap_or(tail)
    }

    fn call(&mut self, builtin: &'static Builtin) -> Parsed<Expr> {
        let mut arguments: Vec<(Option<String>, Expr)> = Vec::new();
        if self.take_symbol(")") {
            return self.bind(builtin, arguments);
        }
        loop {
            let name = self.argument_name();
            if builtin.name == "sort" && self.is_word("function") {
                return self.sort(arguments);
            }
            arguments.push((name, self.expression()?));
            if !self.take_symbol(",") {
                self.expect_symbol(")")?;
                return self.bind(builtin, arguments);
            }
        }
    }

    /// `start position:` before an argument. A name and a colon occur nowhere else inside parentheses.
    fn argument_name(&mut self) -> Option<String> {
        let mut words = 0;
        while let Token::Word(_) = self.peek_at(words) {
            words += 1;
            if words > functions::NAME_WORDS_MAX {
                return None;
            }
        }
        if words == 0 || *self.peek_at(words) != Token::Symbol(":") {
            return None;
        }
        let name: Vec<String> = (0..words)
            .filter_map(|ahead| match self.peek_at(ahead) {
                Token::Word(word) => Some(word.clone()),
                _ => None,
            })
            .collect();
        self.at += words + 1;
        Some(name.join(" "))
    }

    /// Brings the arguments into the order of the parameters; a named one that is missing is null.
    fn bind(&self, builtin: &'static Builtin, arguments: Vec<(Option<String>, Expr)>) -> Parsed<Expr> {
        let named = arguments.iter().filter(|(name, _)| name.is_some()).count();
        if named == 0 {
            let count = arguments.len();
            let fits = builtin.variants.iter().any(|v| v.len() == count || (builtin.variadic && count + 1 >= v.len()));
            if !fits {
                return Err(self.error(format!("function '{}' does not take {count} arguments", builtin.name)));
            }
            return Ok(Expr::Call(builtin, arguments.into_iter().map(|(_, argument)| argument).collect()));
        }
        let knows = |v: &&&[&str]| arguments.iter().all(|(name, _)| name.as_deref().is_some_and(|n| v.contains(&n)));
        let Some(variant) = builtin.variants.iter().find(knows) else {
            return Err(self.error(format!("function '{}' does not take these named arguments", builtin.name)));
        };
        let mut ordered: Vec<Expr> = variant.iter().map(|_| Expr::Constant(Value::Null)).collect();
        for (name, argument) in arguments {
            let place = name.and_then(|n| variant.iter().position(|p| *p == n));
            if let Some(slot) = place.and_then(|at| ordered.get_mut(at)) {
                *slot = argument;
            }
        }
        Ok(Expr::Call(builtin, ordered))
    }

    fn sort(&mut self, mut arguments: Vec<(Option<String>, Expr)>) -> Parsed<Expr> {
        let (Some((_, list)), true) = (arguments.pop(), arguments.is_empty()) else {
            return Err(self.error("sort takes a list and a function"));
        };
        self.expect_word("function")?;
        self.expect_symbol("(")?;
        let left = self.name()?;
        self.expect_symbol(",")?;
        let right = self.name()?;
        self.expect_symbol(")")?;
        let precedes = self.expression()?;
        self.expect_symbol(")")?;
        Ok(Expr::Sort(Box::new(SortExpr { list, left, right, precedes })))
    }
}

/// Conditions and calls are asked per item; anything else may be an index.
fn filter_kind(filter: &Expr) -> FilterKind {
    match filter {
        Expr::Compare(..) | Expr::Between(..) | Expr::In(..) | Expr::Call(..) | Expr::InstanceOf(..) => {
            FilterKind::PerItem
        }
        Expr::Any(_) | Expr::All(_) | Expr::Quantified(..) => FilterKind::PerItem,
        _ => FilterKind::IndexFirst,
    }
}
