//! Workers: they poll, call the provider with the job's key, complete; and die before or after the call, are slow beyond
//! their lease, complete twice, many at once, or fail. Next: `operator.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::pursue;
use crate::door::{Call, Heard, Route, ask};
use crate::facts::Given;
use crate::models::JOB_TYPES;
use crate::world::World;

pub async fn work(world: Arc<World>, number: u64) {
    let name = format!("worker-{number}");
    let mut polls = 0;
    while !world.is_over() {
        polls += 1;
        let jobs = poll(&world, &name, number, polls).await;
        let mut done = Vec::new();
        for job in jobs {
            if world.fault("worker dies before its call", 40) {
                break;
            }
            match do_job(&world, &job).await {
                Done::Completes(variables) => done.push((job, variables)),
                Done::Fails => fail(&world, &job).await,
                Done::Dies => break,
            }
        }
        finish(&world, &name, done).await;
        world.sleep(world.below(200)).await;
    }
}

/// What comes of a job in a worker's hands.
enum Done {
    Completes(Value),
    Fails,
    Dies,
}

async fn poll(world: &Arc<World>, name: &str, worker: u64, number: u64) -> Vec<Given> {
    let body = json!({"type": job_type(world, worker), "worker": name, "maxJobs": world.between(1, 4),
        "leaseMs": world.plan.lease_ms, "waitMs": world.one_of(&[0, 300, 1_500])});
    let key = world.chance(200).then(|| format!("poll-{name}-{number}"));
    let call = Call { actor: name.to_owned(), route: Route::Activate, body: body.to_string(), key };
    let reply = match call.key {
        Some(_) => pursue_poll(world, &call).await,
        None => match ask(world, &call, world.between(1_000, 4_000)).await {
            Heard::Answer(reply) if reply.is_done() => Some(reply),
            _ => None,
        },
    };
    let Some(reply) = reply else { return Vec::new() };
    let given = given(world, name, &reply.body, call.key.is_none() && !reply.is_replay);
    world.facts().given.extend(given.iter().cloned());
    given
}

/// Mostly one of its own: every type has somebody, some have two.
fn job_type(world: &World, worker: u64) -> &'static str {
    let own = (worker + world.plan.workers * world.below(3)) as usize % JOB_TYPES.len();
    if world.chance(700) { JOB_TYPES[own] } else { world.one_of(&JOB_TYPES) }
}

/// A few times: an empty answer is not remembered, and a worker has other things to ask for.
async fn pursue_poll(world: &Arc<World>, call: &Call) -> Option<crate::door::Reply> {
    for _ in 0..4 {
        if let Heard::Answer(reply) = ask(world, call, world.between(100, 4_000)).await
            && !reply.is_passing()
        {
            return Some(reply).filter(|reply| reply.is_done());
        }
        world.sleep(world.between(20, 300)).await;
    }
    None
}

fn given(world: &World, worker: &str, body: &str, is_fresh: bool) -> Vec<Given> {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let jobs = body["jobs"].as_array().cloned().unwrap_or_default();
    jobs.iter().map(|job| one_given(world, worker, job, is_fresh)).collect()
}

fn one_given(world: &World, worker: &str, job: &Value, is_fresh: bool) -> Given {
    let text = |name: &str| job[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| text(name).parse().unwrap_or_default();
    let variables: BTreeMap<String, String> = job["variables"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.to_string()))
        .collect();
    Given {
        history: world.history(),
        job: number("key"),
        lease: number("lease"),
        worker: worker.to_owned(),
        instance: number("processInstanceKey"),
        element: text("elementId"),
        order: job["variables"]["order"].as_str().unwrap_or_default().to_owned(),
        provider_key: text("idempotencyKey"),
        lineage_key: text("lineageKey"),
        variables,
        is_fresh,
    }
}

async fn do_job(world: &Arc<World>, job: &Given) -> Done {
    let fails = if job.element == "try" { 400 } else { 60 };
    if world.fault("job fails", fails) {
        return Done::Fails;
    }
    world.sleep(world.below(300)).await;
    // A key that follows the lineage is the same after a restore as well.
    let key = if world.plan.has_restore { &job.lineage_key } else { &job.provider_key };
    let (result, is_other) = world.provider.call(key, &format!("{} {}", job.order, job.element));
    world.say("provider", format_args!("{key}: {} {} -> {result}", job.order, job.element));
    if is_other {
        world.violated("one-effect", format!("{key} stood for something else than {} {}", job.order, job.element));
    }
    if world.fault("worker dies after its call", 50) {
        return Done::Dies;
    }
    if world.fault("worker is slow", 80) {
        world.sleep(world.plan.lease_ms.unsigned_abs() * world.between(8, 20) / 10).await;
    }
    Done::Completes(json!({job.element.clone(): result, "last": job.element}))
}

async fn fail(world: &Arc<World>, job: &Given) {
    let body = json!({"worker": job.worker, "lease": job.lease.to_string(), "message": "no",
        "retryBackoffMs": world.one_of(&[0, 500])});
    let body = body.to_string();
    let key = world.chance(300).then(|| format!("fail-{}-{}", job.job, job.lease));
    let call = Call { actor: job.worker.clone(), route: Route::Fail(job.job), body, key };
    pursue(world, &format!("fail {}", job.job), call).await;
}

async fn finish(world: &Arc<World>, name: &str, done: Vec<(Given, Value)>) {
    if done.len() > 1 && world.chance(500) {
        world.count("batch completion");
        return complete_many(world, name, &done).await;
    }
    for (job, variables) in done {
        complete(world, &job, &variables).await;
    }
}

async fn complete(world: &Arc<World>, job: &Given, variables: &Value) {
    let body = json!({"worker": job.worker, "lease": job.lease.to_string(), "variables": variables}).to_string();
    let key = world.chance(400).then(|| format!("complete-{}-{}", job.job, job.lease));
    let call = Call { actor: job.worker.clone(), route: Route::Complete(job.job), body, key };
    pursue(world, &format!("complete {}", job.job), call.clone()).await;
    if world.fault("worker completes twice", 150) {
        pursue(world, &format!("complete {}", job.job), call).await;
    }
}

async fn complete_many(world: &Arc<World>, name: &str, done: &[(Given, Value)]) {
    let item = |(job, variables): &(Given, Value)| json!({"key": job.job.to_string(), "lease": job.lease.to_string(), "variables": variables});
    let body = json!({"worker": name, "jobs": done.iter().map(item).collect::<Vec<_>>()}).to_string();
    let key = world.chance(400).then(|| format!("batch-{}-{}", done[0].0.job, done[0].0.lease));
    let call = Call { actor: name.to_owned(), route: Route::CompleteMany, body, key };
    pursue(world, "complete many", call).await;
}
