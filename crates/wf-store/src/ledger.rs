//! Reading what stands, in order and from outside the turns: the logs by position, every row, where the partition stands.
//! For replays, checks and exports. It blocks and belongs on a thread of its own. Next: `wf_engine::proof`, which reads it.

use std::ops::ControlFlow;

use wf_core::rows::Text;
use wf_core::{Millis, Partitions, Row, RowId};

use crate::batch::AuditEntry;
use crate::store::{Opened, StoreError};

/// One row of the command log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    pub position: u64,
    pub id: [u8; 16],
    pub time: Millis,
    pub tenant: Text,
    pub verb: Text,
    /// The command in its stored form, see `codec.rs`.
    pub payload: String,
    /// The digest after this command.
    pub digest: u128,
}

/// What one visit of a row leaves to do.
pub type Visit = ControlFlow<()>;

/// A partition's committed data. Between [`Ledger::freeze`] and [`Ledger::thaw`] all reads see one and the same state;
/// otherwise each sees the latest. Logs only grow while one reads them, so that this needs no freezing.
pub trait Ledger: Send {
    /// `Err`: the store has no partition yet, or cannot be read.
    fn standing(&mut self) -> Result<Opened, StoreError>;

    /// Those of the store: what a command does may depend on them.
    fn partitions(&mut self) -> Result<Partitions, StoreError> {
        Ok(Partitions::ONE)
    }

    fn freeze(&mut self) -> Result<(), StoreError>;
    fn thaw(&mut self) -> Result<(), StoreError>;

    /// From this position on (inclusive), in order, at most `limit`.
    fn log(&mut self, from: u64, limit: usize) -> Result<Vec<LogRow>, StoreError>;
    /// How many commands stand from this position on.
    fn count_log(&mut self, from: u64) -> Result<u64, StoreError>;
    /// The first position that stands in the log: those before it are archived. `None` where the log is empty.
    fn log_begin(&mut self) -> Result<Option<u64>, StoreError> {
        Ok(self.log(0, 1)?.first().map(|row| row.position))
    }

    fn audit(&mut self, from: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError>;
    /// The last position that has left the audit, and the chain after it; the chain begins there. 0 and zeros: none has.
    fn audit_begin(&mut self) -> Result<(u64, [u8; 32]), StoreError> {
        Ok((0, [0; 32]))
    }

    /// Every row of the logical state, table by table. Wants to be frozen: otherwise a table may change between two others.
    fn rows(&mut self, visit: &mut dyn FnMut(Row) -> Visit) -> Result<(), StoreError>;
    fn row(&mut self, id: &RowId) -> Result<Option<Row>, StoreError>;
}
