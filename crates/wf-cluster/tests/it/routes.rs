//! Where requests belong.

use wf_cluster::route::{Parts, Route, home, route, stand_in};
use wf_core::command::{Holder, UniqueOn};
use wf_core::{Command, Partitions, ids};
use wf_engine::{Ask, ClockChange};
use wf_store::OutboxId;

use crate::support::*;

const N: Partitions = Partitions::of(8);

fn holder(partition: u16) -> Holder {
    Holder { job: ids::key(partition, 7), worker: "w".into(), lease: None }
}

fn publish(name: &str, key: &str) -> Command {
    let (name, correlation_key) = (name.into(), key.into());
    Command::PublishMessage {
        name,
        correlation_key,
        message_id: None,
        ttl_ms: 0,
        dedup_ms: 0,
        variables: Default::default(),
    }
}

#[test]
fn each_request_has_its_partition() {
    let unique = UniqueOn { variable: "id".into(), value: [3; 16] };
    let twin = ids::home_of_unique(TENANT, "order", "id", &unique.value, N);
    let with_unique = Command::StartInstance {
        process_id: "order".into(),
        version: None,
        variables: Default::default(),
        unique: Some(unique),
    };
    let of_message = |name: &str, key: &str| Route::At(ids::home_of_message(TENANT, name, key, N));
    let step = Command::RecordStep { holder: holder(4), name: "s".into(), result: "1".into() };
    let table: Vec<(Command, Route)> = vec![
        (Command::Deploy { resources: vec![] }, Route::At(1)),
        (start(), Route::Anywhere { home: None }),
        (with_unique.clone(), Route::At(twin)),
        (Command::CancelInstance { instance: ids::key(3, 1) }, Route::At(3)),
        (Command::SetVariables { instance: ids::key(8, 1), scope: None, variables: Default::default() }, Route::At(8)),
        (Command::CompleteJob { holder: holder(2), variables: Default::default() }, Route::At(2)),
        (Command::ExtendLease { holder: holder(5), lease_ms: 1 }, Route::At(5)),
        (step, Route::At(4)),
        (Command::ResolveIncident { incident: ids::key(6, 1), retries: None }, Route::At(6)),
        (publish("paid", "k1"), of_message("paid", "k1")),
        (publish("sent", "k1"), of_message("paid", "k1")),
        (publish("paid", ""), of_message("paid", "")),
        (activate(), Route::Search { home: None }),
        (complete(&[ids::key(2, 1), ids::key(2, 2)]), Route::At(2)),
        // Keys of no partition: somebody must say that they are not there.
        (Command::CancelInstance { instance: 5 }, Route::At(1)),
        (Command::CancelInstance { instance: ids::key(9, 1) }, Route::At(1)),
    ];
    for (command, wanted) in table {
        assert_eq!(route(&request(command.clone()), N), wanted, "{command:?}");
        assert_eq!(route(&request(command), Partitions::ONE), Route::At(1), "one partition has all");
    }
    let retry = Ask::RetryOutbox { id: OutboxId { partition: 7, position: 1, n: 1, sink: "s".into() }, force: false };
    let clock = Ask::SetClock(ClockChange::Thaw);
    for (ask, wanted) in [(retry, Route::At(7)), (clock, Route::Everywhere)] {
        assert_eq!(route(&wf_engine::Request { ask, ..request(start()) }, N), wanted);
    }
}

#[test]
fn a_key_has_a_home_where_nothing_else_decides() {
    let keyed_start = keyed("k", request(start()));
    let its_home = home(&keyed_start, N).unwrap();
    assert_eq!(route(&keyed_start, N), Route::Anywhere { home: Some(its_home) });
    assert_eq!(route(&keyed("k", request(activate())), N), Route::Search { home: Some(its_home) });
    let parts = Parts::from([(2, vec![0, 2]), (3, vec![1])]);
    let batch = complete(&[ids::key(2, 1), ids::key(3, 1), ids::key(2, 2)]);
    assert_eq!(route(&request(batch.clone()), N), Route::Parts { leader: None, parts: parts.clone() });
    assert_eq!(route(&keyed("k", request(batch)), N), Route::Parts { leader: Some(its_home), parts });
    let of_instance = keyed("k", request(Command::CancelInstance { instance: ids::key(3, 1) }));
    assert_eq!(route(&of_instance, N), Route::At(3), "a key does not move what has a partition");
    let homes: std::collections::BTreeSet<_> =
        (0..100).filter_map(|n| home(&keyed(&format!("k{n}"), request(start())), N)).collect();
    assert_eq!(homes.len(), usize::from(N.count()), "keys are spread");
}

/// A start goes to a partition of the node that is asked; under one key always to the same.
#[test]
fn a_home_at_another_node_is_stood_in_for() {
    let table: &[(&[u16], [u16; 8])] = &[
        (&[1, 3, 5, 7], [1, 1, 3, 3, 5, 5, 7, 7]),
        (&[1, 2, 3, 4], [1, 2, 3, 4, 1, 2, 3, 4]),
        (&[8], [8; 8]),
        (&[], [1, 2, 3, 4, 5, 6, 7, 8]),
    ];
    for (here, wanted) in table {
        let found: Vec<u16> = N.iter().map(|home| stand_in(home, here, N)).collect();
        assert_eq!(found, wanted, "{here:?}");
    }
}
