//! Functions on contexts.
//! It knows no paths: keys are strings, or lists of strings that lead inside.
//! Next: `ranges`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Builtin;
use crate::eval::{Outcome, Run};
use crate::value::{Value, put_entry};

/// Keys of one `context put`; it bounds how much deeper the result may be.
const KEYS_MAX: usize = 16;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("get value", &[&["context", "key"], &["m", "key"], &["context", "keys"]], get_value),
    Builtin::new("get entries", &[&["context"], &["m"]], get_entries).growing(2),
    Builtin::new("context put", &[&["context", "key", "value"], &["context", "keys", "value"]], context_put)
        .growing(KEYS_MAX),
    Builtin::new("put", &[&["context", "key", "value"]], context_put).growing(KEYS_MAX),
    Builtin::new("context merge", &[&["contexts"]], context_merge).variadic().growing(1),
    Builtin::new("put all", &[&["contexts"]], context_merge).variadic().growing(1),
    Builtin::new("context", &[&["entries"]], context).growing(1),
];

fn get_value(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    Ok(match arguments {
        [context @ Value::Context(entries), Value::String(key)] => {
            run.step(entries.len() / 16)?;
            context.entry(key).cloned().unwrap_or(Value::Null)
        }
        [context @ Value::Context(_), Value::List(keys)] if !keys.is_empty() => {
            let mut found = Some(context);
            for key in keys.iter() {
                run.step(1)?;
                found = found.zip(key.as_str()).and_then(|(context, key)| context.entry(key));
            }
            found.cloned().unwrap_or(Value::Null)
        }
        _ => Value::Null,
    })
}

fn get_entries(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::Context(entries)] = arguments else {
        return Ok(Value::Null);
    };
    run.allocate_items(entries.len().saturating_mul(3))?;
    let (key_name, value_name): (Arc<str>, Arc<str>) = ("key".into(), "value".into());
    let pair = |(key, value): &(Arc<str>, Value)| {
        let key = Value::String(key.clone());
        Value::context(vec![(key_name.clone(), key), (value_name.clone(), value.clone())])
    };
    Ok(Value::list(entries.iter().map(pair).collect()))
}

fn context_put(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::Context(entries), Value::String(key), value] => put(run, entries, std::slice::from_ref(key), value),
        [Value::Context(entries), Value::List(keys), value] if (1..=KEYS_MAX).contains(&keys.len()) => {
            let keys = keys.iter().map(|key| match key {
                Value::String(key) => Some(key.clone()),
                _ => None,
            });
            match keys.collect::<Option<Vec<Arc<str>>>>() {
                Some(keys) => put(run, entries, &keys, value),
                None => Ok(Value::Null),
            }
        }
        _ => Ok(Value::Null),
    }
}

/// Sets the entry that the keys lead to; contexts on the way are made where they are missing.
fn put(run: &mut Run<'_>, entries: &[(Arc<str>, Value)], keys: &[Arc<str>], value: &Value) -> Outcome {
    let Some((key, deeper)) = keys.split_first() else {
        return Ok(value.clone());
    };
    run.allocate_items(entries.len() + 1)?;
    let inner: &[(Arc<str>, Value)] = match entries.iter().find(|(name, _)| name == key) {
        Some((_, Value::Context(inner))) => inner,
        _ => &[],
    };
    let inner = put(run, inner, deeper, value)?;
    let mut changed = entries.to_vec();
    put_entry(&mut changed, key.clone(), inner);
    Ok(Value::context(changed))
}

fn context_merge(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::List(contexts)] = arguments else {
        return Ok(Value::Null);
    };
    let mut merged = Entries::default();
    for context in contexts.iter() {
        let Value::Context(entries) = context else {
            return Ok(Value::Null);
        };
        run.allocate_items(entries.len())?;
        for (name, value) in entries.iter() {
            merged.put(name, value);
        }
    }
    Ok(Value::context(merged.list))
}

/// The inverse of `get entries`.
fn context(run: &mut Run<'_>, arguments: &[Value]) -> Outcome {
    let [Value::List(pairs)] = arguments else {
        return Ok(Value::Null);
    };
    run.allocate_items(pairs.len())?;
    let mut made = Entries::default();
    for pair in pairs.iter() {
        match (pair.entry("key"), pair.entry("value")) {
            (Some(Value::String(key)), Some(value)) => made.put(key, value),
            _ => return Ok(Value::Null),
        }
    }
    Ok(Value::context(made.list))
}

/// Entries in order, with an index so that many of them cost no more than they are.
#[derive(Default)]
struct Entries {
    list: Vec<(Arc<str>, Value)>,
    index: BTreeMap<Arc<str>, usize>,
}

impl Entries {
    fn put(&mut self, name: &Arc<str>, value: &Value) {
        let known = self.index.get(name).and_then(|at| self.list.get_mut(*at));
        if let Some(entry) = known {
            entry.1 = value.clone();
            return;
        }
        self.index.insert(name.clone(), self.list.len());
        self.list.push((name.clone(), value.clone()));
    }
}
