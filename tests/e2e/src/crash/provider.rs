//! Somebody else's payment service, as a worker calls it: it honours the key that it is given, and counts.
//! It never dies; the processes around it do.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::locked;

#[derive(Clone, Debug)]
pub struct Effect {
    pub instance: String,
    pub receipt: u64,
    pub calls: u64,
}

#[derive(Debug, Default)]
pub struct Provider {
    effects: Mutex<BTreeMap<String, Effect>>,
}

impl Provider {
    /// The receipt: a new one for a new key, the first one for a known one.
    pub fn charge(&self, key: &str, instance: &str) -> u64 {
        let mut effects = locked(&self.effects);
        let next = effects.len() as u64 + 1;
        let fresh = || Effect { instance: instance.to_owned(), receipt: next, calls: 0 };
        let effect = effects.entry(key.to_owned()).or_insert_with(fresh);
        effect.calls += 1;
        effect.receipt
    }

    /// By key.
    pub fn effects(&self) -> BTreeMap<String, Effect> {
        locked(&self.effects).clone()
    }
}
