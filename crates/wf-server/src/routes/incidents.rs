//! Incidents: listed, and resolved.

use axum::extract::{Request, State};
use axum::response::Response;
use wf_api::answer::PageOut;
use wf_api::incidents::{self, IncidentOut, ResolveIncident};
use wf_api::instances::KeyAndState;
use wf_store::IncidentQuery;

use crate::app::Doors;
use crate::call::enter;
use crate::door::{Refused, Reply};
use crate::page;
use crate::params::{Params, PathKey};
use crate::route;

/// Open incidents, by key.
#[utoipa::path(get, path = "/api/v1/incidents", tag = "incidents",
    params(
        ("processInstanceKey" = Option<String>, Query, description = "Of this instance only"),
        ("limit" = Option<u32>, Query, description = "100 where absent, 1,000 at most"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before")
    ),
    responses((status = 200, body = PageOut<IncidentOut>)))]
pub(crate) async fn list(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    let (app, visitor) = doors.visit(request.headers(), route::INCIDENTS.permission).await?;
    let mut params = Params::of(request.uri())?;
    let query =
        IncidentQuery { tenant: visitor.tenant, instance: params.key("processInstanceKey"), slice: params.slice() };
    params.finish()?;
    let page = app.node.store().incidents(query).await?;
    Ok(page::respond(page, |incident| IncidentOut::from(&*incident)))
}

/// Tries again what stopped.
#[utoipa::path(post, path = "/api/v1/incidents/{key}/resolve", tag = "incidents", request_body = ResolveIncident,
    params(("key" = String, Path)),
    responses((status = 200, body = KeyAndState)))]
pub(crate) async fn resolve(State(doors): State<Doors>, PathKey(key): PathKey, request: Request) -> Reply {
    let call = enter(&doors, &route::RESOLVE, request).await?;
    let command = incidents::read_resolve(key, &call.body)?;
    call.command(command, incidents::render_resolved).await
}
