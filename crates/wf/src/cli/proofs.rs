//! What may be said of proofs, the audit and the command log. Next: `crate::proofs`, which does it.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::Remote;

/// Which part of a store is proven.
#[derive(Args, Debug)]
pub struct Proven {
    /// Of a store with several: this partition alone [default: all of them]
    #[arg(long, value_name = "N", conflicts_with = "data", value_parser = clap::value_parser!(u16).range(1..))]
    pub partition: Option<u16>,
    #[command(flatten)]
    pub source: Source,
}

/// What is looked at: a folder, a database, or a server's store.
#[derive(Args, Debug)]
pub struct Source {
    /// A data folder, read beside the server that may run on it [default: the server at --server reads its own]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A PostgreSQL database, read beside the nodes that may run on it
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub store: Option<String>,
    #[command(flatten)]
    pub remote: Remote,
}

#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// Compares from this position on; commands before it are executed, from the nearest checkpoint on
    #[arg(long, value_name = "POSITION")]
    pub from: Option<u64>,
    /// Ends at this position; the tables are compared only at the log's end
    #[arg(long, value_name = "POSITION")]
    pub to: Option<u64>,
    /// With --store: the folder in which the log was archived, with its `checkpoints`
    #[arg(long, value_name = "DIR")]
    pub archived_in: Option<PathBuf>,
    #[command(flatten)]
    pub proven: Proven,
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub proven: Proven,
}

#[derive(Args, Debug)]
pub struct AuditArgs {
    #[command(subcommand)]
    pub command: AuditCommand,
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Holds the audit against the command log and its hash chain against its head; names the first row that is wrong
    Verify(AuditVerifyArgs),
    /// One line of JSON per event, in order; ids are the events' own, so that a repeated export adds nothing
    Export(AuditExportArgs),
    /// Takes the oldest weeks of a database's audit into files; the chain goes on behind them
    Archive(AuditArchiveArgs),
}

#[derive(Args, Debug)]
pub struct AuditVerifyArgs {
    #[command(flatten)]
    pub proven: Proven,
}

#[derive(Args, Debug)]
pub struct AuditExportArgs {
    /// The first event, inclusive: the last one of an earlier export, say
    #[arg(long, value_name = "EVENT_ID")]
    pub from: Option<String>,
    #[command(flatten)]
    pub source: Source,
}

#[derive(Args, Debug)]
pub struct LogArgs {
    #[command(subcommand)]
    pub command: LogCommand,
}

#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Takes the oldest commands out of the log into a file, after a checkpoint at which replays begin from then on
    Archive(LogArchiveArgs),
}

#[derive(Args, Debug)]
pub struct LogArchiveArgs {
    /// Commands before this position, event id or time (2026-01-31T00:00:00Z) go; with --store whole weeks before this time
    #[arg(long, value_name = "WHERE")]
    pub before: String,
    /// A PostgreSQL database, as its schema's owner; its nodes may run
    #[arg(long, value_name = "URL", requires = "data")]
    pub store: Option<String>,
    #[command(flatten)]
    pub kept: Kept,
}

#[derive(Args, Debug)]
pub struct AuditArchiveArgs {
    /// Whole weeks before this time go (2026-01-31T00:00:00Z)
    #[arg(long, value_name = "TIME")]
    pub before: String,
    /// A PostgreSQL database, as its schema's owner; its nodes may run
    #[arg(long, value_name = "URL", requires = "data")]
    pub store: String,
    #[command(flatten)]
    pub kept: Kept,
}

/// Where an archive lies.
#[derive(Args, Debug)]
pub struct Kept {
    /// The data folder, on which no server may run [default: ./wf-data]; with --store, where checkpoints and archive of this
    /// store are kept
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where the rows are written to [default: DIR/archive]
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

impl Kept {
    pub fn data(&self) -> &Path {
        self.data.as_deref().unwrap_or(Path::new("./wf-data"))
    }

    pub fn to(&self) -> PathBuf {
        self.to.clone().unwrap_or_else(|| self.data().join("archive"))
    }
}
