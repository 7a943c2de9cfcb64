//! A map that forgets: when the young half is full it becomes the old one, and what nobody wrote again goes.

use std::collections::HashMap;
use std::hash::Hash;

/// Looked up by key only, never iterated: its order is nobody's business.
pub struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    half_max: usize,
}

impl<K: Eq + Hash, V> Generations<K, V> {
    pub fn new(entries_max: usize) -> Generations<K, V> {
        Generations { young: HashMap::new(), old: HashMap::new(), half_max: (entries_max / 2).max(1) }
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match self.young.get_mut(key) {
            Some(value) => Some(value),
            None => self.old.get_mut(key),
        }
    }

    pub fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.half_max {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}
