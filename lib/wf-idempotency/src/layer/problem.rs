//! Refusals as `application/problem+json` (RFC 9457), each with a code that a program can tell apart. None is ever stored.
//! Next: `answer.rs`.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LINK, LOCATION, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::body::AnswerBody;
use super::route::Route;
use crate::Answer;
use crate::key::KeyError;

#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: String,
    /// Members of the case's own: `,"name":value`.
    more: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, title: &'static str, detail: &str) -> Problem {
        let (detail, more) = (detail.to_owned(), String::new());
        Problem { status, code, title, detail, more, headers: Vec::new() }
    }

    pub fn missing(route: &Route) -> Problem {
        let detail = "this route wants an Idempotency-Key: one for each operation, the same for all its repeats";
        let mut problem = Problem::new(StatusCode::BAD_REQUEST, "idempotency-key-missing", "A key is missing", detail);
        let link = route.documentation.as_ref().map(|url| format!("<{url}>; rel=\"describedby\""));
        if let Some(Ok(link)) = link.map(HeaderValue::try_from) {
            problem.headers.push((LINK, link));
        }
        problem
    }

    pub fn malformed(error: &KeyError) -> Problem {
        let status = StatusCode::BAD_REQUEST;
        Problem::new(status, "idempotency-key-malformed", "The key cannot be read", &error.to_string())
    }

    pub fn nobody() -> Problem {
        let detail = "a key belongs to somebody, and nobody is known to ask";
        Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated", "Who asks is not known", detail)
    }

    pub fn too_large(bytes_max: usize) -> Problem {
        let detail = format!("a request with a key has at most {bytes_max} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "payload-too-large", "The request is too large", &detail)
    }

    pub fn broken_off() -> Problem {
        let detail = "the request's body ended before its end; nothing was done";
        Problem::new(StatusCode::BAD_REQUEST, "validation", "The request is not whole", detail)
    }

    pub fn mismatch(route: &Route) -> Problem {
        let detail = "the key was used with another method, path or body; nothing was done";
        Problem::new(route.mismatch, "idempotency-conflict", "The key belongs to another request", detail)
    }

    pub fn busy(retry_after_ms: i64) -> Problem {
        let detail = "the first request with this key has not ended yet; repeat it with the same key";
        Problem::new(StatusCode::CONFLICT, "idempotency-in-progress", "It is in progress", detail)
            .retry_after(retry_after_ms)
    }

    pub fn unknown() -> Problem {
        let detail = "it was begun, and nobody knows how it ended; it is not begun again";
        Problem::new(StatusCode::CONFLICT, "unknown-outcome", "The outcome is unknown", detail)
    }

    pub fn failed() -> Problem {
        let detail = "the request may have been carried out; a repeat under the key does not carry it out again";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "It broke off", detail)
    }

    pub fn not_kept(answer: &Answer) -> Problem {
        let detail = "it was done; its answer was too large to be kept and is not given again";
        let mut problem = Problem::new(StatusCode::CONFLICT, "response-not-stored", "The answer is not kept", detail);
        problem.more = format!(",\"originalStatus\":{}", answer.status);
        let location = answer.headers.iter().find(|(name, _)| **name == *"location");
        if let Some(Ok(location)) = location.map(|(_, value)| HeaderValue::from_str(value)) {
            problem.headers.push((LOCATION, location));
        }
        problem
    }

    pub fn expired() -> Problem {
        let detail = "it was done long ago, and its answer is no longer kept";
        Problem::new(StatusCode::GONE, "expired", "The key is over", detail)
    }

    pub fn no_store() -> Problem {
        let detail = "keys cannot be looked up now; nothing was done";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store-unavailable", "Keys cannot be looked up", detail)
            .retry_after(1_000)
    }

    /// Whole seconds, at least one.
    fn retry_after(mut self, ms: i64) -> Problem {
        self.headers.push((RETRY_AFTER, HeaderValue::from((ms.max(1) as u64).div_ceil(1_000))));
        self
    }

    pub fn answer<R>(self) -> Response<AnswerBody<R>> {
        let Problem { status, code, title, detail, more, headers } = self;
        // The only text from elsewhere is a `KeyError`, which holds nothing of the key.
        let body = format!(
            "{{\"type\":\"/problems/{code}\",\"title\":\"{title}\",\"status\":{},\"detail\":\"{detail}\",\
             \"code\":\"{code}\"{more}}}",
            status.as_u16()
        );
        let mut response = Response::new(AnswerBody::whole(Bytes::from(body)));
        *response.status_mut() = status;
        response.headers_mut().extend(headers);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
