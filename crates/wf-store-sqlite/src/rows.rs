//! Rows to columns and back: which statement serves which table. Knows no turn and no transaction.
//! Next: `rows/instances.rs`, `rows/jobs.rs`, `rows/waits.rs`, `rows/definitions.rs`, one function per table and direction.

mod columns;
mod definitions;
mod instances;
mod jobs;
mod waits;

use std::ops::ControlFlow;
use std::sync::Arc;

use rusqlite::{Params, Result, Row as SqlRow};
use wf_core::rows::{Stored, Text};
use wf_core::{Row, RowId};
use wf_store::Change;

use crate::sql::{Sql, Statements};

pub use columns::{JOB_STATES, job_state_name, key_of, malformed, named, sql_key};
pub use definitions::definition;
pub use instances::{element, variable};
pub use jobs::step;

/// Writes one change; the number of rows that it met: 1, or the turn's idea of the store was wrong.
pub fn write(statements: &mut Statements, change: &Change) -> Result<usize> {
    match &change.new {
        None => delete(statements, &change.id),
        Some(row) => match put(statements, row, change.existed)? {
            0 => replace(statements, row),
            met => Ok(met),
        },
    }
}

/// Insert and update of a table take the same parameters.
fn put(statements: &mut Statements, row: &Row, existed: bool) -> Result<usize> {
    let (insert, update) = writes_of(row);
    let statement = statements.get(if existed { update } else { insert })?;
    match row {
        Row::Definition(row) => definitions::put_definition(statement, row),
        Row::StartSubscription(row) => definitions::put_start_subscription(statement, row),
        Row::Scope(row) => instances::put_scope(statement, row),
        Row::Element(row) => instances::put_element(statement, row),
        Row::Variable(row) => instances::put_variable(statement, row),
        Row::Job(row) => jobs::put_job(statement, row),
        Row::Step(row) => jobs::put_step(statement, row),
        Row::Timer(row) => waits::put_timer(statement, row),
        Row::Subscription(row) => waits::put_subscription(statement, row),
        Row::Message(row) => waits::put_message(statement, row),
        Row::MessageId(row) => waits::put_message_id(statement, row),
        Row::StartLock(row) => waits::put_start_lock(statement, row),
        Row::Unique(row) => waits::put_unique(statement, row),
        Row::Incident(row) => waits::put_incident(statement, row),
        Row::FollowUp(row) => waits::put_follow_up(statement, row),
        Row::Handover(row) => waits::put_handover(statement, row),
    }
}

fn writes_of(row: &Row) -> (Sql, Sql) {
    match row {
        Row::Definition(_) => (Sql::InsertDefinition, Sql::UpdateDefinition),
        Row::StartSubscription(_) => (Sql::InsertStartSubscription, Sql::UpdateStartSubscription),
        Row::Scope(_) => (Sql::InsertScope, Sql::UpdateScope),
        Row::Element(_) => (Sql::InsertElement, Sql::UpdateElement),
        Row::Variable(_) => (Sql::InsertVariable, Sql::UpdateVariable),
        Row::Job(_) => (Sql::InsertJob, Sql::UpdateJob),
        Row::Step(_) => (Sql::InsertStep, Sql::UpdateStep),
        Row::Timer(_) => (Sql::InsertTimer, Sql::UpdateTimer),
        Row::Subscription(_) => (Sql::InsertSubscription, Sql::UpdateSubscription),
        Row::Message(_) => (Sql::InsertMessage, Sql::UpdateMessage),
        Row::MessageId(_) => (Sql::InsertMessageId, Sql::UpdateMessageId),
        Row::StartLock(_) => (Sql::InsertStartLock, Sql::UpdateStartLock),
        Row::Unique(_) => (Sql::InsertUnique, Sql::UpdateUnique),
        Row::Incident(_) => (Sql::InsertIncident, Sql::UpdateIncident),
        Row::FollowUp(_) => (Sql::InsertFollowUp, Sql::UpdateFollowUp),
        Row::Handover(_) => (Sql::InsertHandover, Sql::UpdateHandover),
    }
}

/// An update that left an indexed column alone met no row: perhaps that column is what changes.
fn replace(statements: &mut Statements, row: &Row) -> Result<usize> {
    match row {
        Row::Job(row) => jobs::put_job(statements.get(Sql::ReplaceJob)?, row),
        _ => Ok(0),
    }
}

fn delete(statements: &mut Statements, id: &RowId) -> Result<usize> {
    let (_, delete) = statements_of(id);
    with_id(id, |params| statements.get(delete)?.execute(params))
}

/// One row by its id; `None` where it does not stand.
pub fn read(statements: &mut Statements, id: &RowId) -> Result<Option<Row>> {
    let (get, _) = statements_of(id);
    with_id(id, |params| {
        let mut rows = statements.get(get)?.query(params)?;
        rows.next()?.map(|row| read_row(id, row)).transpose()
    })
}

/// One row of a known table.
pub fn read_as<T: Stored>(statements: &mut Statements, id: &RowId) -> Result<Option<Arc<T>>> {
    Ok(read(statements, id)?.as_ref().and_then(T::unwrap).cloned())
}

fn read_row(id: &RowId, row: &SqlRow) -> Result<Row> {
    Ok(match id {
        RowId::Definition(_) => Row::Definition(definition(row)?.into()),
        RowId::StartSubscription { .. } => Row::StartSubscription(definitions::start_subscription(row)?.into()),
        RowId::Scope(_) => Row::Scope(instances::scope(row)?.into()),
        RowId::Element { .. } => Row::Element(element(row)?.into()),
        RowId::Variable { .. } => Row::Variable(variable(row)?.into()),
        RowId::Job(_) => Row::Job(jobs::job(row)?.into()),
        RowId::Step { .. } => Row::Step(step(row)?.into()),
        RowId::Timer(_) => Row::Timer(waits::timer(row)?.into()),
        RowId::Subscription(_) => Row::Subscription(waits::subscription(row)?.into()),
        RowId::Message(_) => Row::Message(waits::message(row)?.into()),
        RowId::MessageId { .. } => Row::MessageId(waits::message_id(row)?.into()),
        RowId::StartLock { .. } => Row::StartLock(waits::start_lock(row)?.into()),
        RowId::Unique { .. } => Row::Unique(waits::unique(row)?.into()),
        RowId::Incident(_) => Row::Incident(waits::incident(row)?.into()),
        RowId::FollowUp(_) => Row::FollowUp(waits::follow_up(row)?.into()),
        RowId::Handover { .. } => Row::Handover(waits::handover(row)?.into()),
    })
}

/// The statements that read and delete a row of the id's table; both take the id as parameters.
fn statements_of(id: &RowId) -> (Sql, Sql) {
    match id {
        RowId::Definition(_) => (Sql::GetDefinition, Sql::DeleteDefinition),
        RowId::StartSubscription { .. } => (Sql::GetStartSubscription, Sql::DeleteStartSubscription),
        RowId::Scope(_) => (Sql::GetScope, Sql::DeleteScope),
        RowId::Element { .. } => (Sql::GetElement, Sql::DeleteElement),
        RowId::Variable { .. } => (Sql::GetVariable, Sql::DeleteVariable),
        RowId::Job(_) => (Sql::GetJob, Sql::DeleteJob),
        RowId::Step { .. } => (Sql::GetStep, Sql::DeleteStep),
        RowId::Timer(_) => (Sql::GetTimer, Sql::DeleteTimer),
        RowId::Subscription(_) => (Sql::GetSubscription, Sql::DeleteSubscription),
        RowId::Message(_) => (Sql::GetMessage, Sql::DeleteMessage),
        RowId::MessageId { .. } => (Sql::GetMessageId, Sql::DeleteMessageId),
        RowId::StartLock { .. } => (Sql::GetStartLock, Sql::DeleteStartLock),
        RowId::Unique { .. } => (Sql::GetUnique, Sql::DeleteUnique),
        RowId::Incident(_) => (Sql::GetIncident, Sql::DeleteIncident),
        RowId::FollowUp(_) => (Sql::GetFollowUp, Sql::DeleteFollowUp),
        RowId::Handover { .. } => (Sql::GetHandover, Sql::DeleteHandover),
    }
}

/// Calls `run` with the id's parts in the order of the primary key.
fn with_id<T>(id: &RowId, run: impl FnOnce(&[&dyn rusqlite::ToSql]) -> Result<T>) -> Result<T> {
    match id {
        RowId::Definition(key)
        | RowId::Scope(key)
        | RowId::Job(key)
        | RowId::Timer(key)
        | RowId::Subscription(key)
        | RowId::Message(key)
        | RowId::Incident(key)
        | RowId::FollowUp(key) => run(&[&sql_key(*key)]),
        RowId::Element { scope: owner, key } | RowId::Handover { subscription: owner, message: key } => {
            run(&[&sql_key(*owner), &sql_key(*key)])
        }
        RowId::Variable { scope: owner, name } | RowId::Step { job: owner, name } => run(&[&sql_key(*owner), name]),
        RowId::StartSubscription { tenant, message, process_id } => run(&[tenant, message, process_id]),
        RowId::MessageId { tenant, name, message_id } => run(&[tenant, name, message_id]),
        RowId::StartLock { tenant, process_id, correlation_key } => run(&[tenant, process_id, correlation_key]),
        RowId::Unique { tenant, process_id, variable, value } => run(&[tenant, process_id, variable, value]),
    }
}

/// Every row of the logical state, table by table; ends early where `visit` says so.
pub fn each(statements: &mut Statements, visit: &mut dyn FnMut(Row) -> ControlFlow<()>) -> Result<()> {
    for (all, id) in tables() {
        let mut rows = statements.get(all)?.query([])?;
        while let Some(row) = rows.next()? {
            if visit(read_row(&id, row)?).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// What reads each table whole, with some id of it.
fn tables() -> [(Sql, RowId); 16] {
    let text = || Text::from("");
    let (tenant, name) = (text(), text());
    let message = RowId::MessageId { tenant: text(), name: text(), message_id: text() };
    let start = RowId::StartSubscription { tenant: text(), message: text(), process_id: text() };
    let lock = RowId::StartLock { tenant: text(), process_id: text(), correlation_key: text() };
    [
        (Sql::AllDefinitions, RowId::Definition(0)),
        (Sql::AllStartSubscriptions, start),
        (Sql::AllScopes, RowId::Scope(0)),
        (Sql::AllElements, RowId::Element { scope: 0, key: 0 }),
        (Sql::AllVariables, RowId::Variable { scope: 0, name: text() }),
        (Sql::AllJobs, RowId::Job(0)),
        (Sql::AllSteps, RowId::Step { job: 0, name }),
        (Sql::AllTimers, RowId::Timer(0)),
        (Sql::AllSubscriptions, RowId::Subscription(0)),
        (Sql::AllMessages, RowId::Message(0)),
        (Sql::AllMessageIds, message),
        (Sql::AllStartLocks, lock),
        (Sql::AllUniques, RowId::Unique { tenant, process_id: text(), variable: text(), value: [0; 16] }),
        (Sql::AllIncidents, RowId::Incident(0)),
        (Sql::AllFollowUps, RowId::FollowUp(0)),
        (Sql::AllHandovers, RowId::Handover { subscription: 0, message: 0 }),
    ]
}

/// Keys in the first column.
pub fn keys(statements: &mut Statements, sql: Sql, params: impl Params) -> Result<Vec<wf_core::Key>> {
    statements.get(sql)?.query_map(params, |row| columns::key(row, 0))?.collect()
}
