//! Keys whose first request is under way, in the owner's memory: a repeat waits for it a bounded time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use wf_store::RecordId;

use crate::clock::lock;

/// Keys are looked up only; the order of the map is nobody's business.
#[derive(Clone, Default)]
pub struct InFlight(Arc<Mutex<HashMap<RecordId, usize>>>);

/// One request under way; its end takes it out.
pub struct Visit {
    all: InFlight,
    id: RecordId,
    /// Another request with the key was under way when this one came.
    pub is_repeat: bool,
}

impl InFlight {
    pub fn enter(&self, id: RecordId) -> Visit {
        let mut all = lock(&self.0);
        let count = all.entry(id.clone()).or_default();
        *count += 1;
        Visit { all: self.clone(), is_repeat: *count > 1, id }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut all = lock(&self.all.0);
        if let Some(count) = all.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.id);
            }
        }
    }
}
