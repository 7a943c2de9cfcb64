//! Random schedules of concurrent requests over a store that fails at random, against what must hold whatever happens:
//! each key one effect and one answer, never two live leases, no gap. A seed that fails becomes a line in `SEEDS`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use crate::common::*;
use wf_core::Key;
use wf_engine::{Answered, ClockChange, Limits, Options, Refusal, Request};

/// Seeds that have found something, and as many others as a few seconds allow.
const SEEDS: std::ops::Range<u64> = 0..40;
const ROUNDS: usize = 12;
const FAULTS: [Fault; 6] =
    [Fault::Unavailable, Fault::UnknownApplied, Fault::UnknownLost, Fault::Fenced, Fault::Conflict, Fault::Rejected];

/// What the clients know.
#[derive(Default)]
struct Known {
    /// (tenant, key): the payload and its answer.
    answers: BTreeMap<(&'static str, String), (String, Option<Answered>)>,
    held: Vec<(&'static str, (Key, u64))>,
    leases: BTreeSet<(Key, u64)>,
    instances: BTreeSet<(&'static str, Key)>,
    keys_made: u64,
    now: i64,
}

/// A request as a text of its kind and numbers: what a client would send again.
struct Op {
    tenant: &'static str,
    key: Option<String>,
    payload: String,
}

#[tokio::test]
async fn whatever_happens_each_key_has_one_effect_and_one_answer() {
    for seed in SEEDS {
        run(seed).await;
    }
}

async fn run(seed: u64) {
    let mut rng = Rng(seed);
    let (world, tight) = open(seed, &mut rng).await;
    let mut known = Known { now: START, ..Known::default() };
    let mut world = world;
    let mut faults = Rng(seed ^ 0xABCD);
    for _ in 0..ROUNDS {
        let mut storm = Rng(faults.number());
        world.stage.rule(move |_| (storm.below(5) == 0).then(|| *storm.one_of(&FAULTS)));
        round(&world, &mut known, &mut rng, seed).await;
        if rng.below(6) == 0 {
            world.engine.shutdown().await;
            world = World::open(Stage::over(world.stage.inner.clone()), limits(tight)).await;
        }
    }
    world.stage.no_rule();
    settle(&world, &mut known, seed).await;
    let left = world.end().await;
    assert_eq!(left.count("instance.started"), known.instances.len(), "seed {seed}: a start without an answer");
    let completed: Vec<&String> =
        left.events.iter().filter(|(_, name, _)| name == "job.completed").map(|(_, _, job)| job).collect();
    assert_eq!(completed.iter().collect::<BTreeSet<_>>().len(), completed.len(), "seed {seed}: completed twice");
}

fn limits(tight: bool) -> Options {
    let cache = Limits { rows_max: 8, heads_max: 4, head_entries_max: 2 };
    if tight { Options { cache, turn_max: 3, ..options() } } else { options() }
}

async fn open(seed: u64, rng: &mut Rng) -> (World, bool) {
    let tight = seed % 2 == 1;
    let world = World::with(limits(tight)).await;
    world.ok(of_tenant("other", deploy())).await;
    let page_max = if tight { 1 + rng.below(3) as usize } else { usize::MAX };
    world.stage.page_max.store(page_max, Ordering::Relaxed);
    (world, tight)
}

/// Some requests at once; then what each of them heard.
async fn round(world: &World, known: &mut Known, rng: &mut Rng, seed: u64) {
    let ops: Vec<Op> = (0..1 + rng.below(24)).map(|_| random_op(known, rng)).collect();
    let mut asked = Vec::new();
    for op in ops {
        asked.push((world.later(op.request()), op));
        if rng.below(3) == 0 {
            tokio::task::yield_now().await;
        }
    }
    for (answer, op) in asked {
        hear(known, &op, answer.await.unwrap(), seed);
    }
    if rng.below(3) == 0 {
        known.now += [300, 1_000, 10_000][rng.below(3) as usize];
        let _ = world.ask(clock(ClockChange::To { now: known.now })).await;
    }
}

fn random_op(known: &mut Known, rng: &mut Rng) -> Op {
    let tenant = *rng.one_of(&["acme", "acme", "other"]);
    // A repeat, now and then with another payload.
    if rng.below(4) == 0
        && let Some(op) = repeat(known, tenant, rng)
    {
        return op;
    }
    let payload = random_payload(known, tenant, rng);
    let key = (payload.starts_with("start") || rng.below(2) == 0).then(|| {
        known.keys_made += 1;
        format!("k{}", known.keys_made)
    });
    Op { tenant, key, payload }
}

fn repeat(known: &Known, tenant: &'static str, rng: &mut Rng) -> Option<Op> {
    let places: Vec<_> = known.answers.iter().filter(|((of, _), _)| *of == tenant).collect();
    if places.is_empty() {
        return None;
    }
    let ((_, key), (payload, _)) = *rng.one_of(&places);
    let payload = if rng.below(4) == 0 { "set 1 9".to_owned() } else { payload.clone() };
    Some(Op { tenant, key: Some(key.clone()), payload })
}

fn random_payload(known: &Known, tenant: &'static str, rng: &mut Rng) -> String {
    let id = rng.below(4);
    let held: Vec<(Key, u64)> = known.held.iter().filter(|(of, _)| *of == tenant).map(|(_, held)| *held).collect();
    let instances: Vec<Key> = known.instances.iter().filter(|(of, _)| *of == tenant).map(|(_, key)| *key).collect();
    match rng.below(12) {
        0..=3 => format!("start {} {id}", rng.one_of(&["order", "paid", "late"])),
        4..=6 => format!("activate {} {}", rng.one_of(&["a", "b", "c", "d"]), 1 + rng.below(4)),
        7 | 8 if !held.is_empty() => {
            let (job, lease) = *rng.one_of(&held);
            format!("complete {job} {lease}")
        }
        9 if !held.is_empty() => {
            let (job, lease) = *rng.one_of(&held);
            format!("fail {job} {lease} {}", rng.below(2) * 400)
        }
        10 if !instances.is_empty() => match rng.below(3) {
            0 => format!("cancel {}", rng.one_of(&instances)),
            _ => format!("set {} {id}", rng.one_of(&instances)),
        },
        _ => format!("publish {id} m{} {}", rng.below(6), rng.below(2) * 5_000),
    }
}

impl Op {
    fn request(&self) -> Request {
        let parts: Vec<&str> = self.payload.split(' ').collect();
        let number = |n: usize| -> u64 { parts[n].parse().unwrap() };
        let request = match parts[0] {
            "start" => start_with(parts[1], vec![("id".into(), parts[2].into())]),
            "activate" => waiting(number(2) % 2 * 4, activate(parts[1], "w", number(2) as u32)),
            "complete" => complete((number(1), number(2))),
            "fail" => fail((number(1), number(2)), number(3) as i64),
            "publish" => publish("paid", parts[1], Some(parts[2]), number(3) as i64),
            "cancel" => cancel(number(1)),
            "set" => set_variable(number(1), "x", parts[2]),
            other => panic!("{other}"),
        };
        let request = of_tenant(self.tenant, request);
        match &self.key {
            Some(key) => keyed(key, request),
            None => request,
        }
    }
}

fn hear(known: &mut Known, op: &Op, answer: Result<Answered, Refusal>, seed: u64) {
    let payload = op.payload.clone();
    let place = op.key.clone().map(|key| (op.tenant, key));
    let first = place.as_ref().and_then(|place| known.answers.get(place));
    match answer {
        Ok(answered) => {
            if let Some((its, Some(before))) = first {
                assert_eq!((its, &before.answer), (&payload, &answered.answer), "seed {seed}: {:?}", op.key);
            }
            learn(known, op.tenant, &answered, op.key.is_none(), seed);
            // An empty poll stores nothing: its key stays free.
            if let Some(place) = place
                && text(&answered) != "jobs"
            {
                known.answers.insert(place, (payload, Some(answered)));
            }
        }
        Err(Refusal::Conflict) => {
            assert!(place.is_some(), "seed {seed}");
            if let Some((its, Some(_))) = first {
                assert_ne!(*its, payload, "seed {seed}: its own request");
            }
        }
        Err(refusal) => {
            assert!(
                !matches!(first, Some((_, Some(_)))) || !matches!(refusal, Refusal::Rejected(_)),
                "seed {seed}: refused although it was answered: {refusal:?}"
            );
            let is_doubtful = matches!(refusal, Refusal::OutcomeUnknown | Refusal::InProgress { .. });
            if let Some(place) = place.filter(|_| is_doubtful || payload.starts_with("start ")) {
                known.answers.entry(place).or_insert((payload, None));
            }
        }
    }
}

/// What an answer says is true of the store, for ever.
fn learn(known: &mut Known, tenant: &'static str, answered: &Answered, is_fresh: bool, seed: u64) {
    let text = text(answered);
    if text.starts_with("started ") {
        known.instances.insert((tenant, key_in(&text)));
    }
    if text.starts_with("jobs") {
        for held in jobs_in(&text) {
            let is_new = known.leases.insert(held);
            assert!(is_new || !is_fresh, "seed {seed}: a lease given twice");
            known.held.push((tenant, held));
        }
    }
}

/// Each client repeats what is in doubt until it knows.
async fn settle(world: &World, known: &mut Known, seed: u64) {
    let open: Vec<((&'static str, String), String)> =
        known.answers.iter().map(|(place, (payload, _))| (place.clone(), payload.clone())).collect();
    for ((tenant, key), payload) in open {
        let op = Op { tenant, payload, key: Some(key) };
        let answer = loop {
            match world.ask(op.request()).await {
                Err(Refusal::Unavailable { .. } | Refusal::OutcomeUnknown | Refusal::InProgress { .. }) => (),
                definite => break definite,
            }
            tokio::task::yield_now().await;
        };
        hear(known, &op, answer, seed);
    }
}
