//! Proofs over what is stored, for anybody who does not want to believe: the log executed again (`replay.rs`), the tables
//! summed (`tables.rs`), the audit's chain computed again (`audit.rs`). They read a ledger and change nothing.
//! Next: `feed.rs`, by which a replay gets its log.

mod audit;
mod feed;
mod replay;
mod tables;

pub use audit::{AuditFault, AuditReport, verify_audit};
pub use replay::{Divergence, Mismatch, Range, ReplayReport, Verdict, checkpoint, replay};
pub use tables::{Difference, TablesReport, verify_tables};

use wf_store::{StoreError, Visit};

/// Why there is no verdict: the machine's fault, nothing was proven or disproven.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error(
        "the log begins at position {first}, and {have}: the checkpoint from just before it is needed \
         (in `checkpoints/` of the folder in which the log was archived: copy it, or name the folder with --archived-in)"
    )]
    NoCheckpoint { first: u64, have: String },
    #[error("the checkpoint at position {position} does not sum up to its own digest: it was changed")]
    BadCheckpoint { position: u64 },
    #[error("no command stands in that range: the replay began behind position {base} and ended at {last}")]
    Nothing { base: u64, last: u64 },
    #[error("the replay's own store: {0}")]
    Scratch(String),
    #[error("stopped")]
    Stopped,
    #[error("start a thread: {0}")]
    Thread(std::io::Error),
}

/// How far a proof has come: commands, or rows where it reads tables; of about so many, where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub of: Option<u64>,
}

/// Called now and then while a proof goes on; may end it.
pub type Tell<'t> = &'t mut dyn FnMut(Progress) -> Visit;

fn told(tell: Tell<'_>, progress: Progress) -> Result<(), ProofError> {
    if tell(progress).is_break() { Err(ProofError::Stopped) } else { Ok(()) }
}
