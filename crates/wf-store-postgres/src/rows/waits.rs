//! What waits or bars: timers, subscriptions, messages, locks, incidents, follow-ups. Next: `records.rs`.

use tokio_postgres::Row;
use wf_core::rows::*;
use wf_store::codec::{variables_from_json, variables_to_json};

use super::columns::*;
use crate::connection::Values;

pub fn timer_columns(rows: Columns<'_, Timer>) -> Values<'_> {
    rows.with(|row| sql_key(row.key))
        .with(|row| sql_key(row.host))
        .with(|row| sql_key(row.scope))
        .with(|row| sql_key(row.root))
        .with(|row| i64::from(row.target))
        .with(|row| row.due)
        .with(|row| row.repeats)
        .with(|row| &*row.interval)
        .values()
}

pub fn timer(row: &Row) -> Result<Timer> {
    Ok(Timer {
        key: key(row, 0)?,
        host: key(row, 1)?,
        scope: key(row, 2)?,
        root: key(row, 3)?,
        target: number(row, 4)?,
        due: get(row, 5)?,
        repeats: get(row, 6)?,
        interval: text(row, 7)?,
    })
}

pub fn subscription_columns(rows: Columns<'_, Subscription>) -> Values<'_> {
    rows.with(|row| sql_key(row.key))
        .with(|row| sql_key(row.host))
        .with(|row| sql_key(row.scope))
        .with(|row| sql_key(row.root))
        .with(|row| &*row.tenant)
        .with(|row| &*row.process_id)
        .with(|row| &*row.message)
        .with(|row| &*row.correlation_key)
        .with(|row| i64::from(row.target))
        .values()
}

pub fn subscription(row: &Row) -> Result<Subscription> {
    Ok(Subscription {
        key: key(row, 0)?,
        host: key(row, 1)?,
        scope: key(row, 2)?,
        root: key(row, 3)?,
        tenant: text(row, 4)?,
        process_id: text(row, 5)?,
        message: text(row, 6)?,
        correlation_key: text(row, 7)?,
        target: number(row, 8)?,
    })
}

pub fn message_columns(rows: Columns<'_, Message>) -> Values<'_> {
    rows.with(|row| sql_key(row.key))
        .with(|row| &*row.tenant)
        .with(|row| &*row.name)
        .with(|row| &*row.correlation_key)
        .with(|row| row.expires_at)
        .with(|row| texts_text(&row.correlated))
        .with(|row| variables_to_json(&row.variables))
        .values()
}

pub fn message(row: &Row) -> Result<Message> {
    let variables: &str = get(row, 6)?;
    Ok(Message {
        key: key(row, 0)?,
        tenant: text(row, 1)?,
        name: text(row, 2)?,
        correlation_key: text(row, 3)?,
        expires_at: get(row, 4)?,
        correlated: texts(row, 5)?,
        variables: variables_from_json(variables).map_err(|error| malformed(6, &error.to_string()))?,
    })
}

pub fn message_id_columns(rows: Columns<'_, MessageId>) -> Values<'_> {
    rows.with(|row| &*row.tenant)
        .with(|row| &*row.name)
        .with(|row| &*row.message_id)
        .with(|row| sql_key(row.key))
        .with(|row| &row.content[..])
        .with(|row| row.expires_at)
        .values()
}

/// Also as `received_elsewhere` selects it.
pub fn message_id(row: &Row) -> Result<MessageId> {
    Ok(MessageId {
        tenant: text(row, 0)?,
        name: text(row, 1)?,
        message_id: text(row, 2)?,
        key: key(row, 3)?,
        content: hash(row, 4)?,
        expires_at: get(row, 5)?,
    })
}

pub fn handover_columns(rows: Columns<'_, Handover>) -> Values<'_> {
    rows.with(|row| sql_key(row.subscription))
        .with(|row| sql_key(row.message))
        .with(|row| sql_key(row.root))
        .with(|row| &*row.tenant)
        .with(|row| &*row.process_id)
        .with(|row| &*row.name)
        .with(|row| &*row.correlation_key)
        .with(|row| row.expires_at)
        .with(|row| variables_to_json(&row.variables))
        .values()
}

pub fn handover(row: &Row) -> Result<Handover> {
    let variables: &str = get(row, 8)?;
    Ok(Handover {
        subscription: key(row, 0)?,
        message: key(row, 1)?,
        root: key(row, 2)?,
        tenant: text(row, 3)?,
        process_id: text(row, 4)?,
        name: text(row, 5)?,
        correlation_key: text(row, 6)?,
        expires_at: get(row, 7)?,
        variables: variables_from_json(variables).map_err(|error| malformed(8, &error.to_string()))?,
    })
}

pub fn start_lock_columns(rows: Columns<'_, StartLock>) -> Values<'_> {
    rows.with(|row| &*row.tenant)
        .with(|row| &*row.process_id)
        .with(|row| &*row.correlation_key)
        .with(|row| sql_key(row.root))
        .values()
}

pub fn start_lock(row: &Row) -> Result<StartLock> {
    Ok(StartLock {
        tenant: text(row, 0)?,
        process_id: text(row, 1)?,
        correlation_key: text(row, 2)?,
        root: key(row, 3)?,
    })
}

pub fn unique_columns(rows: Columns<'_, Unique>) -> Values<'_> {
    rows.with(|row| &*row.tenant)
        .with(|row| &*row.process_id)
        .with(|row| &*row.variable)
        .with(|row| &row.value[..])
        .with(|row| sql_key(row.root))
        .values()
}

pub fn unique(row: &Row) -> Result<Unique> {
    Ok(Unique {
        tenant: text(row, 0)?,
        process_id: text(row, 1)?,
        variable: text(row, 2)?,
        value: hash(row, 3)?,
        root: key(row, 4)?,
    })
}

pub fn incident_columns(rows: Columns<'_, Incident>) -> Values<'_> {
    rows.with(|row| sql_key(row.key))
        .with(|row| &*row.tenant)
        .with(|row| sql_key(row.root))
        .with(|row| sql_key(row.scope))
        .with(|row| sql_key(row.element_key))
        .with(|row| &*row.element_id)
        .with(|row| sql_key(row.job))
        .with(|row| row.kind.name())
        .with(|row| &*row.message)
        .with(|row| row.created_at)
        .values()
}

pub fn incident(row: &Row) -> Result<Incident> {
    Ok(Incident {
        key: key(row, 0)?,
        tenant: text(row, 1)?,
        root: key(row, 2)?,
        scope: key(row, 3)?,
        element_key: key(row, 4)?,
        element_id: text(row, 5)?,
        job: key(row, 6)?,
        kind: incident_kind(row, 7)?,
        message: text(row, 8)?,
        created_at: get(row, 9)?,
    })
}

/// The columns of a follow-up's work; those that a kind does not use are NULL.
#[derive(Default)]
struct WorkColumns<'a> {
    name: &'static str,
    element: Option<i64>,
    flow: Option<i64>,
    /// Tenant, process id, message, correlation key.
    texts: [Option<&'a str>; 4],
}

fn work_columns(row: &FollowUp) -> WorkColumns<'_> {
    let none = WorkColumns::default();
    match &row.work {
        Work::Arrive { element, flow } => {
            WorkColumns { name: "ARRIVE", element: Some((*element).into()), flow: flow.map(i64::from), ..none }
        }
        Work::Terminate => WorkColumns { name: "TERMINATE", ..none },
        Work::StartNext { process_id, message, correlation_key, tenant } => {
            let texts = [tenant, process_id, message, correlation_key].map(|text| Some(&**text));
            WorkColumns { name: "START_NEXT", texts, ..none }
        }
        Work::MatchBuffered { subscription } => {
            WorkColumns { name: "MATCH_BUFFERED", element: Some(sql_key(*subscription)), ..none }
        }
    }
}

pub fn follow_up_columns(rows: Columns<'_, FollowUp>) -> Values<'_> {
    rows.with(|row| sql_key(row.key))
        .with(|row| sql_key(row.root))
        .with(|row| sql_key(row.scope))
        .with(|row| work_columns(row).name)
        .with(|row| work_columns(row).element)
        .with(|row| work_columns(row).flow)
        .with(|row| work_columns(row).texts[0])
        .with(|row| work_columns(row).texts[1])
        .with(|row| work_columns(row).texts[2])
        .with(|row| work_columns(row).texts[3])
        .values()
}

pub fn follow_up(row: &Row) -> Result<FollowUp> {
    let work = match get(row, 3)? {
        "ARRIVE" => Work::Arrive { element: number(row, 4)?, flow: number_or_null(row, 5)? },
        "TERMINATE" => Work::Terminate,
        "START_NEXT" => Work::StartNext {
            tenant: text(row, 6)?,
            process_id: text(row, 7)?,
            message: text(row, 8)?,
            correlation_key: text(row, 9)?,
        },
        "MATCH_BUFFERED" => Work::MatchBuffered { subscription: key(row, 4)? },
        other => return Err(malformed(3, &format!("unknown work {other:?}"))),
    };
    Ok(FollowUp { key: key(row, 0)?, root: key(row, 1)?, scope: key(row, 2)?, work })
}
