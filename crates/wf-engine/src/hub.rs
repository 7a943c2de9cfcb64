//! What the engines of one node tell one another, and hear of other nodes: that a partition has been sent something, and that
//! something was taken. Only a hint: an engine looks by itself now and then. Next: `inbox.rs`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::clock::lock;

/// Shared by the engines of one node. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Hub(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    inboxes: Mutex<BTreeMap<u16, Arc<Notify>>>,
    taken: Notify,
}

impl Hub {
    /// What resolves when this partition was sent something.
    pub(crate) fn inbox(&self, partition: u16) -> Arc<Notify> {
        lock(&self.0.inboxes).entry(partition).or_default().clone()
    }

    pub fn tell_sent(&self, partition: u16) {
        if let Some(inbox) = lock(&self.0.inboxes).get(&partition) {
            inbox.notify_one();
        }
    }

    pub fn tell_taken(&self) {
        self.0.taken.notify_waiters();
    }

    pub(crate) fn taken(&self) -> &Notify {
        &self.0.taken
    }
}
