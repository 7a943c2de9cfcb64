//! The yardstick for HTTP: axum answering every request with the same bytes, in a process of its own as the server is.
//! It does nothing else: what lies between its rate and ours is our work.

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::cli::BenchBareArgs;
use crate::output::{self, Done, Failure};
use crate::process::{Node, READY, stop_signal};

use super::http::Connection;
use super::load::{self, Client, Load, Window};
use super::{Bench, scenarios};

/// `wf bench-bare`: serves until it is told to stop.
pub fn run(args: BenchBareArgs) -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(Failure::work)?.block_on(serve(args))
}

async fn serve(args: BenchBareArgs) -> Done {
    let status = StatusCode::from_u16(args.status).map_err(Failure::usage)?;
    let answer = Bytes::from(args.answer);
    // The body is read, as ours is; a shape of it is not.
    let handler = move |_request: Bytes| {
        let response: Response<Body> =
            (status, [(header::CONTENT_TYPE, "application/json")], answer.clone()).into_response();
        async move { response }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    output::print(&format!("{READY}http://{}", listener.local_addr()?))?;
    let service = axum::Router::new().fallback(handler);
    axum::serve(listener, service).with_graceful_shutdown(stop_signal()).await?;
    Ok(())
}

/// The same requests as the scenario `starts`, answered with what our server answered to one of them.
pub async fn measure(bench: &Bench, server: &str) -> Result<Load, Failure> {
    let answer = one_answer(server).await?;
    let args = ["bench-bare", "--answer", &answer, "--status", "201"].map(str::to_owned);
    let node = Node::start(&args, &[], None).await?;
    let address = scenarios::address(&node.url)?;
    let bar = output::progress(1, "bare axum");
    let window = Window::of(bench.args.seconds.min(5));
    let seed = scenarios::fresh_seed();
    let load = load::run(bench.args.clients, window, |index| {
        let address = address.clone();
        async move { scenarios::starts(Client::open(&address, seed + u64::from(index), window).await?).await }
    })
    .await;
    bar.finish_and_clear();
    node.kill().await;
    load
}

async fn one_answer(server: &str) -> Result<String, Failure> {
    let mut connection = Connection::open(&scenarios::address(server)?).await?;
    let key = load::Random(scenarios::fresh_seed()).key();
    let answer = connection.post(scenarios::START, Some(&key), scenarios::START_BODY).await?;
    match answer.status {
        201 => Ok(String::from_utf8_lossy(answer.body).into_owned()),
        status => Err(Failure::work(format!("a start answered {status}: {}", String::from_utf8_lossy(answer.body)))),
    }
}
