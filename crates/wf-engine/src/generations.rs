//! A map that forgets: when the young half is full it becomes the old one, and what nobody wrote again goes.
//! It forgets only when it is told to age: never while a command runs, which could need more than the map may hold.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;

/// Looked up by key only, never iterated: its order is nobody's business.
pub struct Generations<K, V> {
    young: HashMap<K, V, RandomState>,
    old: HashMap<K, V, RandomState>,
    half_max: usize,
}

impl<K: Eq + Hash + Clone, V> Generations<K, V> {
    pub fn new(entries_max: usize) -> Generations<K, V> {
        Generations { young: HashMap::default(), old: HashMap::default(), half_max: (entries_max / 2).max(1) }
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// What is changed is young again.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        if !self.old.is_empty()
            && let Some(value) = self.old.remove(key)
        {
            self.young.insert(key.clone(), value);
        }
        self.young.get_mut(key)
    }

    pub fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    /// Forgets the old half if the young one is full.
    pub fn age(&mut self) {
        if self.young.len() >= self.half_max {
            self.old = std::mem::take(&mut self.young);
        }
    }

    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}
