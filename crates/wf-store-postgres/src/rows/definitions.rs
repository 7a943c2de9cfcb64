//! Definitions and message start events. Next: `instances.rs`.

use tokio_postgres::Row;
use wf_core::rows::{Definition, StartSubscription};

use super::columns::*;
use crate::connection::Values;

pub fn definition_columns(rows: Columns<'_, Definition>) -> Values<'_> {
    rows.with(|row| sql_key(row.key))
        .with(|row| &*row.tenant)
        .with(|row| &*row.process_id)
        .with(|row| i64::from(row.version))
        .with(|row| &*row.resource)
        .with(|row| &row.checksum[..])
        .with(|row| row.deployed_at)
        .with(|row| &*row.xml)
        .values()
}

pub fn definition(row: &Row) -> Result<Definition> {
    Ok(Definition {
        key: key(row, 0)?,
        tenant: text(row, 1)?,
        process_id: text(row, 2)?,
        version: number(row, 3)?,
        resource: text(row, 4)?,
        checksum: hash(row, 5)?,
        deployed_at: get(row, 6)?,
        xml: get::<&[u8]>(row, 7)?.into(),
    })
}

pub fn start_subscription_columns(rows: Columns<'_, StartSubscription>) -> Values<'_> {
    rows.with(|row| &*row.tenant)
        .with(|row| &*row.message)
        .with(|row| &*row.process_id)
        .with(|row| sql_key(row.definition))
        .with(|row| i64::from(row.element))
        .values()
}

pub fn start_subscription(row: &Row) -> Result<StartSubscription> {
    Ok(StartSubscription {
        tenant: text(row, 0)?,
        message: text(row, 1)?,
        process_id: text(row, 2)?,
        definition: key(row, 3)?,
        element: number(row, 4)?,
    })
}
