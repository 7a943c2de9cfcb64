//! The other sides: a web server that records requests, a broker of one's own, a buffer for lines.

use std::collections::VecDeque;
use std::io::{Error, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use e2e::nats::Nats;
use wf_ship::conformance::{Arrival, Receiver};
use wf_ship::{Later, Shipment};

/// Takes every POST. `script`: answers instead, in turn; the request counts as arrived all the same.
#[derive(Clone, Default)]
pub struct Web {
    pub requests: Arc<Mutex<Vec<Posted>>>,
    pub script: Arc<Mutex<VecDeque<Response>>>,
    is_down: Arc<AtomicBool>,
}

#[derive(Clone, Debug)]
pub struct Posted {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Posted {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl Web {
    /// Returns the address too; it lives as long as the test's runtime.
    pub async fn start() -> (Web, String) {
        let web = Web::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?a=b", listener.local_addr().unwrap());
        let router = Router::new().fallback(take).with_state(web.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (web, url)
    }

    pub fn answer(&self, response: impl IntoResponse) {
        self.script.lock().unwrap().push_back(response.into_response());
    }

    pub fn posted(&self) -> Vec<Posted> {
        self.requests.lock().unwrap().clone()
    }
}

async fn take(State(web): State<Web>, request: Request) -> Response {
    if web.is_down.load(Ordering::SeqCst) {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    assert_eq!(request.method(), "POST");
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let path = parts.uri.to_string();
    web.requests.lock().unwrap().push(Posted { path, headers: parts.headers, body });
    web.script.lock().unwrap().pop_front().unwrap_or_else(|| StatusCode::NO_CONTENT.into_response())
}

impl Receiver for Web {
    fn arrivals(&self) -> Later<'_, Vec<Arrival>> {
        let arrival = |it: Posted| Arrival { event_id: it.header("webhook-id").to_owned(), envelope: it.body.clone() };
        Box::pin(async move { self.posted().into_iter().map(arrival).collect() })
    }

    fn remembers(&self) -> bool {
        false
    }

    fn fail(&self) -> Later<'_, ()> {
        Box::pin(async { self.is_down.store(true, Ordering::SeqCst) })
    }

    fn mend(&self) -> Later<'_, ()> {
        Box::pin(async { self.is_down.store(false, Ordering::SeqCst) })
    }

    /// An id that would end the header.
    fn spoil(&self, shipment: Shipment) -> Option<Shipment> {
        Some(Shipment { event_id: "ev-1-1\r\nx: y".into(), ..shipment })
    }
}

/// A broker and its stream `EVENTS`, read by a client of its own.
pub struct Broker {
    pub nats: Mutex<Nats>,
    pub url: String,
}

impl Broker {
    pub fn start() -> Broker {
        let nats = Nats::start();
        Broker { url: nats.url(), nats: Mutex::new(nats) }
    }

    pub async fn jetstream(&self) -> async_nats::jetstream::Context {
        async_nats::jetstream::new(async_nats::connect(&self.url).await.unwrap())
    }

    pub async fn messages(&self) -> Vec<async_nats::jetstream::message::StreamMessage> {
        let stream = self.jetstream().await.get_stream("EVENTS").await.unwrap();
        let state = &stream.cached_info().state;
        let mut messages = Vec::new();
        for sequence in state.first_sequence..=state.last_sequence {
            messages.push(stream.get_raw_message(sequence).await.unwrap());
        }
        messages
    }
}

impl Receiver for Broker {
    fn arrivals(&self) -> Later<'_, Vec<Arrival>> {
        Box::pin(async move {
            let messages = self.messages().await.into_iter();
            let id = |headers: &async_nats::HeaderMap| headers.get("Nats-Msg-Id").map(ToString::to_string);
            messages.map(|it| Arrival { event_id: id(&it.headers).unwrap_or_default(), envelope: it.payload }).collect()
        })
    }

    fn remembers(&self) -> bool {
        true
    }

    fn fail(&self) -> Later<'_, ()> {
        Box::pin(async { self.nats.lock().unwrap().kill() })
    }

    fn mend(&self) -> Later<'_, ()> {
        Box::pin(async { self.nats.lock().unwrap().restart() })
    }

    /// The server takes 1 MiB.
    fn spoil(&self, shipment: Shipment) -> Option<Shipment> {
        Some(Shipment { envelope: vec![b' '; 2 << 20].into(), ..shipment })
    }
}

/// What a reader of the pipe sees.
#[derive(Clone, Default)]
pub struct Pipe {
    bytes: Arc<Mutex<Vec<u8>>>,
    is_closed: Arc<AtomicBool>,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(Error::other("closed"));
        }
        self.bytes.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Receiver for Pipe {
    fn arrivals(&self) -> Later<'_, Vec<Arrival>> {
        let bytes = self.bytes.lock().unwrap().clone();
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap());
        let arrival = |line: &[u8]| {
            let event: serde_json::Value = serde_json::from_slice(line).unwrap();
            Arrival { event_id: event["id"].as_str().unwrap().to_owned(), envelope: Bytes::copy_from_slice(line) }
        };
        let arrivals = lines.map(arrival).collect();
        Box::pin(std::future::ready(arrivals))
    }

    fn remembers(&self) -> bool {
        false
    }

    fn fail(&self) -> Later<'_, ()> {
        Box::pin(async { self.is_closed.store(true, Ordering::SeqCst) })
    }

    fn mend(&self) -> Later<'_, ()> {
        Box::pin(async { self.is_closed.store(false, Ordering::SeqCst) })
    }

    fn spoil(&self, _: Shipment) -> Option<Shipment> {
        None
    }
}
