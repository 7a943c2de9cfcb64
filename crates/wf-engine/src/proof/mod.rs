//! Proofs over what is stored, for anybody who does not want to believe: the log executed again (`replay.rs`), the tables
//! summed (`tables.rs`), the audit's chain computed again (`audit.rs`). They read a ledger and change nothing.

mod audit;
mod feed;
mod replay;
mod tables;

pub use audit::{AuditFault, AuditReport, verify_audit};
pub use replay::{Divergence, Mismatch, Range, ReplayReport, Verdict, replay};
pub use tables::{Difference, TablesReport, verify_tables};

use wf_store::StoreError;

/// Why there is no verdict: the machine's fault, nothing was proven or disproven.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("the log begins at position {first}, and {have}: a checkpoint from just before it is needed")]
    NoCheckpoint { first: u64, have: String },
    #[error("the replay's own store: {0}")]
    Scratch(String),
    #[error("start a thread: {0}")]
    Thread(std::io::Error),
}

/// How far a proof has come, in positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    /// Positions jump where an epoch opens: a share of these, not a count.
    pub from: u64,
    pub until: u64,
}

/// Called now and then while a proof goes on.
pub type Tell<'t> = &'t mut dyn FnMut(Progress);
