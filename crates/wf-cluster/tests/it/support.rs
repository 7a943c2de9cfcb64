//! Nodes that speak to one another without a wire, and a clock that stands until it is moved.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use wf_cluster::{Later, Node, Options, Patience, Peer, Peers, QueueId, Reply, Search, Seat, Step, Supervisor};
use wf_core::command::{CompleteItem, Resource};
use wf_core::rows::Text;
use wf_core::{Command, Key, Outcome, Partitions, RowId, ids};
use wf_engine::{Answered, Ask, ClockMode, Passport, Refusal, Request, Time};
use wf_idempotency::fingerprint::Fingerprint;
use wf_idempotency::record::Answer;
use wf_store::memory::MemoryStore;
use wf_store::{Members, NodeId};

const ORDER: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t">
  <process id="order" isExecutable="true">
    <startEvent id="start"><outgoing>f1</outgoing></startEvent>
    <serviceTask id="pay"><extensionElements><zeebe:taskDefinition type="work" retries="1"/></extensionElements>
      <incoming>f1</incoming><outgoing>f2</outgoing></serviceTask>
    <endEvent id="end"><incoming>f2</incoming></endEvent>
    <sequenceFlow id="f1" sourceRef="start" targetRef="pay"/><sequenceFlow id="f2" sourceRef="pay" targetRef="end"/>
  </process></definitions>"#;

pub const LEASE_MS: i64 = 6_000;
pub const TENANT: &str = "t";

/// A store, its clock, and those who share it.
pub struct World {
    pub store: MemoryStore,
    now: Arc<AtomicI64>,
    town: Arc<Town>,
}

/// Who can be reached under which id.
#[derive(Default)]
pub struct Town(Mutex<BTreeMap<NodeId, Node>>);

/// A node with its eyes.
pub struct Member {
    pub node: Node,
    pub supervisor: Supervisor,
    pub handle: Arc<MemoryStore>,
}

impl World {
    pub fn new(partitions: u16) -> World {
        let now = Arc::new(AtomicI64::new(1_800_000_000_000));
        let clock = now.clone();
        let store = MemoryStore::with_partitions(Partitions::of(partitions));
        let store = store.with_leases(LEASE_MS, move || clock.load(Ordering::Acquire));
        World { store, now, town: Arc::default() }
    }

    pub fn pass(&self, ms: i64) {
        self.now.fetch_add(ms, Ordering::AcqRel);
    }

    /// A node that has not looked around yet.
    pub async fn member(&self, name: &str) -> Member {
        self.member_with_clock(name, 0).await
    }

    /// Its own clock is so much ahead.
    pub async fn member_with_clock(&self, name: &str, ahead_ms: i64) -> Member {
        self.member_with(name, ahead_ms, LEASE_MS as u64).await
    }

    /// It believes that its lease has run out as soon as it hears nothing.
    pub async fn anxious_member(&self, name: &str) -> Member {
        self.member_with(name, 0, 0).await
    }

    async fn member_with(&self, name: &str, ahead_ms: i64, lease_ms: u64) -> Member {
        let handle = Arc::new(self.store.node(name, &format!("http://{name}")));
        let time = |ahead_ms| {
            let now = self.now.clone();
            Time(Arc::new(move || now.load(Ordering::Acquire) + ahead_ms))
        };
        let engine = wf_engine::Options { clock: ClockMode::Given(time(0)), ..wf_engine::Options::default() };
        let options = Options { renew_ms: 0, lease_ms, wall: time(ahead_ms), ..Options::new(engine) };
        let (node, supervisor) = Node::join(handle.clone(), options).await.unwrap();
        node.use_peers(self.town.clone());
        self.town.0.lock().unwrap().insert(node.me(), node.clone());
        Member { node, supervisor, handle }
    }

    /// All look around until nothing moves any more.
    pub async fn settle(&self, members: &mut [&mut Member]) {
        let mut before = String::new();
        for _ in 0..50 {
            for member in members.iter_mut() {
                member.look().await;
            }
            let after: Vec<_> = members.iter().map(|member| member.seats()).collect();
            let after = format!("{after:?}");
            if after == before {
                return;
            }
            before = after;
        }
        panic!("it never comes to rest: {before}");
    }

    /// A process that every partition knows.
    pub async fn deploy(&self, node: &Node) {
        let processes = wf_model::compile(ORDER.as_bytes()).unwrap().into_iter().map(Arc::new).collect();
        let resource = Resource { name: "order.bpmn".into(), xml: ORDER.as_bytes().into(), processes };
        for partition in node.partitions().iter() {
            let rows = self.store.rows_of(partition);
            if !rows.iter().any(|row| matches!(row, wf_core::Row::Definition(_))) {
                let command = Command::Deploy { resources: vec![resource.clone()] };
                self.ask_at(node, partition, request(command)).await.unwrap();
            }
        }
    }

    /// As a door does: to the partition, by way of other nodes.
    pub async fn ask_at(&self, node: &Node, partition: u16, request: Request) -> Result<Answered, Refusal> {
        self.ask_within(node, partition, request, &node.patience()).await
    }

    async fn ask_within(
        &self,
        node: &Node,
        partition: u16,
        request: Request,
        patience: &Patience,
    ) -> Result<Answered, Refusal> {
        loop {
            let peer = match node.submit(partition, request.clone(), patience).await? {
                Reply::Answered(answered) => return Ok(answered),
                Reply::Elsewhere(peer) => peer,
                Reply::NotHere => panic!("nobody sent it"),
            };
            let other = self.town.of(&peer).unwrap();
            match other.submit(partition, request.clone(), &other.patience_of_forwarded()).await? {
                Reply::Answered(answered) => return Ok(answered),
                Reply::Elsewhere(_) => panic!("it goes on"),
                Reply::NotHere => node.moved_from(partition, &peer, patience).await?,
            }
        }
    }

    /// One poll over all partitions: the jobs' keys.
    pub async fn poll(&self, node: &Node, wait: Duration) -> Vec<Key> {
        let mut search = self.search(node, wait);
        while let Step::Look(partition) = search.next().await {
            match self.look(node, partition).await {
                keys if keys.is_empty() => search.found_none(),
                keys => return keys,
            }
        }
        Vec::new()
    }

    /// One look at a partition, wherever it is.
    async fn look(&self, node: &Node, partition: u16) -> Vec<Key> {
        let keys = |reply: Result<Reply, Refusal>| match reply.unwrap() {
            Reply::Answered(answered) => keys_in(&answered),
            Reply::Elsewhere(_) | Reply::NotHere => Vec::new(),
        };
        let peer = match node.submit(partition, request(activate()), &node.impatience()).await.unwrap() {
            Reply::Elsewhere(peer) => peer,
            here => return keys(Ok(here)),
        };
        let owner = self.town.of(&peer).unwrap();
        let mut own = owner.search(queue(), Some(partition), Duration::ZERO);
        own.next().await;
        let found = keys(owner.submit(partition, request(activate()), &owner.patience_of_forwarded()).await);
        if found.is_empty() {
            own.found_none();
        }
        found
    }

    pub fn search(&self, node: &Node, wait: Duration) -> Search {
        node.search(queue(), None, wait)
    }

    /// Instances in the store.
    pub fn instances(&self) -> usize {
        let rows = self.store.rows();
        rows.iter().filter(|row| matches!(row.id(), RowId::Scope(_))).count()
    }
}

impl Town {
    fn of(&self, peer: &Peer) -> Option<Node> {
        self.0.lock().unwrap().get(&peer.id).cloned()
    }
}

impl Peers for Town {
    fn peek<'a>(&'a self, peer: &'a Peer, queue: &'a QueueId, wait: Duration) -> Later<'a, Result<Vec<u16>, String>> {
        let node = self.of(peer);
        Box::pin(async move { Ok(node.ok_or("it is not there")?.peek(queue.clone(), wait).await) })
    }

    fn is_there<'a>(&'a self, peer: &'a Peer) -> Later<'a, bool> {
        Box::pin(std::future::ready(self.of(peer).is_some()))
    }
}

impl Member {
    /// One look, and what comes of it.
    pub async fn look(&mut self) {
        self.supervisor.look().await;
        self.supervisor.settle().await;
    }

    pub async fn owned(&self) -> Vec<u16> {
        let Members { partitions, .. } = self.node.members().await.unwrap();
        let mine = partitions.into_iter().filter(|row| row.owner == Some(self.node.me()));
        mine.map(|row| row.partition).collect()
    }

    pub fn serves(&self) -> Vec<u16> {
        self.node.engines().into_iter().map(|(partition, _)| partition).collect()
    }

    fn seats(&self) -> Vec<(u16, String)> {
        self.node.seats().into_iter().map(|(partition, seat)| (partition, named(&seat))).collect()
    }
}

fn named(seat: &Seat) -> String {
    match seat {
        Seat::Here(_) => "here".to_owned(),
        other => other.describe(),
    }
}

pub fn queue() -> QueueId {
    QueueId { tenant: TENANT.into(), job_type: "work".into() }
}

pub fn request(command: Command) -> Request {
    let (tenant, actor) = (Text::from(TENANT), Text::from("tester"));
    Request { tenant, actor, ask: Ask::Command(command), passport: None, wait: Duration::ZERO, render: shown }
}

pub fn keyed(key: &str, request: Request) -> Request {
    let fingerprint = Fingerprint(wide(&format!("{:?}", request.ask)));
    let passport = Passport {
        key: wf_idempotency::key::Key::new(key).unwrap(),
        fingerprint,
        mac_key_id: 1,
        key_hash: ids::hash16(&[key.as_bytes()]),
        route: "/test",
        ttl_ms: 3_600_000,
    };
    Request { passport: Some(passport), ..request }
}

fn wide(text: &str) -> [u8; 32] {
    let mut wide = [0; 32];
    wide[..16].copy_from_slice(&ids::hash16(&[text.as_bytes()]));
    wide
}

pub fn start() -> Command {
    Command::StartInstance { process_id: "order".into(), version: None, variables: Default::default(), unique: None }
}

pub fn activate() -> Command {
    Command::ActivateJobs { job_type: "work".into(), worker: "w".into(), jobs_max: 1, lease_ms: 60_000, fetch: None }
}

pub fn complete(jobs: &[Key]) -> Command {
    let item = |job: &Key| CompleteItem { job: *job, lease: None, variables: Default::default() };
    Command::CompleteJobs { worker: "w".into(), items: jobs.iter().map(item).collect() }
}

/// What happened, as text; jobs by their keys.
fn shown(outcome: &Outcome) -> Answer {
    let text = match outcome {
        Outcome::Activated(jobs) => jobs.iter().map(|job| job.job.key.to_string()).collect::<Vec<_>>().join(" "),
        Outcome::Started(started) => started.key.to_string(),
        other => format!("{other:?}"),
    };
    Answer { status: 200, headers: Vec::new(), body: Bytes::from(text) }
}

pub fn text(answered: &Answered) -> String {
    String::from_utf8(answered.answer.body.to_vec()).unwrap()
}

pub fn keys_in(answered: &Answered) -> Vec<Key> {
    text(answered).split_whitespace().map(|key| key.parse().unwrap()).collect()
}
