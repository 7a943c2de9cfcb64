//! A ledger over the maps: each read sees the latest, a frozen one the copy that was made then. Next: `memory/commit.rs`.

use std::sync::{Arc, Mutex, PoisonError};

use wf_core::{Partitions, Row, RowId};

use crate::batch::AuditEntry;
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
            Ok(row.standing(partition))
        })
    }

    fn partitions(&mut self) -> Result<Partitions, StoreError> {
        Ok(self.read(|state| state.numbers))
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
            let from_here = state.log.range((partition, from)..=(partition, u64::MAX));
            from_here.take(limit).map(|(_, entry)| row(entry)).collect()
        }))
    }

    fn count_log(&mut self, from: u64) -> Result<u64, StoreError> {
        let partition = self.partition;
        let here = |state: &State| state.log.range((partition, from)..=(partition, u64::MAX)).count();
        Ok(self.read(here) as u64)
    }

    fn audit(&mut self, from: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let partition = self.partition;
        Ok(self.read(|state| {
            let from_here = state.audit.range((partition, from)..=(partition, u64::MAX));
            from_here.take(limit).map(|(_, entry)| entry.clone()).collect()
        }))
    }

    fn rows(&mut self, visit: &mut dyn FnMut(Row) -> Visit) -> Result<(), StoreError> {
        self.read(|state| {
            // Whether it was stopped or came to the end: nothing failed.
            let _ = state.rows_of(self.partition).into_iter().flatten().try_for_each(|(_, row)| visit(row.clone()));
        });
        Ok(())
    }

    fn row(&mut self, id: &RowId) -> Result<Option<Row>, StoreError> {
        Ok(self.read(|state| state.rows_of(self.partition)?.get(id).cloned()))
    }
}
