//! A small JSON writer into one `String`: no intermediate values, so that a command is written in about a microsecond.
//! It does not know what it writes and trusts raw values to be JSON. Next: `read.rs`, the way back.

use wf_core::rows::Variables;

pub(super) struct Writer(String);

impl Writer {
    pub fn with_capacity(bytes: usize) -> Writer {
        Writer(String::with_capacity(bytes))
    }

    pub fn finish(self) -> String {
        self.0
    }

    /// Begins an item of an array; where its text begins, for [`Writer::since`].
    pub fn item(&mut self) -> usize {
        self.comma();
        self.0.len()
    }

    pub fn since(&self, begin: usize) -> &str {
        self.0.get(begin..).unwrap_or("")
    }

    /// `{` or `[`, as the next item of an array or as a member's value.
    pub fn open(&mut self, bracket: char) -> &mut Writer {
        self.comma();
        self.0.push(bracket);
        self
    }

    pub fn close(&mut self, bracket: char) -> &mut Writer {
        self.0.push(bracket);
        self
    }

    /// The name of a member whose value is written next. Names are the codec's own: nothing to escape.
    pub fn name(&mut self, name: &'static str) -> &mut Writer {
        self.comma();
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
        self
    }

    pub fn item_text(&mut self, text: &str) -> &mut Writer {
        self.comma();
        self.string(text);
        self
    }

    pub fn text(&mut self, name: &'static str, text: &str) -> &mut Writer {
        self.name(name).string(text);
        self
    }

    pub fn text_if(&mut self, name: &'static str, text: Option<&str>) -> &mut Writer {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    /// An unsigned 64-bit number as a decimal string: a reader with doubles must not lose digits.
    pub fn key(&mut self, name: &'static str, key: u64) -> &mut Writer {
        self.name(name);
        self.0.push('"');
        self.digits(key);
        self.0.push('"');
        self
    }

    pub fn key_if(&mut self, name: &'static str, key: Option<u64>) -> &mut Writer {
        match key {
            Some(key) => self.key(name, key),
            None => self,
        }
    }

    pub fn int(&mut self, name: &'static str, number: i64) -> &mut Writer {
        self.name(name);
        if number < 0 {
            self.0.push('-');
        }
        self.digits(number.unsigned_abs());
        self
    }

    pub fn int_if(&mut self, name: &'static str, number: Option<i64>) -> &mut Writer {
        match number {
            Some(number) => self.int(name, number),
            None => self,
        }
    }

    pub fn flag(&mut self, name: &'static str, flag: bool) -> &mut Writer {
        self.name(name).0.push_str(if flag { "true" } else { "false" });
        self
    }

    pub fn hex(&mut self, name: &'static str, bytes: &[u8]) -> &mut Writer {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.name(name).0.push('"');
        for byte in bytes {
            self.0.push(char::from(DIGITS[usize::from(byte >> 4)]));
            self.0.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        self.0.push('"');
        self
    }

    /// JSON text, byte for byte.
    pub fn raw(&mut self, name: &'static str, json: &str) -> &mut Writer {
        self.name(name).0.push_str(json);
        self
    }

    /// An object with raw values, as the next value.
    pub fn variables(&mut self, variables: &Variables) -> &mut Writer {
        self.open('{');
        for (name, value) in variables {
            self.comma();
            self.string(name);
            self.0.push(':');
            self.0.push_str(value);
        }
        self.close('}')
    }

    /// Between two items. Nothing but an opening bracket or a name's colon can precede a first one, and `item` may have
    /// put the comma already.
    fn comma(&mut self) {
        if !matches!(self.0.as_bytes().last(), None | Some(b'{' | b'[' | b':' | b',')) {
            self.0.push(',');
        }
    }

    fn digits(&mut self, number: u64) {
        let mut buffer = [0; 20];
        let mut rest = number;
        let mut start = buffer.len();
        loop {
            start -= 1;
            buffer[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.0.extend(buffer[start..].iter().map(|digit| char::from(*digit)));
    }

    fn string(&mut self, text: &str) {
        self.0.push('"');
        let mut plain = 0;
        for (at, byte) in text.bytes().enumerate() {
            if byte >= 0x20 && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.0.push_str(&text[plain..at]);
            self.escape(byte);
            plain = at + 1;
        }
        self.0.push_str(&text[plain..]);
        self.0.push('"');
    }

    fn escape(&mut self, byte: u8) {
        match byte {
            b'"' => self.0.push_str("\\\""),
            b'\\' => self.0.push_str("\\\\"),
            b'\n' => self.0.push_str("\\n"),
            b'\r' => self.0.push_str("\\r"),
            b'\t' => self.0.push_str("\\t"),
            _ => {
                self.0.push_str("\\u00");
                self.0.push(char::from(b'0' + (byte >> 4)));
                self.0.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
            }
        }
    }
}
