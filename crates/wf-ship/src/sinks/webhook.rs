//! Events by HTTP POST, signed as Standard Webhooks says. Only a 2xx answer means that the receiver has it.
//! Follows no redirect and keeps no state: the attempts are the shipper's. Next: `signature.rs`.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::timeout;

use crate::config::SinkConfig;
use crate::shipper::SHIP_MAX;
use crate::sink::{Later, ShipResult, Shipment, Sink, SinkError, SinkInfo};
use crate::sinks::signature;

/// For one request from the connection to the end of the answer; a receiver that is slower gets it again.
pub const TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Requests at a time: a receiver is somebody's small server.
const REQUESTS_MAX: usize = 16;
/// Of an answer's body; read so that the connection can be used again.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Of it, what an error shows.
const ANSWER_SHOWN_CHARS: usize = 200;

const _: () = assert!(TIMEOUT.as_millis() < SHIP_MAX.as_millis());

type Http = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

pub struct WebhookSink {
    name: String,
    url: Uri,
    key: Option<Vec<u8>>,
    http: Http,
}

/// An absolute HTTP address. The error is fit for a list of problems.
pub fn address(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("must begin with http:// or https://".to_owned());
    }
    match uri.authority() {
        // They would go out in clear text, and stand in logs.
        Some(authority) if authority.as_str().contains('@') => Err("no user and password in it".to_owned()),
        Some(_) => Ok(uri),
        None => Err("names no host".to_owned()),
    }
}

impl WebhookSink {
    pub fn new(config: &SinkConfig) -> Result<WebhookSink, SinkError> {
        let url = address(&config.url).map_err(SinkError::Config)?;
        let key = config.secret.as_ref().map(|secret| signature::key(&secret.0)).transpose();
        let key = key.map_err(SinkError::Config)?;
        if key.is_none() {
            tracing::warn!(sink = config.name, "no secret: the receiver cannot tell whose events they are");
        }
        let http = client(url.scheme_str() == Some("https"))?;
        Ok(WebhookSink { name: config.name.clone(), url, key, http })
    }

    async fn send(&self, shipment: &Shipment) -> ShipResult {
        let Some(request) = self.request(shipment, seconds_since_1970(SystemTime::now())) else {
            return ShipResult::Refused { error: "its id cannot stand in a header".to_owned() };
        };
        let answer = async {
            let (parts, body) = self.http.request(request).await?.into_parts();
            // What comes behind the status decides nothing: also a body that breaks off leaves the answer standing.
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map(|body| body.to_bytes());
            Ok::<_, hyper_util::client::legacy::Error>(Response::from_parts(parts, body.unwrap_or_default()))
        };
        match timeout(TIMEOUT, answer).await {
            Ok(Ok(answer)) => judge(&answer),
            Ok(Err(error)) => retry(chain(&error)),
            Err(_) => retry(format!("no answer within {TIMEOUT:?}")),
        }
    }

    /// `None`: the id has characters that no header takes.
    fn request(&self, shipment: &Shipment, timestamp: i64) -> Option<Request<Full<Bytes>>> {
        let id = &*shipment.event_id;
        let mut request = Request::post(self.url.clone()).body(Full::new(shipment.envelope.clone())).ok()?;
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/cloudevents+json"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("onceflow/", env!("CARGO_PKG_VERSION"))));
        headers.insert("webhook-id", HeaderValue::from_str(id).ok()?);
        headers.insert("webhook-timestamp", HeaderValue::from(timestamp));
        headers.insert("idempotency-key", HeaderValue::from_str(&quoted(id)).ok()?);
        if let Some(key) = &self.key {
            let signature = signature::sign(key, id, timestamp, &shipment.envelope);
            headers.insert("webhook-signature", HeaderValue::from_str(&signature).ok()?);
        }
        Some(request)
    }
}

impl Sink for WebhookSink {
    fn name(&self) -> &str {
        &self.name
    }

    /// A POST is the only question that a receiver understands.
    fn check(&self) -> Later<'_, Result<SinkInfo, SinkError>> {
        Box::pin(std::future::ready(Ok(SinkInfo { window_ms: None })))
    }

    fn ship<'a>(&'a self, batch: &'a [Shipment]) -> Later<'a, Vec<ShipResult>> {
        Box::pin(join_all(batch.iter().map(|shipment| self.send(shipment))))
    }

    fn batch_max(&self) -> usize {
        REQUESTS_MAX
    }
}

/// The provider is named, not found: another crate's choice of features must not change or break ours.
fn client(is_https: bool) -> Result<Http, SinkError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = HttpsConnectorBuilder::new();
    let builder = if is_https {
        builder.with_provider_and_native_roots(provider).map_err(|error| SinkError::Config(error.to_string()))?
    } else {
        // A machine without certificates can still speak plain HTTP.
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| SinkError::Config(error.to_string()))?;
        builder.with_tls_config(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
    };
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let connector = builder.https_or_http().enable_http1().wrap_connector(tcp);
    Ok(Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector))
}

fn judge(answer: &Response<Bytes>) -> ShipResult {
    let status = answer.status();
    if status.is_success() {
        return ShipResult::Shipped { duplicate: false };
    }
    let body = String::from_utf8_lossy(answer.body());
    let shown: String = body.trim().chars().take(ANSWER_SHOWN_CHARS).collect();
    let error = format!("answered {status} {shown}").trim_end().to_owned();
    match status {
        StatusCode::GONE => ShipResult::Disabled { error },
        _ => ShipResult::Retry { error, retry_after_ms: retry_after_ms(answer.headers(), SystemTime::now()) },
    }
}

/// `Retry-After` in seconds or as a date; whatever else it holds is no pause.
fn retry_after_ms(headers: &HeaderMap, now: SystemTime) -> Option<i64> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(i64::from(seconds) * 1_000);
    }
    let until = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some((until.as_second() - seconds_since_1970(now)).max(0) * 1_000)
}

/// The receiver compares it with its own clock: the real one, also where the engine runs on a test clock.
fn seconds_since_1970(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// An RFC 8941 string.
fn quoted(id: &str) -> String {
    format!("\"{}\"", id.replace('\\', "\\\\").replace('"', "\\\""))
}

fn retry(error: String) -> ShipResult {
    ShipResult::Retry { error, retry_after_ms: None }
}

/// The cause is in the sources; the error itself says only *client error*.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L5.5, webhooks out 170.
    #[test]
    fn answers_are_judged() {
        let judge = |status: u16, retry_after: Option<&str>| {
            let mut answer = Response::builder().status(status);
            if let Some(pause) = retry_after {
                answer = answer.header(header::RETRY_AFTER, pause);
            }
            judge(&answer.body(Bytes::from_static(b"why")).unwrap())
        };
        let later = |error: &str, retry_after_ms| ShipResult::Retry { error: error.to_owned(), retry_after_ms };
        assert_eq!(judge(200, None), ShipResult::Shipped { duplicate: false });
        assert_eq!(judge(204, None), ShipResult::Shipped { duplicate: false });
        assert_eq!(judge(302, None), later("answered 302 Found why", None));
        assert_eq!(judge(400, None), later("answered 400 Bad Request why", None));
        assert_eq!(judge(429, Some("7")), later("answered 429 Too Many Requests why", Some(7_000)));
        assert_eq!(judge(503, Some("soon")), later("answered 503 Service Unavailable why", None));
        assert_eq!(judge(410, Some("7")), ShipResult::Disabled { error: "answered 410 Gone why".to_owned() });
    }

    #[test]
    fn a_date_to_come_back_at_is_a_pause() {
        let now = UNIX_EPOCH + Duration::from_secs(1_445_412_450);
        for (text, pause) in [("Wed, 21 Oct 2015 07:28:00 GMT", 30_000), ("Wed, 21 Oct 2015 07:00:00 GMT", 0)] {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_str(text).unwrap())]);
            assert_eq!(retry_after_ms(&headers, now), Some(pause), "{text}");
        }
    }
}
