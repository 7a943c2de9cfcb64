//! The outside world that a worker calls: it honours keys. The first call under a key has the effect, every repeat gets its
//! result. Next: `broker.rs`, the other side of the outbox.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::trace::lock;

#[derive(Default)]
pub struct Provider(Mutex<BTreeMap<String, Effect>>);

/// What was done under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// What was asked for: an order and a step of it.
    pub request: String,
    pub result: u64,
    pub calls: u64,
}

impl Provider {
    /// The result, and whether the key was used for something else before.
    pub fn call(&self, key: &str, request: &str) -> (u64, bool) {
        let mut effects = lock(&self.0);
        let number = effects.len() as u64 + 1;
        let fresh = || Effect { request: request.to_owned(), result: number, calls: 0 };
        let effect = effects.entry(key.to_owned()).or_insert_with(fresh);
        effect.calls += 1;
        (effect.result, effect.request != request)
    }

    pub fn effects(&self) -> BTreeMap<String, Effect> {
        lock(&self.0).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_gets_the_first_result() {
        let provider = Provider::default();
        assert_eq!(provider.call("k", "pay 1"), (1, false));
        assert_eq!(provider.call("l", "pay 2"), (2, false));
        assert_eq!(provider.call("k", "pay 1"), (1, false));
        assert_eq!(provider.call("k", "pay 2"), (1, true));
        assert_eq!(provider.effects()["k"].calls, 3);
    }
}
