//! The command line: what may be said, and the help that explains it. Nothing runs here.
//! Here stand the commands that ask a server; `cli/` has those of a node and its store, and those that look behind the scenes.
//! Each command's work stands in `commands/`, `proofs/`, `demo/` or `bench/`; `main.rs` connects the two.

mod node;
mod debug;
mod proofs;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use debug::*;
pub use node::*;
pub use proofs::*;

#[derive(Debug, Parser)]
#[command(
    name = "wf",
    version,
    about = "Onceflow: a durable BPMN workflow engine in which every effect happens effectively once",
    after_help = "Try it:  wf dev   (a server and a store in ./wf-data)   or   wf demo   (the whole story in one run)\n\
                  Exit codes: 0 done, 1 the work failed, 2 wrong usage."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Server and embedded store in ./wf-data, ready to use
    Dev(NodeArgs),
    /// Server as configured by wf.toml, environment and flags
    Server(ServerArgs),
    /// Brings the schema of a PostgreSQL database up to this program's, or looks whether it is
    Migrate(MigrateArgs),
    /// Shows which of several PostgreSQL databases a tenant lives in, or says so before it first works
    Tenants(TenantsArgs),
    /// Copies the store into one file, checked and on the disk; also while a server runs on it
    Backup(BackupArgs),
    /// Makes a store from a backup; it ships nothing until you say so
    Restore(RestoreArgs),
    /// The whole story in one run, checking itself: repeats, crashes, late workers, and each effect once
    Demo(DemoArgs),
    /// Deploys BPMN files, all or none
    Deploy(DeployArgs),
    /// Starts an instance of a process
    Start(StartArgs),
    /// Lists instances, the newest first
    Instances(InstancesArgs),
    /// Shows one instance: its elements, what each waits for, variables and incidents
    Instance(InstanceArgs),
    /// Cancels an active instance
    Cancel(KeyArgs),
    /// Lists jobs
    Jobs(JobsArgs),
    /// Works on jobs of one type by piping each to a command
    Worker(WorkerArgs),
    /// Publishes a message
    Message(MessageArgs),
    /// Lists unresolved incidents
    Incidents(ListArgs),
    /// Resolves an incident: the failed step is tried again
    Resolve(ResolveArgs),
    /// Lists messages to the outside, or ships them again
    Outbox(OutboxArgs),
    /// Shows the nodes that share the server's store, and who owns which partition
    Nodes(NodesArgs),
    /// Looks behind the scenes
    Debug(DebugArgs),
    /// Proves that the audit is whole, or exports it
    Audit(AuditArgs),
    /// The command log
    Log(LogArgs),
    /// Measures the real HTTP API against what this machine can do
    Bench(BenchArgs),
    /// The bench's yardstick: answers every request with the same bytes
    #[command(hide = true)]
    BenchBare(BenchBareArgs),
}

/// Where the server is, who asks, and how the answer is shown.
#[derive(Args, Clone, Debug)]
pub struct Remote {
    /// The server's address
    #[arg(long, env = "WF_SERVER", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    pub server: String,
    /// Tenant; ignored by a server with authentication, which takes it from the key
    #[arg(long, env = "WF_TENANT")]
    pub tenant: Option<String>,
    /// API key, sent as a bearer token
    #[arg(long, env = "WF_API_KEY", hide_env_values = true, value_name = "TOKEN")]
    pub api_key: Option<String>,
    /// How results are shown
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    #[default]
    Table,
    Json,
}

#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Runs this model instead, to an end: workers, messages and variables are made up, time is moved
    #[arg(long, value_name = "FILE")]
    pub bpmn: Option<PathBuf>,
    /// How results are shown
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
    /// Leaves the store and the engine's log in this folder instead of a temporary one
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct DeployArgs {
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Debug)]
pub struct StartArgs {
    /// The process's id in its BPMN file
    pub id: String,
    /// A variable; the value is JSON, or else a text
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<(String, serde_json::Value)>,
    /// Idempotency key: the same key starts once, however often it is sent
    #[arg(long)]
    pub key: Option<String>,
    /// The variable whose value only one active instance may have
    #[arg(long, value_name = "NAME")]
    pub unique: Option<String>,
    /// Version [default: the latest]
    #[arg(long)]
    pub version: Option<u32>,
    /// Waits up to a minute for the instance's end, and shows it
    #[arg(long = "await")]
    pub wait: bool,
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Debug)]
pub struct InstancesArgs {
    /// ACTIVE, COMPLETED or CANCELED
    #[arg(long)]
    pub state: Option<String>,
    /// The process's id
    #[arg(long, value_name = "ID")]
    pub process: Option<String>,
    /// A variable's text
    #[arg(long = "var", value_name = "NAME=TEXT", value_parser = pair)]
    pub variables: Vec<(String, String)>,
    /// Rows at most
    #[arg(long, default_value_t = 100)]
    pub limit: usize,
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Debug)]
pub struct InstanceArgs {
    pub key: String,
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Debug)]
pub struct KeyArgs {
    pub key: String,
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Debug)]
pub struct JobsArgs {
    #[arg(long = "type", value_name = "TYPE")]
    pub job_type: Option<String>,
    #[arg(long)]
    pub state: Option<String>,
    /// The process instance's key
    #[arg(long, value_name = "KEY")]
    pub instance: Option<String>,
    /// Rows at most
    #[arg(long, default_value_t = 100)]
    pub limit: usize,
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Debug)]
#[command(
    after_help = "The command runs under `sh -c` and reads the job as JSON from its input. What it prints, a JSON \
object, becomes the job's variables (nothing printed: none). Exit code 0 completes the job; any other fails it, with \
the last line of its error output as the message.\n\n\
Its environment has WF_JOB_KEY, WF_IDEMPOTENCY_KEY (the same for every retry of the job: hand it to the service that \
you call) and WF_LINEAGE_KEY (the same again after a restore from a backup).\n\n\
Example:  wf worker --type charge-card --exec 'curl -sf -H \"Idempotency-Key: $WF_IDEMPOTENCY_KEY\" -d @- https://…'"
)]
pub struct WorkerArgs {
    #[arg(long = "type", value_name = "TYPE")]
    pub job_type: String,
    /// Shell command for each job
    #[arg(long, value_name = "CMD")]
    pub exec: String,
    /// The worker's name in lists [default: unique]
    #[arg(long)]
    pub name: Option<String>,
    /// Jobs at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub concurrency: u32,
    /// Lease in milliseconds; it is extended while the command runs
    #[arg(long, default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub lease_ms: u64,
    /// Ends after this many jobs
    #[arg(long, value_name = "N")]
    pub max: Option<u64>,
    /// Ends after one job
    #[arg(long, conflicts_with = "max")]
    pub once: bool,
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Debug)]
pub struct MessageArgs {
    pub name: String,
    /// Correlation key: the instance that waits for it gets the message
    #[arg(long, default_value = "", hide_default_value = true, value_name = "KEY")]
    pub correlate: String,
    /// Message id: a repeat under the same id correlates nothing
    #[arg(long)]
    pub id: Option<String>,
    /// How long the message waits for somebody, in milliseconds [default: 0, now or never]
    #[arg(long, value_name = "MS")]
    pub ttl_ms: Option<u64>,
    /// A variable; the value is JSON, or else a text
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<(String, serde_json::Value)>,
    /// Idempotency key
    #[arg(long)]
    pub key: Option<String>,
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Debug)]
pub struct ListArgs {
    /// Rows at most
    #[arg(long, default_value_t = 100)]
    pub limit: usize,
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Debug)]
pub struct NodesArgs {
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Debug)]
pub struct ResolveArgs {
    /// The incident's key
    pub key: String,
    /// Tries that the job gets [default: 1 when none are left]
    #[arg(long)]
    pub retries: Option<u32>,
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct OutboxArgs {
    #[command(subcommand)]
    pub command: Option<OutboxCommand>,
    /// pending, shipped or dead
    #[arg(long)]
    pub state: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Debug, Subcommand)]
pub enum OutboxCommand {
    /// Ships messages again under the same dedup key, so that receivers recognise a repeat
    Retry(OutboxRetryArgs),
}

#[derive(Args, Debug)]
pub struct OutboxRetryArgs {
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// Also past the time that the broker remembers ids: it may then deliver twice
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// Connections that send at the same time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub clients: u32,
    /// Length of each scenario
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Store of the server that is started [default: sqlite]
    #[arg(long)]
    pub store: Option<String>,
    /// Nodes on that store, over which the connections are spread; more than one wants PostgreSQL
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub nodes: u32,
    /// A running server instead of one started here; it gets a process of its own
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Jobs of one activation, and of one completion where they are batched
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub batch: u32,
    /// Only these scenarios: starts, whole, whole-batched, duplicates, mix, one-client
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub only: Vec<String>,
    /// Creates this many waiting instances, and reports memory and the time until a restart is ready
    #[arg(long, value_name = "N")]
    pub waiting: Option<u64>,
    /// Finishes this many jobs on one store, and reports whether it stays as fast and as small as it was
    #[arg(long, value_name = "N", conflicts_with = "waiting")]
    pub churn: Option<u64>,
    /// Folder for the store; on the disk that shall be measured [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// full: each commit waits for the disk; normal: a crash of the machine may lose the last ones
    #[arg(long, default_value = "full", value_parser = ["full", "normal"])]
    pub durability: String,
    /// How results are shown
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct BenchBareArgs {
    /// The body of every answer
    #[arg(long)]
    pub answer: String,
    #[arg(long, default_value_t = 201)]
    pub status: u16,
}

/// `name=value`; the value is JSON where it reads as such, else a text.
fn variable(text: &str) -> Result<(String, serde_json::Value), String> {
    let (name, value) = pair(text)?;
    let value = serde_json::from_str(&value).unwrap_or(serde_json::Value::String(value));
    Ok((name, value))
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("NAME=VALUE is expected".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_variable_is_json_or_text() {
        let read = |text| variable(text).map(|(name, value)| format!("{name} {value}"));
        assert_eq!(read("a=1").unwrap(), "a 1");
        assert_eq!(read("a=12.340").unwrap(), "a 12.340");
        assert_eq!(read("a=o-1").unwrap(), "a \"o-1\"");
        assert_eq!(read("a={\"b\":[true]}").unwrap(), "a {\"b\":[true]}");
        assert_eq!(read("a=x=y").unwrap(), "a \"x=y\"");
        assert!(read("a").is_err() && read("=1").is_err());
    }
}
