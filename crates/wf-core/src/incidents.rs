//! An incident is resolved by trying the same step again. Recorded effects stay recorded: the job keeps its key.

use std::sync::Arc;

use wf_model::Kind;

use crate::draft::Run;
use crate::event::What;
use crate::ids::Key;
use crate::outcome::{Noun, Outcome, Rejection};
use crate::rows::{Element, Incident, IncidentKind, Job, JobState, Phase, RowId, Scope, Variables};
use crate::walk::{Task, Walk};

pub(crate) fn resolve(walk: &mut Walk<'_, '_>, key: Key, retries: Option<i32>) -> Run<Outcome> {
    let incident = walk.draft.get::<Incident>(&RowId::Incident(key))?;
    let Some(incident) = incident.filter(|incident| incident.tenant == walk.context.tenant) else {
        return Err(Rejection::NotFound(Noun::Incident).into());
    };
    if !walk.is_live(incident.scope)? {
        return Err(Rejection::InstanceFinished.into());
    }
    walk.draft.delete(incident.id())?;
    walk.draft.emit(incident.root, key, What::IncidentResolved);
    if incident.job != 0 {
        retry_job(walk, &incident, retries)?;
    } else {
        retry_element(walk, &incident)?;
    }
    Ok(Outcome::Resolved { incident: key })
}

fn retry_job(walk: &mut Walk<'_, '_>, incident: &Incident, retries: Option<i32>) -> Run<()> {
    if retries.is_some_and(|retries| retries < 1) {
        let message = "must be at least 1".to_owned();
        return Err(Rejection::Invalid { field: "retries", message }.into());
    }
    forget(walk, incident)?;
    let Some(job) = walk.draft.get::<Job>(&RowId::Job(incident.job))? else { return Ok(()) };
    if !matches!(job.state, JobState::Failed | JobState::ErrorThrown) {
        return Ok(());
    }
    let mut ready = (*job).clone();
    ready.state = JobState::Ready;
    ready.due = 0;
    ready.retries = retries.unwrap_or(job.retries.max(1));
    walk.draft.put(ready)?;
    walk.draft.emit(job.root, job.key, What::JobReady);
    Ok(())
}

/// The element no longer waits for this incident.
fn forget(walk: &mut Walk<'_, '_>, incident: &Incident) -> Run<Option<Arc<Element>>> {
    let id = RowId::Element { scope: incident.scope, key: incident.element_key };
    let Some(element) = walk.draft.get::<Element>(&id)? else { return Ok(None) };
    let mut freed = (*element).clone();
    freed.incident = 0;
    Ok(Some(walk.draft.put(freed)?))
}

fn retry_element(walk: &mut Walk<'_, '_>, incident: &Incident) -> Run<()> {
    let Some(element) = forget(walk, incident)? else { return Ok(()) };
    if incident.kind == IncidentKind::Budget {
        walk.change_instance(incident.root, |instance| instance.steps = 0)?;
    }
    match element.phase {
        Phase::Entering => enter_again(walk, &element),
        Phase::Leaving => leave_again(walk, &element),
        Phase::Active => Ok(()),
    }
}

/// The token arrives once more; the parked row was only its place.
fn enter_again(walk: &mut Walk<'_, '_>, element: &Element) -> Run<()> {
    walk.delete_variables(element.key)?;
    walk.draft.delete(element.id())?;
    walk.push(Task::Arrive { scope: element.scope, element: element.element, flow: None });
    Ok(())
}

fn leave_again(walk: &mut Walk<'_, '_>, element: &Element) -> Run<()> {
    let Some(here) = walk.here(element.scope)? else { return Ok(()) };
    let is_scope = matches!(here.node(element.element).map(|node| &node.kind), Some(Kind::Scope(_)));
    match walk.draft.get::<Scope>(&RowId::Scope(element.key))?.filter(|_| is_scope) {
        Some(inner) => walk.complete_scope(&inner),
        None => walk.complete_element(element, &Variables::new()),
    }
}
