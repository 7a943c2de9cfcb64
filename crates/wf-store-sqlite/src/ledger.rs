//! A ledger on a read connection of its own: the logs and all tables in order, frozen in one snapshot where asked.
//! A frozen one keeps checkpoints from emptying the write-ahead log: it is for checks, not for living in.
//! Next: `rows.rs` for the columns.

use rusqlite::{Connection, Row as SqlRow, params};
use wf_core::{Row, RowId};
use wf_store::{AuditEntry, Fence, Head, Ledger, LogRow, Opened, StoreError, TestClock, Visit};

use crate::readers::store_error;
use crate::rows;
use crate::sql::{Sql, Statements};

pub struct SqliteLedger {
    connection: Connection,
}

impl SqliteLedger {
    pub fn over(connection: Connection) -> SqliteLedger {
        SqliteLedger { connection }
    }

    fn read<T>(&self, read: impl FnOnce(&mut Statements) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        read(&mut Statements::new(&self.connection)).map_err(store_error)
    }
}

impl Ledger for SqliteLedger {
    fn standing(&mut self) -> Result<Opened, StoreError> {
        match self.read(|statements| statements.get(Sql::Standing)?.query_row([], opened)) {
            Err(StoreError(text)) if text == rusqlite::Error::QueryReturnedNoRows.to_string() => {
                Err(StoreError("it has no partition yet: no server has run on it".to_owned()))
            }
            standing => standing,
        }
    }

    fn freeze(&mut self) -> Result<(), StoreError> {
        self.read(|statements| {
            statements.run(Sql::BeginRead)?;
            // The snapshot is taken by the first read.
            statements.get(Sql::Standing)?.exists([]).map(drop)
        })
    }

    fn thaw(&mut self) -> Result<(), StoreError> {
        match self.connection.is_autocommit() {
            true => Ok(()),
            false => self.read(|statements| statements.run(Sql::Commit).map(drop)),
        }
    }

    fn log(&mut self, from: u64, limit: usize) -> Result<Vec<LogRow>, StoreError> {
        self.read(|statements| {
            statements.get(Sql::ScanLog)?.query_map(params![from as i64, limit as i64], log_row)?.collect()
        })
    }

    fn count_log(&mut self, from: u64) -> Result<u64, StoreError> {
        self.read(|statements| statements.get(Sql::CountLog)?.query_row([from as i64], |row| row.get::<_, i64>(0)))
            .map(|count| count as u64)
    }

    fn audit(&mut self, from: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.read(|statements| {
            statements.get(Sql::ReadAudit)?.query_map(params![from as i64, limit as i64], audit_entry)?.collect()
        })
    }

    fn rows(&mut self, visit: &mut dyn FnMut(Row) -> Visit) -> Result<(), StoreError> {
        self.read(|statements| rows::each(statements, visit))
    }

    fn row(&mut self, id: &RowId) -> Result<Option<Row>, StoreError> {
        self.read(|statements| rows::read(statements, id))
    }
}

/// Columns in the order of `standing`.
fn opened(row: &SqlRow) -> rusqlite::Result<Opened> {
    let position = row.get::<_, i64>(2)? as u64;
    Ok(Opened {
        fence: Fence {
            partition: row.get(0)?,
            epoch: row.get::<_, i64>(1)? as u64,
            old_position: position,
            new_position: position,
        },
        head: head(row, 3)?,
    })
}

/// Six columns from `first` on.
pub fn head(row: &SqlRow, first: usize) -> rusqlite::Result<Head> {
    let clock: Option<i64> = row.get(first + 4)?;
    let frozen: Option<bool> = row.get(first + 5)?;
    Ok(Head {
        next_counter: row.get::<_, i64>(first)? as u64,
        digest: u128::from_be_bytes(row.get(first + 1)?),
        chain: row.get(first + 2)?,
        last_time: row.get(first + 3)?,
        clock: clock.zip(frozen).map(|(now, frozen)| TestClock { now, frozen }),
    })
}

fn log_row(row: &SqlRow) -> rusqlite::Result<LogRow> {
    Ok(LogRow {
        position: row.get::<_, i64>(0)? as u64,
        id: row.get(1)?,
        time: row.get(2)?,
        tenant: row.get(3)?,
        verb: row.get(4)?,
        payload: row.get(5)?,
        digest: u128::from_be_bytes(row.get(6)?),
    })
}

fn audit_entry(row: &SqlRow) -> rusqlite::Result<AuditEntry> {
    Ok(AuditEntry {
        position: row.get::<_, i64>(0)? as u64,
        time: row.get(1)?,
        tenant: row.get(2)?,
        actor: row.get(3)?,
        events: row.get(4)?,
        count: row.get(5)?,
        chain: row.get(6)?,
    })
}
