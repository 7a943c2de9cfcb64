//! Nodes: the real engine and the real shipper over a store of their own line, started, killed at any time, stopped
//! cleanly, started again. Their clocks are wrong. Next: `door.rs`, how requests reach them.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::task::AbortHandle;
use wf_core::Millis;
use wf_engine::{Chance, ClockMode, Engine, Limits, Options, Running, SinkRule, Time};
use wf_ship::{Kind, Shipper, SinkConfig};
use wf_store::Store;

use crate::broker::BrokerSink;
use crate::store::{Pulse, SimStore};
use crate::trace::lock;
use crate::world::{PARTITION, World};

pub const SINK: &str = "bus";
/// The broker's window; an operator who ships again behind it must say so.
pub const WINDOW_MS: i64 = 120_000;

pub struct Node {
    pub name: &'static str,
    /// What its clock shows too much.
    offset: AtomicI64,
    lives: AtomicU64,
    /// It does not start again.
    is_retired: AtomicBool,
    /// Of the life that is being started or goes on.
    pulse: Mutex<Option<Arc<Pulse>>>,
    life: Mutex<Option<Life>>,
}

/// A running node.
#[derive(Clone)]
pub struct Life {
    pub engine: Engine,
    pub pulse: Arc<Pulse>,
    actor: AbortHandle,
    shipper: Arc<Mutex<Option<Shipper>>>,
}

impl Node {
    pub fn new(name: &'static str) -> Node {
        Node {
            name,
            offset: AtomicI64::new(0),
            lives: AtomicU64::new(0),
            is_retired: AtomicBool::new(false),
            pulse: Mutex::new(None),
            life: Mutex::new(None),
        }
    }

    pub fn offset(&self) -> Millis {
        self.offset.load(Ordering::Relaxed)
    }

    pub fn set_offset(&self, ms: Millis) {
        self.offset.store(ms, Ordering::Relaxed);
    }

    pub fn life(&self) -> Option<Life> {
        lock(&self.life).clone().filter(|life| life.pulse.is_alive())
    }

    /// Dead, whatever it is doing.
    pub fn strike(&self) {
        if let Some(pulse) = lock(&self.pulse).take() {
            pulse.stop();
        }
    }

    pub fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
        self.strike();
    }

    /// Until the world ends: start, live a while, die or stop, start again.
    pub async fn keep(self: Arc<Node>, world: Arc<World>) {
        while !world.is_over() && !self.is_retired.load(Ordering::Relaxed) {
            if !world.is_burning()
                && let Some(life) = self.start(&world).await
            {
                self.live(&world, &life).await;
            }
            world.sleep(world.between(0, 1_500)).await;
        }
    }

    async fn live(&self, world: &Arc<World>, life: &Life) {
        let span_ms = world.between(1, 2 * world.plan.crash_ms);
        let stops = world.chance(200);
        tokio::select! {
            biased;
            () = life.pulse.died.notified() => (),
            () = until_struck(world, span_ms) => (),
        }
        lock(&self.life).take();
        if stops && life.pulse.is_alive() && !world.is_over() {
            world.count("clean stop");
            world.say(&life.pulse.name, format_args!("stops"));
            life.stop().await;
        } else {
            world.count("crash");
            world.say(&life.pulse.name, format_args!("dies"));
        }
        life.kill();
    }

    async fn start(&self, world: &Arc<World>) -> Option<Life> {
        let number = self.lives.fetch_add(1, Ordering::Relaxed) + 1;
        let pulse = Pulse::new(format!("{}{number}", self.name));
        *lock(&self.pulse) = Some(pulse.clone());
        let store: Arc<dyn Store> = Arc::new(SimStore::new(world.clone(), pulse.clone()));
        let mut actor = None;
        let run = |running| {
            actor = Some(tokio::spawn(watched(world.clone(), pulse.name.clone(), running)).abort_handle());
            Ok(())
        };
        let opening = Engine::open_on(store.clone(), self.options(world), run);
        let opened = tokio::select! {
            biased;
            () = pulse.died.notified() => None,
            opened = opening => opened.ok(),
        };
        let (Some(engine), Some(actor)) = (opened, actor.clone()) else {
            pulse.stop();
            actor.iter().for_each(AbortHandle::abort);
            world.say(&pulse.name, format_args!("does not start"));
            return None;
        };
        let shipper = start_shipper(world, &store, &engine, &pulse);
        let life = Life { engine, pulse, actor, shipper: Arc::new(Mutex::new(Some(shipper))) };
        world.say(&life.pulse.name, format_args!("is up"));
        *lock(&self.life) = Some(life.clone());
        Some(life)
    }

    fn options(&self, world: &Arc<World>) -> Options {
        let tight = Limits { rows_max: 8, heads_max: 4, head_entries_max: 2 };
        let usual = Options::default();
        Options {
            partition: PARTITION,
            clock: ClockMode::Given(self.clock(world)),
            chance: chance(world),
            mailbox_max: 200,
            turn_max: world.plan.turn_max,
            wait_ms: 300,
            finished_ms: world.plan.finished_ms,
            sweep_ms: 5_000,
            pause_ms: 200,
            sinks: vec![SinkRule { name: SINK.into(), events: vec!["*".to_owned()], window_ms: WINDOW_MS }],
            cache: if world.plan.has_tight_cache { tight } else { usual.cache },
            ..usual
        }
    }

    fn clock(&self, world: &Arc<World>) -> Time {
        let (world, index) = (Arc::downgrade(world), usize::from(self.name != "A"));
        // Weak: the world holds its nodes, and they hold this.
        Time(Arc::new(move || world.upgrade().map_or(0, |world| world.clock(world.nodes[index].offset()))))
    }
}

fn chance(world: &Arc<World>) -> Chance {
    let world = Arc::downgrade(world);
    Chance(Arc::new(move || world.upgrade().map_or([0; 16], |world| world.bytes())))
}

/// Nothing in a run may panic but what is caught where it is meant to be.
async fn watched(world: Arc<World>, name: String, running: Running) {
    struct Watch(Arc<World>, String);
    impl Drop for Watch {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.violated("panic", format!("the actor of {} panicked", self.1));
            }
        }
    }
    let _watch = Watch(world, name);
    running.await;
}

/// In the storm, at the end of its span; in the calm a node lives until the end.
async fn until_struck(world: &World, span_ms: u64) {
    world.sleep(span_ms).await;
    while !world.is_storm() && !world.is_over() {
        world.sleep(1_000).await;
    }
}

fn start_shipper(world: &Arc<World>, store: &Arc<dyn Store>, engine: &Engine, pulse: &Arc<Pulse>) -> Shipper {
    let config = SinkConfig { attempts_max: world.plan.attempts_max, ..SinkConfig::new(SINK, Kind::Stdout, "") };
    let sink = BrokerSink::new(world.clone(), pulse.clone());
    let (clock, filled) = (engine.clone(), engine.clone());
    let wait = move || {
        let engine = filled.clone();
        async move { engine.outbox_filled().await }
    };
    let owner = || world.bytes();
    Shipper::start_as(owner, store.clone(), vec![(config, Arc::new(sink))], Arc::new(move || clock.now()), wait)
}

impl Life {
    /// As a process that is killed: wherever it stands.
    pub fn kill(&self) {
        self.pulse.stop();
        self.actor.abort();
        drop(lock(&self.shipper).take());
    }

    async fn stop(&self) {
        let shipper = lock(&self.shipper).take();
        let stopping = async {
            self.engine.shutdown().await;
            if let Some(shipper) = shipper {
                shipper.shutdown().await;
            }
        };
        tokio::select! {
            biased;
            () = self.pulse.died.notified() => (),
            // What takes longer is killed.
            () = tokio::time::sleep(std::time::Duration::from_secs(60)) => (),
            () = stopping => (),
        }
    }
}
