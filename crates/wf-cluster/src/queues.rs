//! Which queues may have a job at which partition: a partition is looked at again only after it was heard of, so that a
//! poll over many partitions costs no more than one over a few. What is remembered may say too much, never too little.
//! Next: `activate.rs`, which looks; `scouts.rs`, which hears of other nodes' partitions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use wf_core::RangeId;
use wf_core::rows::Text;
use wf_store::NodeId;

/// Queues that nobody waits for are forgotten beyond this number; they are new then.
const IDLE_MAX: usize = 10_000;

/// A tenant's jobs of one type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueId {
    pub tenant: Text,
    pub job_type: Text,
}

#[derive(Default)]
pub(crate) struct Queues {
    all: Mutex<BTreeMap<QueueId, Arc<Queue>>>,
}

pub(crate) struct Queue {
    pub id: QueueId,
    seen: Mutex<Seen>,
    /// One of those who wait is woken for each mark; who finds a job wakes the next.
    pub wake: Notify,
    /// The same for other nodes that ask; they are told where nobody waits here. Apart, as a partition of another node
    /// means nothing to them: one of them would swallow the word.
    pub peeked: Notify,
    /// A partition was looked at.
    pub tried: Notify,
}

#[derive(Default)]
struct Seen {
    /// Partitions that may have a job, with the number of the mark that says so.
    maybe: BTreeMap<u16, u64>,
    marks: u64,
    visitors: usize,
    /// Those who wait for a word here.
    waiting: usize,
    scouts: BTreeMap<NodeId, AbortHandle>,
}

/// Somebody who looks at a queue or waits for it.
pub(crate) struct Visit {
    pub queue: Arc<Queue>,
}

impl Queues {
    /// A job became ready at a partition; `None`: in any of its queues.
    pub fn tell(&self, partition: u16, range: Option<&RangeId>) {
        let all = lock(&self.all);
        match range {
            None => all.values().for_each(|queue| queue.mark(partition)),
            Some(RangeId::Ready { tenant, job_type }) => {
                let id = QueueId { tenant: tenant.clone(), job_type: job_type.clone() };
                all.get(&id).into_iter().for_each(|queue| queue.mark(partition));
            }
            Some(_) => (),
        }
    }

    /// The partition is not this node's any more: its owner is asked from now on.
    pub fn forget(&self, partition: u16) {
        lock(&self.all).values().for_each(|queue| {
            queue.seen().maybe.remove(&partition);
        });
    }

    /// Who waits looks around: there may be other nodes to be asked.
    pub fn stir(&self) {
        lock(&self.all).values().for_each(|queue| queue.wake.notify_waiters());
    }

    /// `here`: this node's partitions, all of which may have a job of a new queue.
    pub fn visit(&self, id: QueueId, here: impl FnOnce() -> Vec<u16>) -> Visit {
        let mut all = lock(&self.all);
        if all.len() >= IDLE_MAX && !all.contains_key(&id) {
            all.retain(|_, queue| queue.seen().visitors > 0);
        }
        let queue = all.entry(id).or_insert_with_key(|id| Arc::new(Queue::new(id.clone(), here()))).clone();
        queue.seen().visitors += 1;
        Visit { queue }
    }
}

impl Queue {
    fn new(id: QueueId, here: Vec<u16>) -> Queue {
        let maybe = here.into_iter().map(|partition| (partition, 0)).collect();
        Queue {
            id,
            seen: Mutex::new(Seen { maybe, ..Seen::default() }),
            wake: Notify::new(),
            peeked: Notify::new(),
            tried: Notify::new(),
        }
    }

    pub fn mark(&self, partition: u16) {
        let mut seen = self.seen();
        seen.marks += 1;
        let mark = seen.marks;
        seen.maybe.insert(partition, mark);
        self.wake_one(&seen);
    }

    fn wake_one(&self, seen: &Seen) {
        match seen.waiting {
            0 => self.peeked.notify_one(),
            _ => self.wake.notify_one(),
        }
    }

    /// From now on a word may come, until it is dropped.
    pub fn wait(self: &Arc<Queue>) -> Wait {
        self.seen().waiting += 1;
        Wait { queue: self.clone() }
    }

    /// Those that may have a job.
    pub fn maybe(&self) -> Vec<u16> {
        self.seen().maybe.keys().copied().collect()
    }

    /// The newest mark of a partition, to be given back with what was found.
    pub fn mark_of(&self, partition: u16) -> Option<u64> {
        self.seen().maybe.get(&partition).copied()
    }

    /// It was looked at, and had none: unless it was marked meanwhile.
    pub fn was_empty(&self, partition: u16, mark: Option<u64>) {
        let mut seen = self.seen();
        if seen.maybe.get(&partition).copied() == mark {
            seen.maybe.remove(&partition);
        }
        drop(seen);
        self.tried.notify_waiters();
    }

    /// The next of those who wait has its turn, if there may still be something.
    pub fn pass_on(&self) {
        let seen = self.seen();
        if !seen.maybe.is_empty() {
            self.wake_one(&seen);
        }
        drop(seen);
        self.tried.notify_waiters();
    }

    /// A scout to another node, unless one is on its way.
    pub fn send_scout(&self, to: NodeId, start: impl FnOnce() -> AbortHandle) {
        let mut seen = self.seen();
        if seen.scouts.get(&to).is_none_or(AbortHandle::is_finished) {
            seen.scouts.insert(to, start());
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }
}

/// Somebody to whom the word goes that there may be a job.
pub(crate) struct Wait {
    queue: Arc<Queue>,
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.queue.seen().waiting -= 1;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut seen = self.queue.seen();
        seen.visitors -= 1;
        if seen.visitors == 0 {
            std::mem::take(&mut seen.scouts).into_values().for_each(|scout| scout.abort());
        }
    }
}

/// A poisoned lock only says that another thread panicked; the value is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
