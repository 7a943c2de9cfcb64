//! What may be said to a node, and to its store while none runs. Next: `node.rs` and `backup.rs`, which do it.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Output;

/// What `dev` and `server` have in common.
#[derive(Args, Clone, Debug, Default)]
pub struct NodeArgs {
    /// Address to listen on; port 0 takes any free one, the real address is printed [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Folder of the embedded store, made where missing [default: ./wf-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// sqlite, or the postgres:// address of a database that several nodes share; a list of them, with commas between,
    /// spreads tenants [default: sqlite]
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// Name among the nodes of a store; one that starts again under its name takes its partitions back at once [default:
    /// a new one for each run]
    #[arg(long, value_name = "NAME")]
    pub node_name: Option<String>,
    /// Where other nodes reach this one: http://HOST:PORT [default: the address that it listens on]
    #[arg(long, value_name = "URL")]
    pub advertise: Option<String>,
    /// Configuration [default: ./wf.toml where there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Time stands still and moves only by PUT /api/v1/clock
    #[arg(long)]
    pub test_clock: bool,
    /// How logs are written to stderr [default: text]
    #[arg(long, value_enum)]
    pub log_format: Option<LogFormat>,
}

#[derive(Args, Debug)]
pub struct ServerArgs {
    #[command(flatten)]
    pub node: NodeArgs,
    /// Only checks the configuration, and lists everything that is wrong with it
    #[arg(long)]
    pub check: bool,
}

/// Which store, where no server is asked.
#[derive(Args, Debug)]
pub struct StoreArgs {
    /// Folder of the embedded store [default: ./wf-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Configuration that names the folder [default: ./wf.toml where there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How results are shown
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct MigrateArgs {
    /// postgres://…, or a list as the nodes are told it
    #[arg(long, value_name = "URL")]
    pub store: String,
    /// Changes nothing; exit 1 where something is to be done
    #[arg(long)]
    pub check: bool,
}

#[derive(Args, Debug)]
pub struct TenantsArgs {
    #[command(subcommand)]
    pub command: TenantsCommand,
}

#[derive(Debug, Subcommand)]
pub enum TenantsCommand {
    /// Lists the databases, and who lives in each
    List {
        #[command(flatten)]
        all: AllArgs,
        /// How results are shown
        #[arg(long, value_enum, default_value_t)]
        output: Output,
    },
    /// Says where a tenant lives that has not worked yet; without this it settles where the fewest are
    Settle {
        tenant: String,
        /// HOST:PORT/DATABASE, as `wf tenants list` shows it
        #[arg(long, value_name = "ADDRESS")]
        on: String,
        #[command(flatten)]
        all: AllArgs,
    },
}

#[derive(Args, Debug)]
pub struct AllArgs {
    /// The databases, as the nodes are told them: postgres://…,postgres://…
    #[arg(long, value_name = "URLS")]
    pub store: String,
}

#[derive(Args, Debug)]
pub struct BackupArgs {
    /// The file to make; one that is there is not written over
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    #[command(flatten)]
    pub store: StoreArgs,
}

#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// What `wf backup` made
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    #[command(flatten)]
    pub store: StoreArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

impl LogFormat {
    pub fn name(self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }
}
