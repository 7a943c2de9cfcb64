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

use crate::app::Shared;
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

/// Requests are taken, and the last commit succeeded.
#[utoipa::path(get, path = "/readyz", tag = "server", responses(
    (status = 200, body = Health),
    (status = 503, description = "Not ready", body = wf_api::problem::ProblemBody, content_type = "application/problem+json")
))]
pub(crate) async fn ready(State(app): State<Shared>) -> Reply {
    match app.engine.is_ready() && !*app.closing.borrow() {
        true => Ok(door::respond(answer::of(200, &Health { status: "ready" }), false)),
        false => {
            Err(Refused(Problem::new(Code::Unavailable, "the engine does not take requests now").retry_after_ms(1)))
        }
    }
}

/// Prometheus text.
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, description = "Prometheus text", body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(State(app): State<Shared>) -> Reply {
    let handle = app.metrics.as_ref().ok_or_else(|| door::not_found("metrics are not recorded"))?;
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
