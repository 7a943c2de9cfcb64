//! Variables at the border: one compact JSON text per name, sorted, numbers exactly as they came; never a tree.
//! It does not know what a variable means. Next: `instances.rs`, `jobs.rs`, `messages.rs`.

use std::sync::Arc;

use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use wf_core::ids::hash16;
use wf_core::rows::{Json, Text, Variables};

use crate::body::{Fields, NAME};
use crate::scan::{self, Member};

impl Fields<'_> {
    /// An object's members as variables; none where it is absent.
    pub fn variables(&mut self, name: &str) -> Variables {
        match self.take(name) {
            Some(member) => self.members_of(name, &member),
            None => Variables::new(),
        }
    }

    pub fn required_variables(&mut self, name: &str) -> Variables {
        match self.take(name) {
            Some(member) => self.members_of(name, &member),
            None => {
                self.refuse(name, "is required");
                Variables::new()
            }
        }
    }

    fn members_of(&mut self, name: &str, member: &Member<'_>) -> Variables {
        let Ok(members) = scan::members(member.value, self.depth + 1) else {
            self.refuse(name, "must be an object");
            return Variables::new();
        };
        let mut variables = Variables::with_capacity(members.len());
        for member in &members {
            match check(member) {
                Ok(()) => variables.push((Text::from(&*member.name), Json::from(scan::compact(member.value)))),
                Err(message) => self.refuse(&format!("{name}.{}", shown(&member.name)), message),
            }
        }
        self.sorted(name, variables)
    }

    fn sorted(&mut self, field: &str, mut variables: Variables) -> Variables {
        if !variables.is_sorted_by(|(a, _), (b, _)| a < b) {
            variables.sort_by(|(a, _), (b, _)| a.cmp(b));
            let twice = variables.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0.clone());
            if let Some(name) = twice {
                self.refuse(&format!("{field}.{}", shown(&name)), "stands more than once");
            }
        }
        variables
    }
}

fn check(member: &Member<'_>) -> Result<(), String> {
    match member.nul {
        true => Err("must hold no NUL character".to_owned()),
        false => NAME.check(&member.name),
    }
}

/// A name in an error: it may be as long as the body and hold anything.
fn shown(name: &str) -> String {
    name.chars().take(64).map(|char| if char.is_control() { '\u{FFFD}' } else { char }).collect()
}

/// The hash under which a value must be unique: `1` and `1.0` agree, `1` and `"1"` do not.
/// The message says why the variable cannot tell instances apart.
pub fn unique_hash(variables: &Variables, name: &str) -> Result<[u8; 16], String> {
    let value = variables.iter().find(|(variable, _)| &**variable == name).map(|(_, value)| &**value);
    let kind = match value.and_then(|value| value.bytes().next()) {
        None => "missing",
        Some(b'n') => "null",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(_) => return Ok(scalar_hash(value.unwrap_or_default())),
    };
    Err(format!("names the variable {}, which is {kind}: it must be a string, a number or a boolean", shown(name)))
}

fn scalar_hash(value: &str) -> [u8; 16] {
    let canonical = wf_idempotency::fingerprint::canonical_json(value.as_bytes());
    hash16(&[canonical.as_deref().unwrap_or(value.as_bytes())])
}

/// JSON text that goes into an answer as it is.
#[derive(Clone, Debug)]
pub struct Raw(pub Json);

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Variables as one JSON object, for answers that are read seldom; the hot ones use `write.rs`.
#[derive(Clone, Debug)]
pub struct RawMembers(pub Variables);

impl Serialize for RawMembers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(&**name, &Raw(Arc::clone(value)))?;
        }
        map.end()
    }
}
