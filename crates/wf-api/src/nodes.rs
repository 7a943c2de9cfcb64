//! The nodes that share a store, and who owns which partition. It knows no engine.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wf_store::{Members, Node, NodeId, Ownership};

use crate::time::Instant;

#[derive(Debug, Serialize, ToSchema)]
pub struct NodesOut {
    /// Living ones, by name.
    pub nodes: Vec<NodeOut>,
    /// All of the store's, by number.
    pub partitions: Vec<PartitionOut>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeOut {
    /// One run of the node.
    pub id: String,
    pub name: String,
    /// Where the other nodes reach it.
    pub address: String,
    pub version: String,
    /// `null` where no other node could share the store.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub joined_at: Option<Instant>,
    #[schema(required)]
    pub lease_left_ms: Option<i64>,
    /// The partitions that it owns.
    pub partitions: Vec<u16>,
    /// This is the node that answers.
    pub is_self: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartitionOut {
    pub partition: u16,
    /// How often it was taken.
    pub epoch: String,
    /// The last committed command.
    pub position: String,
    /// The owner's name; `null`: nobody's.
    #[schema(required)]
    pub owner: Option<String>,
    /// Commands of other partitions that wait for it; counted up to 100.
    pub inbox: usize,
}

/// `inboxes`: rows that wait, in the order of the partitions.
pub fn nodes_of(members: &Members, me: &NodeId, inboxes: &[usize]) -> NodesOut {
    let partitions = members.partitions.iter().zip(inboxes);
    NodesOut {
        nodes: members.nodes.iter().map(|node| node_of(node, members, me)).collect(),
        partitions: partitions.map(|(row, inbox)| partition_of(row, members, *inbox)).collect(),
    }
}

/// Of several databases: a node is in the list of each, and stands here once.
pub fn merged(all: Vec<NodesOut>) -> NodesOut {
    let mut merged = NodesOut { nodes: Vec::new(), partitions: Vec::new() };
    for of_one in all {
        merged.partitions.extend(of_one.partitions);
        for node in of_one.nodes {
            match merged.nodes.iter_mut().find(|known| known.name == node.name && known.address == node.address) {
                None => merged.nodes.push(node),
                Some(known) => {
                    known.partitions.extend(node.partitions);
                    known.lease_left_ms = known.lease_left_ms.min(node.lease_left_ms);
                }
            }
        }
    }
    merged.nodes.sort_by(|a, b| a.name.cmp(&b.name));
    merged
}

fn node_of(node: &Node, members: &Members, me: &NodeId) -> NodeOut {
    let is_shared = node.id != NodeId::default();
    let owned = members.partitions.iter().filter(|row| row.owner == Some(node.id));
    NodeOut {
        id: wf_core::ids::hex(&node.id).to_string(),
        name: node.name.clone(),
        address: node.address.clone(),
        version: node.version.clone(),
        joined_at: is_shared.then_some(Instant(node.joined_at)),
        lease_left_ms: is_shared.then_some(node.lease_left_ms),
        partitions: owned.map(|row| row.partition).collect(),
        is_self: node.id == *me,
    }
}

fn partition_of(row: &Ownership, members: &Members, inbox: usize) -> PartitionOut {
    PartitionOut {
        partition: row.partition,
        epoch: row.epoch.to_string(),
        position: row.position.to_string(),
        owner: members.owner(row.partition).map(|node| node.name.clone()),
        inbox,
    }
}

/// What one node asks of another: may a partition of yours have a job of this queue? Not part of the public interface.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Peek {
    pub tenant: String,
    pub job_type: String,
    pub wait_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Peeked {
    pub partitions: Vec<u16>,
}
