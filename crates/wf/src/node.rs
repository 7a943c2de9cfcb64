//! A node put together: configuration → store → engine → shipper → server. With `backup.rs` and `proofs/`, which work on a
//! store's files, the one place that names a concrete store. It decides nothing about requests. From here the path goes to
//! `wf_server::Server::serve`.

use std::sync::Arc;

use tokio::net::TcpListener;
use wf_core::rows::Text;
use wf_engine::{ClockMode, Engine, SinkRule};
use wf_server::{App, Auth, Server};
use wf_ship::Shipper;
use wf_store::{Store, failpoint};
use wf_store_sqlite::SqliteStore;

use crate::cli::{NodeArgs, ServerArgs};
use crate::config::{self, Config, StoreChoice};
use crate::output::{self, Done, Failure};
use crate::paused::Pausable;
use crate::process::{READY, stop_signal, survive_file_limits};
use crate::proofs::FolderScratch;
use crate::{hints, logs};

/// The first secret of a store; records carry its number, so that another may follow.
const MAC_KEY_ID: u32 = 1;

/// `wf dev`
pub fn dev(args: &NodeArgs) -> Done {
    let config = config::load(args).map_err(Failure::usage)?;
    run(config, true)
}

/// `wf server`
pub fn server(args: &ServerArgs) -> Done {
    let config = config::load(&args.node).map_err(Failure::usage)?;
    if !args.check {
        return run(config, false);
    }
    config.warnings.iter().for_each(|warning| output::say(&format!("warning: {warning}")));
    output::print("the configuration is right")
}

fn run(config: Config, with_hints: bool) -> Done {
    let _logs = logs::init(config.log_format, "info");
    config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(Failure::work)?.block_on(serve(&config, with_hints))
}

async fn serve(config: &Config, with_hints: bool) -> Done {
    let stop = stop_signal();
    survive_file_limits();
    // Before the store is touched: an address in use is the likeliest mistake.
    let listener = TcpListener::bind(config.listen).await;
    let listener = listener.map_err(|error| Failure::work(format!("listen on {}: {error}", config.listen)))?;
    let url = format!("http://{}", listener.local_addr()?);
    let metrics = wf_server::recorder().map_err(Failure::work)?;
    let store = open_store(config).await?;
    let engine = Engine::open(store.clone(), engine_options(config)).await.map_err(Failure::work)?;
    let shipper = start_shipper(config, &store, &engine)?;
    let app = App {
        engine: engine.clone(),
        auth: Auth::new(&config.api_keys).map_err(Failure::usage)?,
        idempotency: config.idempotency.clone(),
        mac_secret: mac_secret(&*store).await?,
        mac_key_id: MAC_KEY_ID,
        messages_dedup_ms: config.dedup_ms,
        metrics: Some(metrics),
        scratch: Some(Arc::new(FolderScratch::of(&config.data))),
    };
    failpoint::hit("before-ready");
    tracing::info!(url, data = %config.data.display(), "ready");
    output::print(&format!("{READY}{url}"))?;
    if with_hints {
        output::print(&hints::commands(&url, &config.data))?;
    }
    Server::serve(listener, app, stop).await;
    tracing::info!("stopping: finishing what was begun");
    // Requests first, then what they caused: nothing enters the outbox once the engine has stopped.
    engine.shutdown().await;
    failpoint::hit("after-stop");
    shipper.shutdown().await;
    Ok(())
}

async fn open_store(config: &Config) -> Result<Arc<dyn Store>, Failure> {
    let StoreChoice::Sqlite = config.store;
    let options = wf_store_sqlite::Options {
        dir: config.data.clone(),
        durability: config.durability,
        pages_max: config.pages_max,
    };
    let opening = tokio::task::spawn_blocking(move || SqliteStore::open(options));
    let store = opening.await.map_err(Failure::work)?.map_err(|error| Failure::work(format!("failed to {error}")))?;
    Ok(Arc::new(store))
}

fn engine_options(config: &Config) -> wf_engine::Options {
    let rule = |sink: &wf_ship::SinkConfig| SinkRule {
        name: Text::from(sink.name.as_str()),
        events: sink.events.clone(),
        window_ms: sink.window_ms(),
    };
    let clock = if config.test_clock { ClockMode::Test { start: now_ms() } } else { ClockMode::System };
    wf_engine::Options {
        clock,
        wait_ms: config.wait_ms,
        finished_ms: config.finished_ms,
        sweep_ms: config.sweep_ms,
        sinks: config.sinks.iter().map(rule).collect(),
        ..wf_engine::Options::default()
    }
}

fn start_shipper(config: &Config, store: &Arc<dyn Store>, engine: &Engine) -> Result<Shipper, Failure> {
    let built = config.sinks.iter().map(|sink| {
        let pausable: Arc<dyn wf_ship::Sink> = Arc::new(Pausable::new(wf_ship::build(sink)?, &config.data));
        Ok((sink.clone(), pausable))
    });
    let sinks = built.collect::<Result<Vec<_>, wf_ship::SinkError>>().map_err(Failure::usage)?;
    let (clock, filled) = (engine.clone(), engine.clone());
    let clock = Arc::new(move || clock.now());
    let wait = move || {
        let engine = filled.clone();
        async move { engine.outbox_filled().await }
    };
    Ok(Shipper::start(store.clone(), sinks, clock, wait))
}

/// Made once with the store: fingerprints and key hashes of earlier runs must still mean the same.
async fn mac_secret(store: &dyn Store) -> Result<[u8; 32], Failure> {
    let mut fresh = [0; 32];
    getrandom::fill(&mut fresh).map_err(Failure::work)?;
    store.secret("mac", fresh).await.map_err(Failure::work)
}

pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
