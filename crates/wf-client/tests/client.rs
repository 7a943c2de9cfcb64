//! The client against a server that fails as told: what is repeated, under which key, and what is not (L1.1, L3.3).
#![expect(clippy::unwrap_used, reason = "in a test it is an assertion")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use wf_client::{Client, Outcome, Retry, StartInstance, Summary, Task, Worker, WorkerOptions};

/// What the server answers next, and what it was asked.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<(u16, Value)>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// Path and key.
type Asked = (String, Option<String>);

async fn server(answers: &[(u16, Value)]) -> (Client, Script) {
    let script = Script::default();
    script.answers.lock().unwrap().extend(answers.iter().cloned());
    let router = axum::Router::new().fallback(answer).with_state(script.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let pause = Duration::from_millis(1);
    let retry = Retry { attempts_max: 5, elapsed_max: Duration::from_secs(10), pause, pause_max: pause };
    (Client::new(&url).unwrap().retry(retry), script)
}

async fn answer(State(script): State<Script>, uri: Uri, headers: HeaderMap, _body: Bytes) -> Response {
    let key = headers.get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
    script.asked.lock().unwrap().push((uri.path().to_owned(), key));
    let next = script.answers.lock().unwrap().pop_front();
    let (status, body) = next.unwrap_or((404, json!({ "code": "not-found" })));
    (StatusCode::from_u16(status).unwrap(), body.to_string()).into_response()
}

fn problem(status: u16, code: &str) -> (u16, Value) {
    (status, json!({ "code": code, "status": status, "title": code, "retry": false }))
}

fn started() -> (u16, Value) {
    (201, json!({ "key": "7", "processDefinitionId": "order", "version": 1, "state": "ACTIVE", "existing": false }))
}

/// L1.1: one key per logical operation, made by the client, kept over all repeats.
#[tokio::test]
async fn a_call_keeps_its_key_over_all_repeats() {
    let answers = [
        problem(503, "overloaded"),
        problem(503, "outcome-unknown"),
        problem(409, "idempotency-in-progress"),
        problem(500, "internal"),
        started(),
    ];
    let (client, script) = server(&answers).await;
    assert_eq!(client.start(&StartInstance::of("order")).await.unwrap().key, "7");
    let asked = script.asked.lock().unwrap().clone();
    let keys: std::collections::BTreeSet<_> = asked.iter().map(|(_, key)| key.clone().unwrap()).collect();
    assert_eq!((asked.len(), keys.len()), (5, 1));
}

/// What does not change by repeating is not repeated; without a key nothing is.
#[tokio::test]
async fn what_is_final_is_sent_once() {
    for (status, code) in
        [(409, "idempotency-conflict"), (400, "validation"), (409, "job-lease-lost"), (404, "instance-not-found")]
    {
        let (client, script) = server(&[problem(status, code)]).await;
        let refused = client.start(&StartInstance::of("order")).key("k").await.unwrap_err();
        assert_eq!((refused.code(), script.asked.lock().unwrap().len()), (code, 1));
    }
    let (client, script) = server(&[problem(503, "unavailable"), started()]).await;
    assert_eq!(client.start(&StartInstance::of("order")).unkeyed().send().await.unwrap_err().code(), "unavailable");
    assert_eq!(*script.asked.lock().unwrap(), [("/api/v1/instances".to_owned(), None)]);
}

/// L3.3, L3.4: a report repeated after a lost answer needs no key; a lost lease is counted and not repeated.
#[tokio::test]
async fn a_worker_reports_each_job_once() {
    let job = |key: &str| {
        json!({ "key": key, "type": "t", "processInstanceKey": "1", "processDefinitionId": "p", "elementId": "e",
            "lease": "l", "deadline": "2030-01-01T00:00:00Z", "retries": 3, "idempotencyKey": "wf-job-2",
            "lineageKey": "x", "variables": {}, "steps": {} })
    };
    let answers = [
        problem(503, "unavailable"),
        (200, json!({ "jobs": [job("2")] })),
        (200, json!({ "state": "COMPLETED", "duplicate": false })),
        (200, json!({ "jobs": [job("3")] })),
        problem(409, "job-lease-lost"),
    ];
    let (client, script) = server(&answers).await;
    let options = WorkerOptions { concurrency: 1, jobs_max: Some(2), ..WorkerOptions::of("t") };
    let handler = |_: Task| async { Outcome::Complete(Default::default()) };
    let summary = Worker::new(client, options, handler).run(std::future::pending()).await.unwrap();
    assert_eq!(summary, Summary { completed: 1, lost: 1, ..Summary::default() });
    let asked = script.asked.lock().unwrap().clone();
    let paths: Vec<&str> = asked.iter().map(|(path, _)| path.trim_start_matches("/api/v1/jobs/")).collect();
    assert_eq!(paths, ["activate", "activate", "2/complete", "activate", "3/complete"]);
    // The poll that was repeated is the same one; the next is another.
    let key = |index: usize| asked[index].1.clone();
    assert!(key(0).is_some() && key(0) == key(1) && key(0) != key(3));
    assert_eq!((key(2), key(4)), (None, None));
}
