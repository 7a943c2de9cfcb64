//! The path of a request with a key: read it whole, claim its slot, run it where nobody's leaving ends it, keep what it
//! answered. Next: `answer.rs`, which turns answers into records and back.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use http_body::Body;
use tower_service::Service;

use super::answer;
use super::body::{AnswerBody, Collected, collect};
use super::problem::Problem;
use super::route::{Bodies, Route};
use super::{Attempt, Shared};
use crate::driver::{Begun, Run};
use crate::fingerprint::{BodyKind, fingerprint_as};
use crate::key::parse_header;
use crate::store::{Ended, Slot, Store};
use crate::{Fingerprint, MacKey};

pub struct Keyed<S> {
    shared: Arc<Shared<S>>,
    route: Arc<Route>,
    slot: Slot,
}

impl<S: Store + 'static> Keyed<S> {
    /// `None`: it passes through.
    pub fn of(shared: &Arc<Shared<S>>, parts: &Parts) -> Result<Option<Keyed<S>>, Problem> {
        if parts.method.is_safe() {
            return Ok(None);
        }
        let Some(route) = (shared.route_of)(parts) else { return Ok(None) };
        let lines = parts.headers.get_all("idempotency-key").iter().map(HeaderValue::as_bytes);
        match parse_header(lines, route.syntax).map_err(|error| Problem::malformed(&error))? {
            None if route.required => Err(Problem::missing(&route)),
            None => Ok(None),
            Some(key) => {
                let tenant = (shared.tenant_of)(parts).ok_or_else(Problem::nobody)?;
                Ok(Some(Keyed { shared: shared.clone(), route, slot: Slot { tenant, key } }))
            }
        }
    }

    pub async fn handle<I, B, R>(self, inner: I, parts: Parts, body: B) -> Result<Response<AnswerBody<R>>, I::Error>
    where
        I: Service<Request<B>, Response = Response<R>> + Send + 'static,
        I::Future: Send,
        I::Error: Send,
        B: Body<Data = Bytes> + From<Bytes> + Send + 'static,
        R: Body<Data = Bytes> + Send + 'static,
    {
        let bytes = match collect(body, self.route.request_bytes_max).await {
            Collected::Whole(bytes) => bytes,
            Collected::More(..) => return Ok(Problem::too_large(self.route.request_bytes_max).answer()),
            Collected::Broken => return Ok(Problem::broken_off().answer()),
        };
        let fingerprints = self.shared.fingerprints(|secret| fingerprint_of(secret, &self.route, &parts, &bytes));
        let (policy, timing) = (self.route.policy, self.route.timing);
        let begun = self.shared.driver.begin(self.slot, fingerprints, policy, timing).await;
        let run = match begun {
            Err(_) => return Ok(Problem::no_store().answer()),
            Ok(Begun::Told(claimed)) => return Ok(answer::told(claimed, &self.route)),
            Ok(Begun::Run(run)) => run,
        };
        // A client that goes away does not end what it has begun.
        let running = tokio::spawn(carry_out(run, inner, self.route, parts, bytes));
        running.await.unwrap_or_else(|_| Ok(Problem::failed().answer()))
    }
}

fn fingerprint_of(secret: &MacKey, route: &Route, parts: &Parts, body: &[u8]) -> Fingerprint {
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = match route.bodies {
        Bodies::Raw => BodyKind::Raw,
        Bodies::Canonical => BodyKind::from_content_type(content_type),
    };
    let place = parts.uri.path_and_query().map_or("", |place| place.as_str());
    fingerprint_as(secret, parts.method.as_str(), place, content_type, &kind, body)
}

async fn carry_out<S, I, B, R>(
    run: Run<S>,
    mut inner: I,
    route: Arc<Route>,
    mut parts: Parts,
    bytes: Bytes,
) -> Result<Response<AnswerBody<R>>, I::Error>
where
    S: Store,
    I: Service<Request<B>, Response = Response<R>>,
    B: From<Bytes>,
    R: Body<Data = Bytes>,
{
    let Slot { tenant, key } = run.slot().clone();
    parts.extensions.insert(Attempt { number: run.attempt, resume: run.resume, tenant, key });
    let called = unharmed(async move { inner.call(Request::from_parts(parts, B::from(bytes))).await });
    match called.await {
        Some(Ok(response)) => Ok(answer::kept(run, response, &route).await),
        // Neither says how far it came.
        failed => {
            let _ = run.end(Ended::Unknown).await;
            failed.map_or_else(|| Ok(Problem::failed().answer()), |failed| failed.map(answer::passed))
        }
    }
}

/// `None`: it panicked.
async fn unharmed<F: Future>(future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}
