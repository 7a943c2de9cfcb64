//! Messages to the outside. Next: `columns.rs`.

use bytes::Bytes;
use tokio_postgres::Row;
use wf_store::{OutboxEntry, OutboxId, OutboxRow, OutboxState};

use super::columns::*;
use crate::connection::Values;

pub const OUTBOX_STATES: &[(OutboxState, &str)] =
    &[(OutboxState::Pending, "pending"), (OutboxState::Shipped, "shipped"), (OutboxState::Dead, "dead")];

/// Partition, position, n, sink.
pub fn outbox_ids<'a>(ids: &[&'a OutboxId]) -> Values<'a> {
    Values::none()
        .with(ids.iter().map(|id| sql_partition(id.partition)).collect::<Vec<_>>())
        .with(ids.iter().map(|id| id.position as i64).collect::<Vec<_>>())
        .with(ids.iter().map(|id| i64::from(id.n)).collect::<Vec<_>>())
        .with(ids.iter().map(|id| &*id.sink).collect::<Vec<_>>())
}

/// As `insert_outbox` takes them.
pub fn outbox_columns<'a>(entries: &[&'a OutboxEntry]) -> Values<'a> {
    let ids: Vec<&OutboxId> = entries.iter().map(|entry| &entry.id).collect();
    outbox_ids(&ids)
        .with(entries.iter().map(|entry| &*entry.tenant).collect::<Vec<_>>())
        .with(entries.iter().map(|entry| sql_key(entry.order_key)).collect::<Vec<_>>())
        .with(entries.iter().map(|entry| &*entry.topic).collect::<Vec<_>>())
        .with(entries.iter().map(|entry| &*entry.event_id).collect::<Vec<_>>())
        .with(entries.iter().map(|entry| entry.created_at).collect::<Vec<_>>())
        .with(entries.iter().map(|entry| &entry.envelope[..]).collect::<Vec<_>>())
}

/// Columns as `get_outbox` selects them.
pub fn outbox_row(row: &Row) -> Result<OutboxRow> {
    Ok(OutboxRow {
        entry: OutboxEntry {
            id: OutboxId {
                partition: partition(row, 0)?,
                position: key(row, 1)?,
                n: number(row, 2)?,
                sink: text(row, 3)?,
            },
            tenant: text(row, 4)?,
            order_key: key(row, 5)?,
            topic: text(row, 6)?,
            event_id: text(row, 7)?,
            created_at: get(row, 8)?,
            envelope: Bytes::copy_from_slice(get(row, 14)?),
        },
        state: named(row, 9, OUTBOX_STATES)?,
        attempts: number(row, 10)?,
        last_error: text_or_null(row, 11)?,
        retry_at: get(row, 12)?,
        shipped_at: get(row, 13)?,
    })
}
