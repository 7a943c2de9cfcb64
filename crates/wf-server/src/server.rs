//! The router on a socket: serves until it is asked to stop, lets running requests end, then returns.
//! It opens no store and no engine. Next: `seam.rs`, then `routes/`.

use std::future::Future;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

use crate::app::{App, Inner, Shared};
use crate::routes::{self, unknown};
use crate::seam::Seam;
use crate::{metrics, openapi};

/// What a stop waits for running requests. Long polls end at once.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("failed to serve: {0}")]
    Socket(#[from] std::io::Error),
}

/// The HTTP server.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Answers on `listener` until `shutdown` resolves and running requests have ended (10 s at most). The engine is the
    /// caller's: stop it afterwards.
    pub async fn serve(
        listener: TcpListener,
        app: App,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let shared = Inner::new(app);
        let upkeep = tokio::spawn(metrics::keep_up(shared.clone()));
        let closing = shared.closing.clone();
        let stop = async move {
            shutdown.await;
            closing.send_replace(true);
        };
        let mut closed = shared.closing.subscribe();
        // An answer is one write: nothing is gained by waiting for more of it.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let serving = axum::serve(listener, router(shared)).with_graceful_shutdown(stop);
        let overdue = async move {
            // An error means that the sender is gone, and with it whoever might still be served.
            let _ = closed.wait_for(|closing| *closing).await;
            tokio::time::sleep(GRACE).await;
        };
        let served = tokio::select! {
            served = serving => served,
            () = overdue => Ok(()),
        };
        upkeep.abort();
        Ok(served?)
    }

    /// For tests and for those who bring their own server.
    pub fn router(app: App) -> Router {
        router(Inner::new(app))
    }
}

fn router(shared: Shared) -> Router {
    let (api, document) = openapi::with_document(routes::documented());
    let plain = routes::undocumented(document);
    api.merge(plain)
        .fallback(unknown::route)
        .method_not_allowed_fallback(unknown::method)
        .layer(Seam::default())
        .with_state(shared)
}
