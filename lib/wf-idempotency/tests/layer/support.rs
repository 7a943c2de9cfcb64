//! A service behind the layer, which counts how often it is entered; and its clients. Next: `situations.rs`.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt};
use wf_idempotency::MacKey;
use wf_idempotency::layer::{AnswerBody, IdempotencyLayer, Route};
use wf_idempotency::store::{Claim, Claimed, Ended, MemoryStore, Owner, Slot, Store, StoreError};

pub type Body = Full<Bytes>;

/// A store that can fail.
#[derive(Default)]
pub struct Shaky {
    inner: MemoryStore,
    pub is_down: AtomicBool,
}

impl Shaky {
    fn up(&self) -> Result<(), StoreError> {
        match self.is_down.load(Ordering::Relaxed) {
            true => Err(StoreError("down".to_owned())),
            false => Ok(()),
        }
    }
}

impl Store for Shaky {
    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        self.up()?;
        self.inner.claim(claim).await
    }

    async fn extend(&self, slot: Slot, owner: Owner, lease_ms: i64) -> Result<bool, StoreError> {
        self.up()?;
        self.inner.extend(slot, owner, lease_ms).await
    }

    async fn end(&self, slot: Slot, owner: Owner, ended: Ended) -> Result<bool, StoreError> {
        self.up()?;
        self.inner.end(slot, owner, ended).await
    }

    async fn sweep(&self, kept_ms: i64, rows_max: usize) -> Result<usize, StoreError> {
        self.inner.sweep(kept_ms, rows_max).await
    }
}

#[derive(Clone, Default)]
pub struct Entered(Arc<AtomicUsize>);

impl Entered {
    pub fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[derive(Clone, Default)]
pub struct Shop {
    pub store: Arc<Shaky>,
    pub entered: Entered,
}

pub type Layered = BoxCloneSyncService<Request<Body>, Response<AnswerBody<Body>>, Infallible>;

impl Shop {
    /// The tenant is what the header `authorization` says: here it counts as verified.
    pub fn behind<F, A>(&self, route: Route, handler: F) -> Layered
    where
        F: Fn(Request<Body>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Response<Body>> + Send + 'static,
    {
        let tenant = |parts: &http::request::Parts| Some(parts.headers.get("authorization")?.to_str().ok()?.into());
        let secrets = vec![MacKey::new(1, [7; 32])];
        let layer = IdempotencyLayer::new(self.store.clone(), secrets, tenant, route.for_writes());
        let entered = self.entered.clone();
        BoxCloneSyncService::new(layer.layer(tower::service_fn(move |request| {
            entered.0.fetch_add(1, Ordering::SeqCst);
            let answer = handler(request);
            async move { Ok(answer.await) }
        })))
    }
}

pub fn post(key: &str, body: &str) -> Request<Body> {
    asked("POST", "/payments", key, body)
}

pub fn asked(method: &str, path: &str, key: &str, body: &str) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header("authorization", "ada");
    request.header("idempotency-key", key).body(Full::from(body.to_owned())).unwrap()
}

/// An answer read to its end.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    pub fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn is_refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.text().contains(&format!("\"code\":\"{code}\""))), (status, true), "{self:?}");
        assert_eq!((self.header("content-type"), self.is_replay()), (Some("application/problem+json"), false));
    }
}

pub async fn ask(service: &Layered, request: Request<Body>) -> Answer {
    let (parts, body) = service.clone().oneshot(request).await.unwrap().into_parts();
    let headers = parts.headers.iter();
    let headers =
        headers.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    let headers = headers.collect();
    Answer { status: parts.status.as_u16(), headers, body: body.collect().await.unwrap().to_bytes().to_vec() }
}

pub fn created() -> Response<Body> {
    Response::builder().status(201).header("location", "/payments/1").body(Full::from("{\"id\": 1}")).unwrap()
}
