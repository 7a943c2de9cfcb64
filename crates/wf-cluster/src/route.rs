//! Which partition a request belongs to. Pure: the same on every node, so that a message meets its subscription. A repeat
//! meets its record wherever it goes, as a key has one record in the whole store. A key of no partition goes to the first
//! partition, which says that it is not there. Next: `node.rs`.

use std::collections::BTreeMap;

use wf_core::command::{CompleteItem, UniqueOn};
use wf_core::{Command, Key, Partitions, ids};
use wf_engine::{Ask, Request};

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    At(u16),
    /// Wherever; a partition of this node is the nearest. Under a key it is the same one each time, as far as that can be:
    /// two requests under one key at two partitions are both executed, the later commit fails, and its whole turn is executed
    /// again.
    Anywhere {
        home: Option<u16>,
    },
    /// Looked for from one partition to the next; under a key its home comes first.
    Search {
        home: Option<u16>,
    },
    /// Several partitions have a part of it. `leader`: who keeps its record, where it has a key.
    Parts {
        leader: Option<u16>,
        parts: Parts,
    },
    /// All of them, one after the other.
    Everywhere,
}

/// Positions of a batch's items, by partition.
pub type Parts = BTreeMap<u16, Vec<usize>>;

pub fn route(request: &Request, partitions: Partitions) -> Route {
    if partitions.is_one() {
        return Route::At(partitions.first());
    }
    match &request.ask {
        Ask::RetryOutbox { id, .. } => Route::At(within(id.partition, partitions)),
        Ask::SetClock(_) => Route::Everywhere,
        Ask::Command(command) => of_command(request, command, partitions),
    }
}

fn of_command(request: &Request, command: &Command, partitions: Partitions) -> Route {
    let of_key = |key: Key| Route::At(within(ids::partition_of(key), partitions));
    match command {
        Command::StartInstance { process_id, unique: Some(UniqueOn { variable, value }), .. } => {
            Route::At(ids::home_of_unique(&request.tenant, process_id, variable, value, partitions))
        }
        Command::StartInstance { .. } => Route::Anywhere { home: home(request, partitions) },
        Command::PublishMessage { name, correlation_key, .. } => {
            Route::At(ids::home_of_message(&request.tenant, name, correlation_key, partitions))
        }
        Command::ActivateJobs { .. } => Route::Search { home: home(request, partitions) },
        Command::CompleteJobs { items, .. } => of_items(request, items, partitions),
        Command::CancelInstance { instance } | Command::SetVariables { instance, .. } => of_key(*instance),
        Command::CompleteJob { holder, .. }
        | Command::FailJob { holder, .. }
        | Command::ThrowError { holder, .. }
        | Command::ExtendLease { holder, .. }
        | Command::RecordStep { holder, .. } => of_key(holder.job),
        Command::ResolveIncident { incident, .. } => of_key(*incident),
        // Definitions are decided by the first partition. Its own commands come from no door.
        _ => Route::At(partitions.first()),
    }
}

fn of_items(request: &Request, items: &[CompleteItem], partitions: Partitions) -> Route {
    let parts = parts(items, partitions);
    match parts.len() {
        0 | 1 => Route::At(parts.into_keys().next().unwrap_or(partitions.first())),
        _ => Route::Parts { leader: home(request, partitions), parts },
    }
}

pub fn parts(items: &[CompleteItem], partitions: Partitions) -> Parts {
    let mut parts = Parts::new();
    for (at, item) in items.iter().enumerate() {
        parts.entry(within(ids::partition_of(item.job), partitions)).or_default().push(at);
    }
    parts
}

/// Where requests under this key begin that have no other home; a start only where that partition is of the node asked.
pub fn home(request: &Request, partitions: Partitions) -> Option<u16> {
    let passport = request.passport.as_ref()?;
    Some(ids::home(&[b"request", request.tenant.as_bytes(), passport.key.as_str().as_bytes()], partitions))
}

/// The partition of this node that a home is replaced by: itself, if it is here. The homes at other nodes are dealt out in
/// turn, so that each partition stands in for as many. `here`: in order.
pub fn stand_in(home: u16, here: &[u16], partitions: Partitions) -> u16 {
    if here.is_empty() || here.contains(&home) {
        return home;
    }
    let elsewhere = partitions.iter().take_while(|partition| *partition != home);
    here[elsewhere.filter(|partition| !here.contains(partition)).count() % here.len()]
}

fn within(partition: u16, partitions: Partitions) -> u16 {
    if partitions.contains(partition) { partition } else { partitions.first() }
}
