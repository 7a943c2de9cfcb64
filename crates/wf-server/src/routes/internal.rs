//! What other nodes of the store ask, and nobody else: not part of the public interface.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use wf_api::answer;
use wf_api::nodes::{Peek, Peeked};
use wf_api::{Code, Problem};
use wf_cluster::QueueId;

use crate::app::{Doors, Shared};
use crate::body;
use crate::call::marked;
use crate::door::{self, Refused};

/// May a partition of this node have a job of a queue? Waits until one may. Leases nothing.
pub(crate) async fn peek(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    let (head, body) = request.into_parts();
    let body = body::read(&head.headers, body).await?;
    // Each database's nodes have a secret of their own, which also says which database is meant.
    let is_its = |app: &&Shared| matches!(marked(app, &head, &body), Ok(Some(_)));
    let stranger = || Problem::new(Code::Forbidden, "only nodes of this store ask here");
    let app = doors.all().iter().find(is_its).ok_or_else(stranger)?;
    let malformed = |error: serde_json::Error| Problem::validation("body", error.to_string());
    let Peek { tenant, job_type, wait_ms } = serde_json::from_slice(&body).map_err(malformed)?;
    let queue = QueueId { tenant: tenant.into(), job_type: job_type.into() };
    let mut closing = app.closing.subscribe();
    let partitions = tokio::select! {
        partitions = app.node.peek(queue, Duration::from_millis(wait_ms)) => partitions,
        _ = closing.wait_for(|closing| *closing) => Vec::new(),
    };
    Ok(door::respond(answer::of(200, &Peeked { partitions }), false))
}
