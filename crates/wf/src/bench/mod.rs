//! `wf bench`: the real HTTP API under load, beside what the machine itself can do in the same run.
//! The figures of two machines cannot be compared; their ratios can. Read `scenarios.rs`, then `load.rs`, `http.rs`.

pub mod bare;
mod churn;
mod histogram;
mod http;
mod load;
mod machine;
mod postgres;
mod proofs;
mod report;
mod scenarios;
mod waiting;

use std::path::{Path, PathBuf};

use crate::cli::{BenchArgs, Output};
use crate::output::{self, Done, Failure};
use crate::process::Node;

use report::Report;

pub async fn run(args: BenchArgs) -> Done {
    let mut scenarios = scenarios::chosen(&args.only)?;
    if args.server.is_some() && args.waiting.is_some() {
        return Err(Failure::usage("--waiting restarts the server, so it must be one that the bench starts"));
    }
    if args.nodes > 1 && (args.server.is_some() || args.waiting.is_some() || !is_postgres(args.store.as_deref())) {
        return Err(Failure::usage("--nodes wants --store postgres://…, and servers that the bench starts"));
    }
    let bench = Bench::open(args)?;
    if let Some(url) = bench.postgres()
        && bench.args.server.is_none()
        && postgres::is_used(url).await?
    {
        return Err(Failure::usage(
            "--store names a database that somebody has worked on: the bench wants an empty one",
        ));
    }
    let mut report = Report { machine: machine::measure(&bench).await?, ..Report::default() };
    let server = bench.server().await?;
    let urls = server.urls();
    scenarios::prepare(&urls[0]).await?;
    report.bare = Some(bare::measure(&bench, &urls[0]).await?);
    if let Some(total) = bench.args.churn {
        report.churn = churn::measure(&bench, &urls, total).await?;
        scenarios.clear();
    }
    for scenario in scenarios {
        report.scenarios.push(scenarios::run(&bench, &urls, scenario).await?);
    }
    if let Server::Ours(nodes) = server {
        finish(&bench, nodes, &mut report).await?;
    }
    output::print(&match bench.args.output {
        Output::Json => output::json(&report.to_json()),
        Output::Table => report.to_text(),
    })
}

/// What is measured on servers of our own alone: over a restart, and over the store that is left.
async fn finish(bench: &Bench, mut nodes: Vec<Node>, report: &mut Report) -> Result<(), Failure> {
    if let Some(count) = bench.args.waiting
        && let Some(node) = nodes.pop()
    {
        let (waiting, node) = waiting::measure(bench, node, count).await?;
        report.waiting = Some(waiting);
        nodes.push(node);
    }
    for node in nodes {
        node.stop().await?;
    }
    if bench.postgres().is_none() {
        report.proofs = Some(proofs::measure(bench).await?);
    }
    Ok(())
}

fn is_postgres(store: Option<&str>) -> bool {
    store.is_some_and(|store| store.starts_with("postgres"))
}

/// What all parts of one run share.
pub struct Bench {
    pub args: BenchArgs,
    /// For the store and for files of the disk's own measurement.
    pub folder: PathBuf,
    /// Removes the folder at the end where it is ours.
    _temporary: Option<tempfile::TempDir>,
}

/// The server under load.
enum Server {
    Ours(Vec<Node>),
    Theirs(String),
}

impl Server {
    fn urls(&self) -> Vec<String> {
        match self {
            Server::Ours(nodes) => nodes.iter().map(|node| node.url.clone()).collect(),
            Server::Theirs(url) => vec![url.clone()],
        }
    }
}

impl Bench {
    fn open(args: BenchArgs) -> Result<Bench, Failure> {
        let (folder, temporary) = match &args.data {
            Some(folder) => (folder.clone(), None),
            None => {
                let temporary = tempfile::Builder::new().prefix("wf-bench-").tempdir()?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        std::fs::create_dir_all(&folder)?;
        // Only what is asked for here counts, not a wf.toml that happens to lie around.
        let mut config = format!("[sqlite]\ndurability = \"{}\"\n", args.durability);
        if args.churn.is_some() {
            config.push_str(&format!("[retention]\nfinished_ms = {}\n", churn::FINISHED_MS));
            config.push_str("[idempotency]\nttl_ms = 10000\nsweep_ms = 1000\n");
        }
        std::fs::write(folder.join("wf.toml"), config)?;
        Ok(Bench { args, folder, _temporary: temporary })
    }

    /// The address of the database, where the store is one.
    fn postgres(&self) -> Option<&str> {
        self.args.store.as_deref().filter(|store| is_postgres(Some(store)))
    }

    async fn server(&self) -> Result<Server, Failure> {
        match &self.args.server {
            Some(url) => Ok(Server::Theirs(url.clone())),
            None => {
                let mut nodes = Vec::new();
                for _ in 0..self.args.nodes {
                    nodes.push(self.node().await?);
                }
                Ok(Server::Ours(nodes))
            }
        }
    }

    /// A server process on the bench's folder; the same store again when it is called again.
    async fn node(&self) -> Result<Node, Failure> {
        let path = |name: &str| self.folder.join(name).to_string_lossy().into_owned();
        let mut args: Vec<String> = ["server", "--listen", "127.0.0.1:0"].map(str::to_owned).into();
        args.extend(["--data".to_owned(), path("store"), "--config".to_owned(), path("wf.toml")]);
        if let Some(store) = &self.args.store {
            args.extend(["--store".to_owned(), store.clone()]);
        }
        Node::start(&args, &[], Some(Path::new(&path("server.log")))).await
    }
}
