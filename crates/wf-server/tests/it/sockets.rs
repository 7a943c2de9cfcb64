//! What only shows on a real connection: a body that never ends, a client that goes away, a server that stops.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wf_engine::ClockMode;
use wf_server::{Auth, IdempotencyConfig, Server};

use crate::support::*;

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

async fn running() -> Running {
    let app = app(Auth::default(), IdempotencyConfig::default(), ClockMode::Test { start: 1_800_000_000_000 }).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async {
        let _ = stopped.await;
    };
    Running { address, stop, served: tokio::spawn(Server::serve(listener, app, shutdown)) }
}

async fn send(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

async fn answer(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // The server closes where it does not read on; a reset after its answer is no failure.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

const POLL: &str = r#"{"type":"work","worker":"w","waitMs":60000}"#;

fn poll() -> String {
    let head = "POST /api/v1/jobs/activate HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json";
    format!("{head}\r\ncontent-length: {}\r\n\r\n{POLL}", POLL.len())
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_unread() {
    let running = running().await;
    let head = "POST /api/v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n";
    // Announced: not a byte of it is waited for.
    let stream = send(running.address, &format!("{head}content-length: 100000000\r\n\r\n")).await;
    assert!(answer(stream).await.starts_with("HTTP/1.1 413 "));
    // Chunked: cut off at the limit.
    let mut stream = send(running.address, &format!("{head}transfer-encoding: chunked\r\n\r\n")).await;
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..65 {
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    assert!(answer(stream).await.starts_with("HTTP/1.1 413 "));
}

/// Heads and bodies that do not come, and connections that nobody uses; time jumps on where nothing else is to be done.
#[tokio::test]
async fn slow_clients_are_let_go() {
    let running = running().await;
    tokio::time::pause();
    let head = "POST /api/v1/messages HTTP/1.1\r\nhost: x\r\n";
    for (sent, status) in [
        ("", ""),
        (head, ""),
        (&format!("{head}content-length: 10\r\n\r\n{{"), "HTTP/1.1 400 "),
        ("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n", "HTTP/1.1 200 "),
    ] {
        let reply = answer(send(running.address, sent).await).await;
        assert!(reply.starts_with(status), "{sent}: {reply}");
        assert_eq!(reply.is_empty(), status.is_empty(), "{sent}: {reply}");
    }
}

#[tokio::test]
async fn a_poll_whose_client_is_gone_leases_nothing() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let gone = service.post("/api/v1/jobs/activate", POLL);
    // Polled once, the request is in the engine's mailbox; dropped, it is what a closed connection leaves behind.
    assert!(gone.now_or_never().is_none());
    service.start(r#"{"processDefinitionId":"order"}"#).await;
    assert_eq!(service.activate().await["elementId"], "pay");
}

#[tokio::test]
async fn a_stop_ends_long_polls_and_then_the_server() {
    let running = running().await;
    let polling = tokio::spawn(answer(send(running.address, &poll()).await));
    // A later connection's answer: the server runs, and has most likely read the poll.
    let live = "GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert!(answer(send(running.address, live).await).await.contains(" 200 "));
    running.stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(20), running.served).await.unwrap().unwrap();
    let reply = polling.await.unwrap();
    assert!(reply.is_empty() || reply.ends_with(r#"{"jobs":[]}"#), "{reply}");
}

#[tokio::test]
async fn t2_metrics_have_their_names() {
    let mut app = app(Auth::default(), IdempotencyConfig::default(), ClockMode::System).await;
    app.metrics = Some(wf_server::recorder().unwrap());
    let service = Service::of(app);
    service.deploy(WORK).await;
    for _ in 0..2 {
        let headers = [JSON, ("idempotency-key", "k")];
        service.send("POST /api/v1/instances", &headers, r#"{"processDefinitionId":"order"}"#).await;
    }
    let reply = service.get("/metrics").await;
    assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    for wanted in [
        "wf_api_idempotency_hits_total{path=\"/api/v1/instances\"} ",
        "wf_http_request_duration_seconds_bucket{route=\"/api/v1/instances\",method=\"POST\",status=\"201\",le=",
        "# HELP wf_http_request_duration_seconds ",
    ] {
        assert!(reply.body.contains(wanted), "{wanted}\n{}", reply.body);
    }
}
