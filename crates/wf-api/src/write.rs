//! A JSON writer into one buffer for the answers of the hot routes: values are spliced in as the text they are stored as.
//! It does not know shapes and trusts raw values to be JSON. Next: the noun whose answer is written.

use wf_core::rows::Variables;
use wf_core::text;

pub(crate) struct Writer(String);

impl Writer {
    pub fn new(bytes: usize) -> Writer {
        Writer(String::with_capacity(bytes))
    }

    pub fn finish(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    pub fn into_text(self) -> String {
        self.0
    }

    /// As it is: brackets, commas, names with their colons, values that are JSON already.
    pub fn raw(&mut self, text: &str) -> &mut Writer {
        self.0.push_str(text);
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Writer {
        text::push_json_string(&mut self.0, text);
        self
    }

    pub fn digits(&mut self, number: u64) -> &mut Writer {
        text::push_digits(&mut self.0, number);
        self
    }

    pub fn int(&mut self, number: i64) -> &mut Writer {
        text::push_int(&mut self.0, number);
        self
    }

    /// A 64-bit number as a string: JavaScript keeps 53 bits of a bare one.
    pub fn key(&mut self, key: u64) -> &mut Writer {
        self.0.push('"');
        self.digits(key);
        self.0.push('"');
        self
    }

    pub fn time(&mut self, ms: i64) -> &mut Writer {
        self.0.push('"');
        text::push_rfc3339(&mut self.0, ms);
        self.0.push('"');
        self
    }

    pub fn bool(&mut self, value: bool) -> &mut Writer {
        self.raw(if value { "true" } else { "false" })
    }

    pub fn variables(&mut self, variables: &Variables) -> &mut Writer {
        self.0.push('{');
        for (index, (name, value)) in variables.iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            self.text(name);
            self.0.push(':');
            self.raw(value);
        }
        self.0.push('}');
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
