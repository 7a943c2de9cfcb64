//! One logical operation: one idempotency key, made before the first attempt and kept over all of them.
//! It knows which answers are worth a repeat, not what they mean. The calls stand in `routes.rs`.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde::de::DeserializeOwned;

use crate::error::{ClientError, problem};

/// Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Arc<Url>,
    retry: Retry,
}

/// Who the client says that it is. With authentication the server takes the tenant from the token.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    pub tenant: Option<String>,
    pub api_key: Option<String>,
}

/// How long an operation is repeated. Keep `elapsed_max` below the server's key retention (24 h by default): past it
/// a repeat would be a new request.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    pub attempts_max: u32,
    pub elapsed_max: Duration,
    /// Doubled after each attempt, up to `pause_max`; a server's `Retry-After` wins.
    pub pause: Duration,
    pub pause_max: Duration,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            attempts_max: 12,
            elapsed_max: Duration::from_secs(60),
            pause: Duration::from_millis(50),
            pause_max: Duration::from_secs(5),
        }
    }
}

/// An operation that was not sent yet: `.await` it, or `.send()` it to learn whether the answer was a replay.
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<T> {
    client: Client,
    request: Request,
    answer: PhantomData<fn() -> T>,
}

pub(crate) struct Request {
    pub method: Method,
    pub url: Url,
    pub body: Option<(&'static str, Bytes)>,
    /// `None` where a repeat is harmless by itself: reads, and steps that the job's own state makes repeatable.
    pub key: Option<String>,
    /// Nothing makes a repeat harmless: send it once.
    pub once: bool,
    /// Time that the server may hold the answer back.
    pub held: Duration,
}

/// An answer with what surrounds it.
#[derive(Clone, Debug)]
pub struct Reply<T> {
    pub value: T,
    pub status: u16,
    /// The stored answer of an earlier request with this key.
    pub replayed: bool,
}

impl Client {
    pub fn new(server: &str) -> Result<Client, ClientError> {
        Client::with(server, &Credentials::default())
    }

    pub fn with(server: &str, credentials: &Credentials) -> Result<Client, ClientError> {
        let wrong = |reason: String| ClientError::Address { url: server.to_owned(), reason };
        let base = Url::parse(server).map_err(|error| wrong(error.to_string()))?;
        if base.cannot_be_a_base() || !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("http://HOST:PORT is expected".to_owned()));
        }
        let headers = headers(credentials).map_err(wrong)?;
        let http = reqwest::Client::builder().default_headers(headers).connect_timeout(Duration::from_secs(5));
        let http = http.build().map_err(|error| wrong(cause(&error)))?;
        Ok(Client { http, base: Arc::new(base), retry: Retry::default() })
    }

    pub fn retry(mut self, retry: Retry) -> Client {
        self.retry = retry;
        self
    }

    pub(crate) fn url(&self, path: &[&str], query: &[(&str, String)]) -> Url {
        let mut url = Url::clone(&self.base);
        // Cannot fail: `with` refuses addresses that are no base.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    pub(crate) fn call<T>(&self, request: Request) -> Call<T> {
        Call { client: self.clone(), request, answer: PhantomData }
    }

    /// An answer that comes piece by piece, for as long as it takes.
    pub(crate) async fn stream(&self, method: Method, url: Url) -> Result<reqwest::Response, reqwest::Error> {
        self.http.request(method, url).send().await
    }

    async fn attempt(&self, request: &Request) -> Result<reqwest::Response, reqwest::Error> {
        let timeout = Duration::from_secs(30) + request.held;
        let mut builder = self.http.request(request.method.clone(), request.url.clone()).timeout(timeout);
        if let Some(key) = &request.key {
            builder = builder.header("idempotency-key", key);
        }
        if let Some((content_type, body)) = &request.body {
            builder = builder.header("content-type", *content_type).body(body.clone());
        }
        builder.send().await
    }
}

fn headers(credentials: &Credentials) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    if let Some(tenant) = &credentials.tenant {
        let value = HeaderValue::from_str(tenant).map_err(|_| "the tenant has characters that no header may have")?;
        headers.insert("wf-tenant", value);
    }
    if let Some(token) = &credentials.api_key {
        let bearer = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut value = bearer.map_err(|_| "the API key has characters that no header may have")?;
        value.set_sensitive(true);
        headers.insert("authorization", value);
    }
    Ok(headers)
}

impl<T: DeserializeOwned> Call<T> {
    /// Gives the operation its caller's key: the same intent has the same key, also in the caller's next process.
    /// Without this call it has a fresh one.
    pub fn key(mut self, key: impl Into<String>) -> Call<T> {
        self.request.key = Some(key.into());
        self
    }

    /// Without a key, and therefore sent once only: for requests that the server recognises by something else (a
    /// uniqueness key, a message id), whose caller looks before it repeats.
    pub fn unkeyed(mut self) -> Call<T> {
        (self.request.key, self.request.once) = (None, true);
        self
    }

    pub async fn send(self) -> Result<Reply<T>, ClientError> {
        let reply = self.raw().await?;
        let value = serde_json::from_slice(&reply.value).map_err(|error| ClientError::Malformed(error.to_string()))?;
        Ok(Reply { value, status: reply.status, replayed: reply.replayed })
    }
}

impl<T> Call<T> {
    /// The answer's bytes, as the server stored them.
    pub async fn raw(self) -> Result<Reply<Bytes>, ClientError> {
        let (client, request) = (&self.client, &self.request);
        let started = Instant::now();
        let mut pause = client.retry.pause;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let (failure, server_pause) = match exchange(client, request).await {
                Exchange::Answer(reply) => return Ok(reply),
                Exchange::Final(error) => return Err(error),
                Exchange::Again { failure, after } => (failure, after),
            };
            let wait = server_pause.unwrap_or_else(|| jittered(pause));
            let spent = request.once || started.elapsed() + wait >= client.retry.elapsed_max;
            if spent || attempts >= client.retry.attempts_max {
                return Err(failure.into_error(&request.url, attempts));
            }
            tracing::debug!(url = %request.url, attempts, ?wait, "repeating with the same key");
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(client.retry.pause_max);
        }
    }
}

enum Exchange {
    Answer(Reply<Bytes>),
    Final(ClientError),
    Again { failure: Failure, after: Option<Duration> },
}

enum Failure {
    Transport(String),
    Refused(ClientError),
}

impl Failure {
    fn into_error(self, url: &Url, attempts: u32) -> ClientError {
        match self {
            Failure::Transport(reason) => {
                let url = url.origin().ascii_serialization();
                ClientError::NoAnswer { url, attempts, reason }
            }
            Failure::Refused(error) => error,
        }
    }
}

async fn exchange(client: &Client, request: &Request) -> Exchange {
    let response = match client.attempt(request).await {
        Ok(response) => response,
        Err(error) => return lost(&error),
    };
    let (status, after) = (response.status(), retry_after(response.headers()));
    let replayed = response.headers().get("idempotent-replayed").is_some_and(|value| value == "true");
    let body = match response.bytes().await {
        Ok(body) => body,
        Err(error) => return lost(&error),
    };
    if status.is_success() {
        return Exchange::Answer(Reply { value: body, status: status.as_u16(), replayed });
    }
    let problem = problem(status.as_u16(), &body);
    let again = is_worth_a_repeat(status, &problem.code);
    let error = ClientError::Refused(Box::new(problem));
    if again { Exchange::Again { failure: Failure::Refused(error), after } } else { Exchange::Final(error) }
}

fn lost(error: &reqwest::Error) -> Exchange {
    // It was never sent, and never can be: a key or a tenant with a line's end, say.
    if error.is_builder() {
        return Exchange::Final(ClientError::Unsendable { reason: cause(error) });
    }
    Exchange::Again { failure: Failure::Transport(cause(error)), after: None }
}

/// The same request with the same key may succeed later. Everything else stays as it is, however often it is sent.
fn is_worth_a_repeat(status: StatusCode, code: &str) -> bool {
    code == "idempotency-in-progress" || matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504)
}

/// Whole seconds; the form with a date is not used by our server.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get("retry-after")?.to_str().ok()?.trim().parse::<u64>().ok()?;
    Some(Duration::from_secs(seconds.min(3600)))
}

/// Between half the pause and all of it, so that clients that failed together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let random = uuid::Uuid::new_v4().as_bytes()[0];
    pause / 2 + pause * u32::from(random) / 512
}

/// The innermost cause: the outermost says `error sending request`, which helps nobody.
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(inner) = innermost.source() {
        innermost = inner;
    }
    innermost.to_string()
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for Call<T> {
    type Output = Result<T, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { self.send().await.map(|reply| reply.value) })
    }
}
