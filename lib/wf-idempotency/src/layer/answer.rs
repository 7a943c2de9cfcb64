//! Answers on their way into a record and out of it. Next: `body.rs`, `problem.rs`.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body::Body;

use super::Outcome;
use super::body::{AnswerBody, Collected, collect};
use super::problem::Problem;
use super::route::Route;
use crate::Answer;
use crate::decide::OnUnknown;
use crate::driver::Run;
use crate::record::allowed_header;
use crate::store::{Claimed, Ended, Store};

const OUTCOME: HeaderName = HeaderName::from_static("idempotency-outcome");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const STORED: HeaderName = HeaderName::from_static("idempotency-stored");

/// Of a request that has no key: only what is not for clients is taken off.
pub fn passed<R>(mut response: Response<R>) -> Response<AnswerBody<R>> {
    response.headers_mut().remove(OUTCOME);
    response.map(|body| AnswerBody::behind(Vec::new(), Box::pin(body)))
}

/// To somebody who runs nothing.
pub fn told<R>(claimed: Claimed, route: &Route) -> Response<AnswerBody<R>> {
    match claimed {
        Claimed::Replay(answer) => replayed(answer),
        Claimed::NotKept(answer) => Problem::not_kept(&answer).answer(),
        Claimed::Mismatch => Problem::mismatch(route).answer(),
        Claimed::Busy { retry_after_ms } => Problem::busy(retry_after_ms).answer(),
        // A claim that is won is run.
        Claimed::Unknown | Claimed::Won { .. } => Problem::unknown().answer(),
        Claimed::Expired => Problem::expired().answer(),
    }
}

fn replayed<R>(answer: Answer) -> Response<AnswerBody<R>> {
    let mut response = Response::new(AnswerBody::whole(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    for (name, value) in &answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(&**name), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The first answer, which its client gets whole, and which is kept as the route says.
pub async fn kept<S: Store, R: Body<Data = Bytes>>(
    run: Run<S>,
    mut response: Response<R>,
    route: &Route,
) -> Response<AnswerBody<R>> {
    let outcome = outcome(&mut response, route);
    // Of an upstream that marks its own repeats: this one is none.
    response.headers_mut().remove(REPLAYED);
    let (mut parts, body) = response.into_parts();
    let answer = |body| Answer { status: parts.status.as_u16(), headers: headers(&parts.headers, route), body };
    let (ended, body) = match collect(body, route.answer_bytes_max).await {
        Collected::Whole(bytes) => (ended(outcome, Ended::Answered(answer(bytes.clone()))), AnswerBody::whole(bytes)),
        Collected::More(read, rest) => {
            (ended(outcome, Ended::NotKept(answer(Bytes::new()))), AnswerBody::behind(read, rest))
        }
        Collected::Broken => {
            let _ = run.end(Ended::Unknown).await;
            return Problem::failed().answer();
        }
    };
    let is_whole = !matches!(ended, Ended::NotKept(_));
    // What has happened has happened, whether it can be written down, or somebody else has taken over meanwhile.
    let is_kept = run.end(ended).await == Ok(true) && is_whole;
    if !is_kept {
        parts.headers.insert(STORED, HeaderValue::from_static("false"));
    }
    Response::from_parts(parts, body)
}

fn ended(outcome: Outcome, executed: Ended) -> Ended {
    match outcome {
        Outcome::Executed => executed,
        Outcome::NotExecuted => Ended::NotExecuted,
        Outcome::Unknown => Ended::Unknown,
    }
}

/// What the handler says; else what its status says.
fn outcome<R>(response: &mut Response<R>, route: &Route) -> Outcome {
    let header = response.headers_mut().remove(OUTCOME);
    let said = response.extensions_mut().remove::<Outcome>();
    let said = said.or_else(|| match header?.as_bytes() {
        b"executed" => Some(Outcome::Executed),
        b"not-executed" => Some(Outcome::NotExecuted),
        // A word that nobody knows is no reason to run it twice.
        _ => Some(Outcome::Unknown),
    });
    said.unwrap_or_else(|| by_status(response.status(), route))
}

fn by_status(status: StatusCode, route: &Route) -> Outcome {
    match (status.as_u16(), route.policy.on_unknown) {
        // Refused before anything began.
        (401 | 407 | 425 | 429, _) => Outcome::NotExecuted,
        (500.., OnUnknown::Resume) => Outcome::Unknown,
        // Its transaction is rolled back, and with it whatever was done.
        (500.., OnUnknown::Release) => Outcome::NotExecuted,
        _ => Outcome::Executed,
    }
}

/// A value that is no text is left out.
fn headers(headers: &HeaderMap, route: &Route) -> Vec<(Arc<str>, Arc<str>)> {
    let kept = |name: &HeaderName| allowed_header(name.as_str()) || route.headers_kept.contains(name);
    let kept = headers.iter().filter(|(name, _)| kept(name));
    kept.filter_map(|(name, value)| Some((Arc::from(name.as_str()), Arc::from(value.to_str().ok()?)))).collect()
}
