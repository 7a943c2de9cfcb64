//! Text to tokens. An unknown character becomes a token, so that only the parser refuses (a context key may hold it).
//! It knows no grammar: words are words, whether they are keywords or not.
//! Next: `parser`.

use crate::expression::ParseError;

/// Longer expressions are refused.
pub(crate) const SOURCE_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A name or keyword.
    Word(String),
    /// A name in backquotes, which is never a keyword.
    Quoted(String),
    Number(String),
    Text(String),
    /// One of the operators and brackets of [`SYMBOLS`].
    Symbol(&'static str),
    Unknown(char),
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Lexeme {
    pub token: Token,
    pub start: usize,
}

/// Longer symbols first.
const SYMBOLS: [&str; 23] = [
    "**", "..", "<=", ">=", "!=", "+", "-", "*", "/", "=", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", "@",
    "?",
];

pub(crate) fn lex(source: &str) -> Result<Vec<Lexeme>, ParseError> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(ParseError::new(SOURCE_BYTES_MAX, "the expression is longer than 1 MiB"));
    }
    let mut lexemes = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blank(source, at)?;
        let (token, end) = next(source, at)?;
        let last = token == Token::End;
        lexemes.push(Lexeme { token, start: at });
        if last {
            return Ok(lexemes);
        }
        at = end;
    }
}

fn rest(source: &str, at: usize) -> &str {
    source.get(at..).unwrap_or("")
}

/// White space and comments.
fn skip_blank(source: &str, mut at: usize) -> Result<usize, ParseError> {
    loop {
        let text = rest(source, at);
        let trimmed = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}' || c == '\u{180e}');
        at += text.len() - trimmed.len();
        if trimmed.starts_with("//") {
            at += trimmed.find('\n').unwrap_or(trimmed.len());
        } else if trimmed.starts_with("/*") {
            let end = trimmed.get(2..).and_then(|body| body.find("*/"));
            at += end.ok_or_else(|| ParseError::new(at, "the comment does not end"))? + 4;
        } else {
            return Ok(at);
        }
    }
}

fn next(source: &str, at: usize) -> Result<(Token, usize), ParseError> {
    let text = rest(source, at);
    let Some(first) = text.chars().next() else {
        return Ok((Token::End, at));
    };
    match first {
        '"' => text_token(source, at),
        '`' => quoted_name(source, at),
        c if starts_number(c, text) => {
            let length = number_length(text);
            Ok((Token::Number(text.get(..length).unwrap_or("").to_owned()), at + length))
        }
        c if starts_name(c) => {
            let length = text.find(|c: char| !continues_name(c)).unwrap_or(text.len());
            Ok((Token::Word(text.get(..length).unwrap_or("").to_owned()), at + length))
        }
        _ => match SYMBOLS.iter().find(|symbol| text.starts_with(**symbol)) {
            Some(symbol) => Ok((Token::Symbol(symbol), at + symbol.len())),
            None => Ok((Token::Unknown(first), at + first.len_utf8())),
        },
    }
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$' || matches!(c, '€' | '£' | '¥' | '¢') || is_pictograph(c)
}

fn continues_name(c: char) -> bool {
    starts_name(c) || c.is_alphanumeric() || is_combining(c)
}

/// Letters of living scripts are followed by marks that are not alphabetic themselves.
fn is_combining(c: char) -> bool {
    matches!(u32::from(c), 0x300..=0x36f | 0x1ab0..=0x1aff | 0x20d0..=0x20ff | 0xfe00..=0xfe0f | 0xfe20..=0xfe2f | 0x200c..=0x200d)
}

fn is_pictograph(c: char) -> bool {
    matches!(u32::from(c), 0x1f300..=0x1faff)
}

/// `.5` is a number, `a.5` does not occur and `1..5` is a range.
fn starts_number(first: char, text: &str) -> bool {
    let second = text.as_bytes().get(1).copied().unwrap_or(b' ');
    first.is_ascii_digit() || (first == '.' && second.is_ascii_digit())
}

fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(0);
    let fraction = if bytes.get(whole) == Some(&b'.') { digits(whole + 1) } else { 0 };
    if fraction == 0 { whole } else { whole + 1 + fraction }
}

fn quoted_name(source: &str, at: usize) -> Result<(Token, usize), ParseError> {
    let body = rest(source, at + 1);
    match body.find('`') {
        Some(length) if length > 0 => Ok((Token::Quoted(body.get(..length).unwrap_or("").to_owned()), at + length + 2)),
        _ => Err(ParseError::new(at, "the name in backquotes is empty or does not end")),
    }
}

/// A string literal. An unknown escape stays as it is: patterns such as `"\d+"` are written with one backslash.
fn text_token(source: &str, at: usize) -> Result<(Token, usize), ParseError> {
    let body = rest(source, at + 1);
    let mut out = String::new();
    let mut chars = body.char_indices();
    while let Some((offset, c)) = chars.next() {
        match c {
            '"' => return Ok((Token::Text(out), at + offset + 2)),
            '\\' => {
                let tail = body.get(offset + 1..).unwrap_or("");
                let used = escape(tail, &mut out);
                for _ in 0..used {
                    chars.next();
                }
            }
            c => out.push(c),
        }
    }
    Err(ParseError::new(at, "the string does not end"))
}

/// Appends what the escape at the start of `tail` (without its backslash) means; gives the characters used.
fn escape(tail: &str, out: &mut String) -> usize {
    let plain = match tail.chars().next() {
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some(c @ ('\'' | '"' | '\\')) => c,
        Some('u') => return unicode(tail, 4, out),
        Some('U') => return unicode(tail, 6, out),
        _ => {
            out.push('\\');
            return 0;
        }
    };
    out.push(plain);
    1
}

fn unicode(tail: &str, length: usize, out: &mut String) -> usize {
    let hex = |from: usize| tail.get(from..from + length).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let first = hex(1);
    if let Some(c) = first.and_then(char::from_u32) {
        out.push(c);
        return length + 1;
    }
    let pair = first.zip(hex(length + 3)).filter(|_| tail.get(length + 1..length + 3) == Some("\\u"));
    if let Some((high @ 0xd800..0xdc00, low @ 0xdc00..0xe000)) = pair
        && let Some(c) = char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
    {
        out.push(c);
        return 2 * length + 3;
    }
    out.push('\\');
    0
}
