//! The whole server over the memory store, asked in process.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;
use wf_cluster::Node;
use wf_engine::{ClockMode, Engine, Options, SinkRule};
use wf_server::{App, Auth, Database, Databases, Folder, IdempotencyConfig, Scratch, ScratchStore, Server};
use wf_store::memory::MemoryStore;

/// One service task of type `work`, tried once.
pub const WORK: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t">
  <process id="order" isExecutable="true">
    <startEvent id="start"><outgoing>f1</outgoing></startEvent>
    <serviceTask id="pay"><extensionElements>
        <zeebe:taskDefinition type="work" retries="1"/>
        <zeebe:taskHeaders><zeebe:header key="currency" value="EUR"/></zeebe:taskHeaders>
      </extensionElements><incoming>f1</incoming><outgoing>f2</outgoing></serviceTask>
    <endEvent id="end"><incoming>f2</incoming></endEvent>
    <sequenceFlow id="f1" sourceRef="start" targetRef="pay"/><sequenceFlow id="f2" sourceRef="pay" targetRef="end"/>
  </process></definitions>"#;

/// Waits for the message `paid`, correlated by the variable `id`.
pub const WAIT: &str = r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t">
  <message id="m" name="paid"><extensionElements><zeebe:subscription correlationKey="=id"/></extensionElements></message>
  <process id="waiter" isExecutable="true">
    <startEvent id="start"><outgoing>f1</outgoing></startEvent>
    <intermediateCatchEvent id="wait"><incoming>f1</incoming><outgoing>f2</outgoing>
      <messageEventDefinition messageRef="m"/></intermediateCatchEvent>
    <endEvent id="end"><incoming>f2</incoming></endEvent>
    <sequenceFlow id="f1" sourceRef="start" targetRef="wait"/><sequenceFlow id="f2" sourceRef="wait" targetRef="end"/>
  </process></definitions>"#;

pub const XML: (&str, &str) = ("content-type", "application/xml");
pub const JSON: (&str, &str) = ("content-type", "application/json");

pub struct Service {
    router: Router,
}

pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// `400 validation: variables.a, worker`, or the status alone where it is no problem.
    pub fn verdict(&self) -> String {
        if self.header("content-type") != "application/problem+json" {
            return self.status.to_string();
        }
        let problem = self.json();
        let code = problem["code"].as_str().unwrap();
        assert_eq!(problem["type"], format!("/problems/{code}"));
        assert_eq!(problem["status"], self.status);
        assert!(!problem["title"].as_str().unwrap().is_empty() && !problem["detail"].as_str().unwrap().is_empty());
        let errors = problem["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
        let fields: Vec<&str> = errors.iter().filter_map(|error| error["field"].as_str()).collect();
        let named = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
        format!("{} {code}{named}", self.status)
    }
}

pub async fn app(auth: Auth, idempotency: IdempotencyConfig, clock: ClockMode) -> App {
    app_of(Options { clock, ..Options::default() }, auth, idempotency).await
}

async fn app_of(options: Options, auth: Auth, idempotency: IdempotencyConfig) -> App {
    app_on(Arc::new(MemoryStore::default()), options, auth, idempotency).await
}

async fn app_on(store: Arc<MemoryStore>, options: Options, auth: Auth, idempotency: IdempotencyConfig) -> App {
    let engine = Engine::open(store, options).await.unwrap();
    App {
        databases: Databases::one(Database { scratch: Some(Arc::new(InMemory)), ..database(Node::alone(engine)) }),
        auth,
        idempotency,
        messages_dedup_ms: 86_400_000,
        metrics: None,
    }
}

pub fn database(node: Node) -> Database {
    Database { node, mac_secret: [7; 32], mac_key_id: 1, scratch: None }
}

/// A replay's store that leaves nothing behind.
struct InMemory;

impl Scratch for InMemory {
    fn open(&self, _partition: u16, _before: u64) -> Result<ScratchStore, String> {
        Ok(ScratchStore { store: Arc::new(MemoryStore::default()), guard: Box::new(Nowhere) })
    }
}

struct Nowhere;

impl Folder for Nowhere {
    fn path(&self) -> &Path {
        Path::new("")
    }
}

impl Service {
    pub async fn plain() -> Service {
        Service::with(Auth::default(), IdempotencyConfig::default()).await
    }

    pub async fn with(auth: Auth, idempotency: IdempotencyConfig) -> Service {
        let clock = ClockMode::Test { start: 1_800_000_000_000 };
        Service { router: Server::router(app(auth, idempotency, clock).await) }
    }

    /// With a sink that nobody ships to: its outbox fills.
    pub async fn with_sink() -> Service {
        let sink = SinkRule { name: "sink".into(), events: vec!["*".to_owned()], window_ms: 120_000 };
        let clock = ClockMode::Test { start: 1_800_000_000_000 };
        let options = Options { clock, sinks: vec![sink], ..Options::default() };
        Service::of(app_of(options, Auth::default(), IdempotencyConfig::default()).await)
    }

    /// With the store beside it, to be told to fail.
    pub async fn with_store() -> (Service, Arc<MemoryStore>) {
        let store = Arc::new(MemoryStore::default());
        let options = Options { clock: ClockMode::Test { start: 1_800_000_000_000 }, ..Options::default() };
        let app = app_on(store.clone(), options, Auth::default(), IdempotencyConfig::default()).await;
        (Service::of(app), store)
    }

    pub fn of(app: App) -> Service {
        Service { router: Server::router(app) }
    }

    pub async fn send(&self, line: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Reply {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply { status: head.status.as_u16(), headers: head.headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }

    pub async fn post(&self, path: &str, body: &str) -> Reply {
        self.send(&format!("POST {path}"), &[JSON], body.to_owned()).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(&format!("GET {path}"), &[], "").await
    }

    pub async fn deploy(&self, xml: &str) {
        let reply = self.send("POST /api/v1/definitions", &[XML], xml.to_owned()).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
    }

    /// The instance's key.
    pub async fn start(&self, body: &str) -> String {
        let reply = self.post("/api/v1/instances", body).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        text(&reply.json()["key"])
    }

    /// The first job: as the activation shows it.
    pub async fn activate(&self) -> Value {
        let reply = self.post("/api/v1/jobs/activate", r#"{"type":"work","worker":"w"}"#).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()["jobs"][0].clone()
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
