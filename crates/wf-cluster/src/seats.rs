//! Who serves which partition, as this node knows it: read by every request, written by the supervisor alone.
//! It decides nothing. Next: `supervisor.rs`, which fills the seats.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;
use wf_core::Partitions;
use wf_engine::Engine;
use wf_store::{Node as Member, NodeId};

/// One partition's place at this node.
#[derive(Clone)]
pub enum Seat {
    Here(Engine),
    /// Taken, or about to be: its engine is not ready yet.
    Opening,
    /// Its engine is stopping; somebody else takes it then.
    Leaving,
    Elsewhere(Peer),
    /// Nobody's.
    Free,
}

/// Another node, as requests reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub id: NodeId,
    pub name: Arc<str>,
    pub address: Arc<str>,
}

impl Peer {
    pub fn of(member: &Member) -> Peer {
        Peer { id: member.id, name: member.name.as_str().into(), address: member.address.as_str().into() }
    }
}

pub(crate) struct Seats {
    numbers: Partitions,
    /// In the order of the partitions.
    all: RwLock<Vec<Seat>>,
    changes: watch::Sender<u64>,
}

impl Seats {
    pub fn new(numbers: Partitions) -> Seats {
        let all = RwLock::new(vec![Seat::Free; usize::from(numbers.count())]);
        Seats { numbers, all, changes: watch::Sender::new(0) }
    }

    pub fn get(&self, partition: u16) -> Seat {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        self.numbers.index(partition).and_then(|at| all.get(at)).cloned().unwrap_or(Seat::Free)
    }

    pub fn all(&self) -> Vec<(u16, Seat)> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        self.numbers.iter().zip(all.iter().cloned()).collect()
    }

    pub fn which(&self, wanted: impl Fn(&Seat) -> bool) -> Vec<u16> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let found = self.numbers.iter().zip(all.iter()).filter(|(_, seat)| wanted(seat));
        found.map(|(partition, _)| partition).collect()
    }

    /// Tells those who wait only where something is different for them.
    pub fn set(&self, partition: u16, seat: Seat) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        let Some(old) = self.numbers.index(partition).and_then(|at| all.get_mut(at)) else { return };
        let is_same = old.is_as(&seat);
        *old = seat;
        drop(all);
        if !is_same {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    /// The first `Some` of `look`, which is asked again after every change.
    pub async fn wait<T>(&self, partition: u16, mut look: impl FnMut(Seat) -> Option<T>) -> T {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(found) = look(self.get(partition)) {
                return found;
            }
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
    }

    pub fn engines(&self) -> Vec<(u16, Engine)> {
        let here = |(partition, seat)| match seat {
            Seat::Here(engine) => Some((partition, engine)),
            _ => None,
        };
        self.all().into_iter().filter_map(here).collect()
    }

    /// Other nodes that own something, each once.
    pub fn peers(&self) -> Vec<Peer> {
        let mut peers: Vec<Peer> = Vec::new();
        for (_, seat) in self.all() {
            if let Seat::Elsewhere(peer) = seat
                && !peers.contains(&peer)
            {
                peers.push(peer);
            }
        }
        peers
    }
}

impl Seat {
    /// The same to whoever waits. Two engines are never taken for one.
    fn is_as(&self, other: &Seat) -> bool {
        match (self, other) {
            (Seat::Opening, Seat::Opening) | (Seat::Leaving, Seat::Leaving) | (Seat::Free, Seat::Free) => true,
            (Seat::Elsewhere(one), Seat::Elsewhere(other)) => one == other,
            _ => false,
        }
    }

    /// For people.
    pub fn describe(&self) -> String {
        match self {
            Seat::Here(engine) if engine.is_ready() => "open".to_owned(),
            Seat::Here(_) => "its last commit failed".to_owned(),
            Seat::Opening => "opening".to_owned(),
            Seat::Leaving => "being handed over".to_owned(),
            Seat::Elsewhere(peer) => format!("owned by {}", peer.name),
            Seat::Free => "owned by nobody".to_owned(),
        }
    }
}
