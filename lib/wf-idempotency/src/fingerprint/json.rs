//! JSON without its spelling: one pass over the text writes a canonical form that differs whenever the values differ.
//! Does not build a tree, does not use doubles, does not normalise Unicode. Not JSON itself: only ever hashed.
//! Next: `number.rs` for exact decimals.
//!
//! Canonical form, each piece free of prefixes of another so that nothing runs together:
//! `n` `t` `f` · `#` number (see `number.rs`) · `"` unescaped UTF-8, 0xFF · `[` items `]` · `{` members `}`, where a
//! member is a string and a value, sorted by the string's bytes. 0xFF never occurs in UTF-8.

mod number;
mod string;

/// Containers within containers; the same bound as at the engine's door.
const DEPTH_MAX: usize = 128;

/// `None` for what is not JSON, is nested too deeply, has a member twice, or an exponent of more than 18 digits:
/// different readers see different values there, so the caller compares such bodies byte by byte.
pub(super) fn canonical(text: &[u8]) -> Option<Vec<u8>> {
    // Checked once here, so that bytes can be copied below.
    std::str::from_utf8(text).ok()?;
    let mut writer = Writer { text, at: 0, out: Vec::with_capacity(text.len() + 16), members: Vec::new() };
    writer.value(0)?;
    writer.blanks();
    (writer.at == text.len()).then_some(writer.out)
}

struct Writer<'a> {
    text: &'a [u8],
    at: usize,
    out: Vec<u8>,
    /// The members written so far of every object that is open, outermost first.
    members: Vec<Member>,
}

/// Where a member stands in `out`.
#[derive(Clone, Copy)]
struct Member {
    start: usize,
    name_end: usize,
    end: usize,
}

impl Writer<'_> {
    fn value(&mut self, depth: usize) -> Option<()> {
        self.blanks();
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => None,
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.open(b'[', depth)?;
        if !self.ends_empty(b']') {
            loop {
                self.value(depth + 1)?;
                if self.ends(b']')? {
                    break;
                }
            }
        }
        self.out.push(b']');
        Some(())
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.open(b'{', depth)?;
        let first = self.members.len();
        if !self.ends_empty(b'}') {
            loop {
                self.member(depth)?;
                if self.ends(b'}')? {
                    break;
                }
            }
        }
        self.sort_members(first)?;
        self.members.truncate(first);
        self.out.push(b'}');
        Some(())
    }

    fn member(&mut self, depth: usize) -> Option<()> {
        let start = self.out.len();
        self.blanks();
        self.string()?;
        let name_end = self.out.len();
        self.blanks();
        self.eat(b':')?;
        self.value(depth + 1)?;
        self.members.push(Member { start, name_end, end: self.out.len() });
        Some(())
    }

    /// Most clients write their members in one order, often the sorted one: then nothing is moved.
    fn sort_members(&mut self, first: usize) -> Option<()> {
        let Writer { out, members, .. } = self;
        let members = &mut members[first..];
        let name = |member: &Member| &out[member.start..member.name_end];
        if members.is_sorted_by(|a, b| name(a) < name(b)) {
            return Some(());
        }
        let from = members.first()?.start;
        members.sort_unstable_by(|a, b| name(a).cmp(name(b)));
        if !members.is_sorted_by(|a, b| name(a) < name(b)) {
            return None;
        }
        let mut sorted = Vec::with_capacity(out.len() - from);
        members.iter().for_each(|member| sorted.extend_from_slice(&out[member.start..member.end]));
        out[from..].copy_from_slice(&sorted);
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        self.eat(b'"')?;
        self.out.push(b'"');
        self.at += string::unescape(&self.text[self.at..], &mut self.out)?;
        self.out.push(0xFF);
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        self.out.push(b'#');
        self.at += number::normalize(&self.text[self.at..], &mut self.out)?;
        Some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.text[self.at..].starts_with(word).then_some(())?;
        self.at += word.len();
        self.out.push(word[0]);
        Some(())
    }

    fn open(&mut self, bracket: u8, depth: usize) -> Option<()> {
        (depth < DEPTH_MAX).then_some(())?;
        self.at += 1;
        self.out.push(bracket);
        Some(())
    }

    fn ends_empty(&mut self, bracket: u8) -> bool {
        self.blanks();
        self.eat(bracket).is_some()
    }

    /// Behind an item: true at the closing bracket, false at a comma, `None` at anything else.
    fn ends(&mut self, bracket: u8) -> Option<bool> {
        self.blanks();
        match self.eat(b',') {
            Some(()) => Some(false),
            None => self.eat(bracket).map(|()| true),
        }
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }
}
