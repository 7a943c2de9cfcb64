//! The crash matrix: one store that lives through many deaths of its processes under load, and checkers at its end over what
//! clients, provider and receivers saw. Where nodes can share the store, there are two, and one dies at a time. CI runs a few lives, `cargo xtask crash` as many as there is time for.
//! A seed fixes which death follows which and what clients want; when they meet is the machine's own affair.
//! Next: `crash/world.rs` (what a client knows), `crash/clients.rs` (the load), `crash/check.rs`, `crash/counts.rs`.

pub mod check;
pub mod clients;
pub mod counts;
pub mod world;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use powerloss::lose::Fate;
use wf_store::failpoint::PLACES;

use crate::nats::Nats;
use crate::node::{Node, Setup};
use crate::power::{DATA, Power};
use crate::receiver::Receiver;
use crate::{Random, stream};
use counts::{ANY_MOMENT, BETWEEN_WRITES, Counts};
use world::{Phase, World};

/// What one store is put through.
#[derive(Debug)]
pub struct Plan {
    /// A fresh store. Where nodes can share it, two of them do, and either dies while the other goes on.
    pub store: Setup,
    pub seed: u64,
    pub deaths: u64,
    /// A broker beside the webhook.
    pub with_nats: bool,
    /// With each death the power goes too.
    pub power: Option<Power>,
    /// No more deaths from then on.
    pub end: Option<Instant>,
    /// How often places are tried once more at which nobody died, when the planned deaths are over.
    pub late_tries: usize,
}

/// What was wrong, and where it can be looked at.
#[derive(Debug)]
pub struct Broken {
    pub seed: u64,
    pub folder: PathBuf,
    pub faults: Vec<String>,
}

/// The same in every run, unless `WF_CRASH_SEED` begins another life by the same rules.
pub fn seed_or(usual: u64) -> u64 {
    std::env::var("WF_CRASH_SEED").map_or(usual, |text| text.parse().expect("WF_CRASH_SEED is a number"))
}

/// After so many answers without the death that was meant, the node is asked to stop: some places are on that way.
const ANSWERS_MAX: u64 = 400;
/// The same for places that few requests pass.
const ANSWERS_MAX_SELDOM: u64 = 800;
/// Nothing here takes that long: whoever waits so long waits in vain.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Records of messages run out within a second, so that sweeps have something to do.
const CONFIG: &str = "[idempotency]\nsweep_ms = 100\n\
    [idempotency.routes.\"POST /api/v1/messages\"]\nttl_ms = 1000\n";

/// One store from its making to its end. `Ok`: every checker was content.
pub fn live(plan: &Plan, counts: &Counts) -> Result<(), Broken> {
    let nats = plan.with_nats.then(Nats::start);
    stand(&plan.store, plan.seed, counts, nats.as_ref(), false, |setup, world| deaths(plan, setup, world))
}

/// A store under load while `trouble` does to nodes, lines and the database what it likes. It says which nodes are there at
/// the end; then everything that was begun is finished, and everybody is asked what they saw.
pub fn withstand(
    store: &Setup,
    seed: u64,
    counts: &Counts,
    trouble: impl FnOnce(&Setup, &World) -> Result<Vec<Node>, String>,
) -> Result<(), Broken> {
    stand(store, seed, counts, None, true, trouble)
}

fn stand(
    store: &Setup,
    seed: u64,
    counts: &Counts,
    nats: Option<&Nats>,
    has_outage: bool,
    trouble: impl FnOnce(&Setup, &World) -> Result<Vec<Node>, String>,
) -> Result<(), Broken> {
    let receiver = Receiver::start(|_| 200);
    let setup = setup(store, &receiver, nats);
    let world = World::new(counts, seed);
    let end = std::thread::scope(|scope| {
        let _over = Over(&world);
        let clients = clients::spawn(scope, &world);
        trouble(&setup, &world).and_then(|nodes| finish(nodes, &world, clients))
    });
    if let Err(fault) = end {
        world.fault(fault);
    }
    let mut faults = world.faults();
    if faults.is_empty() {
        faults = check::all(&setup, &world, &receiver, nats, has_outage);
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Broken { seed, folder: setup.keep(), faults }),
    }
}

/// Clients come home however it ended, also by a panic.
struct Over<'w, 'a>(&'w World<'a>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        self.0.enter(Phase::Over);
    }
}

fn setup(store: &Setup, receiver: &Receiver, nats: Option<&Nats>) -> Setup {
    let hook = format!("[[sink]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{}\"\n", receiver.url());
    let bus = nats.map(|nats| stream::sink(&nats.url(), "[\"*\"]"));
    let setup = store.clone().data_in(DATA).config(CONFIG);
    setup.config(&hook).config(&bus.unwrap_or_default())
}

/// Kills as often as planned; the nodes that live at the end.
fn deaths(plan: &Plan, setup: &Setup, world: &World) -> Result<Vec<Node>, String> {
    let mut random = Random::new(plan.seed);
    let mut order = Vec::new();
    let mut pair = Pair::of(setup);
    let mut died = 0;
    let mut late_tries = 0..plan.late_tries;
    let has_time = || plan.end.is_none_or(|end| Instant::now() < end);
    while has_time() && !world.has_faults() {
        let place = match died {
            // A place that only a new store passes has its turn then.
            0 => place_named("in-migration"),
            _ if died < plan.deaths => next_place(setup, &mut order, &mut random),
            _ => match late_tries.next().and_then(|tried| one_of(&spared(setup, world.counts), tried)) {
                Some(name) => place_named(name),
                None => break,
            },
        };
        if died > 0 {
            pair.change(world, &mut random)?;
        }
        died += u64::from(match &plan.power {
            None => one_death(&armed(&pair.mortal, place, &mut random), world, place, &mut random)?,
            Some(power) => one_loss(power, &pair.mortal, world, place, &mut random)?,
        });
    }
    if world.has_faults() {
        return Err("the clients have stopped".to_owned());
    }
    let last = started(&pair.mortal, world).map_err(|error| format!("the last start: {error}"))?;
    Ok([Some(last), pair.companion].into_iter().flatten().collect())
}

fn one_of<'p>(places: &[&'p str], turn: usize) -> Option<&'p str> {
    places.get(turn % places.len().max(1)).copied()
}

/// A node that clients know of.
pub fn started(setup: &Setup, world: &World) -> Result<Node, String> {
    let node = setup.try_start().map_err(|ended| format!("the node did not start: {ended:?}"))?;
    world.meet(&node.api, ANY_MOMENT);
    Ok(node)
}

/// The one that dies next, and the one that goes on meanwhile, where there can be two.
struct Pair {
    mortal: Setup,
    other: Option<Setup>,
    companion: Option<Node>,
}

impl Pair {
    fn of(setup: &Setup) -> Pair {
        let other = setup.has_nodes().then(|| setup.clone().named("two"));
        Pair { mortal: setup.clone(), other, companion: None }
    }

    /// Now and then they change places: the one that has died comes back, and the other one goes, with a word or without.
    fn change(&mut self, world: &World, random: &mut Random) -> Result<(), String> {
        let Some(other) = self.other.clone() else { return Ok(()) };
        let Some(mut companion) = self.companion.take() else {
            self.companion = Some(started(&other, world)?);
            return Ok(());
        };
        if !random.one_in(3) {
            self.companion = Some(companion);
            return Ok(());
        }
        let (back, gone) = (self.mortal.clone(), companion.api.clone());
        self.companion = Some(started(&back, world)?);
        if random.one_in(2) {
            companion.process.kill();
            world.counts.killed(ANY_MOMENT);
        } else {
            companion.process.signal("TERM");
            let status = companion.process.ends();
            (status.success()).then_some(()).ok_or_else(|| format!("a stop beside another node: {status}"))?;
        }
        world.part(&gone);
        self.mortal = other;
        self.other = Some(back);
        Ok(())
    }
}

/// The process dies, and with it the disk loses what it may lose.
fn one_loss(power: &Power, setup: &Setup, world: &World, place: usize, random: &mut Random) -> Result<bool, String> {
    let powered = power.on(setup).map_err(text)?;
    // Half of them between two writes, which no failpoint can tell: within a commit, within a checkpoint.
    let (setup, place) = match random.one_in(2) {
        true => {
            (powered.setup.clone().env(powerloss::RECORDS_MAX, &(1 + random.below(4_000)).to_string()), BETWEEN_WRITES)
        }
        false => (armed(&powered.setup, place, random), place),
    };
    let has_died = one_death(&setup, world, place, random)?;
    let seed = random.below(u64::MAX);
    world.counts.lost(powered.off(Fate::of(seed), seed).map_err(text)?);
    match check::after_loss(&setup).map_err(text)? {
        faults if faults.is_empty() => Ok(has_died),
        faults => Err(faults.into_iter().take(20).collect::<Vec<_>>().join("\n")),
    }
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

pub fn place_named(name: &str) -> usize {
    PLACES.iter().position(|place| place.name == name).unwrap_or(ANY_MOMENT)
}

fn armed(setup: &Setup, place: usize, random: &mut Random) -> Setup {
    let Some(place) = PLACES.get(place) else { return setup.clone() };
    setup.clone().env("WF_FAILPOINT", &format!("{}:{}", place.name, 1 + random.below(hits_max(place.name))))
}

/// Every place as often as every other, in an order of its own each time.
fn next_place(setup: &Setup, order: &mut Vec<usize>, random: &mut Random) -> usize {
    if order.is_empty() {
        let is_passed = |place: &usize| PLACES.get(*place).is_none_or(|place| is_passed(setup, place.name));
        order.extend((0..=ANY_MOMENT).filter(|place| *place != place_named("in-migration")).filter(is_passed));
        for n in (1..order.len()).rev() {
            order.swap(n, random.below(n as u64 + 1) as usize);
        }
    }
    order.pop().unwrap_or(ANY_MOMENT)
}

/// Places of SQLite's folder and of its write-ahead log.
const OF_A_FILE: [&str; 5] = ["after-lock", "before-checkpoint", "in-checkpoint", "after-checkpoint", "before-close"];
/// Of requests that touch several partitions.
const OF_PARTITIONS: [&str; 2] = ["after-lead", "before-finish"];

fn is_passed(setup: &Setup, place: &str) -> bool {
    if setup.has_nodes() { !OF_A_FILE.contains(&place) } else { !OF_PARTITIONS.contains(&place) }
}

/// Places of the matrix at which nobody died, and somebody could have.
pub fn spared(setup: &Setup, counts: &Counts) -> Vec<&'static str> {
    counts.spared().into_iter().filter(|place| is_passed(setup, place)).collect()
}

/// Some places are passed thousands of times a second, some ten times, some once.
fn hits_max(place: &str) -> u64 {
    match place {
        "before-turn" | "in-turn" | "before-commit" | "after-commit" | "before-answer" | "after-answer" => 60,
        "before-replay" => 20,
        "after-claim" | "after-ship" | "before-mark" | "after-mark" => 12,
        "in-sweep" => 4,
        "before-checkpoint" | "in-checkpoint" | "after-checkpoint" => 2,
        _ => 1,
    }
}

/// Whether it died where it was meant to; a node that was not caught there has stopped in peace.
fn one_death(setup: &Setup, world: &World, place: usize, random: &mut Random) -> Result<bool, String> {
    if place == ANY_MOMENT {
        return any_moment(setup, world, random);
    }
    let name = world.counts.name(place);
    let mut node = match setup.try_start() {
        Ok(node) => node,
        Err(ended) if is_abort(ended.status) => {
            world.counts.killed(place);
            return Ok(true);
        }
        Err(ended) => return Err(format!("{name}: the node did not start: {ended:?}")),
    };
    world.meet(&node.api, place);
    let answers_max = if OF_PARTITIONS.contains(&name) { ANSWERS_MAX_SELDOM } else { ANSWERS_MAX };
    let status = wait_for_end(&mut node, world, answers_max);
    world.part(&node.api);
    match status {
        Some(status) if is_abort(status) => {
            world.counts.killed(place);
            Ok(true)
        }
        Some(status) if status.success() => Ok(false),
        status => Err(format!("{name}: the node ended otherwise: {status:?}")),
    }
}

fn is_abort(status: ExitStatus) -> bool {
    status.signal() == Some(6)
}

fn wait_for_end(node: &mut Node, world: &World, answers_max: u64) -> Option<ExitStatus> {
    let begun = Instant::now();
    let mut answers_left = Some(answers_max);
    while begun.elapsed() < WAIT_MAX {
        if let Some(status) = node.process.ended() {
            return Some(status);
        }
        if world.has_faults() {
            return None;
        }
        if let Some(left) = answers_left {
            answers_left = world.wait_for_answers(left, Duration::from_millis(5));
            if answers_left.is_none() {
                node.process.signal("TERM");
            }
        } else {
            crate::pause();
        }
    }
    None
}

/// SIGKILL while requests are on their way.
fn any_moment(setup: &Setup, world: &World, random: &mut Random) -> Result<bool, String> {
    let node = started(setup, world)?;
    let api = node.api.clone();
    let mut left = Some(1 + random.below(100));
    while let Some(answers) = left.filter(|_| !world.has_faults()) {
        left = world.wait_for_answers(answers, Duration::from_millis(100));
    }
    node.kill();
    world.part(&api);
    world.counts.killed(ANY_MOMENT);
    Ok(true)
}

/// Customers end what they began; then workers, engine and shipper are waited for.
fn finish(nodes: Vec<Node>, world: &World, clients: clients::Handles) -> Result<(), String> {
    world.enter(Phase::Finish);
    clients.customers.into_iter().for_each(|customer| drop(customer.join()));
    let api = &nodes[0].api;
    wait_for("the end of all instances", world, || api.all("/api/v1/instances?state=ACTIVE").is_empty())?;
    wait_for("an empty outbox", world, || api.all("/api/v1/outbox?state=pending").is_empty())?;
    world.enter(Phase::Over);
    clients.workers.into_iter().for_each(|worker| drop(worker.join()));
    check::instances(api, world);
    let mut stops = nodes.into_iter().map(Node::stop);
    match stops.find(|status| !status.success()) {
        None => Ok(()),
        Some(status) => Err(format!("the last stop: {status}")),
    }
}

fn wait_for(what: &str, world: &World, is_there: impl Fn() -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !is_there() {
        if world.has_faults() || begun.elapsed() > WAIT_MAX {
            return Err(format!("no {what}"));
        }
        crate::pause();
    }
    Ok(())
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        writeln!(f, "seed {}, everything is kept in {}", self.seed, self.folder.display())?;
        self.faults.iter().take(20).try_for_each(|fault| writeln!(f, "  {fault}"))?;
        match self.faults.len() {
            0..=20 => Ok(()),
            all => writeln!(f, "  and {} more", all - 20),
        }
    }
}
