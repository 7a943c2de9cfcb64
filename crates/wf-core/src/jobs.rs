//! Jobs: a lease is a position, a holder is (worker, lease), and every change compares and swaps on them.
//! The late worker is told so and changes nothing; the rightful holder's repeat is told so and changes nothing.

use std::sync::Arc;

use wf_model::{End, Kind, Process};

use crate::command::{CompleteItem, Holder};
use crate::draft::{Run, Stop, gather};
use crate::event::What;
use crate::ids::{self, Key};
use crate::outcome::{Activated, LeaseLost, Noun, Outcome, Rejection};
use crate::planted::{self, Bug};
use crate::ranges::RangeId;
use crate::rows::{Element, IncidentKind, Job, JobState, Json, RowId, Scope, Step, Text, Variables};
use crate::text::json_string;
use crate::walk::Walk;

pub(crate) fn activate(
    walk: &mut Walk<'_, '_>,
    job_type: &Text,
    worker: &Text,
    jobs_max: u32,
    lease_ms: i64,
    fetch: Option<&[Text]>,
) -> Run<Outcome> {
    let range = RangeId::Ready { tenant: walk.context.tenant.clone(), job_type: job_type.clone() };
    let mut activated = Vec::new();
    let mut after = None;
    while activated.len() < jobs_max as usize {
        let ready = walk.draft.some_in(&range, after.as_ref(), jobs_max as usize - activated.len())?;
        let Some(last) = ready.last() else { break };
        let described = gather(&ready, |sort| describe(walk, sort.key, fetch))?;
        for mut description in described.into_iter().flatten() {
            description.job = lease(walk, &description.job, worker, lease_ms)?;
            activated.push(description);
        }
        // Jobs of a scope that is being terminated are passed over, so that they hide nothing behind them.
        after = Some(last.clone());
    }
    Ok(Outcome::Activated(activated))
}

fn lease(walk: &mut Walk<'_, '_>, job: &Job, worker: &Text, lease_ms: i64) -> Run<Arc<Job>> {
    let mut leased = job.clone();
    leased.state = JobState::Activated;
    leased.worker = worker.clone();
    leased.lease = walk.context.position;
    leased.due = walk.context.now.saturating_add(lease_ms);
    if planted::is(Bug::ClockInCore) {
        leased.due += planted::clock();
    }
    walk.draft.emit(
        job.root,
        job.key,
        What::JobActivated { worker: worker.clone(), lease: leased.lease, deadline: leased.due },
    );
    walk.draft.put(leased)
}

fn describe(walk: &Walk<'_, '_>, key: Key, fetch: Option<&[Text]>) -> Run<Option<Activated>> {
    let Some(job) = walk.draft.get::<Job>(&RowId::Job(key))? else { return Ok(None) };
    // A scope that is being terminated in slices gives out no job any more.
    if !walk.is_live(job.scope)? {
        return Ok(None);
    }
    let process = walk.draft.process(job.definition)?;
    let variables = walk.visible_variables(&scopes_of(walk, &job)?, fetch)?;
    Ok(Some(Activated {
        process_id: process.process_id.clone(),
        element_id: element_id(&process, &job),
        headers: headers(&process, &job),
        steps: recorded_steps(walk, &job)?,
        variables,
        job,
    }))
}

/// Where its variables stand, the nearest first.
fn scopes_of(walk: &Walk<'_, '_>, job: &Job) -> Run<Vec<Key>> {
    let element = walk.draft.get::<Element>(&RowId::Element { scope: job.scope, key: job.element_key })?;
    let mut scopes = Vec::with_capacity(2);
    if element.is_some_and(|element| element.has_locals) {
        scopes.push(job.element_key);
    }
    let mut at = job.scope;
    while let Some(scope) = walk.draft.get::<Scope>(&RowId::Scope(at))? {
        scopes.push(at);
        at = scope.parent;
        if at == 0 {
            break;
        }
    }
    Ok(scopes)
}

fn element_id(process: &Process, job: &Job) -> Text {
    process.element(job.element).map_or_else(|| Text::from(""), |node| node.id.clone())
}

/// The model's headers and those computed at creation, as one JSON object.
fn headers(process: &Process, job: &Job) -> Json {
    let spec = process.element(job.element).and_then(|node| match &node.kind {
        Kind::Job(spec) | Kind::End(End::Job(spec)) => Some(spec),
        _ => None,
    });
    let fixed = spec.map_or(&[][..], |spec| &spec.headers[..]);
    let mut members: Vec<String> =
        fixed.iter().map(|(name, value)| format!("{}:{}", json_string(name), json_string(value))).collect();
    // An object that the core has written itself: only the outermost braces go.
    members.extend(job.headers.strip_prefix('{').and_then(|text| text.strip_suffix('}')).map(str::to_owned));
    format!("{{{}}}", members.join(",")).into()
}

fn recorded_steps(walk: &Walk<'_, '_>, job: &Job) -> Run<Variables> {
    if job.steps == 0 {
        return Ok(Variables::new());
    }
    let mut steps = Variables::with_capacity(job.steps as usize);
    let mut after = None;
    while let Some(sort) = walk.draft.next_in(&RangeId::Steps(job.key), after.as_ref())? {
        if let Some(step) = walk.draft.get::<Step>(&RowId::Step { job: job.key, name: sort.name.clone() })? {
            steps.push((step.name.clone(), step.result.clone()));
        }
        after = Some(sort);
    }
    Ok(steps)
}

/// The job, if the caller holds it now.
fn held(walk: &Walk<'_, '_>, holder: &Holder) -> Run<Arc<Job>> {
    let job = owned(walk, holder.job)?;
    match lease_lost(&job, holder, walk.context.now) {
        Some(reason) => Err(Rejection::LeaseLost(reason).into()),
        None if walk.is_live(job.scope)? => Ok(job),
        None => Err(Rejection::LeaseLost(LeaseLost::Finished).into()),
    }
}

fn owned(walk: &Walk<'_, '_>, key: Key) -> Run<Arc<Job>> {
    let job = walk.draft.get::<Job>(&RowId::Job(key))?.filter(|job| job.tenant == walk.context.tenant);
    job.ok_or_else(|| Rejection::NotFound(Noun::Job).into())
}

/// A lease that ran out is lost whether it was swept or not: time decides, not the sweep.
fn lease_lost(job: &Job, holder: &Holder, now: i64) -> Option<LeaseLost> {
    let is_holder = is_holder(job, holder) || planted::is(Bug::LeaseUnfenced);
    match job.state {
        JobState::Completed if is_holder && planted::is(Bug::CompletesAgain) => None,
        JobState::Activated if !is_holder => Some(LeaseLost::Taken),
        JobState::Activated if now >= job.due => Some(LeaseLost::Expired),
        JobState::Activated => None,
        JobState::Ready if is_holder && job.lease != 0 => Some(LeaseLost::Expired),
        // Given up by its holder: it waits for its next activation, of whichever worker.
        JobState::Ready | JobState::Backoff | JobState::Failed | JobState::ErrorThrown => Some(LeaseLost::Taken),
        JobState::Completed | JobState::Canceled => Some(LeaseLost::Finished),
    }
}

fn is_holder(job: &Job, holder: &Holder) -> bool {
    job.worker == holder.worker && holder.lease.is_none_or(|lease| lease == job.lease)
}

pub(crate) fn complete(walk: &mut Walk<'_, '_>, holder: &Holder, variables: &Variables) -> Run<Outcome> {
    let duplicate = complete_one(walk, holder, variables)?;
    Ok(Outcome::Completed { duplicate })
}

/// Whether it was the rightful holder's repeat.
fn complete_one(walk: &mut Walk<'_, '_>, holder: &Holder, variables: &Variables) -> Run<bool> {
    let content = content_hash(variables);
    let job = owned(walk, holder.job)?;
    let is_done = job.state == JobState::Completed && !planted::is(Bug::CompletesAgain);
    if is_done && is_holder(&job, holder) && job.completion == Some(content) {
        return Ok(true);
    }
    let job = held(walk, holder)?;
    let id = RowId::Element { scope: job.scope, key: job.element_key };
    let element = walk.draft.get::<Element>(&id)?;
    let mut completed = (*job).clone();
    completed.state = JobState::Completed;
    completed.due = walk.context.now;
    completed.completion = Some(content);
    walk.draft.put(completed)?;
    walk.draft.emit(
        job.root,
        job.key,
        What::JobCompleted { job_type: job.job_type.clone(), worker: job.worker.clone() },
    );
    if let Some(element) = element {
        walk.complete_element(&element, variables)?;
    }
    Ok(false)
}

pub(crate) fn content_hash(variables: &Variables) -> [u8; 16] {
    let parts: Vec<&[u8]> = variables.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]).collect();
    ids::hash16(&parts)
}

/// A refused item changes nothing and does not stop the others.
pub(crate) fn complete_many(walk: &mut Walk<'_, '_>, worker: &Text, items: &[CompleteItem]) -> Run<Outcome> {
    gather(items, |item| ask_for(walk, item.job))?;
    let mut results = Vec::with_capacity(items.len());
    for item in items {
        let holder = Holder { job: item.job, worker: worker.clone(), lease: item.lease };
        match complete_next(walk, &holder, &item.variables) {
            Ok(duplicate) => results.push((item.job, Ok(duplicate))),
            Err(Stop::Rejected(rejection)) => results.push((item.job, Err(rejection))),
            Err(missing) => return Err(missing),
        }
        // Each item's token walks before the next item is looked at: it may end what the next one is about.
        walk.run()?;
    }
    Ok(Outcome::CompletedMany(results))
}

fn complete_next(walk: &mut Walk<'_, '_>, holder: &Holder, variables: &Variables) -> Run<bool> {
    if walk.effort.is_spent() {
        return Err(Rejection::OverBudget.into());
    }
    walk.effort.begin_element();
    complete_one(walk, holder, variables)
}

fn ask_for(walk: &Walk<'_, '_>, job: Key) -> Run<()> {
    if let Some(job) = walk.draft.get::<Job>(&RowId::Job(job))? {
        walk.draft.get::<Element>(&RowId::Element { scope: job.scope, key: job.element_key })?;
        walk.is_live(job.scope)?;
        walk.draft.process(job.definition)?;
    }
    Ok(())
}

pub(crate) fn fail(
    walk: &mut Walk<'_, '_>,
    holder: &Holder,
    message: &Text,
    retries: Option<i32>,
    backoff_ms: i64,
    variables: &Variables,
) -> Run<Outcome> {
    let job = held(walk, holder)?;
    let retries = retries.unwrap_or_else(|| job.retries.saturating_sub(1)).max(0);
    let mut failed = give_up_lease(&job);
    failed.retries = retries;
    (failed.state, failed.due) = match (retries, backoff_ms) {
        (0, _) => (JobState::Failed, 0),
        (_, 0) => (JobState::Ready, 0),
        _ => (JobState::Backoff, walk.context.now.saturating_add(backoff_ms)),
    };
    let state = failed.state;
    walk.draft.put(failed)?;
    walk.draft.emit(job.root, job.key, What::JobFailed { retries, message: message.clone() });
    keep_locals(walk, &job, variables)?;
    let text = if message.is_empty() { "no retries are left" } else { message };
    let incident = match state {
        JobState::Failed => Some(raise(walk, &job, IncidentKind::JobNoRetries, text)?),
        _ => None,
    };
    Ok(Outcome::Failed { state, retries, incident })
}

/// What a failed attempt leaves for the next one: variables of the element's own.
fn keep_locals(walk: &mut Walk<'_, '_>, job: &Job, variables: &Variables) -> Run<()> {
    if variables.is_empty() {
        return Ok(());
    }
    let id = RowId::Element { scope: job.scope, key: job.element_key };
    if let Some(element) = walk.draft.get::<Element>(&id)? {
        let mut changed = (*element).clone();
        changed.has_locals = true;
        walk.draft.put(changed)?;
        walk.set_local_variables(job.element_key, job.root, variables)?;
    }
    Ok(())
}

fn give_up_lease(job: &Job) -> Job {
    Job { worker: Text::from(""), lease: 0, due: 0, ..job.clone() }
}

fn raise(walk: &mut Walk<'_, '_>, job: &Job, kind: IncidentKind, message: &str) -> Run<Key> {
    let id = RowId::Element { scope: job.scope, key: job.element_key };
    match walk.draft.get::<Element>(&id)? {
        Some(element) => walk.raise_on(&element, job.key, kind, message),
        None => Ok(0),
    }
}

pub(crate) fn throw_error(
    walk: &mut Walk<'_, '_>,
    holder: &Holder,
    code: &Text,
    message: &Text,
    variables: &Variables,
) -> Run<Outcome> {
    let job = held(walk, holder)?;
    let Some((host, target)) = find_catch(walk, &job, code)? else {
        return uncaught(walk, &job, code, message, variables);
    };
    let here = walk.here(host.scope)?;
    let caught_by = here.and_then(|here| here.node(target).map(|node| node.id.clone()));
    let mut ended = (*job).clone();
    ended.state = JobState::Canceled;
    ended.due = walk.context.now;
    walk.draft.put(ended)?;
    walk.draft.emit(job.root, job.key, What::JobErrorThrown { code: code.clone(), caught_by: caught_by.clone() });
    walk.catch_error(host, target, variables)?;
    Ok(Outcome::ErrorThrown { state: JobState::Canceled, caught_by })
}

/// The task's own boundary event first, then the sub-processes around it.
fn find_catch(walk: &Walk<'_, '_>, job: &Job, code: &str) -> Run<Option<(Arc<Element>, u32)>> {
    let id = RowId::Element { scope: job.scope, key: job.element_key };
    if let Some(element) = walk.draft.get::<Element>(&id)?
        && let Some(target) = walk.catches(&element, code)?
    {
        return Ok(Some((element, target)));
    }
    walk.find_catch(job.scope, code)
}

fn uncaught(walk: &mut Walk<'_, '_>, job: &Job, code: &Text, message: &Text, variables: &Variables) -> Run<Outcome> {
    let mut thrown = give_up_lease(job);
    thrown.state = JobState::ErrorThrown;
    walk.draft.put(thrown)?;
    walk.draft.emit(job.root, job.key, What::JobErrorThrown { code: code.clone(), caught_by: None });
    keep_locals(walk, job, variables)?;
    let text = format!("error '{code}' is thrown by the worker and nothing catches it{}{message}", separator(message));
    raise(walk, job, IncidentKind::UnhandledError, &text)?;
    Ok(Outcome::ErrorThrown { state: JobState::ErrorThrown, caught_by: None })
}

fn separator(message: &str) -> &'static str {
    if message.is_empty() { "" } else { ": " }
}

pub(crate) fn extend(walk: &mut Walk<'_, '_>, holder: &Holder, lease_ms: i64) -> Run<Outcome> {
    let job = held(walk, holder)?;
    let deadline = walk.context.now.saturating_add(lease_ms);
    let mut extended = (*job).clone();
    extended.due = deadline;
    walk.draft.put(extended)?;
    walk.draft.emit(job.root, job.key, What::JobLeaseExtended { deadline });
    Ok(Outcome::Extended { deadline })
}

/// The first write of a step wins; a later one is told what stands.
pub(crate) fn record_step(walk: &mut Walk<'_, '_>, holder: &Holder, name: &Text, result: &Json) -> Run<Outcome> {
    let job = held(walk, holder)?;
    let id = RowId::Step { job: job.key, name: name.clone() };
    if let Some(step) = walk.draft.get::<Step>(&id)? {
        return Ok(Outcome::Step { name: name.clone(), result: step.result.clone(), recorded: false });
    }
    walk.draft.put(Step { job: job.key, name: name.clone(), result: result.clone() })?;
    let mut counted = (*job).clone();
    counted.steps = counted.steps.saturating_add(1);
    walk.draft.put(counted)?;
    walk.draft.emit(job.root, job.key, What::JobStepRecorded { name: name.clone() });
    Ok(Outcome::Step { name: name.clone(), result: result.clone(), recorded: true })
}
