//! Messages from outside.

use axum::extract::{Request, State};
use wf_api::messages::{self, PublishMessage, Published};

use crate::app::Doors;
use crate::call::enter;
use crate::door::Reply;
use crate::route;

/// Hands a message to those who wait for it.
#[utoipa::path(post, path = "/api/v1/messages", tag = "messages", request_body = PublishMessage,
    responses((status = 200, body = Published)))]
pub(crate) async fn publish(State(doors): State<Doors>, request: Request) -> Reply {
    let call = enter(&doors, &route::PUBLISH, request).await?;
    let command = messages::read_publish(&call.body, call.app.messages_dedup_ms)?;
    call.command(command, messages::render_published).await
}
