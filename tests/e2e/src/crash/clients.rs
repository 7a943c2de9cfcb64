//! The load: customers that start orders, set variables and publish messages, and workers that take and finish jobs, one by
//! one and many at once, fail some, hold some too long. All of them repeat themselves. What is wrong already in an answer
//! is a fault at once; the rest is seen at the end. Next: `check.rs`.

use std::collections::BTreeMap;
use std::thread::{Scope, ScopedJoinHandle};

use serde_json::{Value, json};

use crate::api::{jobs_of, text};
use crate::http::Answer;
use crate::models::model;
use crate::{Random, locked, pause};

use super::world::{Order, PASSING, Phase, World};

const CUSTOMERS: u64 = 12;
const WORKERS: u64 = 4;
/// Nobody holds a job that long: it does not run out.
const LEASE_MS: u64 = 3_600_000;
/// Runs out while its holder looks elsewhere.
const SHORT_LEASE_MS: u64 = 40;
/// Updates of one order; the last one counts.
pub const STEPS: u64 = 3;

pub struct Handles<'scope> {
    pub customers: Vec<ScopedJoinHandle<'scope, ()>>,
    pub workers: Vec<ScopedJoinHandle<'scope, ()>>,
}

pub fn spawn<'scope, 'a: 'scope>(scope: &'scope Scope<'scope, '_>, world: &'scope World<'a>) -> Handles<'scope> {
    let random = |n: u64| Random::new(world.seed ^ (n << 32));
    let customers = (1..=CUSTOMERS).map(|n| {
        let client = Client { world, name: format!("c{n}"), random: random(n), kept: Vec::new() };
        scope.spawn(move || customer(client))
    });
    let workers = (1..=WORKERS).map(|n| {
        let client = Client { world, name: format!("w{n}"), random: random(100 + n), kept: Vec::new() };
        scope.spawn(move || worker(client))
    });
    Handles { customers: customers.collect(), workers: workers.collect() }
}

/// A job, a message, a timer: each one a way for the engine to do something by itself.
fn flow() -> String {
    let content = r#"<bpmn:startEvent id="start"/><bpmn:sequenceFlow id="f1" sourceRef="start" targetRef="charge"/>
<bpmn:serviceTask id="charge"><bpmn:extensionElements><zeebe:taskDefinition type="charge"/></bpmn:extensionElements>
</bpmn:serviceTask><bpmn:sequenceFlow id="f2" sourceRef="charge" targetRef="go"/>
<bpmn:intermediateCatchEvent id="go"><bpmn:messageEventDefinition messageRef="m"/></bpmn:intermediateCatchEvent>
<bpmn:sequenceFlow id="f3" sourceRef="go" targetRef="rest"/>
<bpmn:intermediateCatchEvent id="rest"><bpmn:timerEventDefinition><bpmn:timeDuration>PT0.02S</bpmn:timeDuration>
</bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>
<bpmn:sequenceFlow id="f4" sourceRef="rest" targetRef="end"/><bpmn:endEvent id="end"/>"#;
    let message = r#"<bpmn:message id="m" name="go"><bpmn:extensionElements>
<zeebe:subscription correlationKey="=order"/></bpmn:extensionElements></bpmn:message></bpmn:definitions>"#;
    model("flow", content).replace("</bpmn:definitions>", message)
}

struct Client<'w, 'a> {
    world: &'w World<'a>,
    name: String,
    random: Random,
    /// Jobs of an earlier poll, of another partition perhaps, that are finished together with the next ones.
    kept: Vec<Value>,
}

impl Client<'_, '_> {
    /// `key`: the idempotency key; empty where the state itself knows what was done. `None`: it is over.
    fn post(&mut self, path: &str, key: &str, body: &Value) -> Option<Answer> {
        self.send("POST", path, key, body)
    }

    fn send(&mut self, method: &str, path: &str, key: &str, body: &Value) -> Option<Answer> {
        self.world.insist(&mut self.random, |api| {
            let call = api.call(method, path).json(body);
            if key.is_empty() { call } else { call.key(key) }
        })
    }

    /// `None` also where it is not the answer that has to come.
    fn expect(&self, answer: Answer, statuses: &[u16], what: &str) -> Option<Answer> {
        if statuses.contains(&answer.status) {
            return Some(answer);
        }
        self.world.fault(format!("{}: {what}: {} {}", self.name, answer.status, answer.text()));
        None
    }
}

fn customer(mut client: Client) {
    for n in 0.. {
        if client.world.phase() > Phase::Load || order(&mut client, n).is_none() {
            return;
        }
    }
}

/// From the start to the message that lets it go on. Everything in it is repeated now and then, also long afterwards.
fn order(client: &mut Client, n: u64) -> Option<()> {
    let id = format!("{}-{n}", client.name);
    if n == 0 {
        // All of them at once: one is new, the others are told so.
        let world = client.world;
        let answer = world.insist(&mut client.random, |api| api.deploy(&flow()))?;
        client.expect(answer, &[200, 201], "deploy")?;
    }
    let instance = start(client, &id)?;
    let mut variables = BTreeMap::from([("order".to_owned(), json!(id))]);
    for step in 1..=STEPS {
        set(client, &id, &instance, step, &mut variables)?;
    }
    if client.random.one_in(3) {
        // Long since overtaken: it must change nothing.
        let step = 1 + client.random.below(STEPS);
        set(client, &id, &instance, step, &mut BTreeMap::new())?;
        start(client, &id)?;
    }
    publish(client, &id)?;
    if client.random.one_in(3) {
        publish(client, &id)?;
    }
    if client.random.one_in(3) {
        passing(client, &id)?;
    }
    locked(&client.world.orders).push(Order { id, instance, variables });
    Some(())
}

fn start(client: &mut Client, id: &str) -> Option<String> {
    let body = json!({"processDefinitionId": "flow", "variables": {"order": id, "step": 0}});
    let answer = client.post("/api/v1/instances", &format!("start-{id}"), &body)?;
    let answer = client.expect(answer, &[201], "start")?;
    Some(text(&answer.json()["key"]))
}

fn set(
    client: &mut Client,
    id: &str,
    instance: &str,
    step: u64,
    variables: &mut BTreeMap<String, Value>,
) -> Option<()> {
    let own = format!("of{step}");
    let body = json!({"variables": {"step": step, &own: format!("{id}/{step}")}});
    let path = format!("/api/v1/instances/{instance}/variables");
    let answer = client.send("PUT", &path, &format!("set-{id}-{step}"), &body)?;
    client.expect(answer, &[200], "set")?;
    variables.insert("step".to_owned(), json!(step));
    variables.insert(own.clone(), body["variables"][&own].clone());
    Some(())
}

/// L5.7: the id is enough.
fn publish(client: &mut Client, id: &str) -> Option<()> {
    let message_id = format!("go-{id}");
    let body = json!({"name": "go", "correlationKey": id, "messageId": message_id, "ttlMs": LEASE_MS, "variables": {}});
    let answer = client.post("/api/v1/messages", "", &body)?;
    let key = text(&client.expect(answer, &[200], "publish")?.json()["key"]);
    let mut messages = locked(&client.world.messages);
    let first = messages.entry(message_id.clone()).or_insert_with(|| key.clone()).clone();
    drop(messages);
    if first != key {
        client.world.fault(format!("{message_id} became two messages: {first} and {key}"));
    }
    Some(())
}

/// Nobody waits for it; its record runs out and is swept.
fn passing(client: &mut Client, id: &str) -> Option<()> {
    let key = format!("{PASSING}{id}");
    let answer = client.post("/api/v1/messages", &key, &json!({"name": "nobody", "variables": {}}))?;
    client.expect(answer, &[200], "publish").map(drop)
}

fn worker(mut client: Client) {
    let mut held_too_long = Vec::new();
    for poll in 0.. {
        if round(&mut client, poll, &mut held_too_long).is_none() {
            return;
        }
    }
}

/// One poll, until it brings something; then what it brought.
fn round(client: &mut Client, poll: u64, held_too_long: &mut Vec<Value>) -> Option<()> {
    let key = format!("poll-{}-{poll}", client.name);
    let is_short = client.random.one_in(10);
    let lease_ms = if is_short { SHORT_LEASE_MS } else { LEASE_MS };
    let jobs_max = if client.random.one_in(2) { 1 } else { 5 };
    let body = json!({"type": "charge", "worker": client.name, "maxJobs": jobs_max, "leaseMs": lease_ms});
    let jobs = loop {
        let answer = client.post("/api/v1/jobs/activate", &key, &body)?;
        let jobs = jobs_of(&client.expect(answer, &[200], "activate")?);
        if !jobs.is_empty() {
            break jobs;
        }
        let kept = std::mem::take(&mut client.kept);
        if !kept.is_empty() {
            many_at_once(client, &kept)?;
        }
        // The same key: an earlier request of this poll may be on its way, and what it takes belongs to it.
        pause();
    };
    jobs.iter().for_each(|job| remember(client, &key, job));
    if is_short {
        jobs.iter().for_each(|job| drop(charge(client, job)));
        held_too_long.extend(jobs);
        return Some(());
    }
    if client.random.one_in(4) {
        too_late(client, held_too_long)?;
    }
    match jobs_max {
        1 => jobs.iter().try_for_each(|job| one_by_one(client, job)),
        _ if client.kept.is_empty() && client.random.one_in(2) => {
            client.kept = jobs;
            Some(())
        }
        _ => {
            let both = [std::mem::take(&mut client.kept), jobs].concat();
            many_at_once(client, &both)
        }
    }
}

/// A lease is given out once, however often its answer comes.
fn remember(client: &Client, poll: &str, job: &Value) {
    let lease = (text(&job["key"]), text(&job["lease"]));
    let mut leases = locked(&client.world.leases);
    let first = leases.entry(lease.clone()).or_insert_with(|| poll.to_owned()).clone();
    drop(leases);
    if first != poll {
        client.world.fault(format!("lease {lease:?} was given to {first} and to {poll}"));
    }
}

/// The provider honours the job's key: whoever holds the job, and however often, gets one charge.
fn charge(client: &Client, job: &Value) -> Value {
    let instance = text(&job["processInstanceKey"]);
    let what = json!({"instance": instance});
    let receipt = client.world.provider.charge(&text(&job["idempotencyKey"]), &what).json()["charge"].clone();
    let mut receipts = locked(&client.world.receipts);
    let first = receipts.entry(instance.clone()).or_insert_with(|| receipt.clone()).clone();
    drop(receipts);
    if first != receipt {
        client.world.fault(format!("{instance} was charged twice: {first} and {receipt}"));
    }
    json!({"receipt": receipt})
}

fn one_by_one(client: &mut Client, job: &Value) -> Option<()> {
    let (job_key, lease) = (text(&job["key"]), text(&job["lease"]));
    let variables = charge(client, job);
    if client.random.one_in(8) {
        // It has charged, and does not get that far.
        let body = json!({"worker": client.name, "lease": lease, "message": "m", "retries": 3, "backoffMs": 0});
        let answer = client.post(&format!("/api/v1/jobs/{job_key}/fail"), &format!("fail-{job_key}-{lease}"), &body)?;
        return client.expect(answer, &[200], "fail").map(drop);
    }
    let body = json!({"worker": client.name, "lease": lease, "variables": variables});
    // L3.4: the holder needs no key.
    let key = if client.random.one_in(2) { format!("complete-{job_key}-{lease}") } else { String::new() };
    let answer = client.post(&format!("/api/v1/jobs/{job_key}/complete"), &key, &body)?;
    client.expect(answer, &[200], "complete").map(drop)
}

fn many_at_once(client: &mut Client, jobs: &[Value]) -> Option<()> {
    let done = |job: &Value| json!({"key": job["key"], "lease": job["lease"], "variables": charge(client, job)});
    let body = json!({"worker": client.name, "jobs": jobs.iter().map(done).collect::<Vec<_>>()});
    // With a key, and of several partitions: the one way past the places of a request that has a leader.
    let key = if !client.random.one_in(4) {
        format!("batch-{}-{}", text(&jobs[0]["key"]), text(&jobs[0]["lease"]))
    } else {
        String::new()
    };
    let answer = client.post("/api/v1/jobs/complete", &key, &body)?;
    let answer = client.expect(answer, &[200], "complete many")?;
    let results = answer.json()["results"].as_array().cloned().unwrap_or_default();
    let done = results.iter().filter(|result| result["state"] == "COMPLETED").count();
    if done != jobs.len() {
        client.world.fault(format!("{}: a batch of {} has {}", client.name, jobs.len(), answer.text()));
    }
    Some(())
}

/// Somebody else may have the job by now: then it is refused, and never done twice.
fn too_late(client: &mut Client, held_too_long: &mut Vec<Value>) -> Option<()> {
    for job in held_too_long.drain(..) {
        let body = json!({"worker": client.name, "lease": job["lease"], "variables": charge(client, &job)});
        let answer = client.post(&format!("/api/v1/jobs/{}/complete", text(&job["key"])), "", &body)?;
        let answer = client.expect(answer, &[200, 409], "complete too late")?;
        if answer.status == 409 && answer.json()["code"] != "job-lease-lost" {
            client.world.fault(format!("{}: too late: {}", client.name, answer.text()));
        }
    }
    Some(())
}
