//! Process instances: started, canceled, changed, listed, looked at.

use axum::extract::{Request, State};
use axum::response::Response;
use wf_api::answer::{self, PageOut};
use wf_api::instances::{self, *};
use wf_api::problem::not_found;
use wf_api::time;
use wf_core::outcome::Noun;
use wf_store::{InstanceQuery, Page};

use crate::app::Doors;
use crate::call::enter;
use crate::door::{self, Refused, Reply};
use crate::page;
use crate::params::{Params, PathKey};
use crate::route;

/// Starts an instance, or finds its active twin by `uniquenessKey`.
#[utoipa::path(post, path = "/api/v1/instances", tag = "instances", request_body = StartInstance,
    responses(
        (status = 201, body = Started, headers(("location" = String, description = "The instance"))),
        (status = 200, description = "An active twin", body = Started)
    ))]
pub(crate) async fn start(State(doors): State<Doors>, request: Request) -> Reply {
    let call = enter(&doors, &route::START, request).await?;
    let command = instances::read_start(&call.body)?;
    call.command(command, instances::render_started).await
}

/// Ends an active instance without completing it.
#[utoipa::path(post, path = "/api/v1/instances/{key}/cancel", tag = "instances", request_body = NoFields,
    params(("key" = String, Path)), responses((status = 200, body = KeyAndState)))]
pub(crate) async fn cancel(State(doors): State<Doors>, PathKey(key): PathKey, request: Request) -> Reply {
    let call = enter(&doors, &route::CANCEL, request).await?;
    let command = instances::read_cancel(key, &call.body)?;
    call.command(command, instances::render_canceled).await
}

/// Sets variables of an active instance, or of one of its elements.
#[utoipa::path(put, path = "/api/v1/instances/{key}/variables", tag = "instances", request_body = SetVariables,
    params(("key" = String, Path)), responses((status = 200, body = KeyOnly)))]
pub(crate) async fn set_variables(State(doors): State<Doors>, PathKey(key): PathKey, request: Request) -> Reply {
    let call = enter(&doors, &route::SET_VARIABLES, request).await?;
    let command = instances::read_set_variables(key, &call.body)?;
    call.command(command, instances::render_variables_set).await
}

/// Instances, the newest first.
#[utoipa::path(get, path = "/api/v1/instances", tag = "instances",
    params(
        ("state" = Option<String>, Query, description = "`ACTIVE`, `COMPLETED` or `CANCELED`"),
        ("processDefinitionId" = Option<String>, Query),
        ("startedAfter" = Option<String>, Query, description = "RFC 3339, exclusive"),
        ("variable.NAME" = Option<String>, Query, description = "A scalar variable of this name has this text"),
        ("limit" = Option<u32>, Query, description = "100 where absent, 1,000 at most"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before")
    ),
    responses((status = 200, body = PageOut<InstanceOut>)))]
pub(crate) async fn list(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    let (app, visitor) = doors.visit(request.headers(), route::INSTANCES.permission).await?;
    let mut params = Params::of(request.uri())?;
    let query = InstanceQuery {
        tenant: visitor.tenant,
        state: params.parsed("state", instances::parse_state, "ACTIVE, COMPLETED or CANCELED"),
        process_id: params.text("processDefinitionId"),
        started_after: params.parsed("startedAfter", time::parse, "an RFC 3339 time"),
        variables: params.prefixed("variable."),
        slice: params.slice(),
    };
    params.finish()?;
    let page = app.node.store().instances(query).await?;
    let items = page.items.iter().filter_map(|scope| instances::instance_of(scope)).collect();
    Ok(page::respond(Page { items, next: page.next }, |instance| instance))
}

/// One instance: its variables, what it waits for, what stopped it.
#[utoipa::path(get, path = "/api/v1/instances/{key}", tag = "instances",
    params(("key" = String, Path)), responses((status = 200, body = InstanceDetailOut)))]
pub(crate) async fn get(State(doors): State<Doors>, PathKey(key): PathKey, request: Request) -> Reply {
    let (app, visitor) = doors.visit(request.headers(), route::INSTANCE.permission).await?;
    Params::of(request.uri())?.finish()?;
    let store = app.node.store();
    let detail = store.instance(key).await?;
    let is_own = |tenant: &str| tenant == &*visitor.tenant;
    let detail = detail.filter(|detail| detail.root.instance.as_ref().is_some_and(|own| is_own(&own.tenant)));
    let detail = detail.ok_or_else(|| not_found(Noun::Instance))?;
    let process = app.graphs.of(&**store, detail.root.definition).await?;
    let shown = instances::detail_of(&detail, process.as_deref()).ok_or_else(|| not_found(Noun::Instance))?;
    Ok(door::respond(answer::of(200, &shown), false))
}
