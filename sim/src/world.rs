//! What everybody in a simulated world shares: the seed's chance, virtual time, the trace, what was seen, what is wrong.
//! It does nothing itself. Next: `store.rs` and `node.rs`, then those who use them: `client.rs`, `worker.rs`, `broker.rs`.

use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use wf_core::Millis;
use wf_store::memory::MemoryStore;

use crate::broker::Broker;
use crate::door::Call;
use crate::facts::Facts;
use crate::node::Node;
use crate::plan::Plan;
use crate::provider::Provider;
use crate::restore::Lost;
use crate::rng::Rng;
use crate::trace::{Trace, lock};

/// 2027: after the zero of the epoch counters.
pub const START: Millis = 1_800_000_000_000;
/// No clock goes back further than this.
const OFFSET_MIN: Millis = -20_000;
pub const TENANT: &str = "acme";
pub const PARTITION: u16 = 1;

/// A broken promise: which checker saw it, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub checker: &'static str,
    pub what: String,
}

pub struct World {
    pub plan: Plan,
    pub trace: Trace,
    pub nodes: Vec<Arc<Node>>,
    pub provider: Provider,
    pub broker: Broker,
    /// Faults happen.
    is_storm: AtomicBool,
    /// Clients, workers and nodes go home.
    is_over: AtomicBool,
    /// The disk burns: no node starts.
    is_burning: AtomicBool,
    /// A restore begins another one.
    history: AtomicU32,
    /// Not a watch channel: that one wakes in an order of its own.
    history_begun: Notify,
    lost: Mutex<Option<Lost>>,
    /// The latest time that any node's clock ever showed: command time never lies behind it.
    clock_max: AtomicI64,
    rng: Mutex<Rng>,
    /// What is durable, shared by all nodes; a restore puts another in its place.
    store: Mutex<Arc<MemoryStore>>,
    facts: Mutex<Facts>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    violations: Mutex<Vec<Violation>>,
    begun: Instant,
}

impl World {
    pub fn new(plan: Plan, rng: Rng, is_traced: bool) -> Arc<World> {
        let names: &[&'static str] = if plan.has_duel { &["A", "B"] } else { &["A"] };
        Arc::new(World {
            trace: Trace::new(is_traced),
            nodes: names.iter().map(|name| Arc::new(Node::new(name))).collect(),
            provider: Provider::default(),
            broker: Broker::default(),
            is_storm: AtomicBool::new(true),
            is_over: AtomicBool::new(false),
            is_burning: AtomicBool::new(false),
            history: AtomicU32::new(0),
            history_begun: Notify::new(),
            lost: Mutex::new(None),
            clock_max: AtomicI64::new(START),
            rng: Mutex::new(rng),
            store: Mutex::new(Arc::new(MemoryStore::new())),
            facts: Mutex::default(),
            counts: Mutex::default(),
            violations: Mutex::default(),
            begun: Instant::now(),
            plan,
        })
    }

    /// Milliseconds of virtual time since the beginning.
    pub fn now_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    pub fn say(&self, who: &str, what: Arguments<'_>) {
        self.trace.say(self.now_ms(), who, what);
    }

    pub fn facts(&self) -> MutexGuard<'_, Facts> {
        lock(&self.facts)
    }

    pub fn store(&self) -> Arc<MemoryStore> {
        lock(&self.store).clone()
    }

    pub fn begin_errand(&self, name: &str, call: &Call) -> usize {
        self.facts().begin(name, call.clone(), self.clock_floor())
    }

    pub fn history(&self) -> u32 {
        self.history.load(Ordering::Relaxed)
    }

    /// Until another history has begun.
    pub async fn restored(&self, history: u32) {
        while self.history() <= history {
            self.history_begun.notified().await;
        }
    }

    pub fn is_burning(&self) -> bool {
        self.is_burning.load(Ordering::Relaxed)
    }

    pub fn burn(&self) {
        self.is_burning.store(true, Ordering::Relaxed);
    }

    /// The backup is what is left.
    pub fn restore(&self, backup: MemoryStore, lost: Lost) {
        *lock(&self.store) = Arc::new(backup);
        *lock(&self.lost) = Some(lost);
        self.is_burning.store(false, Ordering::Relaxed);
        self.history.fetch_add(1, Ordering::Relaxed);
        self.history_begun.notify_waiters();
    }

    pub fn lost(&self) -> MutexGuard<'_, Option<Lost>> {
        lock(&self.lost)
    }

    /// A fault, or something else that a run must have had to prove anything.
    pub fn count(&self, what: &'static str) {
        *lock(&self.counts).entry(what).or_default() += 1;
    }

    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.counts).clone()
    }

    pub fn violated(&self, checker: &'static str, what: String) {
        self.say("CHECK", format_args!("{checker}: {what}"));
        lock(&self.violations).push(Violation { checker, what });
    }

    pub fn violations(&self) -> Vec<Violation> {
        lock(&self.violations).clone()
    }
}

/// Time and its ends.
impl World {
    pub fn is_storm(&self) -> bool {
        self.is_storm.load(Ordering::Relaxed)
    }

    pub fn calm(&self) {
        self.is_storm.store(false, Ordering::Relaxed);
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// What a node's clock shows, whose own error is `offset`.
    pub fn clock(&self, offset: Millis) -> Millis {
        let now = START + self.now_ms() as Millis + offset;
        self.clock_max.fetch_max(now, Ordering::Relaxed);
        now
    }

    pub fn clock_max(&self) -> Millis {
        self.clock_max.load(Ordering::Relaxed)
    }

    /// No clock shows less from now on, however it jumps.
    pub fn clock_floor(&self) -> Millis {
        START + self.now_ms() as Millis + OFFSET_MIN
    }

    pub fn set_offset(&self, node: &Node, offset: Millis) {
        node.set_offset(offset.max(OFFSET_MIN));
    }

    /// All clocks show the same from now on, `ms` more than any has ever shown.
    pub fn settle_clocks(&self, ms: Millis) {
        let latest = self.clock_max() - START - self.now_ms() as Millis + ms;
        let offset = self.nodes.iter().map(|node| node.offset()).fold(latest, Millis::max);
        self.nodes.iter().for_each(|node| node.set_offset(offset));
    }

    pub async fn sleep(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

/// Chance.
impl World {
    fn rng(&self) -> MutexGuard<'_, Rng> {
        lock(&self.rng)
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.rng().below(bound)
    }

    pub fn between(&self, low: u64, high: u64) -> u64 {
        self.rng().between(low, high)
    }

    pub fn chance(&self, permille: u64) -> bool {
        self.rng().chance(permille)
    }

    pub fn one_of<T: Copy>(&self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    pub fn bytes(&self) -> [u8; 16] {
        self.rng().bytes()
    }

    /// A fault of this kind, so many times in a thousand while the storm lasts; counted.
    pub fn fault(&self, what: &'static str, permille: u64) -> bool {
        let strikes = self.is_storm() && self.chance(permille);
        if strikes {
            self.count(what);
        }
        strikes
    }
}
