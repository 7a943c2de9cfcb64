//! One suite for all sinks, then what only one of them promises.

use axum::http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wf_ship::config::Secret;
use wf_ship::conformance::{event, run_all};
use wf_ship::sinks::signature;
use wf_ship::sinks::stdout::StdoutSink;
use wf_ship::{Kind, ShipResult, SinkConfig, SinkError, SinkInfo, build, span_ms};

use crate::receiver::{Broker, Pipe, Web};

const SHIPPED: ShipResult = ShipResult::Shipped { duplicate: false };

fn nats(url: &str, stream: Option<&str>) -> SinkConfig {
    SinkConfig { stream: stream.map(str::to_owned), ..SinkConfig::new("bus", Kind::Nats, url) }
}

fn webhook(url: &str) -> SinkConfig {
    let secret = Some(Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned()));
    SinkConfig { secret, ..SinkConfig::new("hook", Kind::Webhook, url) }
}

/// L5.3
#[tokio::test]
async fn nats_keeps_the_promises() {
    let broker = Broker::start();
    let sink = build(&nats(&broker.url, Some("EVENTS"))).unwrap();
    run_all(&*sink, &broker).await;
}

/// L5.5
#[tokio::test]
async fn webhook_keeps_the_promises() {
    let (web, url) = Web::start().await;
    let sink = build(&webhook(&url)).unwrap();
    run_all(&*sink, &web).await;
}

#[tokio::test]
async fn stdout_keeps_the_promises() {
    let pipe = Pipe::default();
    let sink = StdoutSink::to("lines", Box::new(pipe.clone()));
    run_all(&sink, &pipe).await;
}

/// L5.3: where a message goes, and how long the broker remembers it.
#[tokio::test]
async fn nats_makes_its_stream_or_takes_the_one_that_is_there() {
    let broker = Broker::start();
    let any = build(&nats(&broker.url, None)).unwrap();
    let missing = any.check().await;
    assert!(matches!(missing, Err(SinkError::Unfit(_))), "{missing:?}");

    let own = build(&nats(&broker.url, Some("EVENTS"))).unwrap();
    let window = SinkInfo { window_ms: Some(span_ms(20)) };
    assert_eq!(own.check().await, Ok(window), "made with a window that covers all attempts");
    assert_eq!(any.check().await, Ok(window), "found by its subjects");
    assert_eq!(any.ship(&[event(1, 1)]).await, [SHIPPED]);
    assert_eq!(own.ship(&[event(1, 1)]).await, [ShipResult::Shipped { duplicate: true }]);
    let messages = broker.messages().await;
    assert_eq!(messages[0].subject.as_str(), "wf.acme%2Eeu.wf.instance.started");

    let context = broker.jetstream().await;
    let mut config = context.get_stream("EVENTS").await.unwrap().cached_info().config.clone();
    config.subjects = vec!["other.>".to_owned()];
    context.update_stream(config).await.unwrap();
    let unfit = own.check().await;
    assert!(matches!(unfit, Err(SinkError::Unfit(_))), "{unfit:?}");
}

#[tokio::test]
async fn nats_says_that_nobody_is_there() {
    let broker = Broker::start();
    let sink = build(&nats(&broker.url, Some("EVENTS"))).unwrap();
    broker.nats.lock().unwrap().kill();
    let check = sink.check().await;
    assert!(matches!(check, Err(SinkError::Unreachable(_))), "{check:?}");
    let results = sink.ship(&[event(1, 1)]).await;
    assert!(matches!(results[..], [ShipResult::Retry { .. }]), "{results:?}");
}

/// L5.5, webhooks out 166, 167: what a receiver can check.
#[tokio::test]
async fn webhooks_are_signed_and_say_who_they_are() {
    let (web, url) = Web::start().await;
    let sink = build(&webhook(&url)).unwrap();
    let shipment = event(7, 1);
    assert_eq!(sink.ship(std::slice::from_ref(&shipment)).await, [SHIPPED]);
    let posted = &web.posted()[0];
    assert_eq!(posted.path, "/hook?a=b");
    assert_eq!(posted.header("content-type"), "application/cloudevents+json");
    assert_eq!(posted.header("webhook-id"), "ev-1-7");
    assert_eq!(posted.header("idempotency-key"), "\"ev-1-7\"");
    let timestamp = posted.header("webhook-timestamp").parse().unwrap();
    let key = signature::key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    assert_eq!(posted.header("webhook-signature"), signature::sign(&key, "ev-1-7", timestamp, &shipment.envelope));
}

/// Webhooks out 170.
#[tokio::test]
async fn webhooks_take_only_2xx_for_done() {
    let (web, url) = Web::start().await;
    let sink = build(&SinkConfig::new("hook", Kind::Webhook, &url)).unwrap();
    web.answer((StatusCode::TEMPORARY_REDIRECT, [("location", "/elsewhere")]));
    web.answer((StatusCode::TOO_MANY_REQUESTS, [("retry-after", "120")]));
    web.answer(StatusCode::GONE);
    let mut results = Vec::new();
    for _ in 0..4 {
        results.extend(sink.ship(&[event(1, 1)]).await);
    }
    let later = |error: &str, retry_after_ms| ShipResult::Retry { error: error.to_owned(), retry_after_ms };
    let wanted = [
        later("answered 307 Temporary Redirect", None),
        later("answered 429 Too Many Requests", Some(120_000)),
        ShipResult::Disabled { error: "answered 410 Gone".to_owned() },
        SHIPPED,
    ];
    assert_eq!(results, wanted);
    assert!(web.posted().iter().all(|posted| posted.path == "/hook?a=b"), "no redirect is followed");
    assert!(web.posted().iter().all(|posted| !posted.headers.contains_key("webhook-signature")), "no secret");
}

/// Webhooks out 168: the receiver did its work, its answer was lost.
#[tokio::test]
async fn a_lost_answer_means_the_same_request_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let sink = build(&webhook(&url)).unwrap();
    let shipment = event(1, 1);
    let receive = async {
        let mut seen = Vec::new();
        for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(&shipment.envelope) {
                assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            let text = String::from_utf8(request).unwrap();
            seen.push(text.lines().find(|line| line.starts_with("webhook-id")).map(str::to_owned));
        }
        seen
    };
    let send = async {
        let batch = std::slice::from_ref(&shipment);
        [sink.ship(batch).await, sink.ship(batch).await].concat()
    };
    let (seen, results) = tokio::join!(receive, send);
    assert!(matches!(results[0], ShipResult::Retry { .. }), "{results:?}");
    assert_eq!(results[1], SHIPPED);
    assert_eq!(seen, vec![Some("webhook-id: ev-1-1".to_owned()); 2]);
}
