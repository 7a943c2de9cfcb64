//! A small JSON writer into one `String`: no intermediate values, so that a command is written in about a microsecond.
//! It does not know what it writes and trusts raw values to be JSON. Next: `read.rs`, the way back.

use wf_core::rows::Variables;
use wf_core::text::{self, push_json_string};

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
        push_json_string(&mut self.0, text);
        self
    }

    pub fn text(&mut self, name: &'static str, text: &str) -> &mut Writer {
        push_json_string(&mut self.name(name).0, text);
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
        text::push_digits(&mut self.0, key);
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
        text::push_int(&mut self.name(name).0, number);
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
        self.name(name).0.push('"');
        text::push_hex(&mut self.0, bytes);
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
            push_json_string(&mut self.0, name);
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
}
