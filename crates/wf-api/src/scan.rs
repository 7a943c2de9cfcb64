//! One pass over JSON text: is it JSON, how deep does it go, does it hold what no store keeps. Builds no tree, so that
//! variables stay the text they came as. It does not know what members mean. Next: `body.rs`.

use std::borrow::Cow;

/// Containers within containers, counted from the body's own object.
pub(crate) const DEPTH_MAX: usize = 128;

/// Why a text is no JSON that we take. `at` counts bytes from the start of the text that was scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Malformed {
        at: usize,
    },
    TooDeep,
    /// Half of a surrogate pair: no text, whatever the grammar says.
    Surrogate {
        at: usize,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Member<'a> {
    pub name: Cow<'a, str>,
    /// The value as it stands, without white space around it.
    pub value: &'a str,
    /// A NUL character stands in the name or in the value.
    pub nul: bool,
}

/// The members of the object that is the whole text. `depth`: containers around it.
pub(crate) fn members(text: &str, depth: usize) -> Result<Vec<Member<'_>>, Flaw> {
    let mut scanner = Scanner { text, at: 0, nul: false };
    let mut members = Vec::with_capacity(8);
    scanner.expect(b'{')?;
    if !scanner.ends(b'}') {
        loop {
            members.push(scanner.member(depth + 1)?);
            if !scanner.goes_on(b'}')? {
                break;
            }
        }
    }
    scanner.finish()?;
    Ok(members)
}

/// The items of the array that is the whole text.
pub(crate) fn items(text: &str, depth: usize) -> Result<Vec<&str>, Flaw> {
    let mut scanner = Scanner { text, at: 0, nul: false };
    let mut items = Vec::new();
    scanner.expect(b'[')?;
    if !scanner.ends(b']') {
        loop {
            items.push(scanner.raw(depth + 1)?);
            if !scanner.goes_on(b']')? {
                break;
            }
        }
    }
    scanner.finish()?;
    Ok(items)
}

/// A string's text, from its raw form with quotes. `raw` was scanned before.
pub(crate) fn unescape(raw: &str) -> Cow<'_, str> {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    match inner.contains('\\') {
        false => Cow::Borrowed(inner),
        true => Cow::Owned(serde_json::from_str(raw).unwrap_or_default()),
    }
}

/// The same JSON without white space between its tokens. `text` was scanned before.
pub(crate) fn compact(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(quote) = rest.find('"') {
        let (before, string) = rest.split_at(quote);
        push_tokens(&mut kept, before);
        let (string, after) = string.split_at(string_len(string));
        kept.push_str(string);
        rest = after;
    }
    push_tokens(&mut kept, rest);
    Cow::Owned(kept)
}

fn push_tokens(out: &mut String, text: &str) {
    out.extend(text.chars().filter(|char| !matches!(char, ' ' | '\n' | '\r' | '\t')));
}

/// Length of the string at the start of `text`, quotes included.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => (),
        }
    }
    text.len()
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    nul: bool,
}

impl<'a> Scanner<'a> {
    fn member(&mut self, depth: usize) -> Result<Member<'a>, Flaw> {
        self.nul = false;
        self.blanks();
        let start = self.at;
        self.string()?;
        let name = unescape(&self.text[start..self.at]);
        self.expect(b':')?;
        let value = self.raw(depth)?;
        Ok(Member { name, value, nul: self.nul })
    }

    fn raw(&mut self, depth: usize) -> Result<&'a str, Flaw> {
        self.blanks();
        let start = self.at;
        self.value(depth)?;
        Ok(&self.text[start..self.at])
    }

    fn value(&mut self, depth: usize) -> Result<(), Flaw> {
        self.blanks();
        match self.peek() {
            Some(b'{') => self.container(b'}', depth, |scanner| scanner.string_and_colon()),
            Some(b'[') => self.container(b']', depth, |_| Ok(())),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => self.malformed(),
        }
    }

    fn container(
        &mut self,
        close: u8,
        depth: usize,
        before_value: fn(&mut Self) -> Result<(), Flaw>,
    ) -> Result<(), Flaw> {
        if depth >= DEPTH_MAX {
            return Err(Flaw::TooDeep);
        }
        self.at += 1;
        if self.ends(close) {
            return Ok(());
        }
        loop {
            before_value(self)?;
            self.value(depth + 1)?;
            if !self.goes_on(close)? {
                return Ok(());
            }
        }
    }

    fn string_and_colon(&mut self) -> Result<(), Flaw> {
        self.blanks();
        self.string()?;
        self.expect(b':')
    }

    fn string(&mut self) -> Result<(), Flaw> {
        if self.peek() != Some(b'"') {
            return self.malformed();
        }
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                None | Some(0..0x20) => return self.malformed(),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Flaw> {
        match self.text.as_bytes().get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => self.code_point()?,
            _ => return self.malformed(),
        }
        Ok(())
    }

    fn code_point(&mut self) -> Result<(), Flaw> {
        let at = self.at;
        match self.code_unit()? {
            0xD800..0xDC00 if self.text[self.at..].starts_with("\\u") => match self.code_unit()? {
                0xDC00..0xE000 => Ok(()),
                _ => Err(Flaw::Surrogate { at }),
            },
            0xD800..0xE000 => Err(Flaw::Surrogate { at }),
            unit => {
                self.nul |= unit == 0;
                Ok(())
            }
        }
    }

    fn code_unit(&mut self) -> Result<u32, Flaw> {
        let digits = self.text.as_bytes().get(self.at + 2..self.at + 6);
        let value = |digits: &[u8]| {
            digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
        };
        match digits.and_then(value) {
            Some(unit) => {
                self.at += 6;
                Ok(unit)
            }
            None => self.malformed(),
        }
    }

    fn number(&mut self) -> Result<(), Flaw> {
        self.skip(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.skip(b'.') {
            self.digits()?;
        }
        if self.skip(b'e') || self.skip(b'E') {
            let _signed = self.skip(b'+') || self.skip(b'-');
            self.digits()?;
        }
        Ok(())
    }

    /// At least one.
    fn digits(&mut self) -> Result<(), Flaw> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { self.malformed() } else { Ok(()) }
    }

    fn word(&mut self, word: &str) -> Result<(), Flaw> {
        match self.text[self.at..].starts_with(word) {
            true => {
                self.at += word.len();
                Ok(())
            }
            false => self.malformed(),
        }
    }

    /// Behind an item: true at a comma, false at the closing bracket.
    fn goes_on(&mut self, close: u8) -> Result<bool, Flaw> {
        self.blanks();
        if self.skip(b',') {
            return Ok(true);
        }
        if self.skip(close) { Ok(false) } else { self.malformed() }
    }

    fn ends(&mut self, close: u8) -> bool {
        self.blanks();
        self.skip(close)
    }

    fn expect(&mut self, byte: u8) -> Result<(), Flaw> {
        self.blanks();
        if self.skip(byte) { Ok(()) } else { self.malformed() }
    }

    fn finish(&mut self) -> Result<(), Flaw> {
        self.blanks();
        if self.at == self.text.len() { Ok(()) } else { self.malformed() }
    }

    fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn malformed<T>(&self) -> Result<T, Flaw> {
        Err(Flaw::Malformed { at: self.at })
    }
}
