//! A `tower` layer: requests with an `Idempotency-Key` happen once, and their repeats get the first answer. It stands behind
//! whatever authenticates, so that a repeat of somebody who may no longer is refused before it is looked up.
//! Requests without a key, and routes that want none, pass through untouched.
//! Next: `layer/route.rs` (what a route may choose), `layer/keyed.rs` (the path of a keyed request).

mod answer;
mod body;
mod keyed;
mod problem;
mod route;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use crate::driver::Driver;
use crate::store::Store;
use crate::{Fingerprint, MacKey};

pub use body::AnswerBody;
pub use route::{Bodies, Route};

/// Which key a request is held under, for its handler: found among the request's extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// An earlier attempt may have come some way: find out before doing it again.
    pub resume: bool,
    pub tenant: Arc<str>,
    pub key: crate::Key,
}

/// What a handler knows about its own effect: among the response's extensions, or as the header `Idempotency-Outcome`
/// (`executed`, `not-executed`, `unknown`), which does not leave the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Executed,
    /// The key is free again, also for a corrected request.
    NotExecuted,
    /// Repeats are refused, or the handler is entered again, as the route's policy says.
    Unknown,
}

type TenantOf = dyn Fn(&Parts) -> Option<Arc<str>> + Send + Sync;
type RouteOf = dyn Fn(&Parts) -> Option<Arc<Route>> + Send + Sync;

struct Shared<S> {
    driver: Driver<S>,
    /// The current one first.
    secrets: Vec<MacKey>,
    tenant_of: Box<TenantOf>,
    route_of: Box<RouteOf>,
}

pub struct IdempotencyLayer<S>(Arc<Shared<S>>);

impl<S> Clone for IdempotencyLayer<S> {
    fn clone(&self) -> IdempotencyLayer<S> {
        IdempotencyLayer(self.0.clone())
    }
}

impl<S: Store + 'static> IdempotencyLayer<S> {
    /// `secrets`: under which fingerprints are made, the current one first; kept with the records. `tenant_of`: whose keys
    /// these are, from a verified identity; where there is none the request is refused. `route_of`: `None` for what passes
    /// through; see [`Route::for_writes`].
    pub fn new(
        store: Arc<S>,
        secrets: Vec<MacKey>,
        tenant_of: impl Fn(&Parts) -> Option<Arc<str>> + Send + Sync + 'static,
        route_of: impl Fn(&Parts) -> Option<Arc<Route>> + Send + Sync + 'static,
    ) -> IdempotencyLayer<S> {
        let (tenant_of, route_of) = (Box::new(tenant_of), Box::new(route_of));
        IdempotencyLayer(Arc::new(Shared { driver: Driver::new(store), secrets, tenant_of, route_of }))
    }
}

impl<S> Shared<S> {
    fn fingerprints(&self, make: impl Fn(&MacKey) -> Fingerprint) -> Vec<(u32, Fingerprint)> {
        self.secrets.iter().map(|secret| (secret.id(), make(secret))).collect()
    }
}

impl<S, I> Layer<I> for IdempotencyLayer<S> {
    type Service = Idempotency<S, I>;

    fn layer(&self, inner: I) -> Idempotency<S, I> {
        Idempotency { shared: self.0.clone(), inner }
    }
}

pub struct Idempotency<S, I> {
    shared: Arc<Shared<S>>,
    inner: I,
}

impl<S, I: Clone> Clone for Idempotency<S, I> {
    fn clone(&self) -> Idempotency<S, I> {
        Idempotency { shared: self.shared.clone(), inner: self.inner.clone() }
    }
}

impl<S, I, B, R> Service<Request<B>> for Idempotency<S, I>
where
    S: Store + 'static,
    I: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    I::Future: Send,
    I::Error: Send,
    B: Body<Data = Bytes> + From<Bytes> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<AnswerBody<R>>;
    type Error = I::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, I::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that is ready is this one, not its clone.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        let (parts, body) = request.into_parts();
        match keyed::Keyed::of(&self.shared, &parts) {
            Ok(Some(keyed)) => Box::pin(keyed.handle(inner, parts, body)),
            Ok(None) => {
                let answer = inner.call(Request::from_parts(parts, body));
                Box::pin(async move { Ok(answer::passed(answer.await?)) })
            }
            Err(refusal) => Box::pin(std::future::ready(Ok(refusal.answer()))),
        }
    }
}
