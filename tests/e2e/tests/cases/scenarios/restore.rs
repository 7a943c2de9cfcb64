//! S5, K8: the store is restored from a backup, or lost, and everybody sends again what they sent. How a backup is made and
//! put back is a runbook's affair: `../../sqlite/restore.rs`, `../../postgres/restore.rs` run the commands of theirs as they
//! stand there. What an id denotes is compared event by event, between the lost store and the restored one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use e2e::api::{Api, text};
use e2e::database::{Database, audit_gaps};
use e2e::models::file;
use e2e::node::{Node, Setup, run, wf};
use e2e::provider::Provider;
use e2e::stream::{all_shipped, stream};
use e2e::wf_binary;
use serde_json::{Value, json};

use super::{Shop, invoice, picked_up, start};

/// What an operator does, in this order.
pub trait Runbook {
    fn back_up(&self, setup: &Setup, node: &Node);
    /// The node is gone; afterwards the store stands as the backup has it.
    fn before_the_start(&self, setup: &Setup);
    fn after_the_start(&self, setup: &Setup, node: &Node);
    fn let_shipping_begin(&self, setup: &Setup, node: &Node);
}

/// Five orders around a backup: O-0 is done before it; O-1 is charged before it and done after it; O-2 is started before it,
/// while the broker is down, and charged after it; O-3 is done and O-4 is started after it. Then the disk is lost.
pub fn restored_from_a_backup_and_events_replayed(setup: Setup, runbook: &impl Runbook) {
    let mut shop = Shop::open(setup);
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
    runbook.back_up(&shop.setup, &node);

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
    let lost = Ids::of(&shop.setup.database());

    runbook.before_the_start(&shop.setup);
    let base = Ids::of(&shop.setup.database());
    let node = shop.node();
    runbook.after_the_start(&shop.setup, &node);
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
    runbook.let_shipping_begin(&shop.setup, &node);
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
    let mut known = base.clone();
    [lost, Ids::of(&database)].into_iter().for_each(|history| known.never_given_twice(&base, history));
    assert_eq!(audit_gaps(&database), Vec::<String>::new());
    // The log that goes on from a backup is a log like any other: executed again it gives what the tables hold.
    for proof in [["audit", "verify"], ["debug", "verify"], ["debug", "replay"]] {
        run(wf().args(proof).args(shop.setup.store_words())).expect(0);
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

/// What was ever named by an id, over several histories of one store.
#[derive(Clone, Default)]
pub struct Ids {
    /// Event id → what happened.
    events: BTreeMap<String, String>,
    /// Partition and position → the command.
    commands: BTreeMap<(String, String), String>,
    /// Keys of instances, jobs, elements, timers, and leases.
    keys: BTreeSet<String>,
}

impl Ids {
    pub fn of(database: &Database) -> Ids {
        let mut ids = Ids::default();
        for row in database.audit() {
            for (id, event) in row.events() {
                let repeated = ids.events.insert(id, format!("{} {} {} {event}", row.time, row.tenant, row.actor));
                assert_eq!(repeated, None);
                let named = [&event["resource"], &event["root"], &event["payload"]["lease"]].map(as_text);
                ids.keys.extend(named.into_iter().flatten().filter(|key| key != "0"));
            }
        }
        for mut row in database.rows("SELECT partition, position, id, time, verb, payload FROM command_log") {
            let command = row.split_off(2).join(" ");
            ids.commands.insert((row.swap_remove(0), row.swap_remove(0)), command);
        }
        ids
    }

    /// Takes up one more history that goes on from `base`.
    #[track_caller]
    pub fn never_given_twice(&mut self, base: &Ids, history: Ids) {
        for (id, what) in history.events {
            let known = self.events.entry(id.clone()).or_insert_with(|| what.clone());
            assert_eq!(*known, what, "{id} was given twice");
        }
        for (position, command) in history.commands {
            let known = self.commands.entry(position.clone()).or_insert_with(|| command.clone());
            assert_eq!(*known, command, "position {position:?} was given twice");
        }
        for key in history.keys.difference(&base.keys) {
            assert!(self.keys.insert(key.clone()), "the key or lease {key} was given twice");
        }
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Of all charges that the store has a job for.
pub fn lineages(database: &Database) -> BTreeSet<String> {
    let sql = format!("SELECT lineage FROM {} WHERE job_type = 'charge-card'", database.jobs());
    database.texts(&sql).into_iter().collect()
}

/// The commands of a section of a page, in the folder in which the node runs.
pub fn commands_of(page: &str, heading: &str) -> String {
    let text = file(page);
    let (_, behind) = text.split_once(&format!("{heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    let section = behind.split_once("\n## ").map_or(behind, |(section, _)| section);
    let blocks =
        section.split("```sh\n").skip(1).map(|block| block.split_once("```").map_or(block, |(block, _)| block));
    let script: String = blocks.collect();
    assert!(!script.is_empty(), "{heading} has no commands");
    script
}

/// As whoever runs the node has it: `wf` at hand, and its address.
pub fn shell(setup: &Setup, script: &str, url: &str) {
    let bin = wf_binary().parent().map(Path::to_owned).expect("a folder");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", script]).current_dir(setup.folder.path());
    run(bash.env("PATH", path).env("WF_SERVER", url)).expect(0);
}
