//! The server about itself: alive, ready, metrics, the document. Open to everybody, tells nothing about tenants.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;
use wf_api::answer::{self, JSON};
use wf_api::{Code, Problem};
use wf_cluster::{Peer, Peers, Standing};

use crate::app::{Doors, Shared};
use crate::door::{self, Refused, Reply};

const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    #[schema(value_type = String)]
    status: &'static str,
}

/// The process runs.
#[utoipa::path(get, path = "/livez", tag = "server", responses((status = 200, body = Health)))]
pub(crate) async fn live() -> Response {
    door::respond(answer::of(200, &Health { status: "alive" }), false)
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Ready {
    #[schema(value_type = String)]
    status: &'static str,
    /// Where there are several, or several nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    partitions: Vec<PartitionState>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct PartitionState {
    partition: u16,
    /// `open`, or why not; `owned by NAME` where that is another node.
    state: String,
}

/// Requests are taken: every partition of this node is open, and its last commit succeeded. A node that owns none, as
/// others own all, is ready if it reaches them. Of several databases one is enough: `partitions` says which are not open.
#[utoipa::path(get, path = "/readyz", tag = "server", responses(
    (status = 200, body = Ready),
    (status = 503, description = "Not ready; `partitions` says which is how", body = wf_api::problem::ProblemBody, content_type = "application/problem+json")
))]
pub(crate) async fn ready(State(doors): State<Doors>) -> Reply {
    let state = |standing: Standing| PartitionState { partition: standing.partition, state: standing.state };
    let (mut partitions, mut reasons) = (Vec::new(), Vec::new());
    for app in doors.all() {
        let readiness = app.node.readiness();
        reasons.push(match readiness.reason {
            None => unreached(app, &readiness.relies_on).await,
            reason => reason,
        });
        partitions.extend(readiness.partitions.into_iter().map(state));
    }
    // Of several databases one that is down takes only its own tenants with it.
    let reason = if reasons.contains(&None) { None } else { reasons.into_iter().flatten().next() };
    let closing = doors.any().closing.borrow().then(|| "the server is stopping".to_owned());
    let reason = closing.or(reason);
    let Some(reason) = reason else {
        return Ok(door::respond(answer::of(200, &Ready { status: "ready", partitions }), false));
    };
    let problem = Problem::new(Code::Unavailable, reason).retry_after_ms(1);
    Err(Refused(match partitions.is_empty() {
        true => problem,
        false => problem.with_json("partitions", serde_json::to_string(&partitions).unwrap_or_default()),
    }))
}

/// The first owner that does not answer.
async fn unreached(app: &Shared, owners: &[Peer]) -> Option<String> {
    let asked = owners.iter().map(|peer| async move { (app.wire.is_there(peer).await, peer) });
    let answers = futures_util::future::join_all(asked).await;
    let silent = answers.into_iter().find(|(is_there, _)| !is_there)?.1;
    Some(format!("this node owns nothing, and {} at {} does not answer", silent.name, silent.address))
}

/// Prometheus text.
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, description = "Prometheus text", body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(State(doors): State<Doors>) -> Reply {
    let handle = doors.metrics.as_ref().ok_or_else(|| door::not_found("metrics are not recorded"))?;
    Ok(of_type(METRICS_TYPE, Body::from(handle.render())))
}

/// `/openapi.json`, written once.
#[derive(Clone)]
pub(crate) struct Document(Bytes);

impl Document {
    pub fn new(document: &OpenApi) -> Document {
        Document(document.to_json().map(Bytes::from).unwrap_or_default())
    }

    pub fn respond(self) -> Response {
        of_type(JSON, Body::from(self.0))
    }
}

pub(crate) fn of_type(content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
