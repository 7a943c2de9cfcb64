//! `wf bench`: the real HTTP API under load, beside what the machine itself can do in the same run.
//! The figures of two machines cannot be compared; their ratios can. Read `scenarios.rs`, then `load.rs`, `http.rs`.

pub mod bare;
mod histogram;
mod http;
mod load;
mod machine;
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
    let scenarios = scenarios::chosen(&args.only)?;
    if args.server.is_some() && args.waiting.is_some() {
        return Err(Failure::usage("--waiting restarts the server, so it must be one that the bench starts"));
    }
    let bench = Bench::open(args)?;
    let mut report = Report { machine: machine::measure(&bench).await?, ..Report::default() };
    let server = bench.server().await?;
    scenarios::prepare(server.url()).await?;
    report.bare = Some(bare::measure(&bench, server.url()).await?);
    for scenario in scenarios {
        report.scenarios.push(scenarios::run(&bench, server.url(), scenario).await?);
    }
    if let Server::Ours(node) = server {
        let node = match bench.args.waiting {
            None => node,
            Some(count) => {
                let (waiting, node) = waiting::measure(&bench, node, count).await?;
                report.waiting = Some(waiting);
                node
            }
        };
        node.stop().await?;
        report.proofs = Some(proofs::measure(&bench).await?);
    }
    output::print(&match bench.args.output {
        Output::Json => output::json(&report.to_json()),
        Output::Table => report.to_text(),
    })
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
    Ours(Node),
    Theirs(String),
}

impl Server {
    fn url(&self) -> &str {
        match self {
            Server::Ours(node) => &node.url,
            Server::Theirs(url) => url,
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
        std::fs::write(folder.join("wf.toml"), format!("[sqlite]\ndurability = \"{}\"\n", args.durability))?;
        Ok(Bench { args, folder, _temporary: temporary })
    }

    async fn server(&self) -> Result<Server, Failure> {
        match &self.args.server {
            Some(url) => Ok(Server::Theirs(url.clone())),
            None => Ok(Server::Ours(self.node().await?)),
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
