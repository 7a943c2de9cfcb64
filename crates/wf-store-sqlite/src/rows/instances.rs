//! Scopes, elements, variables: the tables that every start touches. Next: `jobs.rs`.

use std::sync::Arc;

use rusqlite::{Result, Row, Statement, params};
use wf_core::rows::{Element, Instance, Scope, Variable};

use super::columns::{self, key, sql_key};

pub fn put_scope(statement: &mut Statement, row: &Scope) -> Result<usize> {
    let instance = row.instance.as_deref();
    let unique = instance.and_then(|instance| instance.unique.as_ref());
    statement.execute(params![
        sql_key(row.key),
        sql_key(row.root),
        sql_key(row.parent),
        sql_key(row.definition),
        row.element,
        columns::scope_state_name(row.state),
        row.active,
        columns::pairs_text(&row.joins),
        columns::pairs_text(&row.visits),
        row.lineage,
        columns::after_text(&row.after),
        instance.map(|instance| &*instance.tenant),
        instance.map(|instance| &*instance.process_id),
        instance.map(|instance| instance.version),
        instance.map(|instance| instance.started_at),
        instance.map(|instance| instance.ended_at),
        instance.map(|instance| instance.started_position as i64),
        instance.map(|instance| instance.ended_position as i64),
        unique.map(|(variable, _)| &**variable),
        unique.map(|(_, value)| value),
        instance.and_then(|instance| instance.start_correlation.as_deref()),
        instance.map(|instance| instance.steps as i64),
    ])
}

pub fn scope(row: &Row) -> Result<Scope> {
    Ok(Scope {
        key: key(row, 0)?,
        root: key(row, 1)?,
        parent: key(row, 2)?,
        definition: key(row, 3)?,
        element: row.get(4)?,
        state: columns::named(row, 5, columns::SCOPE_STATES)?,
        active: row.get(6)?,
        joins: columns::pairs(row, 7)?,
        visits: columns::pairs(row, 8)?,
        lineage: row.get(9)?,
        after: columns::after(row, 10)?,
        instance: instance(row)?,
    })
}

fn instance(row: &Row) -> Result<Option<Arc<Instance>>> {
    let Some(tenant) = row.get(11)? else { return Ok(None) };
    let unique: Option<Arc<str>> = row.get(18)?;
    let instance = Instance {
        tenant,
        process_id: row.get(12)?,
        version: row.get(13)?,
        started_at: row.get(14)?,
        ended_at: row.get(15)?,
        started_position: key(row, 16)?,
        ended_position: key(row, 17)?,
        unique: unique.map(|variable| Ok::<_, rusqlite::Error>((variable, row.get(19)?))).transpose()?,
        start_correlation: row.get(20)?,
        steps: key(row, 21)?,
    };
    Ok(Some(instance.into()))
}

pub fn put_element(statement: &mut Statement, row: &Element) -> Result<usize> {
    statement.execute(params![
        sql_key(row.scope),
        sql_key(row.key),
        sql_key(row.root),
        row.element,
        columns::phase_name(row.phase),
        sql_key(row.job),
        sql_key(row.incident),
        row.has_locals,
        columns::attached_text(&row.attached),
    ])
}

pub fn element(row: &Row) -> Result<Element> {
    Ok(Element {
        scope: key(row, 0)?,
        key: key(row, 1)?,
        root: key(row, 2)?,
        element: row.get(3)?,
        phase: columns::named(row, 4, columns::PHASES)?,
        job: key(row, 5)?,
        incident: key(row, 6)?,
        has_locals: row.get(7)?,
        attached: columns::attached(row, 8)?,
    })
}

pub fn put_variable(statement: &mut Statement, row: &Variable) -> Result<usize> {
    statement.execute(params![sql_key(row.scope), row.name, row.value])
}

pub fn variable(row: &Row) -> Result<Variable> {
    Ok(Variable { scope: key(row, 0)?, name: row.get(1)?, value: row.get(2)? })
}
