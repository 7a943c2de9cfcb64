//! The test clock. Without one these addresses do not exist.

use std::time::Duration;

use axum::extract::{Request, State};
use wf_api::Problem;
use wf_api::clock::{self, ClockOut, SetClock};
use wf_engine::{Ask, ClockChange};

use crate::app::Doors;
use crate::call::enter;
use crate::door::{self, Reply};
use crate::route;

/// Moves the test clock; answers after all that fell due has committed.
#[utoipa::path(put, path = "/api/v1/clock", tag = "operation", request_body = SetClock,
    responses((status = 200, body = ClockOut)))]
pub(crate) async fn set(State(doors): State<Doors>, request: Request) -> Reply {
    only_with_test_clock(&doors)?;
    let call = enter(&doors, &route::SET_CLOCK, request).await?;
    let wanted = clock::read_set(&call.body)?;
    let change = match (wanted.advance_ms, wanted.now) {
        (Some(ms), _) => ClockChange::Advance { ms },
        (None, now) => ClockChange::To { now: now.unwrap_or_default() },
    };
    call.submit(Ask::SetClock(change), Duration::ZERO, clock::render_set).await
}

/// Lets the test clock tick on from where it stands.
#[utoipa::path(delete, path = "/api/v1/clock", tag = "operation", responses((status = 200, body = ClockOut)))]
pub(crate) async fn thaw(State(doors): State<Doors>, request: Request) -> Reply {
    only_with_test_clock(&doors)?;
    let call = enter(&doors, &route::THAW_CLOCK, request).await?;
    call.submit(Ask::SetClock(ClockChange::Thaw), Duration::ZERO, clock::render_set).await
}

fn only_with_test_clock(doors: &Doors) -> Result<(), Problem> {
    match doors.any().node.has_test_clock() {
        true => Ok(()),
        false => Err(door::not_found("the server runs on the real clock")),
    }
}
