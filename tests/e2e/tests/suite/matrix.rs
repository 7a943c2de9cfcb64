//! L1.6, K8, S1, S9: the crash matrix as CI runs it. Two stores, a hundred deaths each, at every place that has a name and at
//! moments that have none; the checkers of `e2e::crash::check` at the end. Longer: `cargo xtask crash --minutes M`.

use std::collections::BTreeSet;
use std::path::Path;

use e2e::crash::counts::Counts;
use e2e::crash::{Plan, live, seed_or};
use wf_store::failpoint::PLACES;

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
    let plan = Plan { seed: seed_or(seed), deaths: DEATHS, with_nats, power: None, end: None };
    if let Err(broken) = live(&plan, &counts) {
        panic!("{broken}");
    }
    println!("{}", counts.table());
    assert_eq!(counts.spared(), Vec::<&str>::new(), "nobody died there");
    assert!(counts.lines().iter().any(|line| line.replays > 0), "no request was cut off and repeated: no load");
}

/// A failpoint that is put into the code and not into the list would be forgotten by the matrix, and the other way round.
#[test]
fn every_place_of_the_code_is_in_the_matrix_and_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut hit = BTreeSet::new();
    for folder in ["crates", "lib"] {
        collect(&root.join(folder), &mut hit);
    }
    let listed: BTreeSet<String> = PLACES.iter().map(|place| place.name.to_owned()).collect();
    assert_eq!(hit, listed);
    assert_eq!(listed.len(), PLACES.len());
    let page = std::fs::read_to_string(root.join("docs/reliability.md")).unwrap();
    let missing: Vec<&String> = listed.iter().filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert_eq!(missing, Vec::<&String>::new(), "docs/reliability.md has a line for each");
}

fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let hits = text.split("failpoint::hit(\"").skip(1).filter_map(|rest| rest.split('"').next());
            names.extend(hits.map(str::to_owned));
        }
    }
}
