//! The books: positions without gap or extra, times that never go back, and the product's own proofs:
//! the log executed again, the tables summed, the audit's chain. Next: `bus.rs`.

use std::collections::BTreeSet;

use wf_core::{Command, ids};
use wf_engine::proof::{self, ProofError, Range};
use wf_store::memory::MemoryStore;
use wf_store::{Store, Visit};

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
    let executed: BTreeSet<u64> = scene.now.commands.iter().map(|command| command.position).collect();
    let audited: BTreeSet<u64> = scene.now.audited.iter().copied().collect();
    if audited.len() != scene.now.audited.len() {
        wrong.push("a position has two audit rows".to_owned());
    }
    let without = scene.now.commands.iter().filter(|command| !audited.contains(&command.position));
    wrong.extend(without.map(|command| format!("{} at {} has no audit row", command.verb, command.position)));
    wrong.extend(audited.difference(&executed).map(|position| format!("the audit row at {position} has no command")));
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

/// The product's own proofs: the log executed again gives the same digest after each command and the same rows at the end,
/// the tables sum up to the head's digest, and the audit follows from the log.
pub async fn replay(store: &MemoryStore) -> Findings {
    match prove(store).await {
        Ok(wrong) => wrong,
        Err(error) => vec![error.to_string()],
    }
}

async fn prove(store: &MemoryStore) -> Result<Findings, ProofError> {
    let mut tell = |_| Visit::Continue(());
    let mut wrong = Vec::new();
    let replayed =
        proof::replay(store.ledger(PARTITION).await?, &MemoryStore::new(), Range::default(), &mut tell).await?;
    if !replayed.is_identical() {
        wrong.push(format!("{:.600}", format!("{:?} {:?}", replayed.verdict, replayed.tables)));
    }
    let tables = proof::verify_tables(&mut *store.ledger(PARTITION).await?, &mut tell)?;
    if !tables.agrees() {
        wrong.push(format!("{tables:?}"));
    }
    let audit = proof::verify_audit(&mut *store.ledger(PARTITION).await?, &mut tell)?;
    wrong.extend(audit.fault.map(|fault| fault.to_string()));
    Ok(wrong)
}
