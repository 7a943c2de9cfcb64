//! An RFC 8941 item whose value is a string, with parameters that are checked for form and otherwise ignored.
//! Does not know the limits of a key: `key` checks length and emptiness of what comes out.

use super::KeyError;

/// Reads `line[start..]`, which begins with a quote and must end with the item. The result is unescaped.
pub(super) fn string_item(line: &[u8], start: usize) -> Result<String, KeyError> {
    let mut cursor = Cursor { line, at: start };
    let text = cursor.string()?;
    while cursor.eat(b';') {
        cursor.parameter()?;
    }
    match cursor.peek() {
        None => Ok(text),
        Some(_) => Err(cursor.wrong("something behind the closing quote")),
    }
}

struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// At the opening quote; ends behind the closing one.
    fn string(&mut self) -> Result<String, KeyError> {
        let mut text = String::new();
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.wrong("a quote that is never closed")),
                Some(b'"') => break self.at += 1,
                Some(b'\\') => text.push(self.escaped()?),
                Some(byte @ 0x20..=0x7E) => {
                    text.push(char::from(byte));
                    self.at += 1;
                }
                Some(byte) => return Err(self.wrong(super::name_of(byte))),
            }
        }
        Ok(text)
    }

    fn escaped(&mut self) -> Result<char, KeyError> {
        match self.line.get(self.at + 1) {
            Some(&byte @ (b'"' | b'\\')) => {
                self.at += 2;
                Ok(char::from(byte))
            }
            _ => Err(self.wrong("a backslash before neither a quote nor a backslash")),
        }
    }

    /// Behind a semicolon: `name` or `name=value`.
    fn parameter(&mut self) -> Result<(), KeyError> {
        self.run(|byte| byte == b' ');
        if !matches!(self.peek(), Some(b'a'..=b'z' | b'*')) {
            return Err(self.wrong("a parameter without a name"));
        }
        self.run(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*'));
        if self.eat(b'=') { self.value() } else { Ok(()) }
    }

    /// Wider than the standard's bare items, for nothing is made of the value: what must hold is where it ends.
    fn value(&mut self) -> Result<(), KeyError> {
        if self.peek() == Some(b'"') {
            return self.string().map(drop);
        }
        let from = self.at;
        self.run(|byte| matches!(byte, 0x21..=0x7E) && !matches!(byte, b'"' | b',' | b';'));
        if self.at == from { Err(self.wrong("a parameter without a value")) } else { Ok(()) }
    }

    fn run(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn wrong(&self, what: &'static str) -> KeyError {
        KeyError::Malformed { offset: self.at, what }
    }
}
