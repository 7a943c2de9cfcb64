//! The books: positions without gap or extra, times that never go back, a chain that can be computed again, a digest that
//! equals the rows. Next: `bus.rs`.

use std::collections::BTreeSet;

use wf_core::{Command, canonical, ids};
use wf_store::event_id;

use super::history::Logged;
use super::{Findings, Scene};
use crate::world::PARTITION;

/// Every command once, in order, each with its audit row; a gap only where an epoch begins, which names what precedes it.
pub fn audit(scene: &Scene<'_>) -> Findings {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    let (mut last, mut time) = (0, i64::MIN);
    for command in &scene.now.commands {
        let (verb, position) = (command.verb, command.position);
        if !seen.insert(command.id) {
            wrong.push(format!("the id of {verb} at {position} stands twice"));
        }
        if command.time < time {
            wrong.push(format!("time goes back by {} ms at {position}", time - command.time));
        }
        match &command.command {
            Some(Command::OpenEpoch { previous_position, .. }) if *previous_position != last => {
                wrong.push(format!("the epoch at {position} names {previous_position}, and {last} precedes it"));
            }
            Some(Command::OpenEpoch { .. }) => (),
            _ if position != last + 1 => wrong.push(format!("a gap between {last} and {verb} at {position}")),
            _ => (),
        }
        wrong.extend(derived_id(command));
        (last, time) = (position, command.time);
    }
    let executed: Vec<u64> = scene.now.commands.iter().map(|command| command.position).collect();
    if executed != scene.now.audited {
        wrong.push(format!(
            "{} commands and {} audit rows, not at the same positions",
            executed.len(),
            scene.now.audited.len()
        ));
    }
    wrong
}

/// The engine's own commands have ids that follow from what they are about: a repeat would be known.
fn derived_id(logged: &Logged) -> Option<String> {
    let id = |time: i64, kind: &[u8], keys: &[u64]| {
        let keys: Vec<[u8; 8]> = keys.iter().map(|key| key.to_be_bytes()).collect();
        let mut parts: Vec<&[u8]> = vec![b"engine", kind];
        parts.extend(keys.iter().map(|key| &key[..]));
        ids::command_id(time, &parts)
    };
    let derived = match logged.command.as_ref()? {
        Command::Continue { follow_up } => id(0, b"follow-up", &[*follow_up]),
        Command::FireTimer { timer, due } => id(*due, b"timer", &[*timer, *due as u64]),
        Command::EndBackoff { job, due } => id(*due, b"backoff", &[*job, *due as u64]),
        _ => return None,
    };
    (derived != logged.id).then(|| format!("the id of {} at {} does not follow from it", logged.verb, logged.position))
}

/// The chain of the audit, computed again from what is stored.
pub fn chain(scene: &Scene<'_>) -> Findings {
    let mut chain = [0_u8; 32];
    for event in &scene.now.events {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&chain).update(event_id(PARTITION, event.position, event.n).as_bytes());
        hasher.update(blake3::hash(event.text.as_bytes()).as_bytes());
        chain = *hasher.finalize().as_bytes();
    }
    if chain == scene.head.chain { Vec::new() } else { vec!["the audit's chain does not end at its head".to_owned()] }
}

/// The head's digest equals the sum over the rows.
pub fn replay(scene: &Scene<'_>) -> Findings {
    let rows = scene.store.rows().iter().map(canonical::digest_of).fold(0, u128::wrapping_add);
    let sum = rows.wrapping_add(canonical::digest_of_counters(PARTITION, scene.head.next_counter));
    let last = scene.store.log().last().map(|entry| entry.digest);
    let mut wrong = Vec::new();
    if scene.head.digest != sum {
        wrong.push("the head's digest is not that of the rows".to_owned());
    }
    if last != Some(scene.head.digest) {
        wrong.push("the digest after the last command is not the head's".to_owned());
    }
    wrong
}
