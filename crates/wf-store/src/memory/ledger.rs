//! A ledger over the maps: each read sees the latest, a frozen one the copy that was made then. Next: `memory/commit.rs`.

use std::sync::{Arc, Mutex, PoisonError};

use wf_core::{Row, RowId};

use crate::batch::{AuditEntry, Fence};
use crate::ledger::{Ledger, LogRow, Visit};
use crate::memory::State;
use crate::store::{Opened, StoreError};

pub(super) fn of(state: Arc<Mutex<State>>, partition: u16) -> Box<dyn Ledger> {
    Box::new(MemoryLedger { state, frozen: None, partition })
}

struct MemoryLedger {
    state: Arc<Mutex<State>>,
    frozen: Option<State>,
    partition: u16,
}

impl MemoryLedger {
    fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        match &self.frozen {
            Some(state) => read(state),
            None => read(&self.state.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

impl Ledger for MemoryLedger {
    fn standing(&mut self) -> Result<Opened, StoreError> {
        let partition = self.partition;
        self.read(|state| {
            let row = state.partitions.get(&partition).ok_or_else(|| StoreError("no such partition".to_owned()))?;
            let (epoch, position) = (row.epoch, row.position);
            Ok(Opened {
                fence: Fence { partition, epoch, old_position: position, new_position: position },
                head: row.head,
            })
        })
    }

    fn freeze(&mut self) -> Result<(), StoreError> {
        self.frozen = Some(self.read(State::clone));
        Ok(())
    }

    fn thaw(&mut self) -> Result<(), StoreError> {
        self.frozen = None;
        Ok(())
    }

    fn log(&mut self, from: u64, limit: usize) -> Result<Vec<LogRow>, StoreError> {
        let row = |entry: &crate::batch::LogEntry| LogRow {
            position: entry.position,
            id: entry.id,
            time: entry.time,
            tenant: entry.tenant.clone(),
            verb: entry.verb.into(),
            payload: entry.payload.clone(),
            digest: entry.digest,
        };
        let partition = self.partition;
        Ok(self.read(|state| {
            let from_here = state.log.range((from, 0)..).filter(|((_, of), _)| *of == partition);
            from_here.take(limit).map(|(_, entry)| row(entry)).collect()
        }))
    }

    fn count_log(&mut self, from: u64) -> Result<u64, StoreError> {
        let partition = self.partition;
        let here = |state: &State| state.log.range((from, 0)..).filter(|((_, of), _)| *of == partition).count();
        Ok(self.read(here) as u64)
    }

    fn audit(&mut self, from: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let partition = self.partition;
        Ok(self.read(|state| {
            let from_here = state.audit.range((from, 0)..).filter(|((_, of), _)| *of == partition);
            from_here.take(limit).map(|(_, entry)| entry.clone()).collect()
        }))
    }

    fn rows(&mut self, visit: &mut dyn FnMut(Row) -> Visit) -> Result<(), StoreError> {
        self.read(|state| {
            // Whether it was stopped or came to the end: nothing failed.
            let _ = state.rows.values().cloned().try_for_each(visit);
        });
        Ok(())
    }

    fn row(&mut self, id: &RowId) -> Result<Option<Row>, StoreError> {
        Ok(self.read(|state| state.rows.get(id).cloned()))
    }
}
