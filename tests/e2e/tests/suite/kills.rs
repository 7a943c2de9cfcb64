//! L1.6, L6.1, K8: SIGKILL at arbitrary moments under load, again and again on one store. Nothing that was answered is
//! lost, nothing happens twice, and the audit has no gap but where an epoch begins. Named moments: `crash.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, RwLock};

use e2e::api::{Api, Call, jobs_of, text};
use e2e::http::Answer;
use e2e::models::one_task;
use e2e::node::Setup;
use e2e::{pause, until};
use serde_json::{Value, json};

use crate::database::{audit_gaps, chain_breaks, event_counts};
use crate::receiver::{Delivery, Receiver};

const STARTERS: u64 = 3;
const WORKERS: u64 = 2;
/// Nothing here is about leases: none runs out.
const LEASE_MS: u64 = 3_600_000;

/// The same in every run, unless somebody searches longer: `WF_KILLS=200 WF_KILLS_SEED=7`.
fn figure(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

fn kills() -> u64 {
    figure("WF_KILLS", 15)
}

fn seed() -> u64 {
    figure("WF_KILLS_SEED", 0x5EED)
}

/// What clients know of the node, and what they were told.
#[derive(Default)]
struct World {
    api: RwLock<Option<Api>>,
    answers: Mutex<u64>,
    answered: Condvar,
    is_over: AtomicBool,
    keys: AtomicU64,
    /// Key → the answer's bytes.
    starts: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Instances whose job's completion was answered.
    completed: Mutex<BTreeSet<String>>,
}

#[test]
fn l1_6_k8_kills_at_random_lose_nothing_and_double_nothing() {
    let receiver = Receiver::start(|_| 200);
    let sink = format!("[[sink]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{}\"", receiver.url());
    let setup = Setup::new().config(&sink);
    let node = setup.start();
    node.api.deploy(&one_task("one", "work")).answer().expect(201);
    node.kill();
    let world = World::default();
    std::thread::scope(|scope| {
        let world = &world;
        for number in 0..STARTERS {
            scope.spawn(move || starter(world, number));
        }
        for number in 0..WORKERS {
            scope.spawn(move || worker(world, number));
        }
        let last = kill_again_and_again(&setup, world);
        // Clients finish against a node that lives.
        world.is_over.store(true, Ordering::Relaxed);
        last
    });
    check(&setup, &world);
    check_published(&setup, &receiver.deliveries());
}

/// The node that was not killed.
fn kill_again_and_again(setup: &Setup, world: &World) -> e2e::node::Node {
    let mut random = Random(seed());
    for _ in 0..kills() {
        let node = setup.start();
        *world.api.write().unwrap() = Some(node.api.clone());
        world.wait_for_answers(5 + random.below(100));
        // Clients do not know yet: their requests are on the way.
        node.kill();
        *world.api.write().unwrap() = None;
    }
    let node = setup.start();
    *world.api.write().unwrap() = Some(node.api.clone());
    world.wait_for_answers(50);
    node
}

/// Half of the keys were used before, by this client or another one, perhaps at this moment.
fn starter(world: &World, number: u64) {
    let mut random = Random(seed() + 1 + number);
    while !world.is_over.load(Ordering::Relaxed) {
        let known = world.keys.load(Ordering::Relaxed);
        let is_repeat = known > 0 && random.below(2) == 0;
        let key = if is_repeat { random.below(known) } else { world.keys.fetch_add(1, Ordering::Relaxed) };
        let key = format!("start-{key}");
        let answer = world.insist(|api| api.start("one", json!({"key": key})).key(&key)).expect(201);
        let mut starts = world.starts.lock().unwrap();
        let first = starts.entry(key).or_insert_with(|| answer.body.clone());
        assert_eq!(*first, answer.body, "one key, two answers");
    }
}

fn worker(world: &World, number: u64) {
    let name = format!("worker-{number}");
    for poll in 0.. {
        if world.is_over.load(Ordering::Relaxed) {
            return;
        }
        let body = json!({"type": "work", "worker": name, "maxJobs": 5, "leaseMs": LEASE_MS});
        let key = format!("{name}-{poll}");
        let jobs = jobs_of(&world.insist(|api| api.post("/api/v1/jobs/activate", body.clone()).key(&key)).expect(200));
        if jobs.is_empty() {
            pause();
        }
        for job in jobs {
            world.insist(|api| api.complete(&job, &name, json!({"by": name}))).expect(200);
            world.completed.lock().unwrap().insert(text(&job["processInstanceKey"]));
        }
    }
}

impl World {
    /// As a good client does: the same request until there is an answer.
    fn insist(&self, call: impl Fn(&Api) -> Call) -> Answer {
        loop {
            let api = self.api.read().unwrap().clone();
            let answer = api.and_then(|api| call(&api).send().ok());
            match answer {
                Some(answer) if answer.status != 503 => {
                    *self.answers.lock().unwrap() += 1;
                    self.answered.notify_all();
                    return answer;
                }
                _ => pause(),
            }
        }
    }

    fn wait_for_answers(&self, more: u64) {
        let answers = self.answers.lock().unwrap();
        let goal = *answers + more;
        drop(self.answered.wait_while(answers, |answers| *answers < goal).unwrap());
    }
}

fn check(setup: &Setup, world: &World) {
    let node = setup.start();
    let starts = world.starts.lock().unwrap();
    let key_of = |bytes: &Vec<u8>| text(&serde_json::from_slice::<Value>(bytes).unwrap()["key"]);
    let answered: BTreeSet<String> = starts.values().map(key_of).collect();
    assert_eq!(answered.len(), starts.len(), "two keys, one instance");
    assert!(starts.len() as u64 > kills(), "{} starts are no load", starts.len());
    let instances = node.api.all("/api/v1/instances");
    let found: BTreeSet<String> = instances.iter().map(|instance| text(&instance["key"])).collect();
    assert_eq!((found.len(), &found), (instances.len(), &answered), "each answered start is there once, and no other");
    let completed = world.completed.lock().unwrap();
    let ended = instances.iter().filter(|instance| instance["state"] == "COMPLETED");
    let ended: BTreeSet<String> = ended.map(|instance| text(&instance["key"])).collect();
    assert_eq!(ended, *completed, "each answered completion is there, and no other");
    drain(&node.api);
    until("empty outbox", || node.api.all("/api/v1/outbox?state=pending").is_empty().then_some(()));
    assert!(node.stop().success());
    let counts = event_counts(&setup.database(), &["instance.started", "job.completed", "instance.completed"]);
    let once = found.iter().flat_map(|key| {
        ["instance.completed", "instance.started", "job.completed"].map(|kind| ((key.clone(), kind.to_owned()), 1))
    });
    assert_eq!(counts, once.collect());
    assert_eq!(audit_gaps(&setup.database()), Vec::<String>::new());
    assert_eq!(chain_breaks(&setup.database()), Vec::<String>::new());
}

/// L5.1, L5.2, S9: published is what happened, each id with the same bytes however often it came, and what came for the
/// first time came in the order of its instance.
fn check_published(setup: &Setup, deliveries: &[Delivery]) {
    let mut seen: BTreeMap<String, &[u8]> = BTreeMap::new();
    let mut in_order: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for delivery in deliveries {
        let id = delivery.header("webhook-id");
        let event = delivery.json();
        let first = seen.entry(id.clone()).or_insert_with(|| {
            in_order.entry(text(&event["subject"])).or_default().push(text(&event["type"]));
            &delivery.body
        });
        assert_eq!(*first, delivery.body, "{id} came twice and differs");
    }
    let published = ["instance.started", "job.completed", "instance.completed"];
    let whole: Vec<String> = published.iter().map(|kind| format!("wf.{kind}")).collect();
    assert!(in_order.values().all(|kinds| *kinds == whole), "{in_order:?}");
    let happened = event_counts(&setup.database(), &published);
    assert_eq!(seen.len() as u64, happened.values().sum::<u64>());
}

fn drain(api: &Api) {
    loop {
        let jobs = api.activated("work", "last", 1000);
        if jobs.is_empty() {
            return;
        }
        for job in jobs {
            api.complete(&job, "last", json!({})).answer().expect(200);
        }
    }
}

/// The same figures in every run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
