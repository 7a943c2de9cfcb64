//! Jobs: taken, finished, listed.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use wf_api::answer::PageOut;
use wf_api::jobs::{self, *};
use wf_api::{Code, Problem};
use wf_core::rows::Text;
use wf_engine::Ask;
use wf_store::JobQuery;

use crate::app::Doors;
use crate::call::{Call, enter};
use crate::door::{self, Refused, Reply};
use crate::page;
use crate::params::{Params, PathKey, PathStep};
use crate::route;

/// Leases jobs to a worker. With `waitMs` an empty answer waits for a job.
#[utoipa::path(post, path = "/api/v1/jobs/activate", tag = "jobs", request_body = ActivateJobs,
    responses((status = 200, body = ActivatedJobs)))]
pub(crate) async fn activate(State(doors): State<Doors>, request: Request) -> Reply {
    let call = enter(&doors, &route::ACTIVATE, request).await?;
    let poll = jobs::read_activate(&call.body)?;
    match poll.wait {
        Duration::ZERO => call.command(poll.command, jobs::render_activated).await,
        _ => long_poll(call, poll).await,
    }
}

/// Ends early when the server stops: a worker must not hold it up, nor be given jobs that it has no time for.
async fn long_poll(call: Call, poll: Poll) -> Reply {
    let mut closing = call.app.closing.subscribe();
    let is_keyed = call.key.is_some();
    tokio::select! {
        reply = call.submit(Ask::Command(poll.command), poll.wait, jobs::render_activated) => reply,
        _ = closing.wait_for(|closing| *closing) => match is_keyed {
            // Under its key it may have leased jobs already: the repeat gets them.
            true => Err(Refused(Problem::new(Code::Unavailable, "the server is stopping").retry_after_ms(1))),
            false => Ok(door::respond(jobs::render_none(), false)),
        },
    }
}

/// Completes a job; its token goes on.
#[utoipa::path(post, path = "/api/v1/jobs/{key}/complete", tag = "jobs", request_body = CompleteJob,
    params(("key" = String, Path)), responses((status = 200, body = Completed)))]
pub(crate) async fn complete(State(doors): State<Doors>, PathKey(key): PathKey, request: Request) -> Reply {
    let call = enter(&doors, &route::COMPLETE, request).await?;
    let command = jobs::read_complete(key, &call.body)?;
    call.command(command, jobs::render_completed).await
}

/// Completes many jobs; each stands alone.
#[utoipa::path(post, path = "/api/v1/jobs/complete", tag = "jobs", request_body = CompleteJobs,
    responses((status = 200, body = CompletedMany)))]
pub(crate) async fn complete_many(State(doors): State<Doors>, request: Request) -> Reply {
    let call = enter(&doors, &route::COMPLETE_MANY, request).await?;
    let command = jobs::read_complete_many(&call.body)?;
    call.command(command, jobs::render_completed_many).await
}

/// Gives a job back as failed: tried again, or an incident where no retries are left.
#[utoipa::path(post, path = "/api/v1/jobs/{key}/fail", tag = "jobs", request_body = FailJob,
    params(("key" = String, Path)), responses((status = 200, body = Failed)))]
pub(crate) async fn fail(State(doors): State<Doors>, PathKey(key): PathKey, request: Request) -> Reply {
    let call = enter(&doors, &route::FAIL, request).await?;
    let command = jobs::read_fail(key, &call.body)?;
    call.command(command, jobs::render_failed).await
}

/// Throws a BPMN error, for the model to catch.
#[utoipa::path(post, path = "/api/v1/jobs/{key}/error", tag = "jobs", request_body = ThrowError,
    params(("key" = String, Path)), responses((status = 200, body = ErrorThrown)))]
pub(crate) async fn error(State(doors): State<Doors>, PathKey(key): PathKey, request: Request) -> Reply {
    let call = enter(&doors, &route::ERROR, request).await?;
    let command = jobs::read_error(key, &call.body)?;
    call.command(command, jobs::render_error).await
}

/// Prolongs a lease, counted from now.
#[utoipa::path(post, path = "/api/v1/jobs/{key}/extend", tag = "jobs", request_body = ExtendLease,
    params(("key" = String, Path)), responses((status = 200, body = Extended)))]
pub(crate) async fn extend(State(doors): State<Doors>, PathKey(key): PathKey, request: Request) -> Reply {
    let call = enter(&doors, &route::EXTEND, request).await?;
    let command = jobs::read_extend(key, &call.body)?;
    call.command(command, jobs::render_extended).await
}

/// Records a step's result once: the first write wins, a later one is told what stands.
#[utoipa::path(put, path = "/api/v1/jobs/{key}/steps/{name}", tag = "jobs", request_body = RecordStep,
    params(("key" = String, Path), ("name" = String, Path, description = "At most 128 characters")),
    responses((status = 200, body = StepOut)))]
pub(crate) async fn step(State(doors): State<Doors>, PathStep(key, name): PathStep, request: Request) -> Reply {
    let call = enter(&doors, &route::STEP, request).await?;
    let command = jobs::read_step(key, &name, &call.body)?;
    call.command(command, jobs::render_step).await
}

/// Jobs, by key.
#[utoipa::path(get, path = "/api/v1/jobs", tag = "jobs",
    params(
        ("type" = Option<String>, Query),
        ("state" = Option<String>, Query, description = "`READY`, `ACTIVATED`, `BACKOFF`, `FAILED`, `ERROR_THROWN`, `COMPLETED` or `CANCELED`"),
        ("processInstanceKey" = Option<String>, Query),
        ("limit" = Option<u32>, Query, description = "100 where absent, 1,000 at most"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before")
    ),
    responses((status = 200, body = PageOut<JobOut>)))]
pub(crate) async fn list(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    let (app, visitor) = doors.visit(request.headers(), route::JOBS.permission).await?;
    let mut params = Params::of(request.uri())?;
    let query = JobQuery {
        tenant: visitor.tenant,
        job_type: params.text("type"),
        state: params.parsed("state", jobs::parse_state, "a job's state, such as READY or ACTIVATED"),
        instance: params.key("processInstanceKey"),
        slice: params.slice(),
    };
    params.finish()?;
    let store = app.node.store();
    let page = store.jobs(query).await?;
    let definitions: BTreeSet<_> = page.items.iter().map(|job| job.definition).collect();
    let graphs = app.graphs.of_all(&**store, definitions).await?;
    Ok(page::respond(page, |job| {
        let node = graphs.get(&job.definition).and_then(|process| process.element(job.element));
        jobs::job_of(&job, node.map_or_else(|| Text::from(""), |node| node.id.clone()))
    }))
}
