//! A node put together: configuration → stores → engines → shippers → server. It decides nothing about requests. From here
//! the path goes to `wf_server::Server::serve`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use tokio::net::TcpListener;
use wf_cluster::Node;
use wf_core::rows::Text;
use wf_engine::{ClockMode, SinkRule};
use wf_server::{App, Auth, Database, Databases, Scratch, Server};
use wf_ship::Shipper;
use wf_store::{Store, failpoint};

use crate::cli::{NodeArgs, ServerArgs};
use crate::config::{self, Config};
use crate::output::{self, Done, Failure};
use crate::paused::Pausable;
use crate::process::{READY, stop_signal, survive_file_limits};
use crate::proofs::FolderScratch;
use crate::stores::Stores;
use crate::{hints, logs};

/// The first secret of a store; records carry its number, so that another may follow.
const MAC_KEY_ID: u32 = 1;
/// Of a stop.
const HAND_OVER_TIME: Duration = Duration::from_secs(10);

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
    let stores = Stores::open(config, &url).await?;
    let options = node_options(config, stores.partitions());
    let opening = stores.all.into_iter().map(|store| Part::open(config, store, options.clone()));
    let parts = try_join_all(opening).await?;
    let databases = parts.iter().map(|part| part.database.clone());
    let app = App {
        databases: match stores.directory {
            Some(directory) => Databases::shared(databases.collect(), directory),
            None => Databases::one(parts[0].database.clone()),
        },
        auth: Auth::new(&config.api_keys).map_err(Failure::usage)?,
        idempotency: config.idempotency.clone(),
        messages_dedup_ms: config.dedup_ms,
        metrics: Some(metrics),
    };
    failpoint::hit("before-ready");
    tracing::info!(url, data = %config.data.display(), "ready");
    output::print(&format!("{READY}{url}"))?;
    if with_hints {
        output::print(&hints::commands(&url, &config.data))?;
    }
    let nodes = parts.iter().map(|part| part.database.node.clone()).collect();
    Server::serve(listener, app, handed_over(stop, nodes)).await;
    tracing::info!("stopping: finishing what was begun");
    // Requests first, then what they caused: nothing enters the outbox once the engines have stopped.
    join_all(parts.iter().map(|part| part.database.node.shutdown())).await;
    failpoint::hit("after-stop");
    join_all(parts.into_iter().map(|part| part.shipper.shutdown())).await;
    Ok(())
}

/// A node's part in one store.
struct Part {
    database: Database,
    shipper: Shipper,
}

impl Part {
    async fn open(config: &Config, store: Arc<dyn Store>, options: wf_cluster::Options) -> Result<Part, Failure> {
        let node = Node::open(store.clone(), options).await.map_err(Failure::work)?;
        let shipper = start_shipper(config, &store, &node)?;
        let mac_secret = mac_secret(&*store).await?;
        // For replays that a client asks for.
        let scratch: Arc<dyn Scratch> = Arc::new(FolderScratch::of(&config.data));
        Ok(Part { database: Database { node, mac_secret, mac_key_id: MAC_KEY_ID, scratch: Some(scratch) }, shipper })
    }
}

/// Where other nodes share the store, they take over while this one still answers: what comes meanwhile is forwarded.
async fn handed_over(stop: impl Future<Output = ()>, nodes: Vec<Node>) {
    stop.await;
    if tokio::time::timeout(HAND_OVER_TIME, join_all(nodes.iter().map(Node::hand_over))).await.is_err() {
        tracing::warn!("handing over takes too long: other nodes take over when this one has ended");
    }
}

/// What the caches keep is for the whole node, however many partitions it comes to own.
fn node_options(config: &Config, partitions: u16) -> wf_cluster::Options {
    let mut engine = engine_options(config);
    let share = |all: usize| (all / usize::from(partitions.max(1))).max(1_000);
    engine.cache.rows_max = share(engine.cache.rows_max);
    engine.cache.heads_max = share(engine.cache.heads_max);
    wf_cluster::Options {
        look_ms: config.node.look_ms,
        lease_ms: config.node.lease_ms,
        renew_ms: config.node.lease_ms / 3,
        ..wf_cluster::Options::new(engine)
    }
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

fn start_shipper(config: &Config, store: &Arc<dyn Store>, node: &Node) -> Result<Shipper, Failure> {
    let built = config.sinks.iter().map(|sink| {
        let pausable: Arc<dyn wf_ship::Sink> = Arc::new(Pausable::new(wf_ship::build(sink)?, &config.data));
        Ok((sink.clone(), pausable))
    });
    let sinks = built.collect::<Result<Vec<_>, wf_ship::SinkError>>().map_err(Failure::usage)?;
    let (clock, filled) = (node.clone(), node.clone());
    let clock = Arc::new(move || clock.now());
    let wait = move || {
        let node = filled.clone();
        async move { node.outbox_filled().await }
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
