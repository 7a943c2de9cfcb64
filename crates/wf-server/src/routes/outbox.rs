//! The outbox: listed, and shipped again.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use wf_api::answer::PageOut;
use wf_api::outbox::{self, OutboxOut, Retried, RetryOutbox};
use wf_engine::Ask;
use wf_store::OutboxQuery;

use crate::app::Doors;
use crate::call::enter;
use crate::door::{self, Refused, Reply};
use crate::page;
use crate::params::{Params, PathText};
use crate::route;

/// Messages to the outside, in the order in which they were written.
#[utoipa::path(get, path = "/api/v1/outbox", tag = "operation",
    params(
        ("state" = Option<String>, Query, description = "`pending`, `shipped` or `dead`"),
        ("limit" = Option<u32>, Query, description = "100 where absent, 1,000 at most"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before")
    ),
    responses((status = 200, body = PageOut<OutboxOut>)))]
pub(crate) async fn list(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    let (app, visitor) = doors.visit(request.headers(), route::OUTBOX.permission).await?;
    let mut params = Params::of(request.uri())?;
    let query = OutboxQuery {
        tenant: visitor.tenant,
        state: params.parsed("state", outbox::parse_state, "pending, shipped or dead"),
        id: None,
        slice: params.slice(),
    };
    params.finish()?;
    let page = app.node.store().outbox(query).await?;
    Ok(page::respond(page, OutboxOut::from))
}

/// Ships a message again, under the same dedup key.
#[utoipa::path(post, path = "/api/v1/outbox/{id}/retry", tag = "operation", request_body = RetryOutbox,
    params(("id" = String, Path)),
    responses((status = 200, body = Retried)))]
pub(crate) async fn retry(State(doors): State<Doors>, PathText(id): PathText, request: Request) -> Reply {
    let id = outbox::parse_id(&id).ok_or_else(|| door::not_found("the id in the path is no id of the outbox"))?;
    let call = enter(&doors, &route::OUTBOX_RETRY, request).await?;
    let force = outbox::read_retry(&call.body)?;
    call.submit(Ask::RetryOutbox { id, force }, Duration::ZERO, outbox::render_retried).await
}
