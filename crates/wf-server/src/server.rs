//! The router on a socket: serves until it is asked to stop, lets running requests end, then returns.
//! It opens no store and no engine. Next: `seam.rs`, then `routes/`.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::Router;
use axum::serve::{Listener, ListenerExt};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use crate::app::{App, Doors};
use crate::routes::{self, unknown};
use crate::seam::Seam;
use crate::{metrics, openapi};

/// What a stop waits for running requests. Long polls end at once.
const GRACE: Duration = Duration::from_secs(10);
/// From one request's end to the end of the next one's head: idle connections and those who send a byte now and then must
/// not hold sockets for ever. Longer than clients keep a connection in their pools.
const HEAD_TIME: Duration = Duration::from_secs(100);

/// The HTTP server.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Answers on `listener` until `shutdown` resolves and running requests have ended (10 s at most). The engine is the
    /// caller's: stop it afterwards.
    pub async fn serve(listener: TcpListener, app: App, shutdown: impl Future<Output = ()> + Send + 'static) {
        let doors = Doors::new(app);
        let upkeep = tokio::spawn(metrics::keep_up(doors.clone()));
        let connections = GracefulShutdown::new();
        tokio::select! {
            never = accept(listener, router(doors.clone()), &connections) => match never {},
            () = shutdown => (),
        }
        doors.close();
        // Who is overdue is cut off.
        let _ = tokio::time::timeout(GRACE, connections.shutdown()).await;
        upkeep.abort();
    }

    /// For tests and for those who bring their own server.
    pub fn router(app: App) -> Router {
        router(Doors::new(app))
    }
}

async fn accept(listener: TcpListener, router: Router, connections: &GracefulShutdown) -> Infallible {
    // An answer is one write: nothing is gained by waiting for more of it.
    let mut listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let service = TowerToHyperService::new(router);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    loop {
        // It survives errors such as too many open files by itself.
        let (stream, _) = listener.accept().await;
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), service.clone()));
        // How a connection ends is its client's business.
        tokio::spawn(async move { drop(connection.await) });
    }
}

fn router(doors: Doors) -> Router {
    let (api, document) = openapi::with_document(routes::documented());
    let plain = routes::undocumented(document);
    api.merge(plain)
        .fallback(unknown::route)
        .method_not_allowed_fallback(unknown::method)
        .layer(Seam::default())
        .with_state(doors)
}
