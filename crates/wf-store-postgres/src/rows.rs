//! Rows to columns and back: which statements serve which table. Knows no turn and no transaction. Values are written as
//! arrays, one per column, the partition first. Next: `rows/columns.rs`, then `rows/instances.rs`, `rows/jobs.rs`,
//! `rows/waits.rs`, `rows/definitions.rs` with one function per table and direction; `rows/records.rs` and `rows/outbox.rs`.

mod columns;
mod definitions;
mod instances;
mod jobs;
mod outbox;
mod partitions;
mod records;
mod waits;

use tokio_postgres::Row as SqlRow;
use wf_core::rows::Stored;
use wf_core::{Row, RowId};

use crate::connection::Values;
use crate::sql::Sql;

pub use columns::*;
pub use definitions::*;
pub use instances::*;
pub use jobs::*;
pub use outbox::*;
pub use partitions::*;
pub use records::*;
pub use waits::*;

/// The tables of the logical state, in the order in which a turn writes them and a ledger reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    Definition,
    StartSubscription,
    Scope,
    Element,
    Variable,
    Job,
    Step,
    Timer,
    Subscription,
    Message,
    MessageId,
    StartLock,
    Unique,
    Incident,
    FollowUp,
    Handover,
}

/// The statements of one table.
pub struct Access {
    pub table: Table,
    pub get: Sql,
    pub insert: Sql,
    pub update: Sql,
    pub delete: Sql,
    pub all: Sql,
}

const fn access(table: Table, get: Sql, insert: Sql, update: Sql, delete: Sql, all: Sql) -> Access {
    Access { table, get, insert, update, delete, all }
}

/// By `Table as usize`.
#[rustfmt::skip]
pub const TABLES: [Access; 16] = [
    access(Table::Definition, Sql::GetDefinition, Sql::InsertDefinition, Sql::UpdateDefinition, Sql::DeleteDefinition, Sql::AllDefinitions),
    access(Table::StartSubscription, Sql::GetStartSubscription, Sql::InsertStartSubscription, Sql::UpdateStartSubscription, Sql::DeleteStartSubscription, Sql::AllStartSubscriptions),
    access(Table::Scope, Sql::GetScope, Sql::InsertScope, Sql::UpdateScope, Sql::DeleteScope, Sql::AllScopes),
    access(Table::Element, Sql::GetElement, Sql::InsertElement, Sql::UpdateElement, Sql::DeleteElement, Sql::AllElements),
    access(Table::Variable, Sql::GetVariable, Sql::InsertVariable, Sql::UpdateVariable, Sql::DeleteVariable, Sql::AllVariables),
    access(Table::Job, Sql::GetJob, Sql::InsertJob, Sql::UpdateJob, Sql::DeleteJob, Sql::AllJobs),
    access(Table::Step, Sql::GetStep, Sql::InsertStep, Sql::UpdateStep, Sql::DeleteStep, Sql::AllSteps),
    access(Table::Timer, Sql::GetTimer, Sql::InsertTimer, Sql::UpdateTimer, Sql::DeleteTimer, Sql::AllTimers),
    access(Table::Subscription, Sql::GetSubscription, Sql::InsertSubscription, Sql::UpdateSubscription, Sql::DeleteSubscription, Sql::AllSubscriptions),
    access(Table::Message, Sql::GetMessage, Sql::InsertMessage, Sql::UpdateMessage, Sql::DeleteMessage, Sql::AllMessages),
    access(Table::MessageId, Sql::GetMessageId, Sql::InsertMessageId, Sql::UpdateMessageId, Sql::DeleteMessageId, Sql::AllMessageIds),
    access(Table::StartLock, Sql::GetStartLock, Sql::InsertStartLock, Sql::UpdateStartLock, Sql::DeleteStartLock, Sql::AllStartLocks),
    access(Table::Unique, Sql::GetUnique, Sql::InsertUnique, Sql::UpdateUnique, Sql::DeleteUnique, Sql::AllUniques),
    access(Table::Incident, Sql::GetIncident, Sql::InsertIncident, Sql::UpdateIncident, Sql::DeleteIncident, Sql::AllIncidents),
    access(Table::FollowUp, Sql::GetFollowUp, Sql::InsertFollowUp, Sql::UpdateFollowUp, Sql::DeleteFollowUp, Sql::AllFollowUps),
    access(Table::Handover, Sql::GetHandover, Sql::InsertHandover, Sql::UpdateHandover, Sql::DeleteHandover, Sql::AllHandovers),
];

pub fn table_of(id: &RowId) -> Table {
    match id {
        RowId::Definition(_) => Table::Definition,
        RowId::StartSubscription { .. } => Table::StartSubscription,
        RowId::Scope(_) => Table::Scope,
        RowId::Element { .. } => Table::Element,
        RowId::Variable { .. } => Table::Variable,
        RowId::Job(_) => Table::Job,
        RowId::Step { .. } => Table::Step,
        RowId::Timer(_) => Table::Timer,
        RowId::Subscription(_) => Table::Subscription,
        RowId::Message(_) => Table::Message,
        RowId::MessageId { .. } => Table::MessageId,
        RowId::StartLock { .. } => Table::StartLock,
        RowId::Unique { .. } => Table::Unique,
        RowId::Incident(_) => Table::Incident,
        RowId::FollowUp(_) => Table::FollowUp,
        RowId::Handover { .. } => Table::Handover,
    }
}

/// All columns of rows of one table, each with its partition; insert and update take the same.
pub fn put<'a>(table: Table, rows: &[(u16, &'a Row)]) -> Values<'a> {
    match table {
        Table::Definition => definition_columns(of(rows)),
        Table::StartSubscription => start_subscription_columns(of(rows)),
        Table::Scope => scope_columns(of(rows)),
        Table::Element => element_columns(of(rows)),
        Table::Variable => variable_columns(of(rows)),
        Table::Job => job_columns(of(rows)),
        Table::Step => step_columns(of(rows)),
        Table::Timer => timer_columns(of(rows)),
        Table::Subscription => subscription_columns(of(rows)),
        Table::Message => message_columns(of(rows)),
        Table::MessageId => message_id_columns(of(rows)),
        Table::StartLock => start_lock_columns(of(rows)),
        Table::Unique => unique_columns(of(rows)),
        Table::Incident => incident_columns(of(rows)),
        Table::FollowUp => follow_up_columns(of(rows)),
        Table::Handover => handover_columns(of(rows)),
    }
}

fn of<'a, T: Stored>(rows: &[(u16, &'a Row)]) -> Columns<'a, T> {
    let typed = rows.iter().filter_map(|(partition, row)| Some((*partition, &**T::unwrap(row)?)));
    Columns::of(typed.collect())
}

/// A row as the `get_`, `all_` and range statements of its table select it.
pub fn read(table: Table, row: &SqlRow) -> Result<Row> {
    Ok(match table {
        Table::Definition => Row::Definition(definition(row)?.into()),
        Table::StartSubscription => Row::StartSubscription(start_subscription(row)?.into()),
        Table::Scope => Row::Scope(scope(row)?.into()),
        Table::Element => Row::Element(element(row)?.into()),
        Table::Variable => Row::Variable(variable(row)?.into()),
        Table::Job => Row::Job(job(row)?.into()),
        Table::Step => Row::Step(step(row)?.into()),
        Table::Timer => Row::Timer(timer(row)?.into()),
        Table::Subscription => Row::Subscription(subscription(row)?.into()),
        Table::Message => Row::Message(message(row)?.into()),
        Table::MessageId => Row::MessageId(message_id(row)?.into()),
        Table::StartLock => Row::StartLock(start_lock(row)?.into()),
        Table::Unique => Row::Unique(unique(row)?.into()),
        Table::Incident => Row::Incident(incident(row)?.into()),
        Table::FollowUp => Row::FollowUp(follow_up(row)?.into()),
        Table::Handover => Row::Handover(handover(row)?.into()),
    })
}

/// The ids of rows of one table as arrays, in the order of the primary key behind the partition.
pub fn ids<'a>(table: Table, ids: &[&'a RowId]) -> Values<'a> {
    match table {
        Table::Element | Table::Handover => Values::none().with(column(ids, id_key)).with(column(ids, id_inner)),
        Table::Variable | Table::Step => {
            Values::none().with(column(ids, id_key)).with(column(ids, |id| id_texts(id)[0]))
        }
        Table::StartSubscription | Table::MessageId | Table::StartLock => id_names(ids),
        Table::Unique => id_names(ids).with(column(ids, id_value)),
        _ => Values::none().with(column(ids, id_key)),
    }
}

fn id_names<'a>(ids: &[&'a RowId]) -> Values<'a> {
    (0..3).fold(Values::none(), |values, at| values.with(column(ids, |id| id_texts(id)[at])))
}

fn column<'a, V>(ids: &[&'a RowId], part: impl Fn(&'a RowId) -> V) -> Vec<V> {
    ids.iter().map(|id| part(id)).collect()
}

fn id_key(id: &RowId) -> i64 {
    match id {
        RowId::Definition(key)
        | RowId::Scope(key)
        | RowId::Job(key)
        | RowId::Timer(key)
        | RowId::Subscription(key)
        | RowId::Message(key)
        | RowId::Incident(key)
        | RowId::FollowUp(key)
        | RowId::Element { scope: key, .. }
        | RowId::Variable { scope: key, .. }
        | RowId::Step { job: key, .. }
        | RowId::Handover { subscription: key, .. } => sql_key(*key),
        RowId::StartSubscription { .. } | RowId::MessageId { .. } | RowId::StartLock { .. } | RowId::Unique { .. } => 0,
    }
}

fn id_inner(id: &RowId) -> i64 {
    match id {
        RowId::Element { key, .. } | RowId::Handover { message: key, .. } => sql_key(*key),
        _ => 0,
    }
}

fn id_value(id: &RowId) -> &[u8] {
    if let RowId::Unique { value, .. } = id { value } else { &[] }
}

fn id_texts(id: &RowId) -> [&str; 3] {
    match id {
        RowId::Variable { name, .. } | RowId::Step { name, .. } => [name, "", ""],
        RowId::StartSubscription { tenant, message, process_id } => [tenant, message, process_id],
        RowId::MessageId { tenant, name, message_id } => [tenant, name, message_id],
        RowId::StartLock { tenant, process_id, correlation_key } => [tenant, process_id, correlation_key],
        RowId::Unique { tenant, process_id, variable, .. } => [tenant, process_id, variable],
        _ => ["", "", ""],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stand_at_their_numbers() {
        for (at, access) in TABLES.iter().enumerate() {
            assert_eq!(access.table as usize, at);
        }
    }
}
