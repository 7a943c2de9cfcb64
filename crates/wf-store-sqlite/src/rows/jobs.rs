//! Jobs and their recorded steps. Next: `waits.rs`.

use rusqlite::{Result, Row, Statement, params};
use wf_core::rows::{Job, Step};

use super::columns::{self, key, sql_key};

pub fn put_job(statement: &mut Statement, row: &Job) -> Result<usize> {
    statement.execute(params![
        sql_key(row.key),
        sql_key(row.element_key),
        sql_key(row.scope),
        sql_key(row.root),
        sql_key(row.definition),
        row.element,
        row.tenant,
        row.job_type,
        row.priority,
        columns::job_state_name(row.state),
        row.retries,
        row.worker,
        row.lease as i64,
        row.due,
        row.steps,
        row.headers,
        row.lineage,
        row.completion,
    ])
}

pub fn job(row: &Row) -> Result<Job> {
    Ok(Job {
        key: key(row, 0)?,
        element_key: key(row, 1)?,
        scope: key(row, 2)?,
        root: key(row, 3)?,
        definition: key(row, 4)?,
        element: row.get(5)?,
        tenant: row.get(6)?,
        job_type: row.get(7)?,
        priority: row.get(8)?,
        state: columns::named(row, 9, columns::JOB_STATES)?,
        retries: row.get(10)?,
        worker: row.get(11)?,
        lease: key(row, 12)?,
        due: row.get(13)?,
        steps: row.get(14)?,
        headers: row.get(15)?,
        lineage: row.get(16)?,
        completion: row.get(17)?,
    })
}

pub fn put_step(statement: &mut Statement, row: &Step) -> Result<usize> {
    statement.execute(params![sql_key(row.job), row.name, row.result])
}

pub fn step(row: &Row) -> Result<Step> {
    Ok(Step { job: key(row, 0)?, name: row.get(1)?, result: row.get(2)? })
}
