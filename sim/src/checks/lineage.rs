//! After a restore: nothing of the lost history is given to anything else, and lineage keys are what they were (S5).

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Event, History};
use super::{Findings, Scene};

pub fn restore(scene: &Scene<'_>) -> Findings {
    let mut wrong = lineages(scene);
    if let Some(lost) = scene.lost {
        let kept = lost.kept.position();
        wrong.extend(reused_events(&lost.all, scene.now, kept));
        wrong.extend(reused_keys(&lost.all, scene.now, &lost.kept));
        let positions: BTreeSet<u64> = behind(&lost.all, kept).map(|event| event.position).collect();
        let again = behind(scene.now, kept).find(|event| positions.contains(&event.position));
        wrong.extend(again.map(|event| format!("position {} is given again", event.position)));
    }
    wrong
}

fn behind(history: &History, position: u64) -> impl Iterator<Item = &Event> {
    history.events.iter().filter(move |event| event.position > position)
}

/// An event id denotes one event, in both histories.
fn reused_events(lost: &History, now: &History, kept: u64) -> Findings {
    let old: BTreeMap<(u64, u32), &str> =
        behind(lost, kept).map(|event| ((event.position, event.n), event.text.as_str())).collect();
    let others =
        behind(now, kept).filter(|event| old.get(&(event.position, event.n)).is_some_and(|text| *text != event.text));
    others.map(|event| format!("event {}-{} is another one now", event.position, event.n)).collect()
}

/// A key that was first seen in the lost history is nobody else's.
fn reused_keys(lost: &History, now: &History, kept: &History) -> Findings {
    let known: BTreeSet<u64> = kept.events.iter().map(|event| event.resource).collect();
    let fresh = |history: &History| -> BTreeSet<u64> {
        let behind = behind(history, kept.position()).map(|event| event.resource);
        behind.filter(|resource| *resource != 0 && !known.contains(resource)).collect()
    };
    // An epoch's event is about no key of its own; messages and instances are.
    fresh(lost).intersection(&fresh(now)).map(|key| format!("key {key} is given again")).collect()
}

/// The steps of an order have one lineage key each, however often and in whichever history they are given out. An order
/// without a key has none that outlives its position.
fn lineages(scene: &Scene<'_>) -> Findings {
    let mut keys: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for given in scene.facts.given.iter().filter(|given| !given.order.contains('-')) {
        keys.entry((&given.order, &given.element)).or_default().insert(&given.lineage_key);
    }
    let many = keys.iter().filter(|(_, keys)| keys.len() > 1);
    many.map(|((order, element), keys)| format!("{order} {element} has {} lineage keys", keys.len())).collect()
}
