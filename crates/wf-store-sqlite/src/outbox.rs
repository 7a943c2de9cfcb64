//! Claims and marks of messages: who may ship what, in which order. They stand beside the turns.
//! It speaks to no broker. Next: `uses.rs`, the counts of repeats.

use std::collections::HashSet;

use bytes::Bytes;
use rusqlite::{Result, Row, params};
use wf_store::*;

use crate::PARTITION;
use crate::rows::{key_of, named};
use crate::sql::{Sql, Statements};

pub const STATES: [(OutboxState, &str); 3] =
    [(OutboxState::Pending, "pending"), (OutboxState::Shipped, "shipped"), (OutboxState::Dead, "dead")];

pub fn state_name(state: OutboxState) -> &'static str {
    STATES.iter().find(|(other, _)| *other == state).map_or("", |(_, name)| name)
}

pub fn get(statements: &mut Statements, id: &OutboxId) -> Result<Option<OutboxRow>> {
    let mut rows = statements.get(Sql::GetOutbox)?.query(params![id.position as i64, id.n, id.sink])?;
    rows.next()?.map(outbox_row).transpose()
}

pub fn outbox_row(row: &Row) -> Result<OutboxRow> {
    let entry = OutboxEntry {
        id: OutboxId { partition: PARTITION, position: key_of(row.get(0)?), n: row.get(1)?, sink: row.get(2)? },
        tenant: row.get(3)?,
        order_key: key_of(row.get(4)?),
        topic: row.get(5)?,
        event_id: row.get(6)?,
        created_at: row.get(7)?,
        envelope: Bytes::copy_from_slice(row.get_ref(13)?.as_blob()?),
    };
    Ok(OutboxRow {
        entry,
        state: named(row, 8, &STATES)?,
        attempts: row.get(9)?,
        last_error: row.get(10)?,
        retry_at: row.get(11)?,
        shipped_at: row.get(12)?,
    })
}

/// What may be claimed now, read beside the writer: a long backlog costs it nothing. The first unsent message of an
/// order key bars the later ones, whether it may go or not.
pub fn claimable(statements: &mut Statements, claim: &Claim) -> Result<Vec<OutboxId>> {
    let mut barred = HashSet::new();
    let mut found = Vec::new();
    let mut rows = statements.get(Sql::Unsent)?.query(params![claim.sink, claim.now])?;
    while let Some(row) = rows.next()?.filter(|_| found.len() < claim.limit) {
        let (is_dead, may_go): (bool, bool) = (row.get(3)?, row.get(4)?);
        let is_first = !(is_dead && claim.dead_pass) && barred.insert(row.get::<_, i64>(2)?);
        if is_first && may_go {
            found.push(OutboxId {
                partition: PARTITION,
                position: key_of(row.get(0)?),
                n: row.get(1)?,
                sink: claim.sink.clone(),
            });
        }
    }
    Ok(found)
}

/// Claims what is still free of the chosen, and brings the rows.
pub fn claim(statements: &mut Statements, claim: &Claim, ids: &[OutboxId]) -> Result<Vec<OutboxRow>> {
    let until = claim.now.saturating_add(claim.lease_ms);
    let mut claimed = Vec::with_capacity(ids.len());
    for id in ids {
        let params = params![id.position as i64, id.n, id.sink, claim.owner, until, claim.now];
        if statements.get(Sql::Claim)?.execute(params)? == 1 {
            claimed.extend(get(statements, id)?);
        }
    }
    Ok(claimed)
}

/// A mark of somebody who no longer holds the claim meets no row.
pub fn mark(statements: &mut Statements, mark: &Mark) -> Result<usize> {
    let Mark { id, owner, result } = mark;
    let position = id.position as i64;
    match result {
        MarkResult::Shipped { at } => {
            statements.get(Sql::MarkShipped)?.execute(params![position, id.n, id.sink, owner, at])
        }
        MarkResult::Retry { at, error } => {
            statements.get(Sql::MarkRetry)?.execute(params![position, id.n, id.sink, owner, at, error])
        }
        MarkResult::Dead { error } => {
            statements.get(Sql::MarkDead)?.execute(params![position, id.n, id.sink, owner, error])
        }
        MarkResult::Release => statements.get(Sql::MarkReleased)?.execute(params![position, id.n, id.sink, owner]),
    }
}

pub fn stats(statements: &mut Statements) -> Result<Vec<OutboxStats>> {
    let rows = statements.get(Sql::OutboxStats)?.query_map([], |row| {
        Ok(OutboxStats {
            sink: row.get(0)?,
            pending: row.get::<_, i64>(1)? as u64,
            dead: row.get::<_, i64>(2)? as u64,
            oldest_pending: row.get(3)?,
        })
    })?;
    rows.collect()
}
