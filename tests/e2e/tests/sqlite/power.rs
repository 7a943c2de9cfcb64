//! L1.6, K8: the power goes, and the disk holds what was synced and some of the rest. What was answered is there, nothing
//! half is. That the layer really drops things, and that the checkers notice, is shown as well.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use e2e::api::Api;
use e2e::crash::check::whole;
use e2e::crash::counts::Counts;
use e2e::crash::{Plan, live, seed_or};
use e2e::models::one_task;
use e2e::node::{Setup, run, wf};
use e2e::power::{DATA, Power};
use e2e::until;
use powerloss::lose::Fate;
use serde_json::json;

const LOSSES: u64 = 30;
const ANSWERED: usize = 5;
const NORMAL: &str = "[sqlite]\ndurability = \"normal\"";

/// At the places of the crash matrix, under the same load, with the same checkers.
#[test]
fn l1_6_k8_thirty_losses_of_power_lose_nothing_that_was_answered() {
    let counts = Counts::default();
    let plan = Plan {
        store: Setup::new(),
        seed: seed_or(0x0FF),
        deaths: LOSSES,
        with_nats: false,
        power: Some(Power::new()),
        end: None,
        late_tries: 0,
    };
    if let Err(broken) = live(&plan, &counts) {
        panic!("{broken}");
    }
    let figure = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!("{} losses, {} writes at stake", figure(&counts.losses), figure(&counts.unsynced));
    assert!(figure(&counts.losses) >= LOSSES);
    assert!(figure(&counts.unsynced) > LOSSES, "nothing was at stake");
}

/// Its folder and its files have names that no sync of a file keeps.
#[test]
fn l1_6_a_new_store_survives_a_loss_of_power() {
    let setup = Setup::new().data_in(DATA);
    assert_eq!(survivors(&setup, Fate::Nothing, 0), Some(ANSWERED));
    assert_eq!(whole(&setup.database()), Vec::<String>::new());
}

/// S5: neither does a restore end before its store is on the disk.
#[test]
fn s5_a_restored_store_survives_a_loss_of_power() {
    let lost = Setup::new();
    let node = lost.start();
    answered(&node.api);
    assert!(node.stop().success());
    let backup = lost.folder.path().join("backup.db");
    run(wf().arg("backup").arg("--data").arg(lost.data()).arg("--to").arg(&backup)).expect(0);
    let setup = Setup::new().data_in(DATA);
    let powered = Power::new().on(&setup).unwrap();
    let mut restore = wf();
    powered.over(restore.arg("restore").arg("--from").arg(&backup).arg("--data").arg(setup.data()));
    run(&mut restore).expect(0);
    powered.off(Fate::Nothing, 0).unwrap();
    let node = setup.start();
    assert_eq!(node.api.all("/api/v1/instances").len(), ANSWERED);
}

/// The layer drops what is not synced: with `normal` a machine's crash costs the last commits, as the docs say, and the
/// store is whole.
#[test]
fn s1_durability_normal_loses_answered_work_and_stays_whole() {
    let setup = Setup::new().data_in(DATA).config(NORMAL);
    let survivors_of_nothing = survivors(&setup, Fate::Nothing, 0);
    assert!(
        survivors_of_nothing.is_none_or(|count| count < ANSWERED),
        "{survivors_of_nothing:?} of {ANSWERED} are there"
    );
    assert_eq!(whole(&setup.database()), Vec::<String>::new());
    for seed in 0..10 {
        let setup = Setup::new().data_in(DATA).config(NORMAL);
        survivors(&setup, Fate::of(seed), seed);
        assert_eq!(whole(&setup.database()), Vec::<String>::new(), "seed {seed}");
    }
}

/// How many of the answered instances the next node finds; `None` where not even their process is known.
fn survivors(setup: &Setup, fate: Fate, seed: u64) -> Option<usize> {
    let powered = Power::new().on(setup).unwrap();
    let node = powered.setup.start();
    answered(&node.api);
    node.kill();
    powered.off(fate, seed).unwrap();
    let node = setup.start();
    let found = node.api.all("/api/v1/instances").len();
    let is_known = node.api.get("/api/v1/definitions/one").status == 200;
    assert!(node.stop().success());
    is_known.then_some(found)
}

fn answered(api: &Api) {
    api.deploy(&one_task("one", "work")).answer();
    for n in 0..ANSWERED {
        api.start("one", json!({"n": n})).answer().expect(201);
    }
}

/// The checkers notice a disk that confirms and forgets.
#[test]
fn s1_a_disk_that_lies_is_caught() {
    let counts = Counts::default();
    let plan = Plan {
        store: Setup::new(),
        seed: 3,
        deaths: 12,
        with_nats: false,
        power: Some(Power::that_lies()),
        end: None,
        late_tries: 0,
    };
    let broken = live(&plan, &counts).expect_err("lost work went unnoticed");
    assert!(!broken.faults.is_empty());
    std::fs::remove_dir_all(&broken.folder).unwrap();
}

/// No call that changes a file passes the layer by: with nothing lost, the journal makes the very files that are there.
#[test]
fn the_layer_sees_every_write() {
    let setup = Setup::new().data_in(DATA).config("[idempotency]\nsweep_ms = 100");
    let powered = Power::new().on(&setup).unwrap();
    let node = powered.setup.start();
    answered(&node.api);
    let bytes = |name: &str| std::fs::read(setup.data().join(name)).unwrap_or_default();
    // The log was emptied into the database and begun anew, and the file is cut to nothing.
    until("a checkpoint", || (bytes("wf.db").len() > 100_000 && bytes("wf.db-wal").is_empty()).then_some(()));
    answered(&node.api);
    let files = ["wf.db", "wf.db-wal", "wf.lock"];
    node.kill();
    let real = files.map(bytes);
    let names = || -> BTreeSet<_> {
        let entries = std::fs::read_dir(setup.data()).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| name != "wf.db-shm").collect()
    };
    let real_names = names();
    powered.off(Fate::Everything, 0).unwrap();
    for (name, real) in files.iter().zip(real) {
        assert!(
            bytes(name) == real,
            "the journal makes another {name}: {} bytes, not {}",
            bytes(name).len(),
            real.len()
        );
    }
    assert_eq!(names(), real_names);
}
