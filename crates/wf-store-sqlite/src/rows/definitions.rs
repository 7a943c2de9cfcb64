//! Definitions and message start events. Next: `instances.rs`.

use rusqlite::{Result, Row, Statement, params};
use wf_core::rows::{Definition, StartSubscription};

use super::columns::{key, sql_key};

pub fn put_definition(statement: &mut Statement, row: &Definition) -> Result<usize> {
    statement.execute(params![
        sql_key(row.key),
        row.tenant,
        row.process_id,
        row.version,
        row.resource,
        row.checksum,
        row.deployed_at,
        row.xml,
    ])
}

pub fn definition(row: &Row) -> Result<Definition> {
    Ok(Definition {
        key: key(row, 0)?,
        tenant: row.get(1)?,
        process_id: row.get(2)?,
        version: row.get(3)?,
        resource: row.get(4)?,
        checksum: row.get(5)?,
        deployed_at: row.get(6)?,
        xml: row.get_ref(7)?.as_blob()?.into(),
    })
}

pub fn put_start_subscription(statement: &mut Statement, row: &StartSubscription) -> Result<usize> {
    statement.execute(params![row.tenant, row.message, row.process_id, sql_key(row.definition), row.element])
}

pub fn start_subscription(row: &Row) -> Result<StartSubscription> {
    Ok(StartSubscription {
        tenant: row.get(0)?,
        message: row.get(1)?,
        process_id: row.get(2)?,
        definition: key(row, 3)?,
        element: row.get(4)?,
    })
}
