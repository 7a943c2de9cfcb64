//! Where an expression's variables come from.
//! It knows no expression.
//! Next: `eval`, which asks for each free name when it meets it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::value::Value;

/// The variables that an expression may read.
pub trait Scope {
    /// The variable's value; `None` counts as null.
    fn get(&self, name: &str) -> Option<Value>;
}

/// No variables.
impl Scope for () {
    fn get(&self, _name: &str) -> Option<Value> {
        None
    }
}

impl Scope for BTreeMap<Arc<str>, Value> {
    fn get(&self, name: &str) -> Option<Value> {
        BTreeMap::get(self, name).cloned()
    }
}

/// The entries of a context; any other value has none.
impl Scope for Value {
    fn get(&self, name: &str) -> Option<Value> {
        self.entry(name).cloned()
    }
}
