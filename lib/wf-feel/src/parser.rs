//! Tokens to a tree, by recursive descent with a bounded depth.
//! It knows no variables: names are resolved when they are met, functions here.
//! Next: `parser::{operators, primary}` below it, then `analysis`.

mod operators;
mod primary;
mod special;

use std::sync::Arc;

use crate::ast::Expr;
use crate::expression::ParseError;
use crate::lexer::{self, Lexeme, Token};

/// Expressions inside one another. Each takes about ten stack frames here.
const NESTED_MAX: usize = 64;

/// Words that are never variables.
const RESERVED: [&str; 11] =
    ["null", "true", "false", "function", "in", "return", "then", "else", "satisfies", "and", "or"];

type Parsed<T> = Result<T, ParseError>;

pub(crate) fn parse(source: &str) -> Parsed<Expr> {
    let lexemes = lexer::lex(source)?;
    let mut parser = Parser { source, lexemes, at: 0, nested: 0, reads_partial: false };
    let root = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(root),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser<'a> {
    source: &'a str,
    lexemes: Vec<Lexeme>,
    at: usize,
    nested: usize,
    /// The name `partial` was met since the innermost `for` began.
    reads_partial: bool,
}

impl Parser<'_> {
    fn expression(&mut self) -> Parsed<Expr> {
        match self.peek() {
            Token::Word(word) if self.starts_special(word) => self.nested(Parser::special),
            _ => self.nested(Parser::disjunction),
        }
    }

    /// One level deeper. Every cycle of calls in this parser leads through `expression`, or through the `sum` that an
    /// end of a range is: all of them are counted here.
    fn nested(&mut self, parse: fn(&mut Self) -> Parsed<Expr>) -> Parsed<Expr> {
        self.nested += 1;
        if self.nested > NESTED_MAX {
            return Err(self.error("the expression is nested too deeply"));
        }
        let parsed = parse(self);
        self.nested -= 1;
        parsed
    }

    fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> &Token {
        self.lexemes.get(self.at + ahead).map_or(&Token::End, |lexeme| &lexeme.token)
    }

    fn advance(&mut self) {
        self.at += 1;
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(found) if *found == symbol)
    }

    fn is_word(&self, word: &str) -> bool {
        self.is_word_at(0, word)
    }

    fn is_word_at(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek_at(ahead), Token::Word(found) if found == word)
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn expect_symbol(&mut self, symbol: &str) -> Parsed<()> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.unexpected(&format!("'{symbol}'"))) }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected(&format!("'{word}'"))) }
    }

    /// A variable's name: a word that is not reserved, or anything in backquotes.
    fn name(&mut self) -> Parsed<Arc<str>> {
        let name: Arc<str> = match self.peek() {
            Token::Word(word) if !RESERVED.contains(&word.as_str()) => word.as_str().into(),
            Token::Quoted(name) => name.as_str().into(),
            _ => return Err(self.unexpected("a name")),
        };
        self.advance();
        Ok(name)
    }

    fn position(&self) -> usize {
        self.lexemes.get(self.at).map_or(self.source.len(), |lexeme| lexeme.start)
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.position(), message)
    }

    fn unexpected(&self, expected: &str) -> ParseError {
        let found = match self.peek() {
            Token::Word(word) | Token::Quoted(word) => format!("'{}'", excerpt(word)),
            Token::Number(number) => excerpt(number),
            Token::Text(_) => "a string".to_owned(),
            Token::Symbol(symbol) => format!("'{symbol}'"),
            Token::Unknown(c) => format!("'{c}'"),
            Token::End => "the end".to_owned(),
        };
        self.error(format!("{expected} is expected, found {found}"))
    }
}

/// The first characters of a text, for a message.
fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}
