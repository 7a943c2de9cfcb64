//! Requests against effects: at most one each, the same answer for ever, the truth about what was done.
//! Next: `jobs.rs`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::{History, key};
use super::{Findings, Scene};
use crate::door::Route;
use crate::facts::{Errand, Heard};

/// Each logical request has at most one effect while its key lives, exactly one once it was answered with success; each
/// order's step has one effect at the provider.
pub fn one_effect(scene: &Scene<'_>) -> Findings {
    let mut wrong = repeated_origins(scene);
    wrong.extend(begun_twice(scene));
    wrong.extend(provider_effects(scene));
    let mut completed = BTreeSet::new();
    for event in scene.now.of_kind("job.completed") {
        if !completed.insert(event.resource) {
            wrong.push(format!("job {} is completed again at {}", event.resource, event.position));
        }
    }
    wrong
}

/// The same request was executed twice before its key's time was over.
fn repeated_origins(scene: &Scene<'_>) -> Findings {
    let mut last: BTreeMap<&str, (u64, i64)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for command in scene.now.commands.iter().filter(|command| !command.origin.is_empty()) {
        if let Some((position, time)) = last.insert(&command.origin, (command.position, command.time))
            && command.time - time < scene.world.plan.ttl_ms
        {
            wrong.push(format!("{} at {position} is executed again at {}", command.verb, command.position));
        }
    }
    wrong
}

/// A message id starts one instance.
fn begun_twice(scene: &Scene<'_>) -> Findings {
    let mut begun: BTreeMap<String, u64> = BTreeMap::new();
    for event in scene.now.of_kind("instance.started") {
        if event.payload["processDefinitionId"] == "begun" {
            *begun.entry(order_of(&event.payload)).or_default() += 1;
        }
    }
    let twice = begun.iter().filter(|(_, count)| **count > 1);
    let mut wrong: Findings =
        twice.map(|(order, count)| format!("{order} was begun {count} times by one message id")).collect();
    for errand in scene.facts.errands.iter().filter(|errand| errand.name.starts_with("begin ")) {
        let order = errand.name.trim_start_matches("begin ");
        let is_done = final_answers(scene, errand).any(|heard| heard.reply.is_done());
        if is_done && !begun.contains_key(order) {
            wrong.push(format!("{order} was begun, and there is no instance"));
        }
    }
    wrong
}

fn order_of(payload: &Value) -> String {
    payload["variables"]["order"].as_str().unwrap_or_default().to_owned()
}

/// At the provider each step of an order happened once: per instance of it, and per order where lineage keys are used.
fn provider_effects(scene: &Scene<'_>) -> Findings {
    let mut instances: BTreeMap<String, u64> = BTreeMap::new();
    let lost = scene.lost.map(|lost| &lost.all);
    for history in [Some(scene.now), lost].into_iter().flatten() {
        for event in history.of_kind("instance.started") {
            *instances.entry(order_of(&event.payload)).or_default() += 1;
        }
    }
    let mut effects: BTreeMap<String, u64> = BTreeMap::new();
    for effect in scene.world.provider.effects().values() {
        *effects.entry(effect.request.clone()).or_default() += 1;
    }
    let most = |request: &str| {
        let order = request.split(' ').next().unwrap_or_default();
        if scene.world.plan.has_restore { 1 } else { instances.get(order).copied().unwrap_or(0) }
    };
    let many = effects.iter().filter(|(request, count)| **count > most(request));
    many.map(|(request, count)| format!("the provider did {request} {count} times")).collect()
}

fn final_answers<'a>(scene: &'a Scene<'_>, errand: &'a Errand) -> impl Iterator<Item = &'a Heard> {
    let history = scene.world.history();
    errand.answers.iter().filter(move |heard| heard.history == history)
}

/// No clock had passed the end of the key's time when this was heard.
fn is_alive(scene: &Scene<'_>, errand: &Errand, heard: &Heard) -> bool {
    heard.clock_max - errand.sent_min < scene.world.plan.ttl_ms
}

/// After the first success every answer is that one, byte for byte, while the key lives.
pub fn same_answer(scene: &Scene<'_>) -> Findings {
    let mut wrong = Vec::new();
    for errand in scene.facts.errands.iter().filter(|errand| errand.call.key.is_some()) {
        let mut first: Option<&Heard> = None;
        for heard in &errand.answers {
            // What was answered in a lost history need not be known any more, unless the backup knows it.
            if first.is_some_and(|first| first.history < heard.history) && !is_in_backup(scene, errand) {
                first = None;
            }
            match first {
                Some(first) if is_alive(scene, errand, heard) && differs(first, heard) => {
                    wrong.push(format!(
                        "{}: {} {} after {}",
                        errand.name, heard.reply.status, heard.reply.body, first.reply.body
                    ));
                }
                None if heard.reply.is_done() => first = Some(heard),
                _ => (),
            }
        }
    }
    wrong
}

fn differs(first: &Heard, heard: &Heard) -> bool {
    (first.reply.status, &first.reply.body) != (heard.reply.status, &heard.reply.body)
}

fn is_in_backup(scene: &Scene<'_>, errand: &Errand) -> bool {
    let Some(lost) = scene.lost else { return false };
    let origin = errand.call.origin().unwrap_or_default();
    lost.kept.commands.iter().any(|command| command.origin == origin)
}

/// The same key with another body runs nothing and is told so.
pub fn conflict(scene: &Scene<'_>) -> Findings {
    let mut wrong = Vec::new();
    for errand in &scene.facts.errands {
        let has_record =
            |heard: &&Heard| errand.answers.iter().any(|first| first.reply.is_done() && first.history == heard.history);
        for heard in errand.misuses.iter().filter(has_record).filter(|heard| is_alive(scene, errand, heard)) {
            if heard.reply.code != "idempotency-conflict" {
                wrong.push(format!("{} with another body: {} {}", errand.name, heard.reply.status, heard.reply.body));
            }
        }
    }
    wrong
}

/// Who is told that nothing was done can rely on it; nothing is wrong on our side that was not planted by the storm.
pub fn truth(scene: &Scene<'_>) -> Findings {
    let mut wrong = super::jobs::refused_falsely(scene);
    for errand in scene.facts.errands.iter().filter(|errand| errand.name.starts_with("start unkeyed")) {
        let body: Value = serde_json::from_str(&errand.call.body).unwrap_or_default();
        let order = order_of(&body);
        let effects =
            scene.now.of_kind("instance.started").filter(|event| order_of(&event.payload) == order).count() as u64;
        if effects > errand.may_have_run {
            wrong
                .push(format!("{}: {effects} effects, and at most {} were possible", errand.name, errand.may_have_run));
        }
    }
    // The world's own mistake: a request that nobody would read.
    for errand in &scene.facts.errands {
        let unread = errand.answers.iter().find(|heard| heard.reply.code == "validation");
        wrong.extend(unread.map(|heard| format!("{}: {}", errand.name, heard.reply.body)));
    }
    // Each poisoned command may be tried alone twice: in its batch, and once more.
    if scene.facts.internal_errors > 2 * scene.facts.poisons {
        wrong.push(format!(
            "{} internal errors, {} commands that cannot be stored",
            scene.facts.internal_errors, scene.facts.poisons
        ));
    }
    wrong
}

/// What was answered with success stands in the books.
pub fn kept(scene: &Scene<'_>) -> Findings {
    let started: BTreeSet<u64> = scene.now.of_kind("instance.started").map(|event| event.resource).collect();
    let completed: BTreeSet<u64> = scene.now.of_kind("job.completed").map(|event| event.resource).collect();
    let origins = origins(scene.now);
    let mut wrong = Vec::new();
    for errand in &scene.facts.errands {
        for heard in final_answers(scene, errand).filter(|heard| heard.reply.is_done()) {
            let body: Value = serde_json::from_str(&heard.reply.body).unwrap_or_default();
            let stands = match &errand.call.route {
                Route::Start => started.contains(&key(&body["key"])),
                Route::Complete(job) => completed.contains(job),
                Route::SetVariables(_) | Route::Cancel(_) => {
                    errand.call.origin().is_none_or(|origin| origins.contains(origin.as_str()))
                }
                _ => true,
            };
            if !stands {
                wrong.push(format!("{} was answered {}, and it is not in the books", errand.name, heard.reply.body));
            }
        }
    }
    wrong
}

fn origins(history: &History) -> BTreeSet<&str> {
    history.commands.iter().map(|command| command.origin.as_str()).collect()
}
