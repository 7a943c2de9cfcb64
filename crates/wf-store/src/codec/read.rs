//! Members of a stored object, taken out one by one; what nobody took at the end is an error.
//! It does not know which members there should be. Next: `command.rs`, which does.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use wf_core::rows::{Json, Text, Variables};

use crate::codec::{CodecError, hash_from_hex};

/// The members of one object, with their values as they stand in the text.
pub(super) struct Members<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Members<'a> {
    pub fn parse(text: &'a str) -> Result<Members<'a>, CodecError> {
        Ok(Members(serde_json::from_str(text)?))
    }

    pub fn finish(self) -> Result<(), CodecError> {
        match self.0.into_keys().next() {
            Some(name) => Err(CodecError::Unknown(name.into_owned())),
            None => Ok(()),
        }
    }

    pub fn raw(&mut self, name: &'static str) -> Result<&'a str, CodecError> {
        self.raw_if(name).ok_or(CodecError::Missing(name))
    }

    pub fn raw_if(&mut self, name: &'static str) -> Option<&'a str> {
        self.0.remove(name).map(RawValue::get)
    }

    pub fn text(&mut self, name: &'static str) -> Result<Text, CodecError> {
        value(name, self.raw(name)?)
    }

    pub fn text_if(&mut self, name: &'static str) -> Result<Option<Text>, CodecError> {
        self.raw_if(name).map(|raw| value(name, raw)).transpose()
    }

    pub fn key(&mut self, name: &'static str) -> Result<u64, CodecError> {
        parse_key(name, self.raw(name)?)
    }

    pub fn key_if(&mut self, name: &'static str) -> Result<Option<u64>, CodecError> {
        self.raw_if(name).map(|raw| parse_key(name, raw)).transpose()
    }

    /// A number or a boolean.
    pub fn plain<T: Deserialize<'a>>(&mut self, name: &'static str) -> Result<T, CodecError> {
        value(name, self.raw(name)?)
    }

    pub fn plain_if<T: Deserialize<'a>>(&mut self, name: &'static str) -> Result<Option<T>, CodecError> {
        self.raw_if(name).map(|raw| value(name, raw)).transpose()
    }

    pub fn hash(&mut self, name: &'static str) -> Result<[u8; 16], CodecError> {
        let text = self.text(name)?;
        hash_from_hex(&text).ok_or_else(|| wrong(name, "not 32 hexadecimal digits"))
    }

    pub fn json(&mut self, name: &'static str) -> Result<Json, CodecError> {
        Ok(self.raw(name)?.into())
    }

    pub fn variables(&mut self, name: &'static str) -> Result<Variables, CodecError> {
        variables(self.raw(name)?)
    }

    /// An array of objects.
    pub fn objects(&mut self, name: &'static str) -> Result<Vec<Members<'a>>, CodecError> {
        let items: Vec<&'a RawValue> = value(name, self.raw(name)?)?;
        items.into_iter().map(|item| Members::parse(item.get())).collect()
    }
}

pub(super) fn wrong(name: &'static str, reason: &str) -> CodecError {
    CodecError::Member { name, reason: reason.to_owned() }
}

fn value<'a, T: Deserialize<'a>>(name: &'static str, raw: &'a str) -> Result<T, CodecError> {
    serde_json::from_str(raw).map_err(|error| wrong(name, &error.to_string()))
}

fn parse_key(name: &'static str, raw: &str) -> Result<u64, CodecError> {
    let text: &str = value(name, raw)?;
    text.parse().map_err(|_| wrong(name, "not a decimal string of 64 bits"))
}

/// An object with raw values, in its own order.
pub(super) fn variables(text: &str) -> Result<Variables, CodecError> {
    let ordered: Ordered = serde_json::from_str(text)?;
    Ok(ordered.0)
}

struct Ordered(Variables);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ordered, D::Error> {
        deserializer.deserialize_map(OrderedVisitor)
    }
}

struct OrderedVisitor;

impl<'de> Visitor<'de> for OrderedVisitor {
    type Value = Ordered;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
        let mut variables = Variables::new();
        while let Some((name, value)) = map.next_entry::<Arc<str>, &'de RawValue>()? {
            variables.push((name, value.get().into()));
        }
        Ok(Ordered(variables))
    }
}
