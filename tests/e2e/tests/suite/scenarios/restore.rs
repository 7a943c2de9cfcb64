//! S5, K8: the store is restored from a backup, or lost, and everybody sends again what they sent. The commands are those of
//! docs/restore.md, run as they stand there. What an id denotes is compared event by event, between the lost store and the
//! restored one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::api::{Api, text};
use e2e::models::{file, order};
use e2e::node::{Node, Setup, run, wf};
use e2e::provider::Provider;
use e2e::wf_binary;
use serde_json::{Value, json};

use super::{Shop, invoice, picked_up, start};
use e2e::database::{audit_gaps, open};
use e2e::stream::{all_shipped, stream};

/// Five orders around a backup: O-0 is done before it; O-1 is charged before it and done after it; O-2 is started before it,
/// while the broker is down, and charged after it; O-3 is done and O-4 is started after it. Then the disk is lost.
#[test]
fn s5_database_restored_from_a_backup_and_events_replayed() {
    let mut shop = Shop::open(Setup::new());
    // The same charges at a provider that is given `idempotencyKey`: what the runbook says may repeat.
    let by_job = Provider::start();
    let node = shop.node();
    let first: Vec<String> = ["O-0", "O-1"].map(|id| started(&node.api, id).0).into();
    charge_all(&shop, &by_job, &node.api);
    picked_up(&node.api, "O-0").answer().expect(200);
    invoice(&node.api);
    all_shipped(&node.api);
    shop.broker.kill();
    let (second, _) = started(&node.api, "O-2");
    runbook(&shop.setup, &node, "## Back up");

    shop.broker.restart();
    let held = node.api.job("charge-card", "till-of-the-lost-time");
    charge(&shop, &by_job, &held);
    let (third, is_replay) = started(&node.api, "O-3");
    assert!(!is_replay);
    charge_all(&shop, &by_job, &node.api);
    ["O-1", "O-3"].iter().for_each(|id| assert_eq!(correlated(&node.api, id), 1));
    (0..2).for_each(|_| invoice_one(&node.api));
    let (fourth, _) = started(&node.api, "O-4");
    let before = shop.published(&node.api);
    let lost_lineages = lineages(&shop.setup.database());
    node.kill();

    runbook_offline(&shop.setup, "## Restore: before the start");
    let lost = lost(&shop.setup);
    let node = shop.node();
    runbook(&shop.setup, &node, "## Restore: after the start");
    // Nothing goes out until the operator says so.
    assert_eq!(pending(&node.api), 1, "the start of O-2, which the backup holds as not shipped");
    assert_eq!(stream(&shop.broker.url()), before);
    assert!(shop.setup.log().contains("shipping is paused until"), "{}", shop.setup.log());

    // A worker of the lost time comes back: its lease is not known, and changes nothing.
    node.api.complete(&held, "till-of-the-lost-time", json!({})).answer().expect_problem(409, "job-lease-lost");
    // Everybody sends everything again. What the backup knows is answered from it, the rest happens again.
    let again: Vec<(String, bool)> = ["O-0", "O-1", "O-2", "O-3", "O-4"].map(|id| started(&node.api, id)).into();
    let is_known: Vec<bool> = again.iter().map(|(_, is_replay)| *is_replay).collect();
    assert_eq!(is_known, [true, true, true, false, false]);
    let keys: Vec<&String> = again.iter().map(|(key, _)| key).collect();
    assert_eq!(keys[..3], [&first[0], &first[1], &second]);
    assert!(*keys[3] != third && *keys[4] != fourth, "new instances, new keys");
    charge_all(&shop, &by_job, &node.api);
    let reached: Vec<usize> = ["O-0", "O-1", "O-2", "O-3", "O-4"].map(|id| correlated(&node.api, id)).into();
    assert_eq!(reached, [0, 1, 1, 1, 1]);
    (0..4).for_each(|_| invoice_one(&node.api));
    assert!(node.api.all("/api/v1/instances").iter().all(|instance| instance["state"] == "COMPLETED"));
    runbook(&shop.setup, &node, "## Restore: let shipping begin");
    let after = shop.published(&node.api);

    // A provider that is given the lineage charged every order once in both histories; under `wf-job-…` only the orders
    // that the backup held are recognised.
    shop.charged_once_each(&["O-0", "O-1", "O-2", "O-3", "O-4"]);
    assert_eq!(
        charges_by_order(&by_job),
        [("O-0", 1), ("O-1", 1), ("O-2", 1), ("O-3", 2), ("O-4", 1)].map(named).into()
    );
    assert!(by_job.charges().values().all(|times| *times == 1), "no key was given to two charges");
    let lineages = lineages(&shop.setup.database());
    assert!(lost_lineages.is_subset(&lineages), "the same places of the same orders have the same lineage");

    // Everything that the restored store says has happened is with the broker under its own id: none was taken for a repeat
    // of the lost time. What was there before is there as it was.
    let events: BTreeMap<String, Value> =
        after.iter().map(|message| (message.id.clone(), message.event.clone())).collect();
    assert_eq!(after[..before.len()], before[..]);
    for event in published_events(&node.api) {
        let message = events.get(&text(&event["eventId"])).unwrap_or_else(|| panic!("{event} is not with the broker"));
        assert_eq!(message["type"], format!("wf.{}", text(&event["type"])));
        assert_eq!((&message["time"], &message["data"]), (&event["timestamp"], &event["payload"]));
    }
    assert!(node.stop().success());
    let database = shop.setup.database();
    let (base, mut known) = (Ids::of(&backup(&shop.setup)), Ids::of(&backup(&shop.setup)));
    [&lost, &database].into_iter().for_each(|history| known.never_given_twice(&base, history));
    assert_eq!(audit_gaps(&database), Vec::<String>::new());
    // The log that goes on from a backup is a log like any other: executed again it gives what the tables hold.
    for proof in [["audit", "verify"], ["debug", "verify"], ["debug", "replay"]] {
        run(wf().args(proof).arg("--data").arg(shop.setup.data())).expect(0);
    }
}

fn named((id, times): (&str, usize)) -> (String, usize) {
    (id.to_owned(), times)
}

/// Its key, and whether the answer was a stored one.
fn started(api: &Api, order_id: &str) -> (String, bool) {
    let answer = start(api, order_id).answer().expect(201);
    (text(&answer.json()["key"]), answer.is_replay())
}

fn correlated(api: &Api, order_id: &str) -> usize {
    picked_up(api, order_id).answer().expect(200).json()["correlated"].as_array().map_or(0, Vec::len)
}

fn pending(api: &Api) -> usize {
    api.all("/api/v1/outbox?state=pending").len()
}

fn charge(shop: &Shop, by_job: &Provider, job: &Value) {
    shop.provider.charge(&text(&job["lineageKey"]), &job["variables"]).expect(200);
    by_job.charge(&text(&job["idempotencyKey"]), &job["variables"]).expect(200);
}

fn charge_all(shop: &Shop, by_job: &Provider, api: &Api) {
    for job in api.activated("charge-card", "till", 100) {
        charge(shop, by_job, &job);
        api.complete(&job, "till", json!({})).answer().expect(200);
    }
}

fn invoice_one(api: &Api) {
    let job = api.activated("send-invoice", "accounting", 1).remove(0);
    api.complete(&job, "accounting", json!({"invoiceNumber": "I-1"})).answer().expect(200);
}

fn charges_by_order(provider: &Provider) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    provider.charged().iter().for_each(|what| *counts.entry(text(&what["orderId"])).or_default() += 1);
    counts
}

fn published_events(api: &Api) -> Vec<Value> {
    let is_published = |event: &Value| {
        ["instance.started", "job.completed", "instance.completed"].iter().any(|kind| event["type"] == *kind)
    };
    api.audit().into_iter().filter(is_published).collect()
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
    std::fs::copy(setup.database(), &backup).expect("a copy");
    let base = Ids::of(&backup);
    let mut known = Ids::of(&backup);
    let mut lineages_seen = BTreeSet::new();
    for life in 0..LIVES {
        std::fs::remove_dir_all(setup.data()).expect("a lost disk");
        restore(&setup, &backup).expect(0);
        let node = setup.start();
        // The same requests, and some that no other life has.
        start(&node.api, "O-1").answer().expect(201);
        start(&node.api, "O-2").answer().expect(201);
        start(&node.api, &format!("only-in-{life}")).answer().expect(201);
        node.api.activated("charge-card", &format!("till-{life}"), 2);
        node.kill();
        known.never_given_twice(&base, &setup.database());
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
    known.never_given_twice(&Ids::default(), &setup.database());
    std::fs::remove_dir_all(setup.data()).expect("a lost disk");
    let second = live("second");
    known.never_given_twice(&Ids::default(), &setup.database());
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
    assert_eq!((&made["unshipped"], &made["schema"]), (&json!(0), &json!(2)));
    refused(back_up(&setup, &backup), "it is there already");
    refused(restore(&setup, &backup), "another process holds it");
    start(&node.api, "O-1").answer().expect(201);
    node.kill();
    let killed = folder.join("killed.db");
    back_up(&setup, &killed).expect(0);
    // A killed server's folder still holds its log, which belongs to no other database.
    refused(restore(&setup, &backup), "it is there already");
    std::fs::remove_file(setup.database()).expect("the database");
    refused(restore(&setup, &backup), "wf.db-wal: it is there already");
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
        let ended = restore(&setup, &bad).expect(1);
        assert!(ended.stderr.contains(why), "{what}: {ended:?}");
        assert!(!setup.database().exists() && !setup.data().join("shipping-paused").exists(), "{what}");
    }
    std::fs::write(folder.join("bad.db-wal"), "what was committed last").expect("a file");
    refused(restore(&setup, &bad), "no whole store");
    refused(restore(&setup, &folder.join("nowhere.db")), "nowhere.db");

    // What was committed last stood in the killed server's log, and is in the backup made after it.
    for (backup, instances) in [(backup, 0), (killed, 1)] {
        restore(&setup, &backup).expect(0);
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

fn restore(setup: &Setup, from: &Path) -> e2e::node::Ended {
    run(wf().current_dir(setup.folder.path()).arg("restore").arg("--from").arg(from).arg("--data").arg(setup.data()))
}

/// What was ever named by an id, over several histories of one store.
#[derive(Default)]
struct Ids {
    /// Event id → what happened.
    events: BTreeMap<String, String>,
    /// Position → the command.
    commands: BTreeMap<i64, String>,
    /// Keys of instances, jobs, elements, timers, and leases.
    keys: BTreeSet<String>,
}

impl Ids {
    fn of(database: &Path) -> Ids {
        let connection = open(database);
        let mut ids = Ids::default();
        let columns = "event_id, time || tenant || actor || type || coalesce(resource, '') || coalesce(root, '') || payload, \
            resource, root, json_extract(payload, '$.lease')";
        let mut query = connection.prepare(&format!("SELECT {columns} FROM audit_events")).expect("the view");
        let mut rows = query.query([]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            let repeated = ids.events.insert(row.get(0).expect("an id"), row.get(1).expect("what happened"));
            assert_eq!(repeated, None);
            let named = (2..5).filter_map(|column| row.get_ref(column).ok().and_then(as_text));
            ids.keys.extend(named.filter(|key| key != "0"));
        }
        let mut query = connection
            .prepare("SELECT position, lower(hex(id)) || time || verb || payload FROM command_log")
            .expect("the log");
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        ids.commands = rows.map(|row| row.expect("a row")).collect();
        ids
    }

    /// Takes up one more history that goes on from `base`.
    #[track_caller]
    fn never_given_twice(&mut self, base: &Ids, database: &Path) {
        let history = Ids::of(database);
        for (id, what) in history.events {
            let known = self.events.entry(id.clone()).or_insert_with(|| what.clone());
            assert_eq!(*known, what, "{id} was given twice");
        }
        for (position, command) in history.commands {
            let known = self.commands.entry(position).or_insert_with(|| command.clone());
            assert_eq!(*known, command, "position {position} was given twice");
        }
        for key in history.keys.difference(&base.keys) {
            assert!(self.keys.insert(key.clone()), "the key or lease {key} was given twice");
        }
    }
}

fn as_text(value: rusqlite::types::ValueRef<'_>) -> Option<String> {
    match value {
        rusqlite::types::ValueRef::Integer(number) => Some(number.to_string()),
        rusqlite::types::ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}

/// Of all charges that the store has a job for.
fn lineages(database: &Path) -> BTreeSet<String> {
    let connection = open(database);
    let mut query =
        connection.prepare("SELECT lower(hex(lineage)) FROM job WHERE job_type = 'charge-card'").expect("jobs");
    let rows = query.query_map([], |row| row.get(0)).expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}

/// The commands of a section of docs/restore.md, in the folder in which the node runs.
fn runbook(setup: &Setup, node: &Node, heading: &str) {
    shell(setup, heading, &node.url);
}

fn runbook_offline(setup: &Setup, heading: &str) {
    shell(setup, heading, "http://127.0.0.1:9");
}

fn shell(setup: &Setup, heading: &str, url: &str) {
    let text = file("docs/restore.md");
    let (_, behind) = text.split_once(&format!("{heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    let section = behind.split_once("\n## ").map_or(behind, |(section, _)| section);
    let blocks =
        section.split("```sh\n").skip(1).map(|block| block.split_once("```").map_or(block, |(block, _)| block));
    let script: String = blocks.collect();
    assert!(!script.is_empty(), "{heading} has no commands");
    let bin = wf_binary().parent().map(Path::to_owned).expect("a folder");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &script]).current_dir(setup.folder.path());
    run(bash.env("PATH", path).env("WF_SERVER", url)).expect(0);
}

fn backup(setup: &Setup) -> PathBuf {
    the_one(&setup.folder.path().join("backups"), "wf-")
}

fn lost(setup: &Setup) -> PathBuf {
    the_one(setup.folder.path(), "wf-data.lost-").join("wf.db")
}

/// Whose name begins so.
fn the_one(folder: &Path, start: &str) -> PathBuf {
    let entries = std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    let mut named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    named.next().unwrap_or_else(|| panic!("no {start}")).path()
}
