//! Jobs and what they write: none is lost, none has two holders, no write is lost, one live instance per unique value.
//! Next: `books.rs`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wf_core::rows::Variables;
use wf_core::{Command, Key, Millis};

use super::history::{Event, History, key};
use super::{Findings, Scene};
use crate::door::Route;
use crate::facts::Given;

/// Every job and every instance has come to its one end.
pub fn lost_job(scene: &Scene<'_>) -> Findings {
    let mut wrong = Vec::new();
    for (begin, ends) in [
        ("job.created", &["job.completed", "job.canceled"][..]),
        ("instance.started", &["instance.completed", "instance.canceled"][..]),
        ("incident.created", &["incident.resolved"][..]),
    ] {
        let mut ended: BTreeMap<Key, u64> = BTreeMap::new();
        let all = scene.now.events.iter().filter(|event| ends.contains(&event.kind.as_str()));
        all.for_each(|event| *ended.entry(event.resource).or_default() += 1);
        for event in scene.now.of_kind(begin) {
            let count = ended.get(&event.resource).copied().unwrap_or(0);
            // An incident also ends with its instance.
            let is_wrong = if begin == "incident.created" { count > 1 } else { count != 1 };
            if is_wrong {
                wrong.push(format!("{begin} {} at {} has {count} ends", event.resource, event.position));
            }
        }
    }
    wrong
}

/// Who holds a job.
struct Holder {
    worker: String,
    deadline: Millis,
}

/// Between two activations of a job its lease has ended; only its holder, in time, ends or prolongs it.
pub fn one_lease(scene: &Scene<'_>) -> Findings {
    let mut held: BTreeMap<Key, Holder> = BTreeMap::new();
    let mut wrong = Vec::new();
    for event in &scene.now.events {
        if let Err(what) = follow(&mut held, event) {
            wrong.push(format!("{} {} at {}: {what}", event.kind, event.resource, event.position));
        }
    }
    let mut fresh = BTreeSet::new();
    for given in scene.facts.given.iter().filter(|given| given.is_fresh) {
        if !fresh.insert((given.job, given.lease)) {
            wrong.push(format!("job {} was given twice under lease {}", given.job, given.lease));
        }
    }
    wrong
}

fn follow(held: &mut BTreeMap<Key, Holder>, event: &Event) -> Result<(), String> {
    let job = event.resource;
    match event.kind.as_str() {
        "job.activated" => {
            let worker = event.payload["worker"].as_str().unwrap_or_default().to_owned();
            let deadline = event.payload["deadline"].as_i64().unwrap_or_default();
            match held.insert(job, Holder { worker, deadline }) {
                Some(holder) => Err(format!("{} holds it", holder.worker)),
                None => Ok(()),
            }
        }
        "job.completed" | "job.failed" | "job.error-thrown" => {
            let holder = held.remove(&job).ok_or("nobody holds it")?;
            if event.actor != holder.worker {
                return Err(format!("{} holds it, and {} said so", holder.worker, event.actor));
            }
            if event.time >= holder.deadline {
                return Err(format!("the lease ended at {}, it is {}", holder.deadline, event.time));
            }
            Ok(())
        }
        "job.lease-expired" => {
            let holder = held.remove(&job).ok_or("nobody holds it")?;
            if event.time < holder.deadline { Err(format!("it lasts until {}", holder.deadline)) } else { Ok(()) }
        }
        "job.canceled" => {
            held.remove(&job);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A holder is told that it lost its job only when it did: its time was over by somebody's clock, or the job went on. An owner
/// that was deposed would know no better.
pub fn refused_falsely(scene: &Scene<'_>) -> Findings {
    let mut wrong = Vec::new();
    for errand in &scene.facts.errands {
        let Route::Complete(job) = errand.call.route else { continue };
        let body: Value = serde_json::from_str(&errand.call.body).unwrap_or_default();
        let lease = key(&body["lease"]);
        let last = scene.world.history();
        let refused =
            errand.answers.iter().filter(|heard| heard.reply.code == "job-lease-lost" && heard.history == last);
        let false_one = refused.map(|heard| heard.clock_max).find(|clock| is_held(scene.now, job, lease, *clock));
        wrong.extend(false_one.map(|_| format!("{} was refused although its lease {lease} went on", errand.name)));
    }
    wrong
}

fn is_held(history: &History, job: Key, lease: u64, clock_max: Millis) -> bool {
    let of_job = || history.events.iter().filter(|event| event.resource == job);
    let given = of_job().find(|event| event.kind == "job.activated" && event.position == lease);
    let deadline = given.and_then(|event| event.payload["deadline"].as_i64());
    let next = of_job().find(|event| event.position > lease && event.kind != "job.step-recorded");
    deadline.is_some_and(|deadline| clock_max < deadline) && next.is_none_or(|event| event.time > clock_max)
}

/// One live instance per cart.
pub fn unique(scene: &Scene<'_>) -> Findings {
    let mut live: BTreeMap<String, Key> = BTreeMap::new();
    let mut wrong = Vec::new();
    for event in &scene.now.events {
        match event.kind.as_str() {
            "instance.started" => {
                let Some(cart) = event.payload["variables"]["cart"].as_str() else { continue };
                if let Some(twin) = live.insert(cart.to_owned(), event.resource) {
                    wrong.push(format!("{twin} and {} live at once for {cart}", event.resource));
                }
            }
            "instance.completed" | "instance.canceled" => live.retain(|_, instance| *instance != event.resource),
            _ => (),
        }
    }
    wrong
}

/// A worker gets every variable as the writes before its activation left it, and no other (L2.4).
pub fn lost_update(scene: &Scene<'_>) -> Findings {
    let last = scene.world.history();
    let given = |history: u32| scene.facts.given.iter().filter(move |given| given.history == history);
    let mut wrong = compare(scene.now, given(last));
    if let Some(lost) = scene.lost {
        wrong.extend(compare(&lost.all, given(0)));
    }
    wrong
}

/// Every instance's variables by name.
type Written = BTreeMap<Key, BTreeMap<String, String>>;

fn compare<'g>(history: &History, given: impl Iterator<Item = &'g Given>) -> Findings {
    let mut by_lease: BTreeMap<u64, Vec<&Given>> = BTreeMap::new();
    given.for_each(|given| by_lease.entry(given.lease).or_default().push(given));
    let root_of: BTreeMap<Key, Key> =
        history.of_kind("job.created").map(|event| (event.resource, event.root)).collect();
    let mut events: BTreeMap<u64, Vec<&Event>> = BTreeMap::new();
    history.events.iter().for_each(|event| events.entry(event.position).or_default().push(event));
    let (mut written, mut wrong) = (Written::new(), Vec::new());
    for command in &history.commands {
        let events = events.get(&command.position).map_or(&[][..], Vec::as_slice);
        if let Some(command) = &command.command {
            write(&mut written, command, events, &root_of);
        }
        for given in by_lease.get(&command.position).into_iter().flatten() {
            let expected = written.get(&given.instance).cloned().unwrap_or_default();
            let got = without_counter(&given.variables);
            if got != without_counter(&expected) {
                wrong.push(format!("job {} of {} got {got:?} instead of {expected:?}", given.job, given.order));
            }
        }
    }
    wrong
}

/// A script counts it, which no command says.
fn without_counter(variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    variables.iter().filter(|(name, _)| *name != "n").map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn write(written: &mut Written, command: &Command, events: &[&Event], root_of: &BTreeMap<Key, Key>) {
    let is_completed = |job: &Key| events.iter().any(|event| event.kind == "job.completed" && event.resource == *job);
    let mut put = |instance: Key, variables: &Variables| {
        let all = written.entry(instance).or_default();
        all.extend(variables.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    };
    match command {
        Command::SetVariables { instance, variables, .. } => put(*instance, variables),
        Command::CompleteJob { holder, variables } if is_completed(&holder.job) => {
            root_of.get(&holder.job).iter().for_each(|root| put(**root, variables));
        }
        Command::CompleteJobs { items, .. } => {
            for item in items.iter().filter(|item| is_completed(&item.job)) {
                root_of.get(&item.job).iter().for_each(|root| put(**root, &item.variables));
            }
        }
        _ => (),
    }
    for event in events {
        match event.kind.as_str() {
            "instance.started" => {
                let variables = event.payload["variables"].as_object().into_iter().flatten();
                put(
                    event.resource,
                    &variables.map(|(name, value)| (name.as_str().into(), value.to_string().into())).collect(),
                );
            }
            "message.correlated" if event.payload["name"] == "paid" => {
                put(event.root, &vec![("paid".into(), "true".into())])
            }
            _ => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(kind: &str, actor: &str, time: Millis) -> Event {
        Event {
            position: time as u64,
            n: 1,
            time,
            actor: actor.to_owned(),
            kind: kind.to_owned(),
            resource: 7,
            root: 1,
            payload: json!({"worker": actor, "deadline": time + 10}),
            text: String::new(),
        }
    }

    /// L3.1: what may follow an activation by `a` at 0, whose lease lasts until 10.
    #[test]
    fn l3_1_only_the_holder_in_time_ends_a_lease() {
        for (kind, actor, time, is_right) in [
            ("job.completed", "a", 9, true),
            ("job.completed", "a", 10, false),
            ("job.completed", "b", 5, false),
            ("job.failed", "b", 5, false),
            ("job.activated", "b", 5, false),
            ("job.lease-expired", "engine", 10, true),
            ("job.lease-expired", "engine", 9, false),
            ("job.canceled", "engine", 5, true),
        ] {
            let mut held = BTreeMap::new();
            assert_eq!(follow(&mut held, &event("job.activated", "a", 0)), Ok(()));
            assert_eq!(follow(&mut held, &event(kind, actor, time)).is_ok(), is_right, "{kind} by {actor} at {time}");
        }
        assert!(follow(&mut BTreeMap::new(), &event("job.completed", "a", 1)).is_err(), "nobody holds it");
    }
}
