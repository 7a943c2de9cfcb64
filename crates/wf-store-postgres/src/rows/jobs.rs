//! Jobs and their recorded steps. Next: `waits.rs`.

use tokio_postgres::Row;
use wf_core::rows::{Job, Step};

use super::columns::*;
use crate::connection::Values;

pub fn job_columns(rows: Columns<'_, Job>) -> Values<'_> {
    rows.with(|row| sql_key(row.key))
        .with(|row| sql_key(row.element_key))
        .with(|row| sql_key(row.scope))
        .with(|row| sql_key(row.root))
        .with(|row| sql_key(row.definition))
        .with(|row| i64::from(row.element))
        .with(|row| &*row.tenant)
        .with(|row| &*row.job_type)
        .with(|row| -i64::from(row.priority))
        .with(|row| job_state_name(row.state))
        .with(|row| row.retries)
        .with(|row| &*row.worker)
        .with(|row| row.lease as i64)
        .with(|row| row.due)
        .with(|row| i64::from(row.steps))
        .with(|row| &*row.headers)
        .with(|row| &row.lineage[..])
        .with(|row| row.completion.as_ref().map(|completion| &completion[..]))
        .values()
}

pub fn job(row: &Row) -> Result<Job> {
    let rank: i64 = get(row, 8)?;
    Ok(Job {
        key: key(row, 0)?,
        element_key: key(row, 1)?,
        scope: key(row, 2)?,
        root: key(row, 3)?,
        definition: key(row, 4)?,
        element: number(row, 5)?,
        tenant: text(row, 6)?,
        job_type: text(row, 7)?,
        priority: i32::try_from(-rank).map_err(|_| malformed(8, "not a priority"))?,
        state: named(row, 9, JOB_STATES)?,
        retries: get(row, 10)?,
        worker: text(row, 11)?,
        lease: key(row, 12)?,
        due: get(row, 13)?,
        steps: number(row, 14)?,
        headers: text(row, 15)?,
        lineage: hash(row, 16)?,
        completion: hash_or_null(row, 17)?,
    })
}

pub fn step_columns(rows: Columns<'_, Step>) -> Values<'_> {
    rows.with(|row| sql_key(row.job)).with(|row| &*row.name).with(|row| &*row.result).values()
}

pub fn step(row: &Row) -> Result<Step> {
    Ok(Step { job: key(row, 0)?, name: text(row, 1)?, result: text(row, 2)? })
}
