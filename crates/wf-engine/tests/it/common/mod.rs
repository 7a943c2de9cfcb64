//! An engine over a memory store with a test clock, and a driver that asks it things. Next: `stage.rs`, `whole.rs`.

pub mod across;
pub mod book;
pub mod stage;
pub mod whole;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wf_core::command::{Holder, Resource};
use wf_core::rows::Variables;
use wf_core::{Command, Key, Outcome};
use wf_engine::*;
use wf_idempotency::fingerprint::Fingerprint;
use wf_idempotency::record::Answer;

pub use stage::{Fault, Stage};

/// 2027: after the zero of the epoch counters.
pub const START: i64 = 1_800_000_000_000;
pub const TTL_MS: i64 = 86_400_000;
pub const TENANTS: [&str; 3] = ["", "acme", "other"];

/// `order`: job a, then job b. `paid`: waits for message paid(id), then job c. `late`: waits 10 s, then job d.
pub const MODEL: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
             xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" id="d" targetNamespace="t">
  <message id="m" name="paid"><extensionElements><zeebe:subscription correlationKey="=id"/></extensionElements></message>
  <process id="order" isExecutable="true">
    <startEvent id="s"/><sequenceFlow id="f1" sourceRef="s" targetRef="a"/>
    <serviceTask id="a"><extensionElements><zeebe:taskDefinition type="a" retries="3"/></extensionElements></serviceTask>
    <sequenceFlow id="f2" sourceRef="a" targetRef="b"/>
    <serviceTask id="b"><extensionElements><zeebe:taskDefinition type="b" retries="3"/></extensionElements></serviceTask>
    <sequenceFlow id="f3" sourceRef="b" targetRef="e"/><endEvent id="e"/>
  </process>
  <process id="paid" isExecutable="true">
    <startEvent id="s2"/><sequenceFlow id="g1" sourceRef="s2" targetRef="w"/>
    <intermediateCatchEvent id="w"><messageEventDefinition messageRef="m"/></intermediateCatchEvent>
    <sequenceFlow id="g2" sourceRef="w" targetRef="c"/>
    <serviceTask id="c"><extensionElements><zeebe:taskDefinition type="c"/></extensionElements></serviceTask>
    <sequenceFlow id="g3" sourceRef="c" targetRef="e2"/><endEvent id="e2"/>
  </process>
  <process id="late" isExecutable="true">
    <startEvent id="s3"/><sequenceFlow id="h1" sourceRef="s3" targetRef="t"/>
    <intermediateCatchEvent id="t"><timerEventDefinition><timeDuration xsi:type="tFormalExpression">PT10S</timeDuration></timerEventDefinition></intermediateCatchEvent>
    <sequenceFlow id="h2" sourceRef="t" targetRef="d1"/>
    <serviceTask id="d1"><extensionElements><zeebe:taskDefinition type="d"/></extensionElements></serviceTask>
    <sequenceFlow id="h3" sourceRef="d1" targetRef="e3"/><endEvent id="e3"/>
  </process>
</definitions>"#;

pub fn options() -> Options {
    Options {
        clock: ClockMode::Test { start: START },
        pause_ms: 5,
        wait_ms: 20,
        sinks: vec![SinkRule { name: "bus".into(), events: vec!["*".to_owned()], window_ms: 60_000 }],
        ..Options::default()
    }
}

#[derive(Clone)]
pub struct World {
    pub stage: Arc<Stage>,
    pub engine: Engine,
}

impl World {
    /// A fresh engine with the model deployed for tenant `acme`.
    pub async fn new() -> World {
        World::with(options()).await
    }

    pub async fn with(options: Options) -> World {
        let world = World::open(Stage::new(), options).await;
        world.ok(deploy()).await;
        world
    }

    pub async fn open(stage: Arc<Stage>, options: Options) -> World {
        let engine = Engine::open(stage.clone(), options).await.unwrap();
        World { stage, engine }
    }

    pub async fn ask(&self, request: Request) -> Result<Answered, Refusal> {
        self.engine.submit(request).await
    }

    /// The answer's text.
    pub async fn ok(&self, request: Request) -> String {
        let what = format!("{:.200?}", request.ask);
        match self.ask(request).await {
            Ok(answered) => text(&answered),
            Err(refusal) => panic!("{what}: {refusal:?}"),
        }
    }

    /// Asked in a task of its own.
    pub fn later(&self, request: Request) -> tokio::task::JoinHandle<Result<Answered, Refusal>> {
        let engine = self.engine.clone();
        tokio::spawn(async move { engine.submit(request).await })
    }

    pub async fn advance(&self, ms: i64) {
        self.ok(clock(ClockChange::Advance { ms })).await;
    }

    pub async fn start(&self, process: &str) -> Key {
        key_in(&self.ok(start(process)).await)
    }

    /// Jobs as (key, lease).
    pub async fn activate(&self, job_type: &str) -> Vec<(Key, u64)> {
        jobs_in(&self.ok(activate(job_type, "w", 10)).await)
    }

    /// Stops the engine and holds what it left against the promises that every run must keep.
    pub async fn end(self) -> whole::Left {
        self.engine.shutdown().await;
        whole::check(&self.stage.inner).await
    }

    /// Stops the engine and opens another over the same store.
    pub async fn restart(self) -> World {
        self.engine.shutdown().await;
        World::open(Stage::over(self.stage.inner.clone()), options()).await
    }
}

pub fn ask(command: Command) -> Request {
    Request {
        tenant: "acme".into(),
        actor: "test".into(),
        ask: Ask::Command(command),
        passport: None,
        wait: Duration::ZERO,
        render,
    }
}

pub fn keyed(key: &str, request: Request) -> Request {
    let fingerprint = Fingerprint(*blake3::hash(format!("{:?}", request.ask).as_bytes()).as_bytes());
    let key_hash = wf_core::ids::hash16(&[key.as_bytes()]);
    let key = wf_idempotency::key::Key::new(key).unwrap();
    let passport = Passport { key, fingerprint, mac_key_id: 1, key_hash, route: "POST /test", ttl_ms: TTL_MS };
    Request { passport: Some(passport), ..request }
}

pub fn of_tenant(tenant: &str, request: Request) -> Request {
    Request { tenant: tenant.into(), ..request }
}

pub fn waiting(ms: u64, request: Request) -> Request {
    Request { wait: Duration::from_millis(ms), ..request }
}

/// What the door would make of an outcome: short, and with the keys in it.
pub fn render(outcome: &Outcome) -> Answer {
    let text = match outcome {
        Outcome::Started(started) => format!("started {}", started.key),
        Outcome::Activated(jobs) => jobs
            .iter()
            .fold("jobs".to_owned(), |text, job| format!("{text} {}:{}:{}", job.job.key, job.job.lease, job.job.due)),
        other => format!("{other:?}"),
    };
    Answer::new(200, [("location", "/x")], Bytes::from(text))
}

pub fn text(answered: &Answered) -> String {
    String::from_utf8(answered.answer.body.to_vec()).unwrap()
}

pub fn key_in(text: &str) -> Key {
    text.strip_prefix("started ").unwrap_or_else(|| panic!("no start: {text}")).parse().unwrap()
}

pub fn jobs_in(text: &str) -> Vec<(Key, u64)> {
    let jobs = text.strip_prefix("jobs").unwrap_or_else(|| panic!("no jobs: {text}"));
    let numbers = |job: &str| {
        let mut parts = job.split(':').map(|part| part.parse().unwrap());
        (parts.next().unwrap(), parts.next().unwrap())
    };
    jobs.split_whitespace().map(numbers).collect()
}

pub fn deploy() -> Request {
    deploy_xml(MODEL)
}

pub fn deploy_xml(xml: &str) -> Request {
    let xml = xml.as_bytes();
    let processes = wf_model::compile(xml).unwrap().into_iter().map(Arc::new).collect();
    ask(Command::Deploy { resources: vec![Resource { name: "model.bpmn".into(), xml: xml.into(), processes }] })
}

pub fn start(process: &str) -> Request {
    start_with(process, vec![("id".into(), "1".into())])
}

pub fn start_with(process: &str, variables: Variables) -> Request {
    ask(Command::StartInstance { process_id: process.into(), version: None, variables, unique: None })
}

pub fn cancel(instance: Key) -> Request {
    ask(Command::CancelInstance { instance })
}

pub fn set_variable(instance: Key, name: &str, value: &str) -> Request {
    ask(Command::SetVariables { instance, scope: None, variables: vec![(name.into(), value.into())] })
}

pub fn activate(job_type: &str, worker: &str, jobs_max: u32) -> Request {
    ask(Command::ActivateJobs {
        job_type: job_type.into(),
        worker: worker.into(),
        jobs_max,
        lease_ms: 1_000,
        fetch: None,
    })
}

pub fn holder((job, lease): (Key, u64)) -> Holder {
    Holder { job, worker: "w".into(), lease: Some(lease) }
}

pub fn complete(held: (Key, u64)) -> Request {
    ask(Command::CompleteJob { holder: holder(held), variables: Variables::new() })
}

pub fn fail(held: (Key, u64), backoff_ms: i64) -> Request {
    ask(Command::FailJob {
        holder: holder(held),
        message: "no".into(),
        retries: None,
        backoff_ms,
        variables: Variables::new(),
    })
}

pub fn publish(name: &str, correlation_key: &str, message_id: Option<&str>, ttl_ms: i64) -> Request {
    ask(Command::PublishMessage {
        name: name.into(),
        correlation_key: correlation_key.into(),
        message_id: message_id.map(Into::into),
        ttl_ms,
        dedup_ms: 86_400_000,
        variables: Variables::new(),
    })
}

pub fn clock(change: ClockChange) -> Request {
    Request { ask: Ask::SetClock(change), ..cancel(0) }
}

/// Chance that a seed repeats.
pub struct Rng(pub u64);

impl Rng {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}
