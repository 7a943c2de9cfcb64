//! One turn's transaction: the fence first, then everything that the batch holds. The caller begins and ends it.
//! It knows no thread and no channel, and gives no answer before the transaction ends.
//! Next: `rows.rs` for the columns, `writer.rs` for the transaction around it.

use rusqlite::ffi;
use rusqlite::{Error, ErrorCode, params};
use wf_store::{AuditEntry, Batch, CommitError, Fence, Head, LogEntry, OutboxEntry, OutboxId, failpoint};

use crate::sql::{Sql, Statements};
use crate::{records, rows};

pub fn write(statements: &mut Statements, batch: &Batch) -> Result<(), CommitError> {
    check_fence(statements, &batch.fence, &batch.head)?;
    check_inboxes(batch)?;
    let partition = batch.fence.partition;
    for entry in &batch.log {
        must_meet(insert_command(statements, partition, entry), "a command id is known")?;
    }
    for change in &batch.rows {
        let what = if change.existed { "a row is gone" } else { "a row is there already" };
        must_meet(rows::write(statements, change), what)?;
    }
    failpoint::hit("in-turn");
    for entry in &batch.audit {
        must_meet(insert_audit(statements, partition, entry), "an audit entry is known")?;
    }
    for entry in &batch.outbox {
        must_meet(insert_outbox(statements, entry), "a message is in the outbox")?;
    }
    for id in &batch.outbox_retries {
        must_meet(reset_outbox(statements, id), "a message to ship again is gone")?;
    }
    for (entry, tie) in batch.records.iter().zip(batch.fence.new_position..) {
        must_meet(records::put(statements, entry, tie), "a record has not expired")?;
    }
    for row in &batch.suppressed {
        must_meet(records::add_suppressed(statements, row), "a count")?;
    }
    Ok(())
}

/// Exactly one row, else somebody else owns the partition.
fn check_fence(statements: &mut Statements, fence: &Fence, head: &Head) -> Result<(), CommitError> {
    let met = statements.get(Sql::Fence).and_then(|statement| {
        statement.execute(params![
            fence.partition,
            fence.epoch as i64,
            fence.old_position as i64,
            fence.new_position as i64,
            head.next_counter as i64,
            head.digest.to_be_bytes(),
            head.chain,
            head.last_time,
            head.clock.map(|clock| clock.now),
            head.clock.map(|clock| clock.frozen),
        ])
    });
    match met.map_err(commit_error)? {
        1 => Ok(()),
        _ => Err(CommitError::Fenced),
    }
}

/// There is one partition: nobody sends anything to it, and it to nobody.
fn check_inboxes(batch: &Batch) -> Result<(), CommitError> {
    match batch.sent.is_empty() && batch.taken.is_empty() {
        true => Ok(()),
        false => Err(CommitError::Rejected("the store has one partition, and no inbox".to_owned())),
    }
}

/// Written rows must equal sent rows: fewer mean that the turn was decided on a stale idea of the store.
fn must_meet(met: rusqlite::Result<usize>, otherwise: &str) -> Result<(), CommitError> {
    match met.map_err(commit_error)? {
        0 => Err(CommitError::Conflict(otherwise.to_owned())),
        _ => Ok(()),
    }
}

fn insert_command(statements: &mut Statements, partition: u16, entry: &LogEntry) -> rusqlite::Result<usize> {
    statements.get(Sql::InsertCommand)?.execute(params![
        entry.position as i64,
        partition,
        entry.id,
        entry.time,
        entry.tenant,
        entry.verb,
        entry.digest.to_be_bytes(),
        entry.payload,
    ])
}

fn insert_audit(statements: &mut Statements, partition: u16, entry: &AuditEntry) -> rusqlite::Result<usize> {
    statements.get(Sql::InsertAudit)?.execute(params![
        entry.position as i64,
        partition,
        entry.time,
        entry.tenant,
        entry.actor,
        entry.count,
        entry.chain,
        entry.events,
    ])
}

fn insert_outbox(statements: &mut Statements, entry: &OutboxEntry) -> rusqlite::Result<usize> {
    statements.get(Sql::InsertOutbox)?.execute(params![
        entry.id.position as i64,
        entry.id.n,
        entry.id.sink,
        entry.tenant,
        rows::sql_key(entry.order_key),
        entry.topic,
        entry.event_id,
        entry.created_at,
        &*entry.envelope,
    ])
}

fn reset_outbox(statements: &mut Statements, id: &OutboxId) -> rusqlite::Result<usize> {
    statements.get(Sql::ResetOutbox)?.execute(params![id.position as i64, id.n, id.sink])
}

/// What a failed statement says about its turn. Nothing of the turn stands: the caller rolls back.
pub fn commit_error(error: Error) -> CommitError {
    let text = error.to_string();
    let Some(code) = error.sqlite_error() else { return CommitError::Rejected(text) };
    match (code.code, code.extended_code) {
        // A unique key that stands there already: reload and execute again.
        (_, ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_ROWID) => {
            CommitError::Conflict(text)
        }
        (ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch, _) => {
            CommitError::Rejected(text)
        }
        _ => CommitError::Unavailable(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(extended_code: i32) -> &'static str {
        match commit_error(Error::SqliteFailure(ffi::Error::new(extended_code), None)) {
            CommitError::Fenced => "fenced",
            CommitError::Conflict(_) => "conflict",
            CommitError::Rejected(_) => "rejected",
            CommitError::Unavailable(_) => "unavailable",
            CommitError::Unknown(_) => "unknown",
        }
    }

    #[test]
    fn a_failed_statement_says_what_became_of_its_turn() {
        for (code, want) in [
            (ffi::SQLITE_CONSTRAINT_PRIMARYKEY, "conflict"),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, "conflict"),
            (ffi::SQLITE_CONSTRAINT_ROWID, "conflict"),
            (ffi::SQLITE_CONSTRAINT_NOTNULL, "rejected"),
            (ffi::SQLITE_CONSTRAINT_DATATYPE, "rejected"),
            (ffi::SQLITE_TOOBIG, "rejected"),
            (ffi::SQLITE_FULL, "unavailable"),
            (ffi::SQLITE_BUSY, "unavailable"),
            (ffi::SQLITE_READONLY_DBMOVED, "unavailable"),
            (ffi::SQLITE_CANTOPEN, "unavailable"),
            (ffi::SQLITE_IOERR_WRITE, "unavailable"),
            (ffi::SQLITE_CORRUPT, "unavailable"),
        ] {
            assert_eq!(ending(code), want, "{code}");
        }
    }
}
