//! The one place where refusals become statuses and headers, and stored answers become responses.
//! It does not know routes. Next: back to the client.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, LINK, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use wf_api::answer::{JSON, PROBLEM_JSON};
use wf_api::{Code, Problem};
use wf_engine::{ClockRefusal, OutboxRefusal, Refusal};
use wf_idempotency::record::Answer;
use wf_store::StoreError;

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const RETRY_AFTER_MS: i64 = 1000;

pub(crate) type Reply = Result<Response, Refused>;

/// A problem on its way out.
#[derive(Debug)]
pub(crate) struct Refused(pub Problem);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Refused {
        Refused(problem)
    }
}

/// A read failed: nothing was done, and trying again may help.
impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Refused {
        tracing::warn!(%error, "a read failed");
        Refused(Problem::new(Code::Unavailable, "the store cannot be read now").retry_after_ms(RETRY_AFTER_MS))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let problem = self.0;
        let mut response = Response::new(Body::from(problem.to_json()));
        *response.status_mut() = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = problem.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        match problem.code {
            Code::IdempotencyKeyMissing => {
                headers.insert(LINK, HeaderValue::from_static(EXPLAINED_KEY_MISSING));
            }
            Code::Unauthenticated => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => (),
        }
        response
    }
}

const EXPLAINED_KEY_MISSING: &str = "</problems/idempotency-key-missing>; rel=\"describedby\"";

/// `mismatch_status`: the route's own for a key that was used with another request.
pub(crate) fn of_refusal(refusal: Refusal, mismatch_status: u16) -> Problem {
    match refusal {
        Refusal::Rejected(rejection) => Problem::from(&rejection),
        Refusal::Conflict => Problem::new(Code::IdempotencyConflict, "the key was used with another request")
            .with_status(mismatch_status),
        Refusal::InProgress { retry_after_ms } => {
            Problem::new(Code::IdempotencyInProgress, "the first request with this key still runs")
                .retry_after_ms(retry_after_ms)
        }
        Refusal::Outbox(refusal) => of_outbox(refusal),
        Refusal::Clock(refusal) => of_clock(refusal),
        Refusal::Overloaded => {
            Problem::new(Code::Overloaded, "the queue is full; nothing was done").retry_after_ms(RETRY_AFTER_MS)
        }
        Refusal::Unavailable { reason } => {
            tracing::warn!(reason, "a request was refused");
            Problem::new(Code::Unavailable, "nothing was committed").retry_after_ms(RETRY_AFTER_MS)
        }
        Refusal::OutcomeUnknown => {
            Problem::new(Code::OutcomeUnknown, "whether it was committed is not known").retry_after_ms(RETRY_AFTER_MS)
        }
        Refusal::Internal { error_id } => internal(&error_id),
    }
}

pub(crate) fn internal(error_id: &str) -> Problem {
    Problem::new(Code::Internal, "the server's log has the details").with_text("errorId", error_id)
}

pub(crate) fn not_found(detail: &str) -> Problem {
    Problem::new(Code::NotFound, detail)
}

fn of_outbox(refusal: OutboxRefusal) -> Problem {
    match refusal {
        OutboxRefusal::NotFound => not_found("this tenant has no such message in the outbox"),
        OutboxRefusal::PastWindow => Problem::validation(
            "force",
            "must be true: the broker no longer remembers this dedup key, and the message may arrive twice",
        ),
    }
}

fn of_clock(refusal: ClockRefusal) -> Problem {
    match refusal {
        ClockRefusal::NoTestClock => not_found("the server runs on the real clock"),
        ClockRefusal::Past => Problem::validation("now", "lies in the past: the clock only moves forward"),
    }
}

/// The answer's own bytes and headers; what belongs to this exchange is added.
pub(crate) fn respond(answer: Answer, is_replay: bool) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in &answer.headers {
        if let (Some(name), Some(value)) = (header_name(name), header_value(value)) {
            headers.append(name, value);
        }
    }
    if is_replay {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

// The two that nearly every answer has are not looked up.
fn header_name(name: &str) -> Option<HeaderName> {
    match name {
        "content-type" => Some(CONTENT_TYPE),
        "location" => Some(LOCATION),
        name => HeaderName::from_bytes(name.as_bytes()).ok(),
    }
}

fn header_value(value: &str) -> Option<HeaderValue> {
    match value {
        JSON => Some(HeaderValue::from_static(JSON)),
        value => HeaderValue::from_str(value).ok(),
    }
}
