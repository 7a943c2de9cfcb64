//! Who should own what: pure, so that every node comes to the same shares from the same list. Each living node gets its
//! fair share; what is free is taken first, and only a surplus that somebody lacks is given away. Next: `supervisor.rs`.

use std::collections::{BTreeMap, BTreeSet};

use wf_store::{Members, NodeId, Ownership};

/// What a node knows when it looks around.
pub struct View<'v> {
    pub me: NodeId,
    pub members: &'v Members,
    /// Partitions that it serves or is opening.
    pub mine: &'v BTreeSet<u16>,
    /// Free so long that whoever should take them does not.
    pub orphans: &'v BTreeSet<u16>,
    pub may_take: bool,
    pub may_give: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub take: Vec<u16>,
    pub give: Vec<u16>,
    /// This node's own by the list that it neither serves nor takes again: others may.
    pub release: Vec<u16>,
}

pub fn plan(view: &View<'_>) -> Plan {
    let shares = Shares::of(view);
    let Some(target) = shares.target(&view.me) else { return Plan::default() };
    let free = free(view);
    let take = if view.may_take { take(view, &shares, &free, target) } else { Vec::new() };
    let is_settled = free.is_empty() && take.is_empty();
    let give = if view.may_give && is_settled { give(view, &shares, target) } else { Vec::new() };
    let is_own = |row: &&Ownership| row.owner == Some(view.me) && free.contains(&row.partition);
    let own = view.members.partitions.iter().filter(is_own).map(|row| row.partition);
    let release = own.filter(|partition| !take.contains(partition)).collect();
    Plan { take, give, release }
}

/// Nobody's, or this node's own that no engine serves.
fn free(view: &View<'_>) -> Vec<u16> {
    let is_free = |owner: &Option<NodeId>| owner.is_none_or(|owner| owner == view.me);
    let rows = view.members.partitions.iter().filter(|row| is_free(&row.owner));
    rows.map(|row| row.partition).filter(|partition| !view.mine.contains(partition)).collect()
}

/// Two nodes that look at the same time should not reach for the same ones.
fn take(view: &View<'_>, shares: &Shares, free: &[u16], target: usize) -> Vec<u16> {
    let room = target.saturating_sub(view.mine.len());
    let begin = free.len() * shares.place(&view.me) / shares.owned.len().max(1);
    let rotated = free.iter().cycle().skip(begin).take(free.len());
    let mut take: Vec<u16> = rotated.copied().take(room).collect();
    let orphans = free.iter().filter(|partition| view.orphans.contains(partition) && !take.contains(partition));
    let orphans: Vec<u16> = orphans.copied().collect();
    take.extend(orphans);
    take
}

/// Only where another one has fewer than everybody could have.
fn give(view: &View<'_>, shares: &Shares, target: usize) -> Vec<u16> {
    let is_wanting = shares.owned.iter().any(|(id, owned)| *id != view.me && *owned < shares.floor);
    let surplus = if is_wanting { view.mine.len().saturating_sub(target) } else { 0 };
    view.mine.iter().rev().take(surplus).copied().collect()
}

struct Shares {
    floor: usize,
    /// So many nodes may have one more.
    rest: usize,
    owned: BTreeMap<NodeId, usize>,
}

impl Shares {
    fn of(view: &View<'_>) -> Shares {
        let mut owned: BTreeMap<NodeId, usize> = view.members.nodes.iter().map(|node| (node.id, 0)).collect();
        for owner in view.members.partitions.iter().filter_map(|row| row.owner) {
            if let Some(count) = owned.get_mut(&owner) {
                *count += 1;
            }
        }
        if let Some(count) = owned.get_mut(&view.me) {
            *count = view.mine.len();
        }
        let (all, nodes) = (view.members.partitions.len(), owned.len().max(1));
        Shares { floor: all / nodes, rest: all % nodes, owned }
    }

    /// Who has most keeps the odd ones: the fewest partitions move.
    fn target(&self, id: &NodeId) -> Option<usize> {
        let owned = self.owned.get(id)?;
        let before = |other: &(&NodeId, &usize)| (std::cmp::Reverse(other.1), other.0) < (std::cmp::Reverse(owned), id);
        let place = self.owned.iter().filter(before).count();
        Some(self.floor + usize::from(place < self.rest))
    }

    /// Among all nodes.
    fn place(&self, id: &NodeId) -> usize {
        self.owned.keys().take_while(|other| *other < id).count()
    }
}
