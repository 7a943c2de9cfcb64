//! Two servers that share a store, over real sockets: what belongs to the other one is passed on, and nobody can pretend to be
//! a node.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use wf_cluster::{Node, Options, Supervisor};
use wf_core::Partitions;
use wf_core::ids::partition_of;
use wf_engine::{ClockMode, SinkRule};
use wf_server::{App, Auth, Databases, IdempotencyConfig, Server};
use wf_store::memory::MemoryStore;

use crate::support::{WORK, database, text};

const PARTITIONS: u16 = 4;

/// A node behind a socket. It looks around when it is told to.
struct Member {
    address: SocketAddr,
    node: Node,
    supervisor: Supervisor,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

async fn member(store: &MemoryStore, name: &str) -> Member {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let handle = Arc::new(store.node(name, &format!("http://{address}")));
    let sink = SinkRule { name: "sink".into(), events: vec!["*".to_owned()], window_ms: 120_000 };
    let clock = ClockMode::Test { start: 1_800_000_000_000 };
    let engine = wf_engine::Options { clock, sinks: vec![sink], ..wf_engine::Options::default() };
    let wall = wf_engine::Time(Arc::new(|| 0));
    let options = Options { renew_ms: 0, wall, ..Options::new(engine) };
    let (node, supervisor) = Node::join(handle, options).await.unwrap();
    let app = App {
        databases: Databases::one(database(node.clone())),
        auth: Auth::default(),
        idempotency: IdempotencyConfig::default(),
        messages_dedup_ms: 86_400_000,
        metrics: None,
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async {
        let _ = stopped.await;
    };
    let served = tokio::spawn(Server::serve(listener, app, shutdown));
    Member { address, node, supervisor, stop, served }
}

impl Member {
    async fn look(&mut self) {
        self.supervisor.look().await;
        self.supervisor.settle().await;
    }

    fn partitions(&self) -> Vec<u16> {
        self.node.engines().into_iter().map(|(partition, _)| partition).collect()
    }

    async fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        send(self.address, line, headers, body).await
    }

    async fn post(&self, path: &str, body: &str) -> Answer {
        self.send(&format!("POST {path}"), &[], body).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &[], "").await
    }
}

/// Two nodes with two partitions each, and a process that all of them know.
async fn two() -> (Member, Member, MemoryStore) {
    let store = MemoryStore::with_partitions(Partitions::of(PARTITIONS));
    let (mut a, mut b) = (member(&store, "a").await, member(&store, "b").await);
    for _ in 0..4 {
        a.look().await;
        b.look().await;
    }
    assert_eq!((a.partitions().len(), b.partitions().len()), (2, 2));
    let deployed = b.send("POST /api/v1/definitions", &[("content-type", "application/xml")], WORK).await;
    assert_eq!(deployed.status, 201, "{}", deployed.text);
    (a, b, store)
}

/// An answer as it came over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    head: String,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    fn is_replay(&self) -> bool {
        self.head.contains("idempotent-replayed: true")
    }
}

fn head_of(line: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        text.push_str("content-type: application/json\r\n");
    }
    text + "\r\n" + body
}

async fn begin(address: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head_of(line, headers, body).as_bytes()).await.unwrap();
    stream
}

async fn end(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let whole = String::from_utf8(bytes).unwrap();
    let (head, text) = whole.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_ascii_lowercase(), text: text.to_owned() }
}

async fn send(address: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    end(begin(address, line, headers, body).await).await
}

const START: &str = r#"{"processDefinitionId":"order"}"#;

/// An instance in a partition of this node.
async fn start_at(member: &Member) -> String {
    let started = member.post("/api/v1/instances", START).await;
    assert_eq!(started.status, 201, "{}", started.text);
    let key = text(&started.json()["key"]);
    assert!(member.partitions().contains(&partition_of(key.parse().unwrap())), "what may be anywhere stays");
    key
}

async fn activate(member: &Member, wait_ms: u64) -> Value {
    let body = json!({"type": "work", "worker": "w", "waitMs": wait_ms}).to_string();
    let reply = member.post("/api/v1/jobs/activate", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()["jobs"].clone()
}

#[tokio::test]
async fn clients_need_to_know_one_address() {
    let (a, b, _store) = two().await;
    let key = start_at(&b).await;
    let job = activate(&a, 0).await[0].clone();
    assert_eq!(job["processInstanceKey"], key, "found at the other node");
    let path = format!("/api/v1/jobs/{}", text(&job["key"]));
    let step = a.send(&format!("PUT {path}/steps/s"), &[], r#"{"worker":"w","result":1}"#).await;
    assert_eq!((step.status, step.text.as_str()), (200, r#"{"name":"s","result":1,"recorded":true}"#));
    let completed = a.post(&format!("{path}/complete"), r#"{"worker":"w"}"#).await;
    assert_eq!((completed.status, completed.text.as_str()), (200, r#"{"state":"COMPLETED","duplicate":false}"#));
    let again = b.post(&format!("{path}/complete"), r#"{"worker":"w"}"#).await;
    assert_eq!(again.json()["duplicate"], true);
    // A refusal comes through as it is.
    let lost = a.post(&format!("{path}/complete"), r#"{"worker":"other"}"#).await;
    assert_eq!((lost.status, &lost.json()["code"]), (409, &json!("job-lease-lost")));
    let canceled = a.post(&format!("/api/v1/instances/{key}/cancel"), "{}").await;
    assert_eq!(canceled.json()["code"], "instance-finished");
    assert_eq!(a.get(&format!("/api/v1/instances/{key}")).await.json()["state"], "COMPLETED");
    assert_eq!(activate(&a, 0).await, json!([]));
}

/// L1.2 over nodes: the first answer again, byte for byte, whichever node is asked; another request is a conflict.
#[tokio::test]
async fn replays_come_from_any_node() {
    let (a, b, _store) = two().await;
    for n in 0..8 {
        let key = format!("k{n}");
        let headers = [("idempotency-key", key.as_str())];
        let first = a.send("POST /api/v1/instances", &headers, START).await;
        assert_eq!((first.status, first.is_replay()), (201, false), "{}", first.text);
        for node in [&a, &b] {
            let again = node.send("POST /api/v1/instances", &headers, START).await;
            assert_eq!((again.status, again.is_replay(), &again.text), (201, true, &first.text));
            assert!(again.head.contains("location: /api/v1/instances/"));
        }
        let other = r#"{"processDefinitionId":"order","variables":{"a":1}}"#;
        assert_eq!(b.send("POST /api/v1/instances", &headers, other).await.status, 409);
    }
    // A poll under a key: its record stands where the job was.
    let headers = [("idempotency-key", "poll")];
    let poll = r#"{"type":"work","worker":"w","maxJobs":1}"#;
    let first = a.send("POST /api/v1/jobs/activate", &headers, poll).await;
    assert_eq!(first.json()["jobs"].as_array().map(Vec::len), Some(1));
    for node in [&a, &b] {
        let again = node.send("POST /api/v1/jobs/activate", &headers, poll).await;
        assert_eq!((again.is_replay(), &again.text), (true, &first.text));
    }
}

#[tokio::test]
async fn a_long_poll_hears_of_a_job_at_the_other_node() {
    let (a, b, _store) = two().await;
    let polls: Vec<_> = [&a, &b, &a].into_iter().map(|node| node.address).collect();
    let body = r#"{"type":"work","worker":"w","waitMs":60000}"#;
    let mut waiting = JoinSet::new();
    for address in polls {
        waiting.spawn(async move { send(address, "POST /api/v1/jobs/activate", &[], body).await });
    }
    for _ in 0..3 {
        start_at(&b).await;
    }
    let mut keys: Vec<String> =
        waiting.join_all().await.iter().map(|answer| text(&answer.json()["jobs"][0]["key"])).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 3, "each got one of its own");
}

/// L1.7: a batch over all partitions, without and under a key.
#[tokio::test]
async fn a_batch_is_completed_over_nodes() {
    let (a, b, _store) = two().await;
    let mut jobs = Vec::new();
    for n in 0..12 {
        start_at(if n % 2 == 0 { &a } else { &b }).await;
        jobs.push(text(&activate(&a, 0).await[0]["key"]));
    }
    let body = |jobs: &[String]| {
        let mut items: Vec<Value> = jobs.iter().map(|key| json!({"key": key})).collect();
        items.insert(1, json!({"key": "1"}));
        json!({"worker": "w", "jobs": items}).to_string()
    };
    let path = "POST /api/v1/jobs/complete";
    let plain = a.send(path, &[], &body(&jobs[..6])).await;
    assert_eq!(plain.status, 200, "{}", plain.text);
    let results = plain.json()["results"].clone();
    let keys: Vec<String> = results.as_array().unwrap().iter().map(|result| text(&result["key"])).collect();
    let mut wanted = jobs[..6].to_vec();
    wanted.insert(1, "1".to_owned());
    assert_eq!(keys, wanted, "in the order given");
    assert_eq!(results[1]["problem"]["code"], "job-not-found");
    assert_eq!(results[6]["state"], "COMPLETED");
    let headers = [("idempotency-key", "batch")];
    let first = b.send(path, &headers, &body(&jobs[6..])).await;
    assert_eq!((first.status, first.is_replay()), (200, false), "{}", first.text);
    assert_eq!(first.text.matches(r#""state":"COMPLETED","duplicate":false"#).count(), 6);
    for node in [&a, &b] {
        let again = node.send(path, &headers, &body(&jobs[6..])).await;
        assert_eq!((again.is_replay(), &again.text), (true, &first.text));
    }
    let other = a.send(path, &headers, &body(&jobs[..6])).await;
    assert_eq!((other.status, &other.json()["code"]), (409, &json!("idempotency-conflict")));
}

/// S: who only says that a node sent it is told so, whatever it is.
#[tokio::test]
async fn a_forged_mark_is_refused() {
    let (a, b, _store) = two().await;
    let forged = format!("1 part {}", "a".repeat(64));
    for mark in [forged.as_str(), "1 part", "", "x"] {
        let refused = a.send("POST /api/v1/instances", &[("wf-forwarded", mark)], START).await;
        assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("forbidden")), "{mark}");
        let peek = a.send("POST /internal/v1/peek", &[("wf-forwarded", mark)], "{}").await;
        assert_eq!(peek.status, 403, "{mark}");
    }
    assert_eq!(a.post("/internal/v1/peek", r#"{"tenant":"t","jobType":"x","waitMs":0}"#).await.status, 403);
    assert_eq!(b.get("/api/v1/instances").await.json()["items"], json!([]));
}

#[tokio::test]
async fn readiness_and_nodes_are_told_truthfully() {
    let (mut a, mut b, _store) = two().await;
    let ready = a.get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["status"]), (200, &json!("ready")));
    let states: Vec<String> =
        ready.json()["partitions"].as_array().unwrap().iter().map(|row| text(&row["state"])).collect();
    assert_eq!(states.iter().filter(|state| *state == "open").count(), 2);
    assert_eq!(states.iter().filter(|state| *state == "owned by b").count(), 2);
    let nodes = b.get("/api/v1/nodes").await.json();
    assert_eq!((&nodes["nodes"][0]["name"], &nodes["nodes"][1]["isSelf"]), (&json!("a"), &json!(true)));
    assert_eq!(nodes["nodes"][0]["address"], format!("http://{}", a.address));
    assert_eq!(nodes["partitions"].as_array().unwrap().len(), usize::from(PARTITIONS));
    assert!(nodes["partitions"].as_array().unwrap().iter().all(|row| row["owner"].is_string()));
    // All at a. b serves on by passing on, as long as a is there.
    b.supervisor.hand_over().await;
    a.look().await;
    b.look().await;
    assert_eq!(a.partitions().len(), usize::from(PARTITIONS));
    let outside = b.get("/readyz").await;
    assert_eq!((outside.status, &outside.json()["code"]), (503, &json!("unavailable")), "it left the list");
    assert_eq!(outside.json()["partitions"][0]["state"], "owned by a");
    let started = b.post("/api/v1/instances", START).await;
    assert_eq!(started.status, 201, "{}", started.text);
    assert_eq!(b.get("/livez").await.status, 200);
}

/// A node that cannot be reached: nothing was done, and the client is told so. One that has taken over answers.
#[tokio::test]
async fn a_node_that_is_gone_is_said_to_be() {
    let (mut a, b, _store) = two().await;
    let key = start_at(&b).await;
    b.stop.send(()).unwrap();
    b.served.await.unwrap();
    let path = format!("/api/v1/instances/{key}/cancel");
    let refused = a.post(&path, "{}").await;
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("unavailable")), "{}", refused.text);
    assert!(refused.head.contains("retry-after: "));
    // It hands over behind the scenes; who waits meanwhile is served.
    let waiting = begin(a.address, &format!("POST {path}"), &[], "{}").await;
    let mut supervisor = b.supervisor;
    supervisor.hand_over().await;
    a.look().await;
    let canceled = end(waiting).await;
    assert_eq!((canceled.status, &canceled.json()["state"]), (200, &json!("CANCELED")), "{}", canceled.text);
}

/// The test clock is one for all partitions; the audit goes through them.
#[tokio::test]
async fn clock_and_audit_go_through_all_partitions() {
    let (a, b, _store) = two().await;
    let first = a.send("PUT /api/v1/clock", &[], r#"{"advanceMs":60000}"#).await;
    assert_eq!(first.status, 200, "{}", first.text);
    for (_, engine) in a.node.engines().into_iter().chain(b.node.engines()) {
        assert_eq!(engine.now(), 1_800_000_060_000);
    }
    let past = b.send("PUT /api/v1/clock", &[], r#"{"now":"2020-01-01T00:00:00Z"}"#).await;
    assert_eq!(past.status, 400, "{}", past.text);
    for n in 0..4 {
        start_at(if n % 2 == 0 { &a } else { &b }).await;
    }
    let (mut ids, mut path) = (Vec::new(), "/api/v1/audit?limit=3".to_owned());
    loop {
        let page = a.get(&path).await.json();
        ids.extend(page["items"].as_array().unwrap().iter().map(|event| text(&event["eventId"])));
        match page["nextCursor"].as_str() {
            Some(cursor) => path = format!("/api/v1/audit?limit=3&cursor={cursor}"),
            None => break,
        }
    }
    let places: Vec<_> = ids.iter().map(|id| wf_store::parse_event_id(id).unwrap()).collect();
    assert!(places.is_sorted(), "{ids:?}");
    let partitions: std::collections::BTreeSet<u16> = places.iter().map(|(partition, ..)| *partition).collect();
    assert_eq!(partitions.len(), usize::from(PARTITIONS));
    let proof = a.get("/api/v1/proofs/tables?partition=3").await;
    assert!(proof.text.contains(r#""agree":true"#), "{}", proof.text);
    assert_eq!(a.get("/api/v1/proofs/tables?partition=9").await.status, 400);
}
