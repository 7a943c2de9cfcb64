//! The one layer around every route: request id in and out, duration per route and status, a line for the access log,
//! and a panic turned into 500. It does not know what is asked. Next: `routes/*.rs`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use metrics::Histogram;
use tower::{Layer, Service};

use crate::door::{self, Refused};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_BYTES_MAX: usize = 128;
pub(crate) const DURATION: &str = "wf_http_request_duration_seconds";

#[derive(Clone, Default)]
pub(crate) struct Seam {
    timings: Arc<Timings>,
}

impl<S> Layer<S> for Seam {
    type Service = Seamed<S>;

    fn layer(&self, inner: S) -> Seamed<S> {
        Seamed { inner, timings: self.timings.clone() }
    }
}

#[derive(Clone)]
pub(crate) struct Seamed<S> {
    inner: S,
    timings: Arc<Timings>,
}

impl<S> Service<Request> for Seamed<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let begun = Instant::now();
        let seen = Seen::of(&request);
        let handled = self.inner.call(request);
        let timings = self.timings.clone();
        Box::pin(async move {
            let mut response = match AssertUnwindSafe(handled).catch_unwind().await {
                Ok(Ok(response)) => response,
                Ok(Err(never)) => match never {},
                Err(_) => panicked(&seen),
            };
            seen.done(&response, begun, &timings);
            response.headers_mut().insert(REQUEST_ID, seen.id);
            Ok(response)
        })
    }
}

/// What is needed of a request after it is gone.
struct Seen {
    id: HeaderValue,
    method: Method,
    /// The template; absent where no route matched.
    route: Option<MatchedPath>,
}

impl Seen {
    fn of(request: &Request) -> Seen {
        let sent = request.headers().get(REQUEST_ID).filter(|id| is_sound(id.as_bytes()));
        Seen {
            id: sent.cloned().unwrap_or_else(fresh_id),
            method: request.method().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
        }
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("none", MatchedPath::as_str)
    }

    fn done(&self, response: &Response, begun: Instant, timings: &Timings) {
        let status = response.status().as_u16();
        let elapsed = begun.elapsed();
        timings.record(self.route(), &self.method, status, elapsed.as_secs_f64());
        tracing::debug!(
            request_id = self.id.to_str().unwrap_or_default(),
            method = self.method.as_str(),
            route = self.route(),
            status,
            elapsed_us = elapsed.as_micros() as u64,
            "answered"
        );
    }
}

fn is_sound(id: &[u8]) -> bool {
    (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.iter().all(|byte| matches!(byte, 0x21..=0x7E))
}

/// Unique on this server, and most likely among all: a random start per process and a count.
fn fresh_id() -> HeaderValue {
    static START: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut id = String::with_capacity(32);
    // Writing into a String cannot fail.
    let _ = write!(id, "{:016x}-{:x}", *START, COUNT.fetch_add(1, Ordering::Relaxed));
    HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("none"))
}

fn panicked(seen: &Seen) -> Response {
    let error_id = fresh_id();
    let error_id = error_id.to_str().unwrap_or_default();
    tracing::error!(error_id, method = seen.method.as_str(), route = seen.route(), "a handler panicked");
    Refused(door::internal(error_id)).into_response()
}

/// Histograms by route, method and status: looked up here, as the recorder's own way is ten times longer.
#[derive(Default)]
struct Timings {
    by_route: RwLock<HashMap<String, ByStatus>>,
}

/// Method and status.
type ByStatus = HashMap<(&'static str, u16), Histogram>;

impl Timings {
    fn record(&self, route: &str, method: &Method, status: u16, seconds: f64) {
        let method = bounded(method);
        let by_route = self.by_route.read().unwrap_or_else(PoisonError::into_inner);
        match by_route.get(route).and_then(|known| known.get(&(method, status))) {
            Some(histogram) => histogram.record(seconds),
            None => {
                drop(by_route);
                self.register(route, method, status).record(seconds);
            }
        }
    }

    fn register(&self, route: &str, method: &'static str, status: u16) -> Histogram {
        let histogram = metrics::histogram!(
            DURATION, "route" => route.to_owned(), "method" => method, "status" => status.to_string()
        );
        let mut by_route = self.by_route.write().unwrap_or_else(PoisonError::into_inner);
        by_route.entry(route.to_owned()).or_default().insert((method, status), histogram.clone());
        histogram
    }
}

/// A client may invent methods; a label may not.
fn bounded(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_answered_as_internal_and_named_in_the_log() {
        let panics = || async {
            if true {
                panic!("in a test")
            }
        };
        let router = Router::new().route("/x", get(panics)).layer(Seam::default());
        let response = router.oneshot(Request::get("/x").body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 500);
        assert!(response.headers().contains_key(REQUEST_ID));
        let body = axum::body::to_bytes(response.into_body(), 4096).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["code"], "internal");
        assert!(problem["errorId"].is_string());
    }
}
