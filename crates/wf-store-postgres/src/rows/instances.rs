//! Scopes, elements, variables: the tables that every start touches. Next: `jobs.rs`.

use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use wf_core::rows::{Element, Instance, Scope, Variable};

use super::columns::*;
use crate::connection::Values;

pub fn scope_columns(rows: Columns<'_, Scope>) -> Values<'_> {
    rows.with(|row| sql_key(row.key))
        .with(|row| sql_key(row.root))
        .with(|row| sql_key(row.parent))
        .with(|row| sql_key(row.definition))
        .with(|row| i64::from(row.element))
        .with(|row| scope_state_name(row.state))
        .with(|row| i64::from(row.active))
        .with(|row| pairs_text(&row.joins))
        .with(|row| pairs_text(&row.visits))
        .with(|row| &row.lineage[..])
        .with(|row| after_text(&row.after))
        .with(of_instance(|instance| &*instance.tenant))
        .with(of_instance(|instance| &*instance.process_id))
        .with(of_instance(|instance| i64::from(instance.version)))
        .with(of_instance(|instance| instance.started_at))
        .with(of_instance(|instance| instance.ended_at))
        .with(of_instance(|instance| instance.started_position as i64))
        .with(of_instance(|instance| instance.ended_position as i64))
        .with(|row| row.instance.as_deref()?.unique.as_ref().map(|(variable, _)| &**variable))
        .with(|row| row.instance.as_deref()?.unique.as_ref().map(|(_, value)| &value[..]))
        .with(|row| row.instance.as_deref()?.start_correlation.as_deref())
        .with(of_instance(|instance| instance.steps as i64))
        .values()
}

/// What only the root scope has.
fn of_instance<'a, V: ToSql + 'a>(value: impl Fn(&'a Instance) -> V) -> impl Fn(&'a Scope) -> Option<V> {
    move |scope| scope.instance.as_deref().map(&value)
}

pub fn scope(row: &Row) -> Result<Scope> {
    Ok(Scope {
        key: key(row, 0)?,
        root: key(row, 1)?,
        parent: key(row, 2)?,
        definition: key(row, 3)?,
        element: number(row, 4)?,
        state: named(row, 5, SCOPE_STATES)?,
        active: number(row, 6)?,
        joins: pairs(row, 7)?,
        visits: pairs(row, 8)?,
        lineage: hash(row, 9)?,
        after: after(row, 10)?,
        instance: instance(row)?,
    })
}

fn instance(row: &Row) -> Result<Option<Arc<Instance>>> {
    let Some(tenant) = text_or_null(row, 11)? else { return Ok(None) };
    let unique = text_or_null(row, 18)?;
    let instance = Instance {
        tenant,
        process_id: text(row, 12)?,
        version: number(row, 13)?,
        started_at: get(row, 14)?,
        ended_at: get(row, 15)?,
        started_position: key(row, 16)?,
        ended_position: key(row, 17)?,
        unique: unique.map(|variable| Ok::<_, wf_store::StoreError>((variable, hash(row, 19)?))).transpose()?,
        start_correlation: text_or_null(row, 20)?,
        steps: key(row, 21)?,
    };
    Ok(Some(instance.into()))
}

pub fn element_columns(rows: Columns<'_, Element>) -> Values<'_> {
    rows.with(|row| sql_key(row.scope))
        .with(|row| sql_key(row.key))
        .with(|row| sql_key(row.root))
        .with(|row| i64::from(row.element))
        .with(|row| phase_name(row.phase))
        .with(|row| sql_key(row.job))
        .with(|row| sql_key(row.incident))
        .with(|row| row.has_locals)
        .with(|row| attached_text(&row.attached))
        .values()
}

pub fn element(row: &Row) -> Result<Element> {
    Ok(Element {
        scope: key(row, 0)?,
        key: key(row, 1)?,
        root: key(row, 2)?,
        element: number(row, 3)?,
        phase: named(row, 4, PHASES)?,
        job: key(row, 5)?,
        incident: key(row, 6)?,
        has_locals: get(row, 7)?,
        attached: attached(row, 8)?,
    })
}

pub fn variable_columns(rows: Columns<'_, Variable>) -> Values<'_> {
    rows.with(|row| sql_key(row.scope)).with(|row| &*row.name).with(|row| &*row.value).values()
}

pub fn variable(row: &Row) -> Result<Variable> {
    Ok(Variable { scope: key(row, 0)?, name: text(row, 1)?, value: text(row, 2)? })
}
