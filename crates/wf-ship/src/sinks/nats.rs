//! NATS JetStream. Shipped means: the stream acknowledged it; that it had the id before counts as success.
//! The client reconnects by itself; until it has, nothing is sent. Knows no attempts. Next: `conformance.rs`.

use std::error::Error as _;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::stream::{Config as StreamConfig, Info};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{ConnectOptions, HeaderMap, ServerAddr};
use futures_util::future::join_all;
use tokio::sync::Mutex;

use crate::config::SinkConfig;
use crate::sink::{Later, ShipResult, Shipment, Sink, SinkError, SinkInfo};

/// For a connection, and for each question to the broker.
const ANSWER_MAX: Duration = Duration::from_secs(5);
const ACK_MAX: Duration = Duration::from_secs(10);
const RECONNECT_MAX: Duration = Duration::from_secs(2);

pub struct NatsSink {
    name: String,
    servers: Vec<ServerAddr>,
    token: Option<String>,
    prefix: String,
    stream: Option<String>,
    /// Of a stream that is made here.
    window: Duration,
    /// The first connection; the client keeps it up.
    context: Mutex<Option<Context>>,
}

/// Addresses, separated by commas. The error is fit for a list of problems.
pub fn servers(url: &str) -> Result<Vec<ServerAddr>, String> {
    let parse = |url: &str| match url.split_once("://") {
        Some(("nats" | "tls", _)) => url.parse().map_err(|error| format!("{error}")),
        _ => Err("must begin with nats:// or tls://".to_owned()),
    };
    url.split(',').map(|url| parse(url.trim())).collect()
}

/// `{prefix}.{tenant}.{type}`. A type's dots part words; a tenant is one word, whatever it holds.
pub fn subject(prefix: &str, tenant: &str, topic: &str) -> String {
    let words: Vec<String> = topic.split('.').map(word).collect();
    format!("{prefix}.{}.{}", word(tenant), words.join("."))
}

/// What may not stand in a word becomes `%` and its number, so that two tenants never share one.
fn word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let write = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    if text.is_empty() { "%".to_owned() } else { text.bytes().map(write).collect() }
}

impl NatsSink {
    pub fn new(config: &SinkConfig) -> Result<NatsSink, SinkError> {
        Ok(NatsSink {
            name: config.name.clone(),
            servers: servers(&config.url).map_err(SinkError::Config)?,
            token: config.secret.as_ref().map(|secret| secret.0.clone()),
            prefix: config.subject_prefix.clone(),
            stream: config.stream.clone(),
            window: Duration::from_millis(config.window_ms().unsigned_abs()),
            context: Mutex::new(None),
        })
    }

    /// A connection that stands now.
    async fn context(&self) -> Result<Context, SinkError> {
        let mut context = self.context.lock().await;
        if context.is_none() {
            *context = Some(self.connect().await?);
        }
        let up = |context: &&Context| context.client().connection_state() == State::Connected;
        context.as_ref().filter(up).cloned().ok_or_else(|| SinkError::Unreachable("not connected".to_owned()))
    }

    async fn connect(&self) -> Result<Context, SinkError> {
        let mut options = ConnectOptions::new()
            .name(format!("onceflow sink {}", self.name))
            .connection_timeout(ANSWER_MAX)
            .request_timeout(Some(ANSWER_MAX))
            .reconnect_delay_callback(|attempt| RECONNECT_MAX.min(Duration::from_millis(50 * attempt as u64)));
        if let Some(token) = &self.token {
            options = options.token(token.clone());
        }
        let client = options.connect(&self.servers[..]).await.map_err(unreachable)?;
        Ok(jetstream::context::ContextBuilder::new().timeout(ANSWER_MAX).ack_timeout(ACK_MAX).build(client))
    }

    async fn look(&self) -> Result<SinkInfo, SinkError> {
        let context = self.context().await?;
        let info = self.stream_info(&context).await?;
        if info.config.no_ack {
            return Err(SinkError::Unfit(format!("stream {} acknowledges nothing", info.config.name)));
        }
        if !info.config.subjects.iter().any(|subject| takes(subject, &self.prefix)) {
            return Err(SinkError::Unfit(format!("stream {} does not take {}.>", info.config.name, self.prefix)));
        }
        Ok(SinkInfo { window_ms: Some(info.config.duplicate_window.as_millis() as i64) })
    }

    /// The stream of the configuration, made if it is missing, or the one that takes our subjects.
    async fn stream_info(&self, context: &Context) -> Result<Info, SinkError> {
        let subjects = format!("{}.>", self.prefix);
        if let Some(name) = &self.stream {
            let wanted = StreamConfig {
                name: name.clone(),
                subjects: vec![subjects],
                duplicate_window: self.window,
                ..StreamConfig::default()
            };
            let stream = context.get_or_create_stream(wanted).await.map_err(unreachable)?;
            return Ok(stream.cached_info().clone());
        }
        let name = context.stream_by_subject(&*subjects).await;
        let name = name.map_err(|error| SinkError::Unfit(format!("no stream takes {subjects}: {error}")))?;
        let stream = context.get_stream(name).await.map_err(unreachable)?;
        Ok(stream.cached_info().clone())
    }

    async fn send_all(&self, batch: &[Shipment]) -> Vec<ShipResult> {
        let context = match self.context().await {
            Ok(context) => context,
            Err(error) => return vec![retry(error.to_string()); batch.len()],
        };
        let mut sent = Vec::with_capacity(batch.len());
        for shipment in batch {
            sent.push(self.send(&context, shipment).await);
        }
        join_all(sent.into_iter().map(acknowledged)).await
    }

    async fn send(&self, context: &Context, shipment: &Shipment) -> Result<PublishAckFuture, PublishError> {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", &*shipment.event_id);
        headers.insert("Content-Type", "application/cloudevents+json");
        if let Some(stream) = &self.stream {
            // Dedup is per stream: another stream that takes the subject would not know what this one has.
            headers.insert("Nats-Expected-Stream", stream.as_str());
        }
        let subject = subject(&self.prefix, &shipment.tenant, &shipment.topic);
        context.publish_with_headers(subject, headers, shipment.envelope.clone()).await
    }
}

impl Sink for NatsSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Later<'_, Result<SinkInfo, SinkError>> {
        Box::pin(self.look())
    }

    fn ship<'a>(&'a self, batch: &'a [Shipment]) -> Later<'a, Vec<ShipResult>> {
        Box::pin(self.send_all(batch))
    }
}

async fn acknowledged(sent: Result<PublishAckFuture, PublishError>) -> ShipResult {
    let ack = match sent {
        Ok(ack) => ack.await,
        Err(error) => Err(error),
    };
    match ack {
        Ok(ack) => ShipResult::Shipped { duplicate: ack.duplicate },
        Err(error) if is_final(&error) => ShipResult::Refused { error: error.to_string() },
        Err(error) => retry(error.to_string()),
    }
}

/// Too big for the broker or the stream: it stays too big.
fn is_final(error: &PublishError) -> bool {
    let code =
        error.source().and_then(|source| source.downcast_ref::<jetstream::Error>()).map(|error| error.error_code());
    error.kind() == PublishErrorKind::MaxPayloadExceeded || code == Some(ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM)
}

/// Whether a stream's subject lets through what begins with `prefix`.
fn takes(subject: &str, prefix: &str) -> bool {
    let mut words = subject.split('.');
    for wanted in prefix.split('.') {
        match words.next() {
            Some(">") => return true,
            Some(word) if word == "*" || word == wanted => (),
            _ => return false,
        }
    }
    words.next().is_some()
}

fn retry(error: String) -> ShipResult {
    ShipResult::Retry { error, retry_after_ms: None }
}

fn unreachable(error: impl std::fmt::Display) -> SinkError {
    SinkError::Unreachable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_has_the_tenant_as_one_word() {
        for (tenant, topic, wanted) in [
            ("default", "wf.instance.started", "wf.default.wf.instance.started"),
            ("a.b", "wf.job.completed", "wf.a%2Eb.wf.job.completed"),
            ("*> ä", "x..y", "wf.%2A%3E%20%C3%A4.x.%.y"),
            ("", "", "wf.%.%"),
        ] {
            assert_eq!(subject("wf", tenant, topic), wanted);
        }
    }

    #[test]
    fn a_stream_takes_what_its_subjects_cover() {
        for (subject, prefix, wanted) in [
            (">", "wf", true),
            ("wf.>", "wf", true),
            ("wf.*.wf.>", "wf", true),
            ("*.>", "a.b", true),
            ("wf", "wf", false),
            ("other.>", "wf", false),
            ("wf.a", "wf.a.b", false),
        ] {
            assert_eq!(takes(subject, prefix), wanted, "{subject} {prefix}");
        }
    }
}
