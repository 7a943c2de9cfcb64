//! `if`, `for`, `some` and `every`.
//! It knows no operators.
//! Next: back to `Parser::expression`.

use super::{Parsed, Parser};
use crate::ast::{Expr, ForExpr, Iteration, Quantifier, Source};
use crate::lexer::Token;

/// Iterators of one `for`; each is a loop inside the one before.
const ITERATIONS_MAX: usize = 16;

impl Parser<'_> {
    /// These words are variables where nothing follows that makes them keywords.
    pub(super) fn starts_special(&self, word: &str) -> bool {
        match word {
            "if" => !matches!(self.peek_at(1), Token::End | Token::Symbol("." | "=" | "!=" | ")" | "," | "]" | "}")),
            "for" | "some" | "every" => {
                matches!(self.peek_at(1), Token::Word(_) | Token::Quoted(_)) && self.is_word_at(2, "in")
            }
            _ => false,
        }
    }

    pub(super) fn special(&mut self) -> Parsed<Expr> {
        if self.take_word("if") {
            return self.conditional();
        }
        if self.take_word("for") {
            return self.for_each();
        }
        let quantifier = if self.take_word("every") { Quantifier::Every } else { Quantifier::Some };
        if quantifier == Quantifier::Some {
            self.expect_word("some")?;
        }
        let iterations = self.iterations()?;
        self.expect_word("satisfies")?;
        Ok(Expr::Quantified(quantifier, iterations, Box::new(self.expression()?)))
    }

    fn for_each(&mut self) -> Parsed<Expr> {
        let iterations = self.iterations()?;
        self.expect_word("return")?;
        let outside = std::mem::replace(&mut self.reads_partial, false);
        let body = self.expression()?;
        let reads_partial = std::mem::replace(&mut self.reads_partial, outside);
        Ok(Expr::For(Box::new(ForExpr { iterations, body, reads_partial })))
    }

    /// A chain of `else if` is read in a loop: it is a list of cases, not a nesting.
    fn conditional(&mut self) -> Parsed<Expr> {
        let mut cases = Vec::new();
        loop {
            let condition = self.expression()?;
            self.expect_word("then")?;
            cases.push((condition, self.expression()?));
            self.expect_word("else")?;
            if !(self.is_word("if") && self.starts_special("if")) {
                return Ok(Expr::If(cases, Box::new(self.expression()?)));
            }
            self.advance();
        }
    }

    fn iterations(&mut self) -> Parsed<Vec<Iteration>> {
        let mut iterations = Vec::new();
        loop {
            let name = self.name()?;
            self.expect_word("in")?;
            iterations.push(Iteration { name, over: self.source()? });
            if iterations.len() > ITERATIONS_MAX {
                return Err(self.error("too many iterators"));
            }
            if !self.take_symbol(",") {
                return Ok(iterations);
            }
        }
    }

    fn source(&mut self) -> Parsed<Source> {
        let first = self.sum()?;
        if self.take_symbol("..") {
            return Ok(Source::Numbers(first, self.sum()?));
        }
        Ok(Source::Items(first))
    }
}
