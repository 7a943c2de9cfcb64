//! One seed from its first request to its last check: a storm, then calm until everything has come to rest, then the books
//! are read. Single-threaded, in time that stands until everybody waits. Next: `checks.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinHandle;
use wf_core::Row;
use wf_core::rows::{JobState, ScopeState};
use wf_engine::{Ask, Request};
use wf_store::OutboxState;

use crate::plan::Plan;
use crate::rng::Rng;
use crate::world::{TENANT, Violation, World};
use crate::{checks, client, models, operator, restore, worker};

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Report {
    pub seed: u64,
    pub violations: Vec<Violation>,
    /// Faults by kind, requests, and the like.
    pub counts: BTreeMap<&'static str, u64>,
    pub trace_hash: [u8; 32],
    pub virtual_ms: u64,
}

/// Once the storm is over everything must come to rest within this time.
const CALM_MS_MAX: u64 = 1_200_000;

pub fn run(seed: u64, is_traced: bool) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(simulate(seed, is_traced)),
        Err(error) => panic!("no runtime: {error}"),
    }
}

async fn simulate(seed: u64, is_traced: bool) -> Report {
    let mut rng = Rng::new(seed);
    let plan = Plan::of(seed, &mut rng);
    let world = World::new(plan, rng, is_traced);
    world.say("world", format_args!("{:?}", world.plan));
    let nodes: Vec<_> = world.nodes.iter().map(|node| tokio::spawn(node.clone().keep(world.clone()))).collect();
    deploy(&world).await;
    let clients = open(&world);
    let workers = staff(&world);
    world.sleep(world.plan.storm_ms).await;
    if world.plan.has_restore {
        world.restored(0).await;
    }
    calm(&world);
    join(&world, clients).await;
    rest(&world).await;
    world.end();
    join(&world, workers).await;
    join(&world, nodes).await;
    checks::run(&world, &world.store()).await;
    report(&world)
}

fn report(world: &World) -> Report {
    Report {
        seed: world.plan.seed,
        violations: world.violations(),
        counts: world.counts(),
        trace_hash: world.trace.hash(),
        virtual_ms: world.now_ms(),
    }
}

/// Every model, before anything else; as often as it takes.
async fn deploy(world: &Arc<World>) {
    loop {
        if let Some(life) = world.nodes[0].life() {
            let request = Request {
                tenant: TENANT.into(),
                actor: "operator".into(),
                ask: Ask::Command(models::deployment()),
                passport: None,
                wait: std::time::Duration::ZERO,
                render: |_| wf_idempotency::record::Answer::new(200, [("x", "y")], Vec::new().into()),
            };
            let deployed = life.engine.submit(request).await;
            world.say("operator", format_args!("deploys: {}", if deployed.is_ok() { "done" } else { "again" }));
            if deployed.is_ok() && life.pulse.is_alive() {
                return;
            }
        }
        world.sleep(50).await;
    }
}

fn open(world: &Arc<World>) -> Vec<JoinHandle<()>> {
    let mut clients: Vec<_> =
        (0..world.plan.orders).map(|number| tokio::spawn(client::order(world.clone(), number))).collect();
    if world.plan.has_restore {
        clients.push(tokio::spawn(restore::burn(world.clone())));
    }
    clients
}

fn staff(world: &Arc<World>) -> Vec<JoinHandle<()>> {
    let mut staff: Vec<_> =
        (0..world.plan.workers).map(|number| tokio::spawn(worker::work(world.clone(), number))).collect();
    staff.push(tokio::spawn(operator::operate(world.clone())));
    if world.plan.has_jumps {
        staff.push(tokio::spawn(operator::weather(world.clone())));
    }
    staff
}

/// No fault happens from now on; of two nodes that believe they own the partition one goes away.
fn calm(world: &World) {
    world.calm();
    world.settle_clocks(0);
    world.say("world", format_args!("the storm is over"));
    world.nodes.iter().skip(1).for_each(|node| node.retire());
}

async fn join(world: &World, tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        match tokio::time::timeout(std::time::Duration::from_millis(CALM_MS_MAX), task).await {
            Ok(Ok(())) => (),
            Ok(Err(error)) => world.violated("panic", error.to_string()),
            Err(_) => return world.violated("quiet", "somebody waits for ever".to_owned()),
        }
    }
}

/// Until nothing is left to be done.
async fn rest(world: &Arc<World>) {
    let end_ms = world.now_ms() + CALM_MS_MAX;
    loop {
        let Some(busy) = what_is_left(world) else { return };
        if world.now_ms() > end_ms {
            return world.violated("quiet", busy);
        }
        client::pay_for_twins(world).await;
        world.say("world", format_args!("not at rest yet: {:.120}", busy));
        world.sleep(1_000).await;
    }
}

fn what_is_left(world: &World) -> Option<String> {
    let store = world.store();
    let is_busy = |row: &Row| match row {
        Row::Scope(scope) => matches!(scope.state, ScopeState::Active | ScopeState::Terminating),
        Row::Job(job) => !matches!(job.state, JobState::Completed | JobState::Canceled),
        Row::FollowUp(_) | Row::Incident(_) | Row::Timer(_) => true,
        _ => false,
    };
    let row = store.rows().into_iter().find(is_busy).map(|row| format!("{row:?}"));
    let unsent = || {
        let unsent = store.outbox_rows().into_iter().find(|row| row.state != OutboxState::Shipped);
        unsent.map(|row| format!("{} is {:?}", row.entry.event_id, row.state))
    };
    row.or_else(unsent)
}
