//! How a node stands, for health checks and for people. It changes nothing.

use tokio::time::Instant;
use wf_core::Millis;
use wf_store::{Members, Node as Member, Ownership, StoreError};

use crate::node::Node;
use crate::queues::lock;
use crate::seats::{Peer, Seat};

/// What the supervisor knows of this node's lease.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    /// The end of the lease, as this node counts; it may be over.
    pub until: Option<Instant>,
    /// Further from the store's clock than allowed.
    pub skew_ms: Option<Millis>,
    /// Other nodes in the list.
    pub others: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Requests are taken: all that this node owns is open.
    pub is_ready: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Of several partitions, or of several nodes.
    pub partitions: Vec<Standing>,
    /// This node owns nothing, as these own all: it is ready if it can reach them.
    pub relies_on: Vec<Peer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub partition: u16,
    pub state: String,
}

impl Node {
    pub fn readiness(&self) -> Readiness {
        if let Some(engine) = &self.inner.alone {
            let is_ready = engine.is_ready();
            let reason = (!is_ready).then(|| "the engine does not take requests now".to_owned());
            return Readiness { is_ready, reason, partitions: Vec::new(), relies_on: Vec::new() };
        }
        let seats = self.inner.seats.all();
        let reason = self.outsider().or_else(|| unopened(&seats));
        let is_serving = |(_, seat): &(u16, Seat)| !matches!(seat, Seat::Elsewhere(_) | Seat::Free);
        let relies_on = if seats.iter().any(is_serving) { Vec::new() } else { self.inner.seats.peers() };
        let reason = reason.or_else(|| {
            let has_nobody = relies_on.is_empty() && !seats.iter().any(is_serving);
            has_nobody.then(|| "nobody owns a partition".to_owned())
        });
        let partitions =
            seats.iter().map(|(partition, seat)| Standing { partition: *partition, state: seat.describe() });
        Readiness { is_ready: reason.is_none(), reason, partitions: partitions.collect(), relies_on }
    }

    /// Why this node is not in the list of nodes.
    fn outsider(&self) -> Option<String> {
        self.inner.store.cluster()?;
        let membership = lock(&self.inner.membership);
        if let Some(skew_ms) = membership.skew_ms {
            return Some(format!("this machine's clock is {skew_ms} ms ahead of the store's: it takes no partitions"));
        }
        let is_member = membership.until.is_some_and(|until| Instant::now() < until);
        (!is_member).then(|| "this node is not in the list of nodes: its lease cannot be renewed".to_owned())
    }

    /// Other nodes are in the list: they could take what this one has.
    pub(crate) fn has_company(&self) -> bool {
        lock(&self.inner.membership).others > 0
    }

    /// All nodes and partitions. A node that shares its store with nobody is made up: without id and address.
    pub async fn members(&self) -> Result<Members, StoreError> {
        if let Some(cluster) = self.inner.store.cluster() {
            return cluster.members().await;
        }
        let me = [0; 16];
        let mut partitions = Vec::new();
        for partition in self.inner.partitions.iter() {
            let mut ledger = self.inner.store.ledger(partition).await?;
            let standing = tokio::task::spawn_blocking(move || ledger.standing()).await;
            let fence = standing.map_err(|error| StoreError(error.to_string()))??.fence;
            partitions.push(Ownership { partition, epoch: fence.epoch, position: fence.new_position, owner: Some(me) });
        }
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let nodes = vec![Member { id: me, name: "this".to_owned(), version, ..Member::default() }];
        Ok(Members { nodes, partitions, now: self.now() })
    }

    /// Which of the nodes this one is.
    pub fn me(&self) -> [u8; 16] {
        self.inner.store.cluster().map_or([0; 16], |cluster| cluster.me())
    }
}

fn unopened(seats: &[(u16, Seat)]) -> Option<String> {
    let is_unopened = |seat: &Seat| match seat {
        Seat::Here(engine) => !engine.is_ready(),
        Seat::Opening => true,
        Seat::Leaving | Seat::Elsewhere(_) | Seat::Free => false,
    };
    let (partition, seat) = seats.iter().find(|(_, seat)| is_unopened(seat))?;
    Some(format!("partition {partition}: {}", seat.describe()))
}
