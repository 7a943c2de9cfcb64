//! Hearing of jobs at other nodes' partitions: as long as somebody waits for a queue, one scout per other node asks there
//! whether something may be ready. It leases nothing: who hears of a job goes and fetches it. Next: `activate.rs`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::node::Node;
use crate::queues::{Queue, QueueId};
use crate::seats::{Peer, Seat};

/// How long one question waits.
const ASK_TIME: Duration = Duration::from_secs(20);
/// After a node that did not answer.
const PAUSE: Duration = Duration::from_millis(500);

pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How other nodes are spoken to: the door brings it, as it knows the wire.
pub trait Peers: Send + Sync + 'static {
    /// Partitions of that node at which the queue may have a job: at once where there are some, else after `wait`.
    fn peek<'a>(&'a self, peer: &'a Peer, queue: &'a QueueId, wait: Duration) -> Later<'a, Result<Vec<u16>, String>>;

    /// It answers.
    fn is_there<'a>(&'a self, peer: &'a Peer) -> Later<'a, bool>;
}

/// Scouts to all nodes that own something. They come back when nobody waits for the queue any more.
pub(crate) fn send(node: &Node, queue: &Arc<Queue>) {
    let Some(peers) = node.inner.peers.get() else { return };
    for peer in node.inner.seats.peers() {
        let (node, peers, on) = (node.clone(), peers.clone(), queue.clone());
        queue.send_scout(peer.id, || tokio::spawn(scout(node, peers, peer, on)).abort_handle());
    }
}

async fn scout(node: Node, peers: Arc<dyn Peers>, peer: Peer, queue: Arc<Queue>) {
    while node.inner.seats.peers().contains(&peer) {
        match peers.peek(&peer, &queue.id, ASK_TIME).await {
            Ok(partitions) => {
                let marked = mark(&node, &peer, &queue, partitions);
                until_tried(&queue, &marked).await;
            }
            Err(reason) => {
                tracing::debug!(peer = &*peer.name, reason, "a node does not say what it has");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// It may have given some away since.
fn mark(node: &Node, peer: &Peer, queue: &Queue, partitions: Vec<u16>) -> Vec<u16> {
    let is_its = |at: &u16| matches!(node.inner.seats.get(*at), Seat::Elsewhere(owner) if owner == *peer);
    let marked: Vec<u16> = partitions.into_iter().filter(is_its).collect();
    marked.iter().for_each(|partition| queue.mark(*partition));
    marked
}

/// Asked again at once it would say the same.
async fn until_tried(queue: &Queue, marked: &[u16]) {
    loop {
        let tried = queue.tried.notified();
        let maybe = queue.maybe();
        if !marked.iter().any(|partition| maybe.contains(partition)) {
            return;
        }
        tried.await;
    }
}

/// For a poll that does not wait.
pub(crate) async fn ask_once(node: &Node, queue: &Arc<Queue>) {
    let Some(peers) = node.inner.peers.get() else { return };
    let mut asked = JoinSet::new();
    for peer in node.inner.seats.peers() {
        let (peers, id) = (peers.clone(), queue.id.clone());
        asked.spawn(async move { (peers.peek(&peer, &id, Duration::ZERO).await, peer) });
    }
    while let Some(answer) = asked.join_next().await {
        if let Ok((Ok(partitions), peer)) = answer {
            mark(node, &peer, queue, partitions);
        }
    }
}
