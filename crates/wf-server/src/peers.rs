//! Speaking to other nodes: a request is passed on as it came, marked with a header that only nodes of the store can make,
//! and its answer passed back byte for byte. It decides nothing about ownership. Next: `spread.rs`, which passes on;
//! `routes/internal.rs`, which is asked.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{HeaderValue, Method, Request, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use subtle::ConstantTimeEq;
use wf_api::nodes::{Peek, Peeked};
use wf_cluster::{Later, Peer, QueueId};
use wf_core::rows::Text;

use crate::auth::TENANT_HEADER;
use crate::keys::KEY_HEADER;

/// `PARTITION ROLE MAC`
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("wf-forwarded");
/// On the way back: the partition is not there, and nothing was done.
pub(crate) const NOT_HERE: HeaderName = HeaderName::from_static("wf-not-here");
pub(crate) const PEEK: &str = "/internal/v1/peek";

const CONNECT_TIME: Duration = Duration::from_secs(1);
/// Shorter than a server keeps a connection that is not used.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// What takes longer than the longest answer is lost.
const ANSWER_TIME: Duration = Duration::from_secs(90);
/// A node that is no owner any more still answers what it had begun.
const LEFT_TIME: Duration = Duration::from_secs(1);
const SMALL_BYTES_MAX: usize = 64 << 10;

/// What a node does with a request that another one sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The partition's part of it; for most requests that is the whole.
    Part,
    /// Keeps the record of a request that several partitions answer.
    Lead,
}

/// Another node sent the request, for this partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub partition: u16,
    pub role: Role,
}

/// What came of passing a request on.
pub(crate) enum Passed {
    Answer(Response),
    /// Nothing was done.
    NotThere(String),
    /// It may have been done.
    Lost(String),
}

/// A request as it came.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'r> {
    pub method: &'r Method,
    pub path: &'r str,
    pub headers: &'r HeaderMap,
    pub body: &'r Bytes,
}

#[derive(Clone)]
pub(crate) struct Wire {
    client: Client<HttpConnector, Full<Bytes>>,
    secret: Option<[u8; 32]>,
}

impl Wire {
    pub fn new(secret: Option<&[u8; 32]>) -> Arc<Wire> {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIME));
        connector.set_nodelay(true);
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_TIME);
        Arc::new(Wire { client: client.build(connector), secret: secret.copied() })
    }

    /// `left`: resolves when the peer does not own the partition any more.
    pub async fn pass(&self, sent: Sent<'_>, peer: &Peer, mark: Mark, left: impl Future<Output = ()>) -> Passed {
        let passed = match self.request(sent, peer, mark) {
            Err(reason) => Passed::NotThere(reason),
            Ok(request) => {
                let lost = async {
                    left.await;
                    tokio::time::sleep(LEFT_TIME).await;
                };
                tokio::select! {
                    answered = self.client.request(request) => judge(answered),
                    () = lost => Passed::Lost("it is no owner any more, and did not answer".to_owned()),
                    () = tokio::time::sleep(ANSWER_TIME) => Passed::Lost("it did not answer".to_owned()),
                }
            }
        };
        let (result, reason) = match &passed {
            Passed::Answer(_) => ("answered", ""),
            Passed::NotThere(reason) => ("not_there", reason.as_str()),
            Passed::Lost(reason) => ("lost", reason.as_str()),
        };
        metrics::counter!("wf_forwards_total", "result" => result).increment(1);
        if !reason.is_empty() {
            tracing::info!(
                peer = &*peer.name,
                address = &*peer.address,
                partition = mark.partition,
                result,
                reason,
                "forward"
            );
        }
        passed
    }

    fn request(&self, sent: Sent<'_>, peer: &Peer, mark: Mark) -> Result<Request<Full<Bytes>>, String> {
        let header = self.header(sent, mark).ok_or("this node shares its store with nobody")?;
        let url = format!("{}{}", peer.address.trim_end_matches('/'), sent.path);
        let request = Request::builder().method(sent.method).uri(url).body(Full::new(sent.body.clone()));
        let mut request = request.map_err(|error| error.to_string())?;
        *request.headers_mut() = end_to_end(sent.headers);
        for own in [HOST, CONTENT_LENGTH, EXPECT, FORWARDED] {
            request.headers_mut().remove(own);
        }
        request.headers_mut().insert(FORWARDED, header);
        Ok(request)
    }

    fn header(&self, sent: Sent<'_>, mark: Mark) -> Option<HeaderValue> {
        let mac = blake3::Hash::from_bytes(mac(self.secret.as_ref()?, sent, mark));
        HeaderValue::from_str(&format!("{} {} {}", mark.partition, mark.role.name(), mac.to_hex())).ok()
    }

    /// The mark of a request that another node sent. `Err`: it claims to be one, and is not.
    pub fn mark(&self, sent: Sent<'_>) -> Result<Option<Mark>, ()> {
        let mut lines = sent.headers.get_all(FORWARDED).iter();
        let Some(line) = lines.next() else { return Ok(None) };
        let is_single = lines.next().is_none();
        let (mark, claimed) = line.to_str().ok().filter(|_| is_single).and_then(parse).ok_or(())?;
        let secret = self.secret.as_ref().ok_or(())?;
        let is_right = bool::from(mac(secret, sent, mark).ct_eq(claimed.as_bytes()));
        if is_right { Ok(Some(mark)) } else { Err(()) }
    }

    async fn ask(&self, peer: &Peer, peek: &Peek, wait: Duration) -> Result<Vec<u16>, String> {
        let body = Bytes::from(serde_json::to_vec(peek).map_err(|error| error.to_string())?);
        let headers = HeaderMap::new();
        let sent = Sent { method: &Method::POST, path: PEEK, headers: &headers, body: &body };
        let request = self.request(sent, peer, Mark { partition: 0, role: Role::Part })?;
        let asked = async {
            let response = self.client.request(request).await.map_err(|error| cause(&error))?;
            if response.status() != StatusCode::OK {
                return Err(format!("it answered {}", response.status()));
            }
            let body = Limited::new(response.into_body(), SMALL_BYTES_MAX).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            let Peeked { partitions } = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
            Ok(partitions)
        };
        let answered = tokio::time::timeout(wait + CONNECT_TIME * 2, asked).await;
        answered.unwrap_or_else(|_| Err("it did not answer".to_owned()))
    }
}

impl wf_cluster::Peers for Wire {
    fn peek<'a>(&'a self, peer: &'a Peer, queue: &'a QueueId, wait: Duration) -> Later<'a, Result<Vec<u16>, String>> {
        let text = |text: &Text| text.to_string();
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(0);
        let peek = Peek { tenant: text(&queue.tenant), job_type: text(&queue.job_type), wait_ms };
        Box::pin(async move { self.ask(peer, &peek, wait).await })
    }

    fn is_there<'a>(&'a self, peer: &'a Peer) -> Later<'a, bool> {
        let url = format!("{}/livez", peer.address.trim_end_matches('/'));
        Box::pin(async move {
            let Ok(request) = Request::get(url).body(Full::default()) else { return false };
            let answered = tokio::time::timeout(CONNECT_TIME, self.client.request(request)).await;
            matches!(answered, Ok(Ok(response)) if response.status() == StatusCode::OK)
        })
    }
}

fn judge(answered: Result<axum::http::Response<hyper::body::Incoming>, hyper_util::client::legacy::Error>) -> Passed {
    match answered {
        Ok(response) if response.headers().contains_key(NOT_HERE) => Passed::NotThere("it is not there".to_owned()),
        Ok(response) => {
            let (mut head, body) = response.into_parts();
            head.headers = end_to_end(&head.headers);
            let mut response = Response::new(Body::new(body));
            (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
            Passed::Answer(response)
        }
        Err(error) if error.is_connect() => Passed::NotThere(cause(&error)),
        Err(error) => Passed::Lost(cause(&error)),
    }
}

/// Without what belongs to one connection.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let nominated: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect();
    let mut kept = headers.clone();
    for name in [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE].into_iter().chain(nominated) {
        kept.remove(name);
    }
    for name in ["keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"] {
        kept.remove(name);
    }
    kept
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Part => "part",
            Role::Lead => "lead",
        }
    }
}

fn parse(text: &str) -> Option<(Mark, blake3::Hash)> {
    let mut words = text.split(' ');
    let partition = words.next()?.parse().ok()?;
    let role = match words.next()? {
        "part" => Role::Part,
        "lead" => Role::Lead,
        _ => return None,
    };
    let mac = blake3::Hash::from_hex(words.next()?).ok()?;
    words.next().is_none().then_some((Mark { partition, role }, mac))
}

/// Over all that decides what is done: a mark that was seen on the wire marks no other request.
fn mac(secret: &[u8; 32], sent: Sent<'_>, mark: Mark) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(secret);
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(b"forward/1");
    part(&mark.partition.to_le_bytes());
    part(mark.role.name().as_bytes());
    part(sent.method.as_str().as_bytes());
    part(sent.path.as_bytes());
    for name in [TENANT_HEADER, KEY_HEADER, "authorization"] {
        part(sent.headers.get(name).map_or(b"", HeaderValue::as_bytes));
    }
    part(sent.body);
    *hasher.finalize().as_bytes()
}

/// The innermost cause: the outermost says only that sending failed.
fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(inner) = innermost.source() {
        innermost = inner;
    }
    innermost.to_string()
}
