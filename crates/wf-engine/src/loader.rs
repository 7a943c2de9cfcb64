//! Brings what a command misses into the cache: rows and ranges from the store, processes compiled from their XML.

use std::collections::BTreeSet;
use std::sync::Arc;

use wf_core::draft::Base;
use wf_core::rows::Definition;
use wf_core::{Command, Key, Need, RangeId, Row, RowId};
use wf_model::Process;
use wf_store::{Needs, RANGE_MAX, Store};

use crate::cache::Cache;
use crate::options::Chance;
use crate::request::Refusal;

/// Pages of a range that are loaded unasked.
const AHEAD_PAGES_MAX: usize = 64;

pub async fn load(store: &dyn Store, cache: &mut Cache, needs: Needs, chance: &Chance) -> Result<(), Refusal> {
    let processes: BTreeSet<Key> = needs.core.iter().filter_map(process_of).collect();
    let partition = needs.partition;
    let continued: Vec<RangeId> = needs.core.iter().filter_map(continued).collect();
    fetch(store, cache, needs).await?;
    for range in continued {
        read_ahead(store, cache, partition, &range).await?;
    }
    for definition in processes {
        let process = compile(cache, definition).map_err(|reason| broken(definition, &reason, chance))?;
        cache.add_process(definition, process);
    }
    Ok(())
}

/// A command that asks for one variable after the other gets those around them too: it begins anew after each load.
pub fn widen(cache: &Cache, needs: &mut Needs) {
    let around = |need: &Need| match need {
        Need::Row(RowId::Variable { scope, .. }) => Some(RangeId::Variables(*scope)),
        _ => None,
    };
    let ranges: BTreeSet<RangeId> = needs.core.iter().filter_map(around).collect();
    for range in ranges {
        let frontier = match cache.range(&range) {
            None => None,
            // Complete: the row is known, or another one is missing.
            Some(view) if view.frontier.is_none() => continue,
            Some(view) => view.frontier.cloned(),
        };
        needs.core.insert(Need::Range(range, frontier));
    }
}

async fn fetch(store: &dyn Store, cache: &mut Cache, needs: Needs) -> Result<(), Refusal> {
    let loaded = store.load(needs).await.map_err(|error| {
        tracing::error!(%error, "failed to load");
        Refusal::Unavailable { reason: error.to_string() }
    })?;
    cache.add(loaded);
    Ok(())
}

fn continued(need: &Need) -> Option<RangeId> {
    match need {
        Need::Range(range, Some(_)) => Some(range.clone()),
        Need::Range(_, None) | Need::Row(_) | Need::Process(_) => None,
    }
}

/// The command begins anew after each load. One that goes through a range page by page would be quadratic: so as much
/// again is loaded as it has seen.
async fn read_ahead(store: &dyn Store, cache: &mut Cache, partition: u16, range: &RangeId) -> Result<(), Refusal> {
    let pages = cache.range(range).map_or(0, |view| view.entries.len() / RANGE_MAX);
    for _ in 1..pages.min(AHEAD_PAGES_MAX) {
        let Some(frontier) = cache.range(range).and_then(|view| view.frontier.cloned()) else { break };
        let need = Need::Range(range.clone(), Some(frontier));
        fetch(store, cache, Needs { core: [need].into(), ..Needs::of(partition) }).await?;
    }
    Ok(())
}

fn process_of(need: &Need) -> Option<Key> {
    match need {
        Need::Process(definition) => Some(*definition),
        Need::Row(_) | Need::Range(..) => None,
    }
}

/// Once per definition and run of the engine: it was compiled at its deployment too, so a failure is the engine's fault.
fn compile(cache: &Cache, key: Key) -> Result<Arc<Process>, String> {
    let Some(Row::Definition(definition)) = cache.row(&RowId::Definition(key)).flatten() else {
        return Err("its row is missing".to_owned());
    };
    match wf_model::compile(&definition.xml) {
        Ok(processes) => pick(processes, &definition).ok_or_else(|| "its process is not in its XML".to_owned()),
        Err(problems) => Err(problems.first().map_or_else(String::new, ToString::to_string)),
    }
}

/// What another partition deployed comes as XML; it was compiled there too.
pub fn compile_adopted(command: &mut Command) -> Result<(), String> {
    let Command::AdoptDefinitions { definitions, .. } = command else { return Ok(()) };
    for adopted in definitions {
        let processes = wf_model::compile(&adopted.xml)
            .map_err(|problems| problems.first().map_or_else(String::new, ToString::to_string))?;
        let found = processes.into_iter().find(|process| process.process_id == adopted.process_id);
        adopted.process = Some(Arc::new(found.ok_or("its process is not in its XML")?));
    }
    Ok(())
}

fn pick(processes: Vec<Process>, definition: &Definition) -> Option<Arc<Process>> {
    processes.into_iter().find(|process| process.process_id == definition.process_id).map(Arc::new)
}

fn broken(definition: Key, reason: &str, chance: &Chance) -> Refusal {
    let error_id = chance.error_id();
    tracing::error!(%error_id, definition, reason, "a stored definition cannot be used");
    Refusal::Internal { error_id }
}
