//! Operators by precedence: or, and, comparison, sum, product, power, minus.
//! It knows no literals and no names.
//! Next: `primary` for the operands.

use super::{Parsed, Parser};
use crate::ast::{Comparison, Expr, Operator, RangeExpr, Test};
use crate::lexer::Token;

impl Parser<'_> {
    pub(super) fn disjunction(&mut self) -> Parsed<Expr> {
        let first = self.conjunction()?;
        if !self.is_word("or") {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.take_word("or") {
            operands.push(self.conjunction()?);
        }
        Ok(Expr::Any(operands))
    }

    fn conjunction(&mut self) -> Parsed<Expr> {
        let first = self.comparison()?;
        if !self.is_word("and") {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.take_word("and") {
            operands.push(self.comparison()?);
        }
        Ok(Expr::All(operands))
    }

    fn comparison(&mut self) -> Parsed<Expr> {
        let left = self.sum()?;
        if let Some(comparison) = self.take_comparison() {
            let right = self.sum()?;
            return Ok(Expr::Compare(comparison, Box::new(left), Box::new(right)));
        }
        if self.take_word("between") {
            let low = self.sum()?;
            self.expect_word("and")?;
            let high = self.sum()?;
            return Ok(Expr::Between(Box::new(left), Box::new(low), Box::new(high)));
        }
        if self.is_word("instance") && self.is_word_at(1, "of") {
            self.at += 2;
            return Ok(Expr::InstanceOf(Box::new(left), self.type_name()?));
        }
        if self.take_word("in") {
            return Ok(Expr::In(Box::new(left), self.tests()?));
        }
        Ok(left)
    }

    fn take_comparison(&mut self) -> Option<Comparison> {
        let comparison = match self.peek() {
            Token::Symbol("=") => Comparison::Equal,
            Token::Symbol("!=") => Comparison::NotEqual,
            _ => return self.take_order(),
        };
        self.advance();
        Some(comparison)
    }

    fn take_order(&mut self) -> Option<Comparison> {
        let comparison = match self.peek() {
            Token::Symbol("<") => Comparison::Less,
            Token::Symbol("<=") => Comparison::LessOrEqual,
            Token::Symbol(">") => Comparison::Greater,
            Token::Symbol(">=") => Comparison::GreaterOrEqual,
            _ => return None,
        };
        self.advance();
        Some(comparison)
    }

    /// What follows `in`: one test, or several in parentheses. `(1..5)` is one test, an open range.
    fn tests(&mut self) -> Parsed<Vec<Test>> {
        if !self.is_symbol("(") {
            return Ok(vec![self.test(true)?]);
        }
        self.advance();
        let first = self.test(false)?;
        let mut tests = match first {
            Test::Is(start) if self.is_symbol("..") => return Ok(vec![Test::Is(self.range_end(start, false)?)]),
            other => vec![other],
        };
        while self.take_symbol(",") {
            tests.push(self.test(false)?);
        }
        self.expect_symbol(")")?;
        Ok(tests)
    }

    /// Outside of parentheses a test is one comparison at most: `x in a and b` is `(x in a) and b`.
    fn test(&mut self, operand: bool) -> Parsed<Test> {
        if let Some(comparison) = self.take_order() {
            return Ok(Test::Compare(comparison, self.sum()?));
        }
        Ok(Test::Is(if operand { self.nested(Parser::comparison)? } else { self.expression()? }))
    }

    /// A type's name, which may be of several words.
    fn type_name(&mut self) -> Parsed<String> {
        const LONG: [&[&str]; 4] = [
            &["years", "and", "months", "duration"],
            &["days", "and", "time", "duration"],
            &["date", "and", "time"],
            &["date", "time"],
        ];
        for words in LONG {
            if words.iter().enumerate().all(|(ahead, word)| self.is_word_at(ahead, word)) {
                self.at += words.len();
                return Ok(words.join(" "));
            }
        }
        let Token::Word(word) = self.peek() else {
            return Err(self.unexpected("a type"));
        };
        let name = word.clone();
        self.advance();
        Ok(name)
    }

    pub(super) fn sum(&mut self) -> Parsed<Expr> {
        let first = self.product()?;
        self.chain(first, |token| match token {
            Token::Symbol("+") => Some(Operator::Add),
            Token::Symbol("-") => Some(Operator::Subtract),
            _ => None,
        })
    }

    fn product(&mut self) -> Parsed<Expr> {
        let first = self.power()?;
        self.chain(first, |token| match token {
            Token::Symbol("*") => Some(Operator::Multiply),
            Token::Symbol("/") => Some(Operator::Divide),
            _ => None,
        })
    }

    fn power(&mut self) -> Parsed<Expr> {
        let first = self.negation()?;
        self.chain(first, |token| match token {
            Token::Symbol("**") => Some(Operator::Power),
            _ => None,
        })
    }

    fn chain(&mut self, first: Expr, operator: fn(&Token) -> Option<Operator>) -> Parsed<Expr> {
        let mut rest = Vec::new();
        while let Some(operator) = operator(self.peek()) {
            self.advance();
            let operand = match operator {
                Operator::Add | Operator::Subtract => self.product()?,
                Operator::Multiply | Operator::Divide => self.power()?,
                Operator::Power => self.negation()?,
            };
            rest.push((operator, operand));
        }
        Ok(if rest.is_empty() { first } else { Expr::Chain(Box::new(first), rest) })
    }

    /// The minus binds more tightly than the power: `-2 ** 2` is 4.
    fn negation(&mut self) -> Parsed<Expr> {
        let mut minuses = 0_usize;
        while self.take_symbol("-") {
            minuses += 1;
        }
        let operand = self.operand()?;
        Ok(match minuses {
            0 => operand,
            even if even % 2 == 0 => Expr::Negate(Box::new(Expr::Negate(Box::new(operand)))),
            _ => Expr::Negate(Box::new(operand)),
        })
    }

    /// The rest of a range after its start: `..`, the end and a bracket.
    pub(super) fn range_end(&mut self, start: Expr, start_included: bool) -> Parsed<Expr> {
        self.expect_symbol("..")?;
        let end = self.nested(Parser::sum)?;
        let end_included = match self.peek() {
            Token::Symbol("]") => true,
            Token::Symbol(")" | "[") => false,
            _ => return Err(self.unexpected("the end of the range")),
        };
        self.advance();
        Ok(Expr::Range(Box::new(RangeExpr { start, start_included, end, end_included })))
    }
}
