//! An incident is resolved by trying the same step again. Recorded effects stay recorded: the job keeps its key.

use std::sync::Arc;

use crate::draft::Run;
use crate::event::What;
use crate::ids::Key;
use crate::outcome::{Noun, Outcome, Rejection};
use crate::quarantine::NEVER;
use crate::rows::{
    AttachedKind, Element, Incident, IncidentKind, Job, JobState, Phase, RowId, Scope, Timer, Variables,
};
use crate::walk::{Task, Walk};

pub(crate) fn resolve(walk: &mut Walk<'_, '_>, key: Key, retries: Option<i32>) -> Run<Outcome> {
    let incident = walk.draft.get::<Incident>(&RowId::Incident(key))?;
    let Some(incident) = incident.filter(|incident| incident.tenant == walk.context.tenant) else {
        return Err(Rejection::NotFound(Noun::Incident).into());
    };
    // The termination of an instance may be what waits.
    let is_of_scope = incident.element_key == 0;
    if !is_of_scope && !walk.is_live(incident.scope)? {
        return Err(Rejection::InstanceFinished.into());
    }
    walk.draft.delete(incident.id())?;
    walk.draft.emit(incident.root, key, What::IncidentResolved);
    match (is_of_scope, incident.job) {
        (true, _) => walk.push(Task::Terminate { scope: incident.scope }),
        (false, 0) => retry_element(walk, &incident)?,
        (false, _) => retry_job(walk, &incident, retries)?,
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

/// The element no longer waits for this incident; its timers that were put aside are due, and its subscriptions that
/// another partition may not know are announced there again.
fn forget(walk: &mut Walk<'_, '_>, incident: &Incident) -> Run<Option<Arc<Element>>> {
    let id = RowId::Element { scope: incident.scope, key: incident.element_key };
    let Some(element) = walk.draft.get::<Element>(&id)? else { return Ok(None) };
    for attached in element.attached.iter().filter(|attached| attached.kind == AttachedKind::Timer) {
        let timer = walk.draft.get::<Timer>(&RowId::Timer(attached.key))?;
        if let Some(timer) = timer.filter(|timer| timer.due == NEVER) {
            walk.draft.put(Timer { due: walk.context.now, ..(*timer).clone() })?;
        }
    }
    let open = element.attached.iter().filter(|attached| attached.kind == AttachedKind::Subscription);
    open.map(|attached| attached.key).try_for_each(|key| walk.announce_again(key))?;
    Ok(Some(walk.draft.put(Element { incident: 0, ..(*element).clone() })?))
}

fn retry_element(walk: &mut Walk<'_, '_>, incident: &Incident) -> Run<()> {
    let Some(element) = forget(walk, incident)? else { return Ok(()) };
    if incident.kind == IncidentKind::Budget {
        walk.change_instance(incident.root, |instance| instance.steps = 0)?;
    }
    match element.phase {
        Phase::Entering => enter_again(walk, &element),
        Phase::Leaving => leave_again(walk, &element),
        // A sub-process whose termination was put aside goes on with it; nothing else was stopped here.
        Phase::Active => {
            walk.push(Task::Terminate { scope: element.key });
            Ok(())
        }
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
    let inner = match here.is_scope(element.element) {
        true => walk.draft.get::<Scope>(&RowId::Scope(element.key))?,
        false => None,
    };
    match inner {
        Some(inner) => walk.complete_scope(&inner),
        None => walk.complete_element(element, &Variables::new()),
    }
}
