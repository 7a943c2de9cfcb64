//! The demo's stage: a fresh store in a folder of its own, the engine over it as a child process that can be killed and
//! started again at the same address, and the outside world. The engine runs on a test clock: nothing waits for a lease.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wf_client::{ActivateJobs, Client, Holder, Instance, InstanceFilter, Job, Retry, StartInstance};

use crate::output::{self, Failure};
use crate::process::Node;

use super::outside::{Outside, SECRET};

pub const ORDER: &str = include_str!("order.bpmn");

/// Of every lease in the story.
pub const LEASE_MS: u64 = 30_000;
/// Longer than any lease, also than the shipper's.
pub const LEASE_OVER_MS: u64 = 31_000;

/// How long the story waits for what comes by itself (webhooks). Far above what it takes.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Stage {
    folder: PathBuf,
    _temporary: Option<tempfile::TempDir>,
    node: Option<Node>,
    listen: String,
    pub outside: Outside,
    pub client: Client,
}

impl Stage {
    pub async fn open(keep: Option<&Path>) -> Result<Stage, Failure> {
        let (folder, temporary) = folder(keep)?;
        let outside = Outside::open().await?;
        let url = &outside.url;
        let sink =
            format!("[[sink]]\nname = \"shop\"\nkind = \"webhook\"\nurl = \"{url}/webhook\"\nsecret = \"{SECRET}\"\n");
        std::fs::write(folder.join("wf.toml"), sink)?;
        let client = Client::new(url)?;
        let listen = "127.0.0.1:0".to_owned();
        let mut stage = Stage { folder, _temporary: temporary, node: None, listen, outside, client };
        stage.start_engine(&[]).await?;
        stage.client.deploy(ORDER).await?;
        Ok(stage)
    }

    /// The address stays the same after the first start, so that clients find the engine again.
    pub async fn start_engine(&mut self, env: &[(&str, &str)]) -> Result<(), Failure> {
        let path = |name: &str| self.folder.join(name).to_string_lossy().into_owned();
        let (data, config) = (path("store"), path("wf.toml"));
        let args = ["server", "--listen", &self.listen, "--data", &data, "--config", &config, "--test-clock"];
        let node = Node::start(&args.map(str::to_owned), env, Some(Path::new(&path("engine.log")))).await?;
        let retry = Retry { attempts_max: 400, elapsed_max: PATIENCE, pause: ms(20), pause_max: ms(200) };
        self.client = Client::new(&node.url)?.retry(retry);
        self.listen = node.url.trim_start_matches("http://").to_owned();
        if self.listen.parse::<SocketAddr>().is_err() {
            return Err(Failure::work(format!("the engine listens at {}, which is no address", node.url)));
        }
        self.node = Some(node);
        Ok(())
    }

    /// SIGKILL.
    pub async fn kill_engine(&mut self) {
        if let Some(node) = self.node.take() {
            node.kill().await;
        }
    }

    /// Waits until the engine has died by itself (at a failpoint).
    pub async fn engine_dies(&mut self) -> Result<(), Failure> {
        let ended = match self.node.take() {
            Some(mut node) => node.ended(PATIENCE).await,
            None => false,
        };
        if ended { Ok(()) } else { Err(Failure::work("the engine did not die at its failpoint")) }
    }

    pub async fn advance(&self, ms: u64) -> Result<(), Failure> {
        self.client.advance_clock(ms).await?;
        Ok(())
    }

    pub async fn instances(&self, variable: Option<(&str, &str)>) -> Result<Vec<Instance>, Failure> {
        let variables = variable.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
        let filter = InstanceFilter { variables, ..InstanceFilter::default() };
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.client.instances(&filter, cursor.as_deref()).await?;
            all.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    pub async fn activate(&self, job_type: &str, worker: &str, max_jobs: u32) -> Result<Vec<Job>, Failure> {
        let poll = ActivateJobs {
            job_type: job_type.to_owned(),
            worker: worker.to_owned(),
            max_jobs,
            lease_ms: LEASE_MS,
            wait_ms: 0,
            fetch_variables: vec![],
        };
        Ok(self.client.activate(&poll).await?.jobs)
    }

    /// The one job that is there.
    pub async fn one_job(&self, job_type: &str, worker: &str) -> Result<Job, Failure> {
        let jobs = self.activate(job_type, worker, 1).await?;
        jobs.into_iter().next().ok_or_else(|| Failure::work(format!("{worker} got no {job_type} job")))
    }

    /// Asks until it is so.
    pub async fn until(
        &self,
        what: &str,
        mut is_so: impl AsyncFnMut() -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        while !is_so().await? {
            if began.elapsed() > PATIENCE {
                return Err(Failure::work(format!("{what} did not happen within {} s", PATIENCE.as_secs())));
            }
            tokio::time::sleep(ms(10)).await;
        }
        Ok(())
    }

    /// The last lines of the engine's log, where it says that something is wrong.
    pub fn said(&self) -> String {
        let log = std::fs::read_to_string(self.folder.join("engine.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("ERROR") || line.contains("panicked")).collect();
        let tail = lines.len().saturating_sub(5);
        let shown: Vec<&str> = lines.into_iter().skip(tail).collect();
        if shown.is_empty() { String::new() } else { format!("\nthe engine said:\n{}", shown.join("\n")) }
    }

    /// A clean stop; whatever goes wrong with it comes after the story's end.
    pub async fn close(mut self) {
        if let Some(node) = self.node.take()
            && let Err(failure) = node.stop().await
        {
            output::say(failure.message());
        }
    }
}

/// The demo's own, removed at its end, or the one that was asked for.
pub fn folder(keep: Option<&Path>) -> Result<(PathBuf, Option<tempfile::TempDir>), Failure> {
    let Some(keep) = keep else {
        let temporary = tempfile::Builder::new().prefix("wf-demo-").tempdir()?;
        return Ok((temporary.path().to_owned(), Some(temporary)));
    };
    if keep.join("store").exists() {
        return Err(Failure::usage(format!("{} has a store already; the demo needs a fresh one", keep.display())));
    }
    std::fs::create_dir_all(keep)?;
    Ok((keep.to_owned(), None))
}

pub fn order(id: &str, amount: u32) -> StartInstance {
    StartInstance::of("order").variable("orderId", id).variable("amount", amount)
}

pub fn holder(worker: &str, job: &Job) -> Holder {
    Holder { worker: worker.to_owned(), lease: Some(job.lease.clone()) }
}

/// The order that a job is about.
pub fn order_of(job: &Job) -> String {
    job.variables.get("orderId").and_then(|id| id.as_str()).unwrap_or_default().to_owned()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
