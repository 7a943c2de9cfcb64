//! Looking for jobs over all partitions: one after the other, this node's own first, each poll beginning elsewhere. Whoever
//! looks leases from one partition only, without waiting there: the wait is here, for the word that one may have a job.
//! It leases nothing itself. Next: `queues.rs`, then back to the door, which submits at the partition that is named.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use crate::node::Node;
use crate::queues::{Queue, QueueId, Visit};
use crate::scouts;
use crate::seats::Seat;

/// Who was told of a job elsewhere has this long to fetch it, before the next one is told as well.
const FETCH_TIME: Duration = Duration::from_millis(100);

/// One poll on its way through the partitions.
pub struct Search {
    node: Node,
    visit: Visit,
    home: Option<u16>,
    until: Instant,
    has_asked: bool,
    /// What is looked at, and its mark before.
    at: Option<(u16, Option<u64>)>,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Try to lease there, without waiting.
    Look(u16),
    /// There is nothing, and the time is over.
    Over,
}

impl Node {
    /// `home`: looked at in any case, as the request's record may stand there.
    pub fn search(&self, queue: QueueId, home: Option<u16>, wait: Duration) -> Search {
        let visit = self.inner.queues.visit(queue, || self.here());
        Search { node: self.clone(), visit, home, until: Instant::now() + wait, has_asked: false, at: None }
    }

    /// Another node asks whether a partition of this one may have a job; answered when one may, or when the time is over.
    /// Nothing is leased.
    pub async fn peek(&self, queue: QueueId, wait: Duration) -> Vec<u16> {
        let until = Instant::now() + wait;
        let visit = self.inner.queues.visit(queue, || self.here());
        loop {
            let woken = visit.queue.peeked.notified();
            let maybe: Vec<u16> = visit.queue.maybe().into_iter().filter(|at| self.is_here(*at)).collect();
            if !maybe.is_empty() {
                pass_on_later(visit.queue.clone());
                return maybe;
            }
            if tokio::time::timeout_at(until, woken).await.is_err() {
                return Vec::new();
            }
        }
    }
}

/// The node that was told may be gone by now.
fn pass_on_later(queue: Arc<Queue>) {
    tokio::spawn(async move {
        tokio::time::sleep(FETCH_TIME).await;
        queue.pass_on();
    });
}

impl Search {
    pub async fn next(&mut self) -> Step {
        if let Some(home) = self.home.take() {
            return self.look(home);
        }
        loop {
            let queue = self.visit.queue.clone();
            let _wait = queue.wait();
            let woken = queue.wake.notified();
            if let Some(partition) = self.pick() {
                return self.look(partition);
            }
            if self.until <= Instant::now() {
                if self.has_asked {
                    return Step::Over;
                }
                self.has_asked = true;
                scouts::ask_once(&self.node, &queue).await;
                continue;
            }
            self.has_asked = true;
            scouts::send(&self.node, &queue);
            // At the end of its time it looks once more.
            let _ = tokio::time::timeout_at(self.until, woken).await;
        }
    }

    /// Nothing was leased there.
    pub fn found_none(&mut self) {
        if let Some((partition, mark)) = self.at.take() {
            self.visit.queue.was_empty(partition, mark);
        }
    }

    fn look(&mut self, partition: u16) -> Step {
        self.at = Some((partition, self.visit.queue.mark_of(partition)));
        Step::Look(partition)
    }

    fn pick(&self) -> Option<u16> {
        let maybe = self.visit.queue.maybe();
        let inner = &self.node.inner;
        let begin = match maybe.len() {
            0 => return None,
            len => inner.rotation.fetch_add(1, Ordering::Relaxed) % len,
        };
        let rotated = || maybe[begin..].iter().chain(&maybe[..begin]).copied();
        rotated().find(|partition| self.node.is_here(*partition)).or_else(|| rotated().next())
    }
}

impl Drop for Search {
    /// Also where it was dropped on its way: whoever was to be woken in its place is.
    fn drop(&mut self) {
        self.visit.queue.pass_on();
    }
}

impl Node {
    fn here(&self) -> Vec<u16> {
        let seats = self.inner.seats.all().into_iter();
        seats.filter(|(_, seat)| matches!(seat, Seat::Here(_))).map(|(partition, _)| partition).collect()
    }

    pub(crate) fn is_here(&self, partition: u16) -> bool {
        matches!(self.inner.seats.get(partition), Seat::Here(_))
    }
}
