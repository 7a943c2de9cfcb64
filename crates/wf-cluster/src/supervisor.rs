//! Looks around: renews the lease, sees who owns what, takes this node's share, lets go of what is lost or too much.
//! Engines open and stop in tasks of their own: one that hangs keeps no other waiting. What is safe is the store's fence;
//! here it is only made quick and fair. Next: `ownership.rs`, the shares.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use wf_core::Millis;
use wf_engine::{Engine, EngineError};
use wf_store::{Cluster, Heard, Members, NodeId, StoreError};

use crate::node::Node;
use crate::ownership::{self, View};
use crate::queues::lock;
use crate::seats::{Peer, Seat};

/// Looks at a free partition before somebody else than the one whose turn it is takes it.
const ORPHAN_LOOKS: u32 = 8;
/// Who got back what it gave away, because nobody took it, keeps it so many looks.
const KEPT_LOOKS: u32 = 240;
/// Who stops does not wait for a store that is gone.
const LEAVE_TIME: Duration = Duration::from_secs(2);

pub(crate) enum Order {
    /// Gives everything away, and goes on forwarding.
    HandOver(oneshot::Sender<()>),
    Stop(oneshot::Sender<()>),
}

/// A node's eyes. One per node; dropped, the node serves on what it has, but never looks again.
pub struct Supervisor {
    node: Node,
    orders: mpsc::Receiver<Order>,
    opening: JoinSet<(u16, Result<Engine, EngineError>)>,
    stopping: JoinSet<(u16, bool)>,
    next_renewal: Instant,
    has_joined: bool,
    is_leaving: bool,
    is_skewed: bool,
    /// What it takes from now on, it takes from others: that is worth a line each.
    has_begun: bool,
    /// Why the last look failed.
    unseen: Option<String>,
    /// For how many looks in a row a partition was free.
    free: BTreeMap<u16, u32>,
    /// Looks during which nothing is given away.
    keeps: u32,
}

impl Supervisor {
    pub(crate) fn new(node: Node, orders: mpsc::Receiver<Order>) -> Supervisor {
        Supervisor {
            node,
            orders,
            opening: JoinSet::new(),
            stopping: JoinSet::new(),
            next_renewal: Instant::now(),
            has_joined: false,
            is_leaving: false,
            is_skewed: false,
            has_begun: false,
            unseen: None,
            free: BTreeMap::new(),
            keeps: 0,
        }
    }

    /// Until it is told to stop, or the node is gone.
    pub async fn run(mut self) {
        self.has_begun = true;
        let every = Duration::from_millis(self.node.inner.options.look_ms.max(1));
        let mut next = Instant::now() + every;
        let (store, hub) = (self.node.inner.store.clone(), self.node.inner.options.engine.hub.clone());
        loop {
            tokio::select! {
                heard = store.heard() => match heard {
                    Heard::Sent(partition) => hub.tell_sent(partition),
                    Heard::Taken => hub.tell_taken(),
                },
                order = self.orders.recv() => match order {
                    None => return,
                    Some(Order::HandOver(done)) => {
                        self.hand_over().await;
                        let _ = done.send(());
                    }
                    Some(Order::Stop(done)) => {
                        self.hand_over().await;
                        let _ = done.send(());
                        return;
                    }
                },
                Some(opened) = self.opening.join_next() => self.opened(opened),
                Some(stopped) = self.stopping.join_next() => self.stopped(stopped),
                () = tokio::time::sleep_until(next) => {
                    self.look().await;
                    next = Instant::now() + every;
                }
            }
        }
    }

    /// One look around; what is begun is not waited for.
    pub async fn look(&mut self) {
        let inner = self.node.inner.clone();
        let Some(cluster) = inner.store.cluster() else { return };
        let asked = self.wall();
        let seen = tokio::time::timeout(self.lease(), self.members(cluster)).await;
        match seen.unwrap_or_else(|_| Err(StoreError("the store does not answer".to_owned()))) {
            Ok(members) => {
                if self.unseen.take().is_some() {
                    tracing::info!("who owns which partition is seen again");
                }
                self.follow(cluster.me(), &members, asked);
            }
            Err(error) => {
                self.tell_unseen(error.to_string());
                if self.judge_lease() {
                    self.lose_all();
                }
            }
        }
    }

    /// Each reason once: there are four looks a second.
    fn tell_unseen(&mut self, error: String) {
        if self.unseen.as_ref() != Some(&error) {
            tracing::warn!(error, "who owns which partition cannot be seen");
            self.unseen = Some(error);
        }
    }

    /// Waits for the engines that are opening or stopping.
    pub async fn settle(&mut self) {
        while let Some(opened) = self.opening.join_next().await {
            self.opened(opened);
        }
        while let Some(stopped) = self.stopping.join_next().await {
            self.stopped(stopped);
        }
    }

    /// Gives everything away at once, and leaves the list. It still sees where others are.
    pub async fn hand_over(&mut self) {
        self.is_leaving = true;
        self.settle().await;
        for (partition, engine) in self.node.engines() {
            self.give(partition, engine);
        }
        self.settle().await;
        let inner = self.node.inner.clone();
        if let Some(cluster) = inner.store.cluster()
            && self.has_joined
        {
            let left = tokio::time::timeout(LEAVE_TIME, cluster.leave()).await;
            if let Err(error) = left.unwrap_or_else(|_| Err(StoreError("the store does not answer".to_owned()))) {
                tracing::warn!(%error, "failed to leave the list of nodes: the lease runs out by itself");
            }
            self.has_joined = false;
            self.judge_lease();
        }
        self.look().await;
    }

    async fn members(&mut self, cluster: &dyn Cluster) -> Result<Members, StoreError> {
        if self.is_leaving || Instant::now() < self.next_renewal {
            return cluster.members().await;
        }
        if !self.has_joined {
            let asked = self.wall();
            let members = cluster.members().await?;
            // A clock that is wrong makes no member: the others must not leave partitions to it.
            if self.check_clock(&members, asked) {
                return Ok(members);
            }
            cluster.join().await?;
            self.has_joined = true;
        }
        let begun = Instant::now();
        let members = cluster.renew().await?;
        self.next_renewal = begun + Duration::from_millis(self.node.inner.options.renew_ms);
        lock(&self.node.inner.membership).until = Some(begun + self.lease());
        Ok(members)
    }

    fn lease(&self) -> Duration {
        Duration::from_millis(self.node.inner.options.lease_ms)
    }

    /// Whether it has just run out, as far as this node knows.
    fn judge_lease(&mut self) -> bool {
        let mut membership = lock(&self.node.inner.membership);
        let is_over = !self.has_joined || membership.until.is_some_and(|until| until <= Instant::now());
        is_over && membership.until.take().is_some()
    }

    /// Others have taken over by now. Every answer would be fenced, and whoever asks here would wait for that.
    fn lose_all(&mut self) {
        tracing::warn!("this node's lease has run out and cannot be renewed: it serves nothing until it can");
        for (partition, engine) in self.node.engines() {
            self.lose(partition, engine, None);
        }
    }

    fn wall(&self) -> Millis {
        (self.node.inner.options.wall.0)()
    }

    /// Whether the machine's clock is too far from the store's, which was asked at this time.
    fn check_clock(&mut self, members: &Members, asked: Millis) -> bool {
        let skew_ms = skew(asked, self.wall(), members.now);
        let is_skewed = skew_ms.unsigned_abs() > self.node.inner.options.skew_ms_max;
        if is_skewed != self.is_skewed {
            match is_skewed {
                true => tracing::error!(skew_ms, "this machine's clock is not the store's: it takes no partitions"),
                false => tracing::info!(skew_ms, "the clock is right again"),
            }
        }
        self.is_skewed = is_skewed;
        lock(&self.node.inner.membership).skew_ms = is_skewed.then_some(skew_ms);
        is_skewed
    }

    fn follow(&mut self, me: NodeId, members: &Members, asked: Millis) {
        self.check_clock(members, asked);
        if self.has_joined && members.node(&me).is_none() {
            tracing::warn!(
                "this node was struck off, as its lease ran out or another one came by its name; it enters the list again"
            );
            self.next_renewal = Instant::now();
        }
        lock(&self.node.inner.membership).others = members.nodes.iter().filter(|node| node.id != me).count();
        for row in &members.partitions {
            let owner = row.owner.filter(|owner| *owner != me);
            let peer = owner.and_then(|owner| members.node(&owner)).map(Peer::of);
            self.correct(row.partition, row.owner == Some(me), peer);
        }
        self.count_free(members);
        let plan = self.plan(me, members);
        plan.take.into_iter().for_each(|partition| self.take(partition));
        plan.release.into_iter().for_each(|partition| self.release(partition));
        for (partition, engine) in self.node.engines() {
            if plan.give.contains(&partition) {
                tracing::info!(partition, "handing the partition over: another node has too few");
                self.give(partition, engine);
            }
        }
    }

    /// What the list says against what is served here.
    fn correct(&mut self, partition: u16, is_mine: bool, owner: Option<Peer>) {
        let seat = self.node.inner.seats.get(partition);
        match (seat, owner) {
            (Seat::Here(engine), None) if is_mine && !engine.has_ended() => (),
            (Seat::Here(engine), owner) => self.lose(partition, engine, owner),
            (Seat::Opening | Seat::Leaving, _) => (),
            (Seat::Free | Seat::Elsewhere(_), Some(owner)) => self.see(partition, Seat::Elsewhere(owner)),
            (Seat::Free | Seat::Elsewhere(_), None) => self.see(partition, Seat::Free),
        }
    }

    fn see(&self, partition: u16, seat: Seat) {
        let old = self.node.inner.seats.get(partition);
        self.node.inner.seats.set(partition, seat.clone());
        if matches!((&old, &seat), (Seat::Elsewhere(old), Seat::Elsewhere(new)) if old == new) {
            return;
        }
        if matches!(seat, Seat::Elsewhere(_)) {
            self.node.inner.queues.stir();
        }
    }

    /// Its engine ends, and nobody waits for that: whatever it still tries is fenced.
    fn lose(&mut self, partition: u16, engine: Engine, owner: Option<Peer>) {
        let to = owner.as_ref().map_or("nobody", |peer| &*peer.name);
        tracing::warn!(partition, to, "the partition is lost");
        let is_elsewhere = owner.is_some();
        self.node.unseat(partition, owner.map_or(Seat::Leaving, Seat::Elsewhere));
        self.stopping.spawn(async move {
            engine.shutdown().await;
            // Another seat may be there by now; one that waits for this end is free then.
            (partition, !is_elsewhere)
        });
    }

    fn give(&mut self, partition: u16, engine: Engine) {
        self.node.unseat(partition, Seat::Leaving);
        let node = self.node.clone();
        self.stopping.spawn(async move {
            engine.shutdown().await;
            release(&node, partition).await;
            (partition, true)
        });
    }

    /// What it lost while it could not see the store, and has no room for any more.
    fn release(&mut self, partition: u16) {
        tracing::info!(partition, "letting go of the partition: this node owns it and does not serve it");
        self.node.inner.seats.set(partition, Seat::Leaving);
        let node = self.node.clone();
        self.stopping.spawn(async move {
            release(&node, partition).await;
            (partition, true)
        });
    }

    fn take(&mut self, partition: u16) {
        if self.is_orphan(partition) {
            self.keeps = KEPT_LOOKS;
        }
        self.node.inner.seats.set(partition, Seat::Opening);
        let node = self.node.clone();
        self.opening.spawn(async move {
            let opened = node.open_engine(partition).await;
            if let Err(error) = &opened {
                tracing::info!(partition, %error, "the partition was not taken");
                // It may have been taken, and its engine not have started: somebody else may be luckier.
                release(&node, partition).await;
            }
            (partition, opened)
        });
    }

    fn opened(&mut self, opened: Result<(u16, Result<Engine, EngineError>), tokio::task::JoinError>) {
        match opened {
            Ok((partition, Ok(engine))) if self.is_leaving => self.give(partition, engine),
            Ok((partition, Ok(engine))) => {
                match self.has_begun {
                    true => tracing::info!(partition, "serving the partition"),
                    false => tracing::debug!(partition, "serving the partition"),
                }
                self.node.seat(partition, engine);
            }
            Ok((partition, Err(_))) => self.node.inner.seats.set(partition, Seat::Free),
            Err(error) => tracing::error!(%error, "opening a partition panicked"),
        }
    }

    fn stopped(&mut self, stopped: Result<(u16, bool), tokio::task::JoinError>) {
        match stopped {
            Ok((partition, true)) => self.node.inner.seats.set(partition, Seat::Free),
            Ok((_, false)) => (),
            Err(error) => tracing::error!(%error, "stopping an engine panicked"),
        }
    }

    fn count_free(&mut self, members: &Members) {
        let free: BTreeSet<u16> =
            members.partitions.iter().filter(|row| row.owner.is_none()).map(|row| row.partition).collect();
        self.free.retain(|partition, _| free.contains(partition));
        free.into_iter().for_each(|partition| *self.free.entry(partition).or_default() += 1);
        self.keeps = self.keeps.saturating_sub(1);
    }

    fn is_orphan(&self, partition: u16) -> bool {
        self.free.get(&partition).is_some_and(|looks| *looks > ORPHAN_LOOKS)
    }

    fn plan(&self, me: NodeId, members: &Members) -> ownership::Plan {
        let is_mine = |seat: &Seat| matches!(seat, Seat::Here(_) | Seat::Opening);
        let seats = self.node.inner.seats.all();
        let mine: BTreeSet<u16> =
            seats.iter().filter(|(_, seat)| is_mine(seat)).map(|(partition, _)| *partition).collect();
        let orphans: BTreeSet<u16> = self.free.keys().copied().filter(|partition| self.is_orphan(*partition)).collect();
        let view = View {
            me,
            members,
            mine: &mine,
            orphans: &orphans,
            may_take: !self.is_leaving && !self.is_skewed,
            may_give: !self.is_leaving && self.keeps == 0,
        };
        let mut plan = ownership::plan(&view);
        // One whose engine is still stopping is taken when it has stopped.
        let has_stopped = |partition: &u16| matches!(self.node.inner.seats.get(*partition), Seat::Free);
        plan.take.retain(has_stopped);
        plan.release.retain(has_stopped);
        plan
    }
}

async fn release(node: &Node, partition: u16) {
    let Some(cluster) = node.inner.store.cluster() else { return };
    let released = tokio::time::timeout(LEAVE_TIME, cluster.release(partition)).await;
    if let Err(error) = released.unwrap_or_else(|_| Err(StoreError("the store does not answer".to_owned()))) {
        tracing::warn!(partition, %error, "failed to release the partition: it is free when the lease has run out");
    }
}

/// How far the machine's clock is ahead of the store's at least. A node that was stopped between its question and its look
/// at the answer has heard an old time, and its clock is right all the same.
fn skew(asked: Millis, heard: Millis, store: Millis) -> Millis {
    match store {
        _ if store < asked => asked.saturating_sub(store),
        _ if store > heard => heard.saturating_sub(store),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::skew;

    #[test]
    fn an_answer_that_took_its_time_is_no_skew() {
        assert_eq!((skew(1_000, 1_005, 1_003), skew(1_000, 9_000, 1_003), skew(1_000, 9_000, 9_000)), (0, 0, 0));
        assert_eq!((skew(1_000, 1_005, 400), skew(1_000, 1_005, 3_000)), (600, -1_995));
    }
}
