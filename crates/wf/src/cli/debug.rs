//! What may be asked behind the scenes. Next: `commands/debug.rs`, `commands/explain.rs`, `proofs/`.

use clap::{Args, Subcommand};

use super::{ListArgs, Remote, ReplayArgs, VerifyArgs};

#[derive(Args, Debug)]
pub struct DebugArgs {
    #[command(subcommand)]
    pub command: DebugCommand,
}

#[derive(Debug, Subcommand)]
pub enum DebugCommand {
    /// Keys seen, their repeats and conflicts: a client's bug or an attack shows here
    IdempotencyCheck(IdempotencyCheckArgs),
    /// Executes the command log again: each digest and the final tables must be what they were
    Replay(ReplayArgs),
    /// Sums the tables and compares with the digest that the last command left, without a replay
    Verify(VerifyArgs),
    /// The whole life of one request through all layers: what it became, and every repeat that was dropped
    Explain(ExplainArgs),
}

#[derive(Args, Debug)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub end: ExplainEnd,
    #[command(flatten)]
    pub remote: Remote,
}

/// Where to begin.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct ExplainEnd {
    /// An idempotency key, as it is: without the header's quotes
    #[arg(long, allow_hyphen_values = true)]
    pub key: Option<String>,
    /// An instance's key
    #[arg(long, value_name = "KEY")]
    pub instance: Option<String>,
    /// A job's key
    #[arg(long, value_name = "KEY")]
    pub job: Option<String>,
    /// A message's name and id
    #[arg(long, value_name = "NAME:ID", allow_hyphen_values = true)]
    pub message: Option<String>,
}

#[derive(Args, Debug)]
pub struct IdempotencyCheckArgs {
    #[arg(long, default_value_t = 24)]
    pub hours: u32,
    #[command(flatten)]
    pub list: ListArgs,
}
