//! The world around the engine, in the demo's own process: a payment provider that honours idempotency keys, and a
//! receiver of webhooks that tells repeats by their id. Both count, so that the demo can compare.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use wf_ship::sinks::signature;

use crate::output::Failure;

/// Of the webhooks' signatures.
pub const SECRET: &str = "whsec_b25jZWZsb3ctZGVtby1zZWNyZXQtMDAwMQ==";

#[derive(Clone)]
pub struct Outside {
    pub url: String,
    http: reqwest::Client,
    books: Arc<Mutex<Books>>,
}

#[derive(Default)]
struct Books {
    /// By idempotency key.
    charges: BTreeMap<String, Charge>,
    /// Deliveries by webhook id.
    events: BTreeMap<String, usize>,
    forged: usize,
}

struct Charge {
    order: String,
    calls: usize,
}

/// What the provider's books say.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Charges {
    pub calls: usize,
    /// Cards that were really charged.
    pub effects: usize,
    /// Orders that were charged at least once.
    pub orders: usize,
}

impl Outside {
    pub async fn open() -> Result<Outside, Failure> {
        let books = Arc::new(Mutex::new(Books::default()));
        let router = axum::Router::new()
            .route("/charges", post(charge))
            .route("/webhook", post(receive))
            .with_state(books.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        // Ends with the demo.
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Outside { url, http: reqwest::Client::new(), books })
    }

    /// A worker's call to the provider; its answer is the charge's id.
    pub async fn charge(&self, key: &str, order: &str) -> Result<String, Failure> {
        let call = self.http.post(format!("{}/charges", self.url)).header("idempotency-key", key);
        let response = call.json(&json!({ "order": order })).send().await.map_err(Failure::work)?;
        let charge: Value = response.json().await.map_err(Failure::work)?;
        charge.get("id").and_then(Value::as_str).map(str::to_owned).ok_or_else(|| Failure::work("no charge id"))
    }

    pub fn charges(&self, of: impl Fn(&str) -> bool) -> Charges {
        let books = open(&self.books);
        let chosen: Vec<&Charge> = books.charges.values().filter(|charge| of(&charge.order)).collect();
        let mut orders: Vec<&String> = chosen.iter().map(|charge| &charge.order).collect();
        orders.sort();
        orders.dedup();
        let calls = chosen.iter().map(|charge| charge.calls).sum();
        Charges { calls, effects: chosen.len(), orders: orders.len() }
    }

    /// Events that the receiver has acted upon, with the number of their deliveries.
    pub fn events(&self) -> BTreeMap<String, usize> {
        open(&self.books).events.clone()
    }

    pub fn forged(&self) -> usize {
        open(&self.books).forged
    }
}

/// A book that was open when somebody panicked is still readable.
fn open(books: &Mutex<Books>) -> MutexGuard<'_, Books> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn charge(State(books): State<Arc<Mutex<Books>>>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    let Some(key) = text(&headers, "idempotency-key") else { return (StatusCode::BAD_REQUEST, String::new()) };
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let order = request.get("order").and_then(Value::as_str).unwrap_or_default();
    let mut books = open(&books);
    let known = books.charges.contains_key(&key);
    let charge = books.charges.entry(key.clone()).or_insert_with(|| Charge { order: order.to_owned(), calls: 0 });
    charge.calls += 1;
    let status = if known { StatusCode::OK } else { StatusCode::CREATED };
    (status, json!({ "id": format!("ch-{key}") }).to_string())
}

async fn receive(State(books): State<Arc<Mutex<Books>>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let mut books = open(&books);
    let Some(id) = text(&headers, "webhook-id").filter(|id| is_genuine(&headers, id, &body)) else {
        books.forged += 1;
        return StatusCode::UNAUTHORIZED;
    };
    // The effect is the new entry; a repeat finds it and does nothing.
    *books.events.entry(id).or_default() += 1;
    StatusCode::NO_CONTENT
}

fn is_genuine(headers: &HeaderMap, id: &str, body: &[u8]) -> bool {
    let signed = text(headers, "webhook-signature").zip(text(headers, "webhook-timestamp"));
    let Some((signature, timestamp)) = signed else { return false };
    let Ok(timestamp) = timestamp.parse() else { return false };
    signature::key(SECRET).is_ok_and(|key| signature::sign(&key, id, timestamp, body) == signature)
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}
