//! Two nodes in peace. A start goes to a partition of the node that was asked; a key has one record in the whole store all the
//! same, also where both nodes are asked under it at once.

use std::thread;

use e2e::api::Api;
use e2e::http::Answer;
use e2e::models::one_task;
use e2e::node::{Node, Setup};
use e2e::until;
use serde_json::{Value, json};

const KEYS: usize = 60;

fn two() -> (Node, Node) {
    let setup = Setup::postgres();
    let nodes = (setup.clone().named("one").start(), setup.named("two").start());
    let shares = |node: &Node| node.api.metric("wf_partition_leader");
    until("a share each", || (shares(&nodes.0) == 4.0 && shares(&nodes.1) == 4.0).then_some(()));
    nodes.0.api.deploy(&one_task("one", "work")).answer().expect(201);
    nodes
}

fn start(api: &Api, key: &str) -> Answer {
    api.start("one", json!({})).key(key).answer()
}

fn is_replay(answer: &Answer) -> bool {
    answer.headers.iter().any(|(name, value)| name == "idempotent-replayed" && value == "true")
}

fn forwards(node: &Node) -> f64 {
    node.api.metric("wf_forwards_total")
}

/// L1.3, L1.5: whoever comes second gets the first one's answer, byte for byte.
#[test]
fn l1_5_one_key_at_two_nodes_at_once_has_one_effect() {
    let (one, two) = two();
    for n in 0..KEYS {
        let key = format!("k-{n}");
        let (first, second) = thread::scope(|scope| {
            let other = scope.spawn(|| start(&two.api, &key));
            (start(&one.api, &key), other.join().unwrap())
        });
        assert_eq!((first.status, second.status), (201, 201), "{} {}", first.text(), second.text());
        assert_eq!(first.text(), second.text());
        assert_ne!(is_replay(&first), is_replay(&second), "one of them is the first");
        let again = [&one, &two].map(|node| start(&node.api, &key));
        assert!(again.iter().all(|again| again.text() == first.text() && is_replay(again)));
        let other = one.api.start("one", json!({"amount": 1})).key(&key).answer();
        assert_eq!(other.status, 409, "another request under the key: {}", other.text());
    }
    let instances: Vec<Value> = one.api.all("/api/v1/instances");
    assert_eq!(instances.len(), KEYS);
}

/// P4: nothing is passed on that can be done where it was asked for.
#[test]
fn p4_starts_jobs_and_completions_stay_at_the_node_that_is_asked() {
    let (one, two) = two();
    let before = [&one, &two].map(forwards);
    for node in [&one, &two] {
        for n in 0..20 {
            start(&node.api, &format!("{}-{n}", node.url)).expect(201);
        }
        let mut done = 0;
        while done < 20 {
            let jobs = node.api.activated("work", "w", 20);
            done += jobs.len();
            jobs.iter().for_each(|job| drop(node.api.complete(job, "w", json!({})).answer().expect(200)));
        }
    }
    assert_eq!([&one, &two].map(forwards), before);
    // What belongs to the other one is passed on, and counted.
    start(&one.api, "last").expect(201);
    let job = one.api.job("work", "w");
    two.api.complete(&job, "w", json!({})).answer().expect(200);
    assert_eq!(forwards(&two), before[1] + 1.0);
}
