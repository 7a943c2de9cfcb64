//! What keys were used for: all of them lately, and one of them through all layers.

use axum::extract::{Request, State};
use axum::response::Response;
use wf_api::answer;
use wf_api::explain::ExplainOut;
use wf_api::idempotency::{self, KeyUsesOut};
use wf_store::IdempotencyQuery;

use crate::app::Doors;
use crate::door::{self, Refused};
use crate::explain::{Asked, explain};
use crate::page;
use crate::params::{Params, PathText};
use crate::route;
use crate::routes::explain::parsed;

const HOURS: i64 = 24;
/// Suppressed repeats are counted this long.
const HOURS_MAX: i64 = 30 * 24;
const HOUR_MS: i64 = 3_600_000;

/// Keys seen lately, with repeats and conflicts; never the keys themselves.
#[utoipa::path(get, path = "/api/v1/idempotency", tag = "operation",
    params(
        ("hours" = Option<u32>, Query, description = "24 where absent, 720 at most"),
        ("limit" = Option<u32>, Query, description = "100 where absent, 1,000 at most"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before")
    ),
    responses((status = 200, body = KeyUsesOut)))]
pub(crate) async fn list(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    let (app, visitor) = doors.visit(request.headers(), route::IDEMPOTENCY.permission).await?;
    let mut params = Params::of(request.uri())?;
    let in_range = |text: &str| text.parse().ok().filter(|hours| (1..=HOURS_MAX).contains(hours));
    let hours = params.parsed("hours", in_range, "a number from 1 to 720").unwrap_or(HOURS);
    let now = app.node.now();
    let query = IdempotencyQuery {
        tenant: Some(visitor.tenant),
        since: now.saturating_sub(hours * HOUR_MS),
        now,
        slice: params.slice(),
    };
    params.finish()?;
    let uses = app.node.store().idempotency(query).await?;
    let next_cursor = uses.next.as_deref().map(page::wrap_cursor);
    Ok(door::respond(answer::of(200, &idempotency::uses_of(uses, next_cursor)), false))
}

/// The whole life of one key: when first seen, what it became, and every repeat that was suppressed.
#[utoipa::path(get, path = "/api/v1/idempotency/{key}", tag = "operation",
    params(("key" = String, Path, description = "Percent-encoded, without the header's quotes")),
    responses((status = 200, body = ExplainOut)))]
pub(crate) async fn get(
    State(doors): State<Doors>,
    PathText(key): PathText,
    request: Request,
) -> Result<Response, Refused> {
    let (app, visitor) = doors.visit(request.headers(), route::IDEMPOTENCY_KEY.permission).await?;
    Params::of(request.uri())?.finish()?;
    let asked = Asked::Key(parsed(&key)?);
    Ok(door::respond(answer::of(200, &explain(&app, visitor.tenant, asked).await?), false))
}
