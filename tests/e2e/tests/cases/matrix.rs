//! L1.6, K8, S1, S9: the crash matrix as CI runs it. Two stores, a hundred deaths each, at every place that has a name and at
//! moments that have none; where nodes can share a store, two of them die in turn; the checkers of `e2e::crash::check` at the end. Longer: `cargo xtask crash --minutes M`.

use e2e::crash::counts::Counts;
use e2e::crash::{Plan, live, seed_or, spared};

use crate::fresh_setup;

const DEATHS: u64 = 100;

#[test]
fn l1_6_k8_a_hundred_deaths_with_a_webhook() {
    a_hundred_deaths(0x5EED, false);
}

#[test]
fn l1_6_k8_a_hundred_deaths_with_a_broker_too() {
    a_hundred_deaths(0xB05, true);
}

fn a_hundred_deaths(seed: u64, with_nats: bool) {
    let counts = Counts::default();
    let store = fresh_setup();
    let plan = Plan { store, seed: seed_or(seed), deaths: DEATHS, with_nats, power: None, end: None, late_tries: 30 };
    if let Err(broken) = live(&plan, &counts) {
        panic!("{broken}");
    }
    println!("{}", counts.table());
    assert_eq!(spared(&plan.store, &counts), Vec::<&str>::new(), "nobody died there");
    assert!(counts.lines().iter().any(|line| line.replays > 0), "no request was cut off and repeated: no load");
}
