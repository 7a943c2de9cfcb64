//! Nodes that share a store, and which partition belongs to whom. A node lives as long as its lease; the database's
//! clock alone judges that. Ownership is only a courtesy: what makes stealing safe is the epoch in the fence.
//! It moves nothing by itself. Next: `wf_cluster`, which takes, hands over and forwards.

use crate::store::{Later, StoreError};

/// One run of a node: another run of the same name is another one.
pub type NodeId = [u8; 16];

/// What a node's store handle does for it. Which node that is, was said when the handle was opened.
pub trait Cluster: Send + Sync {
    fn me(&self) -> NodeId;

    /// Enters the list of nodes with a fresh lease. An earlier run of the same name is struck off at once, and its
    /// partitions are free: that process is gone, or the epoch fences it.
    fn join(&self) -> Later<'_, Result<(), StoreError>>;

    /// Renews this node's lease, strikes off nodes whose lease ran out, and tells how things stand. A node that was itself
    /// struck off enters the list again, without partitions.
    fn renew(&self) -> Later<'_, Result<Members, StoreError>>;

    /// How things stand, without renewing anything.
    fn members(&self) -> Later<'_, Result<Members, StoreError>>;

    /// Gives a partition up whose engine has stopped, so that another node takes it at once. One of another owner is
    /// left alone.
    fn release(&self, partition: u16) -> Later<'_, Result<(), StoreError>>;

    /// Leaves the list; what it still owns is free.
    fn leave(&self) -> Later<'_, Result<(), StoreError>>;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Living ones, by name.
    pub nodes: Vec<Node>,
    /// All of the store's, by number.
    pub partitions: Vec<Ownership>,
    /// The database's clock, in milliseconds since 1970.
    pub now: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub id: NodeId,
    pub name: String,
    /// Where other nodes reach it: `http://host:port`.
    pub address: String,
    pub version: String,
    pub joined_at: i64,
    pub lease_left_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    pub partition: u16,
    pub epoch: u64,
    pub position: u64,
    /// A living node; `None`: free.
    pub owner: Option<NodeId>,
}

impl Members {
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == *id)
    }

    pub fn owner(&self, partition: u16) -> Option<&Node> {
        let owner = self.partitions.iter().find(|row| row.partition == partition)?.owner?;
        self.node(&owner)
    }
}

/// What another node has done with inboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A command for this partition waits in its inbox.
    Sent(u16),
    /// Somebody took commands out of an inbox.
    Taken,
}
