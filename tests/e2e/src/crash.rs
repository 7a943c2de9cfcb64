//! The crash matrix: one store that lives through many deaths of its process under load, and checkers at its end over what
//! clients, provider and receivers saw. CI runs a few lives, `cargo xtask crash` as many as there is time for.
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
    pub seed: u64,
    pub deaths: u64,
    /// A broker beside the webhook.
    pub with_nats: bool,
    /// With each death the power goes too.
    pub power: Option<Power>,
    /// No more deaths from then on.
    pub end: Option<Instant>,
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
/// Nothing here takes that long: whoever waits so long waits in vain.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Records of messages run out within a second, so that sweeps have something to do.
const CONFIG: &str = "[idempotency]\nsweep_ms = 100\n\
    [idempotency.routes.\"POST /api/v1/messages\"]\nttl_ms = 1000\n";

/// One store from its making to its end. `Ok`: every checker was content.
pub fn live(plan: &Plan, counts: &Counts) -> Result<(), Broken> {
    let receiver = Receiver::start(|_| 200);
    let nats = plan.with_nats.then(Nats::start);
    let setup = setup(&receiver, nats.as_ref());
    let world = World::new(counts, plan.seed);
    let end = std::thread::scope(|scope| {
        let _over = Over(&world);
        let clients = clients::spawn(scope, &world);
        deaths(plan, &setup, &world).and_then(|node| finish(node, &world, clients))
    });
    if let Err(fault) = end {
        world.fault(fault);
    }
    let mut faults = world.faults();
    if faults.is_empty() {
        faults = check::all(&setup, &world, &receiver, nats.as_ref());
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Broken { seed: plan.seed, folder: setup.keep(), faults }),
    }
}

/// Clients come home however it ended, also by a panic.
struct Over<'w, 'a>(&'w World<'a>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        self.0.enter(Phase::Over);
    }
}

fn setup(receiver: &Receiver, nats: Option<&Nats>) -> Setup {
    let hook = format!("[[sink]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{}\"\n", receiver.url());
    let bus = nats.map(|nats| stream::sink(&nats.url(), "[\"*\"]"));
    let setup = Setup::new().data_in(DATA).config(CONFIG);
    setup.config(&hook).config(&bus.unwrap_or_default())
}

/// Kills it as often as planned; the node that lives at the end.
fn deaths(plan: &Plan, setup: &Setup, world: &World) -> Result<Node, String> {
    let mut random = Random::new(plan.seed);
    let mut order = Vec::new();
    let mut died = 0;
    let has_time = || plan.end.is_none_or(|end| Instant::now() < end);
    while died < plan.deaths && has_time() && !world.has_faults() {
        // A place that only a new store passes has its turn then.
        let place = if died == 0 { place_named("in-migration") } else { next_place(&mut order, &mut random) };
        died += u64::from(match &plan.power {
            None => one_death(&armed(setup, place, &mut random), world, place, &mut random)?,
            Some(power) => one_loss(power, setup, world, place, &mut random)?,
        });
    }
    if world.has_faults() {
        return Err("the clients have stopped".to_owned());
    }
    let node = setup.try_start().map_err(|ended| format!("the last start: {ended:?}"))?;
    world.meet(&node.api, ANY_MOMENT);
    Ok(node)
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
fn next_place(order: &mut Vec<usize>, random: &mut Random) -> usize {
    if order.is_empty() {
        order.extend((0..=ANY_MOMENT).filter(|place| *place != place_named("in-migration")));
        for n in (1..order.len()).rev() {
            order.swap(n, random.below(n as u64 + 1) as usize);
        }
    }
    order.pop().unwrap_or(ANY_MOMENT)
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
    let status = wait_for_end(&mut node, world);
    world.part();
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

fn wait_for_end(node: &mut Node, world: &World) -> Option<ExitStatus> {
    let begun = Instant::now();
    let mut answers_left = Some(ANSWERS_MAX);
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
    let node = setup.try_start().map_err(|ended| format!("the node did not start: {ended:?}"))?;
    world.meet(&node.api, ANY_MOMENT);
    let mut left = Some(1 + random.below(100));
    while let Some(answers) = left.filter(|_| !world.has_faults()) {
        left = world.wait_for_answers(answers, Duration::from_millis(100));
    }
    node.kill();
    world.part();
    world.counts.killed(ANY_MOMENT);
    Ok(true)
}

/// Customers end what they began; then workers, engine and shipper are waited for.
fn finish(node: Node, world: &World, clients: clients::Handles) -> Result<(), String> {
    world.enter(Phase::Finish);
    clients.customers.into_iter().for_each(|customer| drop(customer.join()));
    let api = &node.api;
    wait_for("the end of all instances", world, || api.all("/api/v1/instances?state=ACTIVE").is_empty())?;
    wait_for("an empty outbox", world, || api.all("/api/v1/outbox?state=pending").is_empty())?;
    world.enter(Phase::Over);
    clients.workers.into_iter().for_each(|worker| drop(worker.join()));
    check::instances(&node.api, world);
    match node.stop() {
        status if status.success() => Ok(()),
        status => Err(format!("the last stop: {status}")),
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
