//! A ledger in plain vectors: what somebody with a shell could make of a store.

use std::collections::BTreeMap;

use serde::Deserialize;
use wf_core::{Row, RowId};
use wf_store::*;

#[derive(Clone)]
pub struct Book {
    pub standing: Opened,
    pub log: Vec<LogRow>,
    pub audit: Vec<AuditEntry>,
    pub rows: BTreeMap<RowId, Row>,
}

impl Book {
    /// Everything that stands in a store.
    pub async fn of(store: &dyn Store) -> Book {
        let mut ledger = store.ledger(1).await.unwrap();
        let mut rows = BTreeMap::new();
        ledger
            .rows(&mut |row| {
                rows.insert(row.id(), row);
                Visit::Continue(())
            })
            .unwrap();
        Book {
            standing: ledger.standing().unwrap(),
            log: ledger.log(0, usize::MAX >> 1).unwrap(),
            audit: ledger.audit(0, usize::MAX >> 1).unwrap(),
            rows,
        }
    }

    /// As an earlier version wrote them. The tables are not part of it.
    pub fn golden(log: &str, audit: &str) -> Book {
        let log: Vec<LogRow> = log.lines().map(log_row).collect();
        let audit: Vec<AuditEntry> = audit.lines().map(audit_entry).collect();
        let position = log.last().unwrap().position;
        let fence = Fence { partition: 1, epoch: 9, old_position: position, new_position: position };
        let head = Head { chain: audit.last().unwrap().chain, ..Head::default() };
        Book { standing: Opened { fence, head }, log, audit, rows: BTreeMap::new() }
    }

    pub fn ledger(&self) -> Box<dyn Ledger> {
        Box::new(self.clone())
    }
}

#[derive(Deserialize)]
struct LogLine {
    position: u64,
    time: i64,
    tenant: String,
    verb: String,
    digest: String,
    payload: String,
}

fn log_row(line: &str) -> LogRow {
    let line: LogLine = serde_json::from_str(line).unwrap();
    LogRow {
        position: line.position,
        id: [0; 16],
        time: line.time,
        tenant: line.tenant.into(),
        verb: line.verb.into(),
        payload: line.payload,
        digest: u128::from_str_radix(&line.digest, 16).unwrap(),
    }
}

#[derive(Deserialize)]
struct AuditLine {
    position: u64,
    time: i64,
    tenant: String,
    actor: String,
    chain: String,
    events: String,
}

fn audit_entry(line: &str) -> AuditEntry {
    let line: AuditLine = serde_json::from_str(line).unwrap();
    let byte = |n: usize| u8::from_str_radix(&line.chain[2 * n..2 * n + 2], 16).unwrap();
    AuditEntry {
        position: line.position,
        time: line.time,
        tenant: line.tenant.into(),
        actor: line.actor.into(),
        count: serde_json::from_str::<Vec<serde_json::Value>>(&line.events).unwrap().len() as u32,
        events: line.events,
        chain: std::array::from_fn(byte),
    }
}

impl Ledger for Book {
    fn standing(&mut self) -> Result<Opened, StoreError> {
        Ok(self.standing.clone())
    }

    fn freeze(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn thaw(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn log(&mut self, from: u64, limit: usize) -> Result<Vec<LogRow>, StoreError> {
        Ok(self.log.iter().filter(|row| row.position >= from).take(limit).cloned().collect())
    }

    fn count_log(&mut self, from: u64) -> Result<u64, StoreError> {
        Ok(self.log.iter().filter(|row| row.position >= from).count() as u64)
    }

    fn audit(&mut self, from: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        Ok(self.audit.iter().filter(|entry| entry.position >= from).take(limit).cloned().collect())
    }

    fn rows(&mut self, visit: &mut dyn FnMut(Row) -> Visit) -> Result<(), StoreError> {
        let _ = self.rows.values().cloned().try_for_each(visit);
        Ok(())
    }

    fn row(&mut self, id: &RowId) -> Result<Option<Row>, StoreError> {
        Ok(self.rows.get(id).cloned())
    }
}
