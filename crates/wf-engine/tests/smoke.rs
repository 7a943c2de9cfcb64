//! The whole path on the memory store.
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use wf_core::command::{Holder, Resource};
use wf_core::{Command, Outcome};
use wf_engine::*;
use wf_idempotency::record::Answer;
use wf_store::memory::MemoryStore;

fn render(outcome: &Outcome) -> Answer {
    Answer::new(200, [], Bytes::from(format!("{outcome:?}")))
}
fn ask(command: Command) -> Request {
    Request {
        tenant: "default".into(),
        actor: "test".into(),
        ask: Ask::Command(command),
        passport: None,
        wait: Duration::ZERO,
        render,
    }
}
fn body(a: Result<Answered, Refusal>) -> String {
    match a {
        Ok(a) => String::from_utf8_lossy(&a.answer.body).into_owned(),
        Err(e) => format!("{e:?}"),
    }
}

#[tokio::test]
async fn order_runs() {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::open(
        store.clone(),
        Options { clock: ClockMode::Test { start: 1_800_000_000_000 }, ..Options::default() },
    )
    .await
    .unwrap();
    let xml = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/12-spec-exclusive-gateway.bpmn"))
        .unwrap();
    let processes = wf_model::compile(&xml).unwrap().into_iter().map(Arc::new).collect();
    println!(
        "{}",
        body(
            engine
                .submit(ask(Command::Deploy {
                    resources: vec![Resource { name: "a".into(), xml: xml.into(), processes }]
                }))
                .await
        )
    );
    println!(
        "{}",
        body(
            engine
                .submit(ask(Command::StartInstance {
                    process_id: "exclusive-gateway".into(),
                    version: None,
                    variables: vec![],
                    unique: None
                }))
                .await
        )
    );
    let jobs = engine
        .submit(ask(Command::ActivateJobs {
            job_type: "a".into(),
            worker: "w".into(),
            jobs_max: 5,
            lease_ms: 1000,
            fetch: None,
        }))
        .await;
    println!("{}", body(jobs));
    let job = store
        .rows()
        .into_iter()
        .find_map(|row| match row {
            wf_core::Row::Job(j) => Some(j.key),
            _ => None,
        })
        .unwrap();
    println!(
        "{}",
        body(
            engine
                .submit(ask(Command::CompleteJob {
                    holder: Holder { job, worker: "w".into(), lease: None },
                    variables: vec![("x".into(), "8".into())]
                }))
                .await
        )
    );
    let jobs = engine
        .submit(ask(Command::ActivateJobs {
            job_type: "b".into(),
            worker: "w".into(),
            jobs_max: 5,
            lease_ms: 1000,
            fetch: None,
        }))
        .await;
    println!("{}", body(jobs));
    println!(
        "{}",
        body(
            engine
                .submit(Request {
                    ask: Ask::SetClock(ClockChange::Advance { ms: 2000 }),
                    ..ask(Command::CancelInstance { instance: 1 })
                })
                .await
        )
    );
    for entry in store.log() {
        println!("{} {} {}", entry.position, entry.verb, entry.payload);
    }
    engine.shutdown().await;
}
