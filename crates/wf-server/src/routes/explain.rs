//! Why was this dropped, and what became of it? The life of one request, from whichever end somebody has.
//! Next: `crate::explain`, which follows it.

use axum::extract::{Request, State};
use axum::response::Response;
use wf_api::explain::ExplainOut;
use wf_api::{Code, Problem, answer};
use wf_idempotency::key::Key;

use crate::app::Doors;
use crate::door::{self, Refused};
use crate::explain::{Asked, explain};
use crate::params::Params;
use crate::route;

/// The whole life of one request: key, command, instance, jobs, messages, outbox, audit, suppressed duplicates.
/// Exactly one of the parameters says where to begin.
#[utoipa::path(get, path = "/api/v1/explain", tag = "operation",
    params(
        ("key" = Option<String>, Query, description = "An idempotency key, without the header's quotes"),
        ("instance" = Option<String>, Query, description = "An instance's key"),
        ("job" = Option<String>, Query, description = "A job's key"),
        ("message" = Option<String>, Query, description = "A message's name and id: `NAME:ID`")
    ),
    responses((status = 200, body = ExplainOut)))]
pub(crate) async fn get(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    let (app, visitor) = doors.visit(request.headers(), route::EXPLAIN.permission).await?;
    let mut params = Params::of(request.uri())?;
    let (key, message) = (params.text("key"), params.text("message"));
    let (instance, job) = (params.key("instance"), params.key("job"));
    params.finish()?;
    let asked = match (key, instance, job, message) {
        (Some(key), None, None, None) => Asked::Key(parsed(&key)?),
        (None, Some(instance), None, None) => Asked::Instance(instance),
        (None, None, Some(job), None) => Asked::Job(job),
        (None, None, None, Some(message)) => Asked::Message(message),
        _ => return Err(Problem::validation("query", "needs exactly one of key, instance, job, message").into()),
    };
    Ok(door::respond(answer::of(200, &explain(&app, visitor.tenant, asked).await?), false))
}

pub(crate) fn parsed(key: &str) -> Result<Key, Problem> {
    Key::new(key).map_err(|error| Problem::new(Code::IdempotencyKeyMalformed, error.to_string()))
}
