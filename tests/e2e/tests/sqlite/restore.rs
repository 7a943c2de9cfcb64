//! S5, K8: SQLite's backup and restore. The commands are those of docs/restore.md, run as they stand there.

use std::collections::BTreeSet;
use std::path::Path;

use e2e::api::text;
use e2e::database::Database;
use e2e::models::order;
use e2e::node::{Node, Setup, run, wf};
use serde_json::json;

use crate::cases::scenarios::restore::{self, Ids, Runbook, commands_of, lineages, shell};
use crate::cases::scenarios::start;

struct Page;

const PAGE: &str = "docs/restore.md";
/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:9";

impl Runbook for Page {
    fn back_up(&self, setup: &Setup, node: &Node) {
        shell(setup, &commands_of(PAGE, "## Back up"), &node.url);
    }

    fn before_the_start(&self, setup: &Setup) {
        shell(setup, &commands_of(PAGE, "## Restore: before the start"), NOWHERE);
    }

    fn after_the_start(&self, setup: &Setup, node: &Node) {
        shell(setup, &commands_of(PAGE, "## Restore: after the start"), &node.url);
    }

    fn let_shipping_begin(&self, setup: &Setup, node: &Node) {
        shell(setup, &commands_of(PAGE, "## Restore: let shipping begin"), &node.url);
    }
}

#[test]
fn s5_database_restored_from_a_backup_and_events_replayed() {
    restore::restored_from_a_backup_and_events_replayed(Setup::new(), &Page);
}

const LIVES: usize = 12;

/// One backup, made of a stopped server's file, restored again and again as fast as the machine can: also histories that
/// begin within the same second have no id in common.
#[test]
fn s5_restores_in_a_row_never_give_an_id_to_something_else() {
    let setup = Setup::new();
    let node = setup.start();
    node.api.deploy(&order()).answer().expect(201);
    start(&node.api, "O-1").answer().expect(201);
    assert!(node.stop().success());
    let backup = setup.folder.path().join("stopped.db");
    std::fs::copy(setup.file(), &backup).expect("a copy");
    let base = Ids::of(&Database::File(backup.clone()));
    let mut known = base.clone();
    let mut lineages_seen = BTreeSet::new();
    for life in 0..LIVES {
        std::fs::remove_dir_all(setup.data()).expect("a lost disk");
        restore_from(&setup, &backup).expect(0);
        let node = setup.start();
        // The same requests, and some that no other life has.
        start(&node.api, "O-1").answer().expect(201);
        start(&node.api, "O-2").answer().expect(201);
        start(&node.api, &format!("only-in-{life}")).answer().expect(201);
        node.api.activated("charge-card", &format!("till-{life}"), 2);
        node.kill();
        known.never_given_twice(&base, Ids::of(&setup.database()));
        lineages_seen.extend(lineages(&setup.database()));
    }
    assert_eq!(lineages_seen.len(), 2 + LIVES, "one per order that anybody placed");
}

/// No backup at all: a new store, and everybody sends again. Ids of the lost history stay its own; what a provider was
/// given is not known any more, which the runbook says: keep a backup, however old.
#[test]
fn k8_a_store_that_is_lost_leaves_its_ids_alone() {
    let setup = Setup::new();
    let live = |life: &str| {
        let node = setup.start();
        node.api.deploy(&order()).answer().expect(201);
        let answer = start(&node.api, "O-1").answer().expect(201);
        assert!(!answer.is_replay());
        let job = node.api.job("charge-card", life);
        node.kill();
        ["idempotencyKey", "lineageKey"].map(|name| text(&job[name]))
    };
    let first = live("first");
    let mut known = Ids::default();
    known.never_given_twice(&Ids::default(), Ids::of(&setup.database()));
    std::fs::remove_dir_all(setup.data()).expect("a lost disk");
    let second = live("second");
    known.never_given_twice(&Ids::default(), Ids::of(&setup.database()));
    assert!(first[0] != second[0] && first[1] != second[1], "{first:?} {second:?}");
}

/// K8: what the commands refuse, so that no history is mixed with another one and nothing is written over.
#[test]
fn k8_backup_and_restore_refuse_what_would_harm() {
    let setup = Setup::new();
    let folder = setup.folder.path().to_owned();
    let backup = folder.join("backup.db");
    let refused = |ended: e2e::node::Ended, why: &str| {
        let ended = ended.expect(1);
        assert!(ended.stderr.contains(why), "{ended:?}");
    };
    refused(back_up(&setup, &backup), "there is no wf.db");
    let node = setup.start();
    node.api.deploy(&order()).answer().expect(201);
    let made = back_up(&setup, &backup).expect(0).json();
    assert_eq!((&made["unshipped"], &made["schema"]), (&json!(0), &json!(3)));
    refused(back_up(&setup, &backup), "it is there already");
    refused(restore_from(&setup, &backup), "another process holds it");
    start(&node.api, "O-1").answer().expect(201);
    node.kill();
    let killed = folder.join("killed.db");
    back_up(&setup, &killed).expect(0);
    // A killed server's folder still holds its log, which belongs to no other database.
    refused(restore_from(&setup, &backup), "it is there already");
    std::fs::remove_file(setup.file()).expect("the database");
    refused(restore_from(&setup, &backup), "wf.db-wal: it is there already");
    std::fs::remove_dir_all(setup.data()).expect("the folder");

    let bytes = std::fs::read(&backup).expect("the backup");
    let bad = folder.join("bad.db");
    let table: [(&str, Vec<u8>, &str); 4] = [
        ("cut off", bytes[..bytes.len() / 2].to_vec(), "bad.db"),
        ("a page was lost", [&bytes[..8192], &vec![0; 8192][..], &bytes[16384..]].concat(), "bad.db"),
        ("no database", b"something else".repeat(1000), "not a database"),
        ("empty", Vec::new(), "holds no store"),
    ];
    for (what, bytes, why) in table {
        std::fs::write(&bad, bytes).expect("a file");
        let ended = restore_from(&setup, &bad).expect(1);
        assert!(ended.stderr.contains(why), "{what}: {ended:?}");
        assert!(!setup.file().exists() && !setup.data().join("shipping-paused").exists(), "{what}");
    }
    std::fs::write(folder.join("bad.db-wal"), "what was committed last").expect("a file");
    refused(restore_from(&setup, &bad), "no whole store");
    refused(restore_from(&setup, &folder.join("nowhere.db")), "nowhere.db");

    // What was committed last stood in the killed server's log, and is in the backup made after it.
    for (backup, instances) in [(backup, 0), (killed, 1)] {
        restore_from(&setup, &backup).expect(0);
        let node = setup.start();
        assert_eq!(node.api.all("/api/v1/definitions").len(), 1);
        assert_eq!(node.api.all("/api/v1/instances").len(), instances);
        node.kill();
        std::fs::remove_dir_all(setup.data()).expect("the folder");
    }
}

fn back_up(setup: &Setup, to: &Path) -> e2e::node::Ended {
    let data = setup.data();
    run(wf()
        .current_dir(setup.folder.path())
        .args(["backup", "--output", "json", "--data"])
        .arg(data)
        .arg("--to")
        .arg(to))
}

fn restore_from(setup: &Setup, from: &Path) -> e2e::node::Ended {
    run(wf().current_dir(setup.folder.path()).arg("restore").arg("--from").arg(from).arg("--data").arg(setup.data()))
}
