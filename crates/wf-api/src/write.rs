//! A JSON writer into one buffer for the answers of the hot routes: values are spliced in as the text they are stored as.
//! It does not know shapes and trusts raw values to be JSON. Next: the noun whose answer is written.

use wf_core::rows::Variables;

use crate::time;

pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub fn new(bytes: usize) -> Writer {
        Writer(Vec::with_capacity(bytes))
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// As it is: brackets, commas, names with their colons, values that are JSON already.
    pub fn raw(&mut self, text: &str) -> &mut Writer {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Writer {
        self.0.push(b'"');
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
            let (plain, special) = rest.split_at(at);
            self.0.extend_from_slice(plain.as_bytes());
            self.escape(special.as_bytes().first().copied().unwrap_or_default());
            rest = special.get(1..).unwrap_or_default();
        }
        self.0.extend_from_slice(rest.as_bytes());
        self.0.push(b'"');
        self
    }

    fn escape(&mut self, byte: u8) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        match byte {
            b'"' | b'\\' => self.0.extend_from_slice(&[b'\\', byte]),
            b'\n' => self.0.extend_from_slice(b"\\n"),
            b'\r' => self.0.extend_from_slice(b"\\r"),
            b'\t' => self.0.extend_from_slice(b"\\t"),
            _ => {
                let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
                self.0.extend_from_slice(b"\\u00");
                self.0.extend_from_slice(&digits);
            }
        }
    }

    pub fn digits(&mut self, number: u64) -> &mut Writer {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.0.extend_from_slice(&digits[at..]);
        self
    }

    pub fn int(&mut self, number: i64) -> &mut Writer {
        if number < 0 {
            self.0.push(b'-');
        }
        self.digits(number.unsigned_abs())
    }

    /// A 64-bit number as a string: JavaScript keeps 53 bits of a bare one.
    pub fn key(&mut self, key: u64) -> &mut Writer {
        self.0.push(b'"');
        self.digits(key);
        self.0.push(b'"');
        self
    }

    pub fn time(&mut self, ms: i64) -> &mut Writer {
        self.0.push(b'"');
        self.0.extend_from_slice(&time::rfc3339(ms));
        self.0.push(b'"');
        self
    }

    pub fn bool(&mut self, value: bool) -> &mut Writer {
        self.raw(if value { "true" } else { "false" })
    }

    pub fn variables(&mut self, variables: &Variables) -> &mut Writer {
        self.0.push(b'{');
        for (index, (name, value)) in variables.iter().enumerate() {
            if index > 0 {
                self.0.push(b',');
            }
            self.text(name);
            self.0.push(b':');
            self.raw(value);
        }
        self.0.push(b'}');
        self
    }
}

/// Items with commas between them.
pub(crate) fn list<T>(out: &mut Writer, items: &[T], mut write: impl FnMut(&mut Writer, &T)) {
    out.raw("[");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.raw(",");
        }
        write(out, item);
    }
    out.raw("]");
}
