//! The end of a store's life: what clients, provider and receivers saw, held against what the store says.
//! Each checker returns what is wrong; none of them knows how often the process died.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use serde_json::Value;

use crate::api::{Api, text};
use crate::database::{AuditRow, Database, audit_gaps, chain_breaks};
use crate::nats::Nats;
use crate::node::{Setup, run, wf};
use crate::receiver::Receiver;
use crate::{locked, stream};

use super::clients::STEPS;
use super::world::World;

const PUBLISHED: [&str; 3] = ["instance.started", "job.completed", "instance.completed"];

/// While the last node still answers: every order ended once, with the variables that were set last.
pub fn instances(api: &Api, world: &World) {
    let orders = locked(&world.orders).clone();
    let receipts = locked(&world.receipts).clone();
    for order in &orders {
        let instance = match api.call("GET", &format!("/api/v1/instances/{}", order.instance)).send() {
            Ok(answer) if answer.status == 200 => answer.json(),
            other => return world.fault(format!("{}: {other:?}", order.id)),
        };
        let mut wanted = order.variables.clone();
        wanted.insert("receipt".to_owned(), receipts.get(&order.instance).cloned().into());
        let found: BTreeMap<String, Value> = serde_json::from_value(instance["variables"].clone()).unwrap_or_default();
        if instance["state"] != "COMPLETED" || found != wanted {
            world.fault(format!("{}: {} with {found:?} instead of {wanted:?}", order.id, instance["state"]));
        }
    }
}

/// What a node may say as an error while its database is out of reach, and at no other time.
const OUTAGE: [&str; 4] =
    ["a turn was not committed", "failed to load", "failed to take the partition", "failed to look for due work"];

/// After the last stop. `had_outage`: a node may have said that it could not reach its database.
pub fn all(setup: &Setup, world: &World, receiver: &Receiver, nats: Option<&Nats>, had_outage: bool) -> Vec<String> {
    let database = setup.database();
    let events = Events::read(&database);
    let mut faults = whole(&database);
    faults.extend(once(world, &events));
    faults.extend(commands(&database, world));
    faults.extend(provider(world));
    faults.extend(leases(&events));
    faults.extend(webhook(receiver, &events));
    faults.extend(nats.into_iter().flat_map(|nats| broker(nats, &events)));
    faults.extend(proofs(setup));
    let is_outage = |line: &str| had_outage && OUTAGE.iter().any(|said| line.contains(said));
    let is_error = |line: &&str| line.contains("panicked") || line.contains(" ERROR ") && !is_outage(line);
    faults.extend(setup.log().lines().filter(is_error).map(str::to_owned));
    faults
}

/// What a disk kept, as SQLite alone finds it: looked at in a copy, because whoever opens it changes it.
pub fn after_loss(setup: &Setup) -> std::io::Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("wf.db");
    for (from, to) in ["wf.db", "wf.db-wal"].map(|name| (setup.data().join(name), folder.path().join(name))) {
        if from.exists() {
            std::fs::copy(from, to)?;
        }
    }
    let Ok(connection) = Connection::open(&copy) else { return Ok(vec!["the database does not open".to_owned()]) };
    let has_tables = connection.table_exists(None, "audit_log");
    drop(connection);
    Ok(match has_tables {
        Ok(true) => whole(&Database::File(copy)),
        Ok(false) => Vec::new(),
        Err(error) => vec![error.to_string()],
    })
}

/// The file itself; of each partition the audit's positions and its chain, and that nothing stands in one log only.
pub fn whole(database: &Database) -> Vec<String> {
    let mut faults = match database {
        Database::File(_) => {
            rows(database, "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'")
        }
        Database::Server(_) => Vec::new(),
    };
    faults.extend(audit_gaps(database).iter().map(|gap| format!("a gap in the audit: {gap}")));
    faults.extend(chain_breaks(database).iter().map(|id| format!("the audit's chain breaks at {id}")));
    // Each command has its audit, and the last of both is the one that the fence names.
    for (one, other) in [("command_log", "audit_log"), ("audit_log", "command_log")] {
        let only = format!("SELECT partition, position FROM {one} EXCEPT SELECT partition, position FROM {other}");
        faults.extend(rows(database, &only).iter().map(|position| format!("in {one} only: {position}")));
    }
    let behind = "SELECT p.id, p.last_position, max(l.position) FROM partition p JOIN command_log l ON l.partition = p.id \
        GROUP BY p.id, p.last_position HAVING p.last_position <> max(l.position)";
    faults.extend(rows(database, behind).iter().map(|found| format!("partition, its position, its log's: {found}")));
    faults
}

fn rows(database: &Database, sql: &str) -> Vec<String> {
    match database.try_rows(sql) {
        Ok(rows) => rows.iter().map(|row| row.join(" ")).collect(),
        Err(error) => vec![format!("{error} in {sql}")],
    }
}

/// The audit, event by event, in its order.
struct Events(Vec<Event>);

struct Event {
    id: String,
    kind: String,
    resource: String,
    root: String,
    time: i64,
    payload: Value,
}

impl Events {
    fn read(database: &Database) -> Events {
        let of_row = |row: AuditRow| row.events().into_iter().map(move |(id, event)| Event::of(id, row.time, event));
        Events(database.audit().into_iter().flat_map(of_row).collect())
    }

    fn published(&self) -> impl Iterator<Item = &Event> {
        self.0.iter().filter(|event| PUBLISHED.contains(&&*event.kind) || event.kind == "incident.created")
    }
}

impl Event {
    fn of(id: String, time: i64, mut event: Value) -> Event {
        let [kind, resource, root] = ["type", "resource", "root"].map(|name| plain(&event[name]));
        Event { id, kind, resource, root, time, payload: event["payload"].take() }
    }
}

/// Keys are numbers or texts, whoever wrote them.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// L1: every key one effect. L2: each step of each instance once. L5.7: every message id one message.
fn once(world: &World, events: &Events) -> Vec<String> {
    let kinds =
        ["instance.started", "job.created", "job.completed", "message.correlated", "timer.fired", "instance.completed"];
    let orders = locked(&world.orders).clone();
    let mut wanted: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for order in &orders {
        for kind in kinds {
            *wanted.entry((order.instance.clone(), kind)).or_default() += 1;
        }
    }
    let mut found: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for event in &events.0 {
        if let Some(kind) = kinds.iter().find(|kind| **kind == event.kind) {
            *found.entry((event.root.clone(), *kind)).or_default() += 1;
        }
    }
    let keys: BTreeSet<_> = wanted.keys().chain(found.keys()).collect();
    let mut faults: Vec<String> = keys
        .into_iter()
        .filter(|key| wanted.get(*key) != found.get(*key))
        .map(|key| format!("{} of {}: {:?} times instead of {:?}", key.1, key.0, found.get(key), wanted.get(key)))
        .collect();
    let mut ids: BTreeMap<String, u64> = BTreeMap::new();
    for event in events.0.iter().filter(|event| event.kind == "message.published") {
        event.payload["messageId"].as_str().map(|id| *ids.entry(id.to_owned()).or_default() += 1).unwrap_or_default();
    }
    let told = locked(&world.messages).keys().map(|id| (id.clone(), 1)).collect();
    if ids != told {
        faults.push(format!("{} message ids were published, clients know of {}", ids.len(), told.len()));
    }
    if world.counts.kills() > 0 && orders.is_empty() {
        faults.push("no order came through: that was no load".to_owned());
    }
    faults
}

/// No update is lost and none ran twice: as many commands as clients asked for.
fn commands(database: &Database, world: &World) -> Vec<String> {
    let orders = locked(&world.orders).len();
    let table = [("start-instance", orders), ("set-variables", STEPS as usize * orders), ("deploy", 1)];
    let verbs = database.texts("SELECT verb FROM command_log");
    let found = |verb: &str| verbs.iter().filter(|known| *known == verb).count();
    let wrong = table.iter().filter(|(verb, wanted)| found(verb) != *wanted);
    wrong.map(|(verb, wanted)| format!("{verb} ran {} times instead of {wanted}", found(verb))).collect()
}

/// L2.3, L6.2: the log, run again, makes the state that is there; and the audit's chain is what `wf` itself calls whole.
fn proofs(setup: &Setup) -> Vec<String> {
    let commands: [&[&str]; 2] = [&["debug", "replay"], &["audit", "verify"]];
    let mut faults = Vec::new();
    for command in commands {
        let ended = run(wf().args(command).args(setup.store_words()));
        if !ended.status.success() {
            faults.push(format!("wf {}: {ended:?}", command.join(" ")));
        }
    }
    faults
}

/// L4: one charge per order, whoever held its job and however often.
fn provider(world: &World) -> Vec<String> {
    let mut charges: BTreeMap<String, u64> = BTreeMap::new();
    for what in world.provider.charged() {
        *charges.entry(text(&what["instance"])).or_default() += 1;
    }
    let wanted: BTreeMap<String, u64> = locked(&world.orders).iter().map(|order| (order.instance.clone(), 1)).collect();
    let instances: BTreeSet<&String> = charges.keys().chain(wanted.keys()).collect();
    let wrong = instances.into_iter().filter(|instance| charges.get(*instance) != wanted.get(*instance));
    wrong.map(|instance| format!("{instance} was charged {:?} times", charges.get(instance))).collect()
}

/// L3: nobody gets a job that somebody holds. Told from the audit, which also knows the leases whose answers got lost.
fn leases(events: &Events) -> Vec<String> {
    let mut held: BTreeMap<&str, i64> = BTreeMap::new();
    let mut done = BTreeSet::new();
    let mut faults = Vec::new();
    for event in &events.0 {
        let job = &*event.resource;
        match &*event.kind {
            "job.activated" => {
                let deadline = event.payload["deadline"].as_i64().unwrap_or(i64::MAX);
                let is_held = held.insert(job, deadline).is_some_and(|until| event.time < until);
                if is_held || done.contains(job) {
                    faults.push(format!("job {job} was given to two: {}", event.id));
                }
            }
            "job.failed" | "job.lease-expired" | "job.ready" => drop(held.remove(job)),
            "job.completed" => {
                // By its holder, in time.
                done.insert(job);
                if held.remove(job).is_none_or(|until| event.time >= until) {
                    faults.push(format!("job {job} was completed by nobody who held it: {}", event.id));
                }
            }
            _ => (),
        }
    }
    faults
}

/// L5.1, L5.2, S9: published is what happened, each id with the same bytes however often it came, and what came for the
/// first time came in the order of its instance.
fn webhook(receiver: &Receiver, events: &Events) -> Vec<String> {
    let mut faults = Vec::new();
    let mut bodies: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut arrived: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for delivery in receiver.deliveries() {
        let id = delivery.header("webhook-id");
        match bodies.get(&id) {
            Some(first) if *first != delivery.body => faults.push(format!("{id} came twice and differs")),
            Some(_) => (),
            None => {
                arrived.entry(text(&delivery.json()["subject"])).or_default().push(id.clone());
                bodies.insert(id, delivery.body);
            }
        }
    }
    faults.extend(compare("webhook", &arrived, events));
    faults
}

/// L5.3: the stream holds each id once.
fn broker(nats: &Nats, events: &Events) -> Vec<String> {
    let mut arrived: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for message in stream::stream(&nats.url()) {
        arrived.entry(text(&message.event["subject"])).or_default().push(message.id);
    }
    compare("nats", &arrived, events)
}

fn compare(sink: &str, arrived: &BTreeMap<String, Vec<String>>, events: &Events) -> Vec<String> {
    let mut happened: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in events.published() {
        happened.entry(event.root.clone()).or_default().push(event.id.clone());
    }
    let instances: BTreeSet<&String> = happened.keys().chain(arrived.keys()).collect();
    let wrong = instances.into_iter().filter(|instance| happened.get(*instance) != arrived.get(*instance));
    wrong
        .map(|instance| {
            let (happened, arrived) = (happened.get(instance), arrived.get(instance));
            format!("{sink}: of {instance} came {arrived:?} instead of {happened:?}")
        })
        .collect()
}

/// The checkers bite: each is shown a story with one thing wrong.
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(id: &str, kind: &str, time: i64, deadline: i64) -> Event {
        let [id, kind] = [id, kind].map(str::to_owned);
        let (resource, root) = ("7".to_owned(), "1".to_owned());
        Event { id, kind, resource, root, time, payload: json!({"deadline": deadline}) }
    }

    #[test]
    fn a_job_in_two_hands_is_found() {
        let table: [(&[(&str, i64)], usize); 6] = [
            (&[("job.activated", 0), ("job.completed", 5)], 0),
            (&[("job.activated", 0), ("job.activated", 5)], 1),
            (&[("job.activated", 0), ("job.activated", 10), ("job.completed", 12)], 0),
            (&[("job.activated", 0), ("job.failed", 3), ("job.activated", 4)], 0),
            (&[("job.activated", 0), ("job.completed", 10)], 1),
            (&[("job.activated", 0), ("job.completed", 5), ("job.completed", 6)], 1),
        ];
        for (story, faults) in table {
            let events = story.iter().map(|(kind, time)| event("ev", kind, *time, time + 10)).collect();
            assert_eq!(leases(&Events(events)).len(), faults, "{story:?}");
        }
    }

    #[test]
    fn what_a_sink_got_is_what_happened_in_its_order() {
        let happened = || Events(vec![event("a", "instance.started", 0, 0), event("b", "job.completed", 1, 0)]);
        let table: [(&[&str], usize); 5] =
            [(&["a", "b"], 0), (&["a"], 1), (&["b", "a"], 1), (&["a", "b", "c"], 1), (&[], 1)];
        for (ids, faults) in table {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            let arrived = if ids.is_empty() { BTreeMap::new() } else { [("1".to_owned(), ids.clone())].into() };
            assert_eq!(compare("sink", &arrived, &happened()).len(), faults, "{ids:?}");
        }
    }
}
