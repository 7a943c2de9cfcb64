//! Nodes that share the store in memory. The clock that judges their leases is injected. Next: `inbox.rs`.

use std::fmt;
use std::sync::Arc;

use wf_core::{Millis, ids};

use crate::cluster::*;
use crate::memory::{MemoryStore, State};
use crate::store::{Later, StoreError};

/// The store's own clock.
#[derive(Clone)]
pub(super) struct Clock(Arc<dyn Fn() -> Millis + Send + Sync>);

impl Clock {
    pub fn of(clock: impl Fn() -> Millis + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(clock))
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::of(|| 0)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", (self.0)())
    }
}

impl Cluster for MemoryStore {
    fn me(&self) -> NodeId {
        self.me.as_ref().map_or([0; 16], |me| me.id)
    }

    fn join(&self) -> Later<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let me = self.my_node()?;
            let mut state = self.state();
            state.strike_off(|node, _| node.name == me.name);
            state.enter(me);
            Ok(())
        })
    }

    fn renew(&self) -> Later<'_, Result<Members, StoreError>> {
        Box::pin(async move {
            self.reached()?;
            let me = self.my_node()?;
            let mut state = self.state();
            state.enter(me);
            let now = state.now();
            state.strike_off(|_, lease_until| lease_until <= now);
            Ok(state.members())
        })
    }

    fn members(&self) -> Later<'_, Result<Members, StoreError>> {
        Box::pin(async move {
            self.reached()?;
            Ok(self.state().members())
        })
    }

    fn release(&self, partition: u16) -> Later<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let me = self.me();
            if let Some(row) = self.state().partitions.get_mut(&partition)
                && row.owner == Some(me)
            {
                row.owner = None;
            }
            Ok(())
        })
    }

    fn leave(&self) -> Later<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let me = self.me();
            self.state().strike_off(|node, _| node.id == me);
            Ok(())
        })
    }
}

impl MemoryStore {
    fn reached(&self) -> Result<(), StoreError> {
        match self.control().is_cut_off {
            true => Err(StoreError("cut off by a test".to_owned())),
            false => Ok(()),
        }
    }

    fn my_node(&self) -> Result<&Node, StoreError> {
        self.me.as_ref().ok_or_else(|| StoreError("this handle belongs to no node".to_owned()))
    }
}

impl State {
    /// Another run of the same name is another node.
    pub(super) fn next_run(&mut self, name: &str, address: &str) -> Node {
        self.runs += 1;
        Node {
            id: ids::hash16(&[b"node", name.as_bytes(), &self.runs.to_le_bytes()]),
            name: name.to_owned(),
            address: address.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            joined_at: 0,
            lease_left_ms: 0,
        }
    }

    /// The living node that owns it.
    pub(super) fn living_owner(&self, partition: u16) -> Option<&Node> {
        let (node, lease_until) = self.nodes.get(&self.partitions.get(&partition)?.owner?)?;
        (*lease_until > self.now()).then_some(node)
    }

    fn now(&self) -> Millis {
        (self.clock.0)()
    }

    /// Enters a node with a fresh lease, or renews the one that it has.
    fn enter(&mut self, node: &Node) {
        let now = self.now();
        let fresh = || (Node { joined_at: now, ..node.clone() }, now);
        self.nodes.entry(node.id).or_insert_with(fresh).1 = now + self.lease_ms;
    }

    /// What such nodes own is free.
    fn strike_off(&mut self, goes: impl Fn(&Node, Millis) -> bool) {
        self.nodes.retain(|_, (node, lease_until)| !goes(node, *lease_until));
        for row in self.partitions.values_mut() {
            row.owner = row.owner.filter(|owner| self.nodes.contains_key(owner));
        }
    }

    fn members(&self) -> Members {
        let now = self.now();
        let living = self.nodes.values().filter(|(_, lease_until)| *lease_until > now);
        let mut nodes: Vec<Node> =
            living.map(|(node, lease_until)| Node { lease_left_ms: lease_until - now, ..node.clone() }).collect();
        nodes.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        Members { nodes, partitions: self.numbers.iter().map(|partition| self.ownership(partition)).collect(), now }
    }

    fn ownership(&self, partition: u16) -> Ownership {
        let row = self.partitions.get(&partition);
        Ownership {
            partition,
            epoch: row.map_or(0, |row| row.epoch),
            position: row.map_or(0, |row| row.position),
            owner: self.living_owner(partition).map(|owner| owner.id),
        }
    }
}
