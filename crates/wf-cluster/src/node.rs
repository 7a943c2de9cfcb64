//! What doors talk to instead of an engine: it finds the partition's engine, or says which node has it. With one partition
//! and one node there is nothing to find, and nothing is paid for it. Next: `route.rs`, `seats.rs`; `supervisor.rs`, which
//! decides who owns what.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use wf_core::{Millis, Partitions};
use wf_engine::{Answered, ClockMode, Engine, EngineError, OnReady, Refusal, Request, Time};
use wf_store::{RecordId, Store, StoreError};

use crate::queues::Queues;
use crate::route::{self, Route};
use crate::scouts::Peers;
use crate::seats::{Peer, Seat, Seats};
use crate::status::Membership;
use crate::supervisor::{Order, Supervisor};

/// How long `open` waits for the engines of its first share; those that take longer become ready later.
const OPEN_TIME: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Options {
    /// Of every engine; `partition` and `ready` are set here.
    pub engine: wf_engine::Options,
    /// Between two looks at who is there: 250 ms.
    pub look_ms: u64,
    /// The lease of a node, as the store's handle was told: 6 s.
    pub lease_ms: u64,
    /// After this part of it the lease is renewed: 2 s.
    pub renew_ms: u64,
    /// How long a request waits for a partition that nobody owns: 3 s.
    pub owner_wait_ms: u64,
    /// A clock that is further from the store's takes no partitions: 1 s.
    pub skew_ms_max: u64,
    /// The machine's clock, which is held against the store's.
    pub wall: Time,
}

impl Options {
    pub fn new(engine: wf_engine::Options) -> Options {
        Options {
            engine,
            look_ms: 250,
            lease_ms: 6_000,
            renew_ms: 2_000,
            owner_wait_ms: 3_000,
            skew_ms_max: 1_000,
            wall: Time(Arc::new(system_now)),
        }
    }
}

fn fresh_secret(engine: &wf_engine::Options) -> [u8; 32] {
    let mut secret = [0; 32];
    secret.chunks_exact_mut(16).for_each(|half| half.copy_from_slice(&(engine.chance.0)()));
    secret
}

fn system_now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as Millis)
}

#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("failed to join the other nodes: {0}")]
    Store(#[from] StoreError),
}

/// A running node. Cheap to clone.
#[derive(Clone)]
pub struct Node {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub store: Arc<dyn Store>,
    pub partitions: Partitions,
    pub options: Options,
    /// One partition and no other nodes.
    pub alone: Option<Engine>,
    pub seats: Seats,
    pub queues: Queues,
    pub peers: OnceLock<Arc<dyn Peers>>,
    pub rotation: AtomicUsize,
    pub outbox_filled: Arc<Notify>,
    pub membership: Mutex<Membership>,
    /// What nodes of this store recognise one another by.
    pub secret: Option<[u8; 32]>,
    /// To the supervisor; nobody listens where there is none.
    orders: mpsc::Sender<Order>,
}

/// What became of a request.
#[derive(Debug)]
pub enum Reply {
    Answered(Answered),
    /// Nothing was done: it belongs to that node.
    Elsewhere(Peer),
    /// Another node sent it here, and it does not belong here. Nothing was done.
    NotHere,
}

/// How long a request waits for an owner of its partition.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    until: Instant,
    /// Another node sent it here: it waits for this node's own opening engine only, and never goes on.
    is_forwarded: bool,
}

impl Node {
    /// Ready when this returns: a node that is alone serves all partitions then, one among others its share, as far as
    /// that is free.
    pub async fn open(store: Arc<dyn Store>, options: Options) -> Result<Node, NodeError> {
        if store.cluster().is_none() {
            return Node::open_alone(store, options).await;
        }
        let (node, mut supervisor) = Node::join(store, options).await?;
        supervisor.look().await;
        let _ = tokio::time::timeout(OPEN_TIME, supervisor.settle()).await;
        tokio::spawn(supervisor.run());
        Ok(node)
    }

    /// As `open`, but nothing happens by itself: the caller looks around in its stead.
    pub async fn join(store: Arc<dyn Store>, options: Options) -> Result<(Node, Supervisor), NodeError> {
        let (orders, ordered) = mpsc::channel(8);
        let secret = store.secret("cluster", fresh_secret(&options.engine)).await?;
        let node = Node::of(store, options, None, Some(secret), orders);
        let supervisor = Supervisor::new(node.clone(), ordered);
        Ok((node, supervisor))
    }

    /// A store that no other node shares: all partitions, for good.
    async fn open_alone(store: Arc<dyn Store>, options: Options) -> Result<Node, NodeError> {
        let (orders, _) = mpsc::channel(1);
        if store.partitions().is_one() {
            let engine = wf_engine::Options { partition: store.partitions().first(), ..options.engine.clone() };
            let engine = Engine::open(store.clone(), engine).await?;
            return Ok(Node::of(store, options, Some(engine), None, orders));
        }
        let node = Node::of(store, options, None, None, orders);
        let mut opening = JoinSet::new();
        for partition in node.inner.partitions.iter() {
            let node = node.clone();
            opening.spawn(async move { node.open_engine(partition).await.map(|engine| (partition, engine)) });
        }
        while let Some(opened) = opening.join_next().await {
            let (partition, engine) = opened.map_err(|error| StoreError(error.to_string()))??;
            node.seat(partition, engine);
        }
        Ok(node)
    }

    /// An engine that was opened already, with its store to itself.
    pub fn alone(engine: Engine) -> Node {
        let (orders, _) = mpsc::channel(1);
        let mut options = Options::new(wf_engine::Options::default());
        if engine.has_test_clock() {
            options.engine.clock = ClockMode::Test { start: engine.now() };
        }
        Node::of(engine.store().clone(), options, Some(engine), None, orders)
    }

    fn of(
        store: Arc<dyn Store>,
        options: Options,
        alone: Option<Engine>,
        secret: Option<[u8; 32]>,
        orders: mpsc::Sender<Order>,
    ) -> Node {
        let partitions = store.partitions();
        let seats = Seats::new(partitions);
        if let Some(engine) = &alone {
            seats.set(partitions.first(), Seat::Here(engine.clone()));
            tell_leadership(partitions.first(), true);
        }
        Node {
            inner: Arc::new(Inner {
                store,
                partitions,
                options,
                alone,
                seats,
                queues: Queues::default(),
                peers: OnceLock::new(),
                rotation: AtomicUsize::new(0),
                outbox_filled: Arc::new(Notify::new()),
                membership: Mutex::default(),
                secret,
                orders,
            }),
        }
    }

    /// An engine of this node; it has no seat yet.
    pub(crate) async fn open_engine(&self, partition: u16) -> Result<Engine, EngineError> {
        let node = Arc::downgrade(&self.inner);
        let ready = OnReady(Arc::new(move |range| {
            if let Some(node) = node.upgrade() {
                node.queues.tell(partition, range);
            }
        }));
        let options = wf_engine::Options { partition, ready: Some(ready), ..self.inner.options.engine.clone() };
        Engine::open(self.inner.store.clone(), options).await
    }

    /// The engine serves from now on.
    pub(crate) fn seat(&self, partition: u16, engine: Engine) {
        let (filled, of_engine) = (self.inner.outbox_filled.clone(), engine.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = tell_filled(&of_engine, &filled) => (),
                () = of_engine.ended() => (),
            }
        });
        self.inner.seats.set(partition, Seat::Here(engine));
        self.inner.queues.tell(partition, None);
        tell_leadership(partition, true);
    }

    /// The engine does not serve any more.
    pub(crate) fn unseat(&self, partition: u16, seat: Seat) {
        self.inner.seats.set(partition, seat);
        self.inner.queues.forget(partition);
        self.inner.queues.stir();
        tell_leadership(partition, false);
    }

    pub fn use_peers(&self, peers: Arc<dyn Peers>) {
        // A second door speaks the same.
        let _ = self.inner.peers.set(peers);
    }

    /// `None`: there are no other nodes.
    pub fn secret(&self) -> Option<&[u8; 32]> {
        self.inner.secret.as_ref()
    }

    /// The one engine of a store with one partition and no other nodes.
    pub fn only_engine(&self) -> Option<&Engine> {
        self.inner.alone.as_ref()
    }

    pub fn route(&self, request: &Request) -> Route {
        route::route(request, self.inner.partitions)
    }

    pub fn partitions(&self) -> Partitions {
        self.inner.partitions
    }

    /// A partition for what may go anywhere: one of this node, where it has some. Without a home one after the other.
    pub fn nearest(&self, home: Option<u16>) -> u16 {
        let here = self.inner.seats.which(|seat| matches!(seat, Seat::Here(_)));
        match home {
            Some(home) => route::stand_in(home, &here, self.inner.partitions),
            None => self.next_of(here),
        }
    }

    fn next_of(&self, here: Vec<u16>) -> u16 {
        let turn = self.inner.rotation.fetch_add(1, Ordering::Relaxed);
        let pick = |among: Vec<u16>| among.get(turn.checked_rem(among.len())?).copied();
        let there = || pick(self.inner.seats.which(|seat| matches!(seat, Seat::Elsewhere(_))));
        pick(here).or_else(there).unwrap_or_else(|| self.inner.partitions.pick(turn as u64))
    }

    pub fn patience(&self) -> Patience {
        let wait = Duration::from_millis(self.inner.options.owner_wait_ms);
        Patience { until: Instant::now() + wait, is_forwarded: false }
    }

    /// Takes what is there now.
    pub fn impatience(&self) -> Patience {
        Patience { until: Instant::now(), is_forwarded: false }
    }

    /// For what another node sent here.
    pub fn patience_of_forwarded(&self) -> Patience {
        Patience { is_forwarded: true, ..self.patience() }
    }

    /// To the partition's engine, wherever it is. An engine that has just let go of it did nothing: its successor is
    /// waited for.
    pub async fn submit(&self, partition: u16, request: Request, patience: &Patience) -> Result<Reply, Refusal> {
        if let Some(engine) = &self.inner.alone {
            return engine.submit(request).await.map(Reply::Answered);
        }
        loop {
            let engine = match self.owner(partition, patience).await? {
                Owner::Here(engine) => engine,
                Owner::Elsewhere(peer) => return Ok(Reply::Elsewhere(peer)),
                Owner::NotHere => return Ok(Reply::NotHere),
            };
            if let Some(replay) = self.found_at_home(partition, &engine, &request).await? {
                return Ok(Reply::Answered(replay));
            }
            match engine.submit(request.clone()).await {
                Err(refusal) if refusal.is_of_no_owner() && patience.is_forwarded => return Ok(Reply::NotHere),
                Err(refusal) if refusal.is_of_no_owner() => self.successor(partition, &engine, patience).await?,
                answered => return answered.map(Reply::Answered),
            }
        }
    }

    /// A keyed search leases wherever it finds a job, and its record is filed there. A repeat begins at its home, whose
    /// engine may remember that there was none: so the store is asked. A start needs no such look: what an engine wrongly
    /// takes for new fails at the record and is executed again, and what it refuses did nothing.
    async fn found_at_home(
        &self,
        partition: u16,
        engine: &Engine,
        request: &Request,
    ) -> Result<Option<Answered>, Refusal> {
        let Route::Search { home } = self.route(request) else { return Ok(None) };
        let (Some(passport), true) = (&request.passport, home == Some(partition)) else { return Ok(None) };
        let id = RecordId { tenant: request.tenant.clone(), key: passport.key.text() };
        let record = self.inner.store.record(id).await;
        let record = record.map_err(|error| Refusal::Unavailable { reason: error.to_string() })?;
        let verdict = record.and_then(|record| engine.verdict_of(request, passport, &record));
        let refused = verdict.as_ref().is_some_and(Result::is_err);
        if refused {
            engine.note_conflict(request, passport);
        }
        verdict.transpose().map(|answer| answer.map(|answer| Answered { answer, replayed: true }))
    }

    /// Who serves the partition, now or soon.
    pub async fn owner(&self, partition: u16, patience: &Patience) -> Result<Owner, Refusal> {
        let look = |seat: Seat| match seat {
            Seat::Here(engine) => Some(Ok(Owner::Here(engine))),
            Seat::Elsewhere(_) if patience.is_forwarded => Some(Ok(Owner::NotHere)),
            Seat::Elsewhere(peer) => Some(Ok(Owner::Elsewhere(peer))),
            Seat::Leaving | Seat::Free if patience.is_forwarded => Some(Ok(Owner::NotHere)),
            Seat::Opening | Seat::Leaving | Seat::Free => None,
        };
        let found = tokio::time::timeout_at(patience.until, self.inner.seats.wait(partition, look)).await;
        found.unwrap_or_else(|_| Err(no_owner(partition)))
    }

    /// Waits until the partition is served by another engine than this one, or by another node.
    async fn successor(&self, partition: u16, engine: &Engine, patience: &Patience) -> Result<(), Refusal> {
        let is_other = |seat: Seat| match seat {
            Seat::Here(here) => (!here.is_same(engine)).then_some(()),
            _ => Some(()),
        };
        let waited = tokio::time::timeout_at(patience.until, self.inner.seats.wait(partition, is_other)).await;
        waited.map_err(|_| no_owner(partition))
    }

    /// Waits until the partition is not that node's any more: it said so itself, or it cannot be reached.
    pub async fn moved_from(&self, partition: u16, peer: &Peer, patience: &Patience) -> Result<(), Refusal> {
        let is_other = |seat: Seat| match seat {
            Seat::Elsewhere(owner) => (owner != *peer).then_some(()),
            _ => Some(()),
        };
        let waited = tokio::time::timeout_at(patience.until, self.inner.seats.wait(partition, is_other)).await;
        waited.map_err(|_| no_owner(partition))
    }

    /// Resolves when the partition has another owner than that node.
    pub async fn left(&self, partition: u16, peer: &Peer) {
        let is_other = |seat: Seat| match seat {
            Seat::Elsewhere(owner) if owner == *peer => None,
            _ => Some(()),
        };
        self.inner.seats.wait(partition, is_other).await;
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// An engine of this node; any.
    pub fn engine(&self) -> Option<Engine> {
        let own = || self.inner.seats.engines().into_iter().next().map(|(_, engine)| engine);
        self.inner.alone.clone().or_else(own)
    }

    /// Engines by partition.
    pub fn engines(&self) -> Vec<(u16, Engine)> {
        self.inner.seats.engines()
    }

    /// Who serves what, as this node knows it.
    pub fn seats(&self) -> Vec<(u16, Seat)> {
        self.inner.seats.all()
    }

    pub fn now(&self) -> Millis {
        match (self.engine(), &self.inner.options.engine.clock) {
            (Some(engine), _) => engine.now(),
            (None, ClockMode::Given(time)) => (time.0)(),
            (None, _) => (self.inner.options.wall.0)(),
        }
    }

    pub fn has_test_clock(&self) -> bool {
        matches!(self.inner.options.engine.clock, ClockMode::Test { .. })
    }

    /// Resolves when an engine of this node has added rows to the outbox since the last call.
    pub async fn outbox_filled(&self) {
        match &self.inner.alone {
            Some(engine) => engine.outbox_filled().await,
            None => self.inner.outbox_filled.notified().await,
        }
    }

    /// Gives all partitions to other nodes, at once, and leaves their list; requests are still forwarded afterwards. Does
    /// nothing where no other node could take them.
    pub async fn hand_over(&self) {
        if !self.inner.seats.peers().is_empty() || self.has_company() {
            self.order(Order::HandOver).await;
        }
    }

    /// Refuses new requests, finishes what was begun, commits, stops; all partitions are free then.
    pub async fn shutdown(&self) {
        match &self.inner.alone {
            Some(engine) => engine.shutdown().await,
            None if self.inner.store.cluster().is_some() => self.order(Order::Stop).await,
            None => stop_all(self.inner.seats.engines()).await,
        }
    }

    async fn order(&self, order: fn(oneshot::Sender<()>) -> Order) {
        let (done, is_done) = oneshot::channel();
        if self.inner.orders.send(order(done)).await.is_ok() {
            // An end without a word is an end as well.
            let _ = is_done.await;
        }
    }
}

/// Who serves a partition.
pub enum Owner {
    Here(Engine),
    Elsewhere(Peer),
    /// Of what another node sent: not here.
    NotHere,
}

async fn stop_all(engines: Vec<(u16, Engine)>) {
    let mut stopping = JoinSet::new();
    for (_, engine) in engines {
        stopping.spawn(async move { engine.shutdown().await });
    }
    while stopping.join_next().await.is_some() {}
}

async fn tell_filled(engine: &Engine, filled: &Notify) {
    loop {
        engine.outbox_filled().await;
        filled.notify_one();
    }
}

fn no_owner(partition: u16) -> Refusal {
    Refusal::Unavailable { reason: format!("no node serves partition {partition} now") }
}

fn tell_leadership(partition: u16, is_here: bool) {
    metrics::gauge!("wf_partition_leader", "partition" => partition.to_string()).set(f64::from(u8::from(is_here)));
}
