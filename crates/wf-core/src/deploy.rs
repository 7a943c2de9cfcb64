//! Deployment: all resources or none. The same bytes as the latest version make no new one.

use std::collections::BTreeSet;
use std::sync::Arc;

use wf_model::{Process, Text as ModelText};

use crate::command::{Adopted, Command, Resource};
use crate::draft::{Run, Stop};
use crate::event::What;
use crate::ids;
use crate::instances::find_definition;
use crate::outcome::{Deployed, Outcome, Rejection};
use crate::rows::{Definition, RowId, StartSubscription, Text};
use crate::walk::Walk;

pub(crate) fn deploy(walk: &mut Walk<'_, '_>, resources: &[Resource]) -> Run<Outcome> {
    refuse_twins(resources)?;
    let mut deployed = Vec::new();
    for resource in resources {
        for process in &resource.processes {
            deployed.push(deploy_process(walk, resource, process)?);
        }
    }
    tell_others(walk, resources, &deployed);
    Ok(Outcome::Deployed(deployed))
}

/// Every partition has every definition: so each can be understood, and its log be run again, alone.
fn tell_others(walk: &mut Walk<'_, '_>, resources: &[Resource], deployed: &[Deployed]) {
    let processes = resources.iter().flat_map(|resource| resource.processes.iter().map(move |one| (resource, one)));
    let news = processes.zip(deployed).filter(|(_, deployed)| !deployed.duplicate);
    let definitions: Vec<Adopted> = news
        .map(|((resource, process), deployed)| Adopted {
            key: deployed.key,
            process_id: deployed.process_id.clone(),
            version: deployed.version,
            resource: resource.name.clone(),
            xml: resource.xml.clone(),
            deployed_at: deployed.deployed_at,
            process: Some(process.clone()),
        })
        .collect();
    let others = walk.context.partitions.iter().filter(|other| *other != walk.context.partition);
    for other in others.filter(|_| !definitions.is_empty()) {
        let tenant = walk.context.tenant.clone();
        walk.send(other, Command::AdoptDefinitions { tenant, definitions: definitions.clone() });
    }
}

/// Two processes with one id in one deployment: which would be the latest?
fn refuse_twins(resources: &[Resource]) -> Run<()> {
    let mut seen = BTreeSet::new();
    for process in resources.iter().flat_map(|resource| &resource.processes) {
        if !seen.insert(&process.process_id) {
            let message = format!("process id '{}' stands more than once in this deployment", process.process_id);
            return Err(Rejection::Invalid { field: "resources", message }.into());
        }
    }
    Ok(())
}

fn deploy_process(walk: &mut Walk<'_, '_>, resource: &Resource, process: &Arc<Process>) -> Run<Deployed> {
    let tenant = walk.context.tenant.clone();
    let latest = match find_definition(walk, &tenant, &process.process_id, None) {
        Ok(latest) => Some(latest),
        Err(Stop::Rejected(_)) => None,
        Err(missing) => return Err(missing),
    };
    let checksum = ids::hash16(&[&resource.xml]);
    if let Some(latest) = latest.as_ref().filter(|latest| latest.checksum == checksum) {
        return Ok(describe(latest, true));
    }
    let key = walk.draft.next_key();
    let version = latest.as_ref().map_or(1, |latest| latest.version.saturating_add(1));
    let definition = walk.draft.insert_new(Definition {
        key,
        tenant,
        process_id: process.process_id.clone(),
        version,
        resource: resource.name.clone(),
        checksum,
        xml: resource.xml.clone(),
        deployed_at: walk.context.now,
    });
    walk.draft.emit(
        0,
        key,
        What::DefinitionDeployed { process_id: process.process_id.clone(), version, resource: resource.name.clone() },
    );
    if let Some(latest) = latest {
        close_starts(walk, &latest)?;
    }
    open_starts(walk, &definition, process)?;
    Ok(describe(&definition, false))
}

fn describe(definition: &Definition, duplicate: bool) -> Deployed {
    Deployed {
        key: definition.key,
        process_id: definition.process_id.clone(),
        version: definition.version,
        resource: definition.resource.clone(),
        deployed_at: definition.deployed_at,
        duplicate,
    }
}

/// Only the latest version is started by messages.
pub(crate) fn close_starts(walk: &mut Walk<'_, '_>, latest: &Definition) -> Run<()> {
    let process = walk.draft.process(latest.key)?;
    for (_, message) in process.message_starts() {
        if let ModelText::Literal(name) = &message.name {
            walk.draft.delete(start_id(latest, name))?;
        }
    }
    Ok(())
}

pub(crate) fn open_starts(walk: &mut Walk<'_, '_>, definition: &Definition, process: &Process) -> Run<()> {
    for (element, message) in process.message_starts() {
        if let ModelText::Literal(name) = &message.name {
            walk.draft.put(StartSubscription {
                tenant: definition.tenant.clone(),
                message: name.clone(),
                process_id: definition.process_id.clone(),
                definition: definition.key,
                element,
            })?;
        }
    }
    Ok(())
}

fn start_id(definition: &Definition, message: &Text) -> RowId {
    RowId::StartSubscription {
        tenant: definition.tenant.clone(),
        message: message.clone(),
        process_id: definition.process_id.clone(),
    }
}
