//! SIGTERM: what was begun is finished, every request gets a truthful answer, the process ends with 0 and nothing is lost.
//! A stop without notice: `matrix.rs`.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use e2e::api::{jobs_of, text};
use e2e::http::read_answer;
use e2e::models::one_task;
use e2e::until;
use serde_json::json;

use crate::fresh_setup;

#[test]
fn stop_under_load_tells_every_client_the_truth() {
    let setup = fresh_setup();
    let node = setup.start();
    node.api.deploy(&one_task("one", "work")).answer().expect(201);
    let (done, refused, unheard) = <(Mutex<BTreeSet<String>>, Mutex<Vec<String>>, Mutex<Vec<String>>)>::default();
    let count = AtomicU64::new(0);
    let api = node.api.clone();
    let client = |number: u64| {
        for n in 0.. {
            let name = format!("{number}-{n}");
            match api.start("one", json!({"name": name})).key(&name).send() {
                Ok(answer) if answer.status == 201 => {
                    done.lock().unwrap().insert(name);
                    count.fetch_add(1, Ordering::Relaxed);
                }
                // Nothing was done, says the contract.
                Ok(answer) => {
                    let problem = answer.expect_problem(503, "unavailable");
                    refused.lock().unwrap().push(format!("{name} {problem}"));
                }
                Err(_) => return unheard.lock().unwrap().push(name),
            }
        }
    };
    let status = std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || client(number));
        }
        until("load", || (count.load(Ordering::Relaxed) > 100).then_some(()));
        node.stop()
    });
    assert_eq!(status.code(), Some(0));
    assert!(!setup.log().contains("panicked"), "{}", setup.log());
    let (done, refused, unheard) = (done.into_inner().unwrap(), refused.into_inner().unwrap(), unheard.into_inner());
    let node = setup.start();
    let events = node.api.audit();
    let started = events.iter().filter(|event| event["type"] == "instance.started");
    let started: Vec<String> = started.map(|event| text(&event["payload"]["variables"]["name"])).collect();
    let found: BTreeSet<String> = started.iter().cloned().collect();
    assert_eq!(found.len(), started.len(), "one twice");
    assert_eq!(done.difference(&found).collect::<Vec<_>>(), Vec::<&String>::new(), "answered and lost");
    for name in found.difference(&done) {
        // Whose answer was cut off, the client does not know; it never heard that nothing was done.
        assert!(unheard.as_ref().unwrap().contains(name), "{name} was refused and is there: {refused:?}");
    }
    assert_eq!(e2e::database::audit_gaps(&setup.database()), Vec::<String>::new());
}

/// A long poll ends at once; a request that comes in between gets its answer.
#[test]
fn stop_ends_long_polls_and_finishes_what_was_sent() {
    // One poll leases from one partition.
    let setup = fresh_setup().one_partition();
    let node = setup.start();
    node.api.deploy(&one_task("one", "work")).answer().expect(201);
    let poll = |headers: &str| {
        let body = r#"{"type":"other","worker":"w","waitMs":60000}"#;
        let head = format!("content-type: application/json\r\ncontent-length: {}\r\n{headers}", body.len());
        let mut stream = TcpStream::connect(&node.api.address).unwrap();
        write!(stream, "POST /api/v1/jobs/activate HTTP/1.1\r\nhost: x\r\n{head}\r\n{body}").unwrap();
        stream
    };
    let (mut plain, mut keyed) = (poll(""), poll("idempotency-key: poll\r\n"));
    // Later requests are answered, so these are in.
    (0..5).for_each(|_| drop(node.api.started("one", json!({}))));
    assert_eq!(node.stop().code(), Some(0));
    assert_eq!(read_answer(&mut plain).unwrap().expect(200).json(), json!({"jobs": []}));
    read_answer(&mut keyed).unwrap().expect_problem(503, "unavailable");
    let again = setup.start();
    assert_eq!(again.api.all("/api/v1/instances").len(), 5);
    // Nothing was leased under the key: it is as good as new.
    let poll = json!({"type": "work", "worker": "w", "maxJobs": 10});
    let answer = again.api.post("/api/v1/jobs/activate", poll).key("poll").answer();
    assert_eq!((answer.is_replay(), jobs_of(&answer).len()), (false, 5));
}

/// Also a node that has just said its first word ends with 0.
#[test]
fn stop_right_after_the_first_word_is_a_stop() {
    let setup = fresh_setup();
    for _ in 0..5 {
        assert_eq!(setup.start().stop().code(), Some(0));
    }
}
