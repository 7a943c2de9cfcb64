//! What waits or bars: timers, subscriptions, messages, locks, incidents, follow-ups. Next: `columns.rs`.

use rusqlite::{Error, Result, Row, Statement, params};
use wf_core::rows::*;
use wf_store::codec::{variables_from_json, variables_to_json};

use super::columns::{self, key, malformed, sql_key};

pub fn put_timer(statement: &mut Statement, row: &Timer) -> Result<usize> {
    statement.execute(params![
        sql_key(row.key),
        sql_key(row.host),
        sql_key(row.scope),
        sql_key(row.root),
        row.target,
        row.due,
        row.repeats,
        row.interval,
    ])
}

pub fn timer(row: &Row) -> Result<Timer> {
    Ok(Timer {
        key: key(row, 0)?,
        host: key(row, 1)?,
        scope: key(row, 2)?,
        root: key(row, 3)?,
        target: row.get(4)?,
        due: row.get(5)?,
        repeats: row.get(6)?,
        interval: row.get(7)?,
    })
}

pub fn put_subscription(statement: &mut Statement, row: &Subscription) -> Result<usize> {
    statement.execute(params![
        sql_key(row.key),
        sql_key(row.host),
        sql_key(row.scope),
        sql_key(row.root),
        row.tenant,
        row.process_id,
        row.message,
        row.correlation_key,
        row.target,
    ])
}

pub fn subscription(row: &Row) -> Result<Subscription> {
    Ok(Subscription {
        key: key(row, 0)?,
        host: key(row, 1)?,
        scope: key(row, 2)?,
        root: key(row, 3)?,
        tenant: row.get(4)?,
        process_id: row.get(5)?,
        message: row.get(6)?,
        correlation_key: row.get(7)?,
        target: row.get(8)?,
    })
}

pub fn put_message(statement: &mut Statement, row: &Message) -> Result<usize> {
    statement.execute(params![
        sql_key(row.key),
        row.tenant,
        row.name,
        row.correlation_key,
        row.expires_at,
        columns::texts_text(&row.correlated)?,
        variables_to_json(&row.variables),
    ])
}

pub fn message(row: &Row) -> Result<Message> {
    let variables = row.get_ref(6)?.as_str()?;
    Ok(Message {
        key: key(row, 0)?,
        tenant: row.get(1)?,
        name: row.get(2)?,
        correlation_key: row.get(3)?,
        expires_at: row.get(4)?,
        correlated: columns::texts(row, 5)?,
        variables: variables_from_json(variables).map_err(|error| malformed(6, &error.to_string()))?,
    })
}

pub fn put_message_id(statement: &mut Statement, row: &MessageId) -> Result<usize> {
    statement.execute(params![row.tenant, row.name, row.message_id, sql_key(row.key), row.content, row.expires_at,])
}

pub fn message_id(row: &Row) -> Result<MessageId> {
    Ok(MessageId {
        tenant: row.get(0)?,
        name: row.get(1)?,
        message_id: row.get(2)?,
        key: key(row, 3)?,
        content: row.get(4)?,
        expires_at: row.get(5)?,
    })
}

pub fn put_handover(statement: &mut Statement, row: &Handover) -> Result<usize> {
    statement.execute(params![
        sql_key(row.subscription),
        sql_key(row.message),
        sql_key(row.root),
        row.tenant,
        row.process_id,
        row.name,
        row.correlation_key,
        row.expires_at,
        variables_to_json(&row.variables),
    ])
}

pub fn handover(row: &Row) -> Result<Handover> {
    let variables = row.get_ref(8)?.as_str()?;
    Ok(Handover {
        subscription: key(row, 0)?,
        message: key(row, 1)?,
        root: key(row, 2)?,
        tenant: row.get(3)?,
        process_id: row.get(4)?,
        name: row.get(5)?,
        correlation_key: row.get(6)?,
        expires_at: row.get(7)?,
        variables: variables_from_json(variables).map_err(|error| malformed(8, &error.to_string()))?,
    })
}

pub fn put_start_lock(statement: &mut Statement, row: &StartLock) -> Result<usize> {
    statement.execute(params![row.tenant, row.process_id, row.correlation_key, sql_key(row.root)])
}

pub fn start_lock(row: &Row) -> Result<StartLock> {
    Ok(StartLock { tenant: row.get(0)?, process_id: row.get(1)?, correlation_key: row.get(2)?, root: key(row, 3)? })
}

pub fn put_unique(statement: &mut Statement, row: &Unique) -> Result<usize> {
    statement.execute(params![row.tenant, row.process_id, row.variable, row.value, sql_key(row.root)])
}

pub fn unique(row: &Row) -> Result<Unique> {
    Ok(Unique {
        tenant: row.get(0)?,
        process_id: row.get(1)?,
        variable: row.get(2)?,
        value: row.get(3)?,
        root: key(row, 4)?,
    })
}

pub fn put_incident(statement: &mut Statement, row: &Incident) -> Result<usize> {
    statement.execute(params![
        sql_key(row.key),
        row.tenant,
        sql_key(row.root),
        sql_key(row.scope),
        sql_key(row.element_key),
        row.element_id,
        sql_key(row.job),
        row.kind.name(),
        row.message,
        row.created_at,
    ])
}

pub fn incident(row: &Row) -> Result<Incident> {
    Ok(Incident {
        key: key(row, 0)?,
        tenant: row.get(1)?,
        root: key(row, 2)?,
        scope: key(row, 3)?,
        element_key: key(row, 4)?,
        element_id: row.get(5)?,
        job: key(row, 6)?,
        kind: columns::incident_kind(row, 7)?,
        message: row.get(8)?,
        created_at: row.get(9)?,
    })
}

pub fn put_follow_up(statement: &mut Statement, row: &FollowUp) -> Result<usize> {
    let (key, root, scope) = (sql_key(row.key), sql_key(row.root), sql_key(row.scope));
    let none = None::<&str>;
    match &row.work {
        Work::Arrive { element, flow } => {
            statement.execute(params![key, root, scope, "ARRIVE", element, flow, none, none, none, none])
        }
        Work::Terminate => {
            statement.execute(params![key, root, scope, "TERMINATE", none, none, none, none, none, none])
        }
        Work::StartNext { process_id, message, correlation_key, tenant } => statement.execute(params![
            key,
            root,
            scope,
            "START_NEXT",
            none,
            none,
            tenant,
            process_id,
            message,
            correlation_key,
        ]),
        Work::MatchBuffered { subscription } => {
            let subscription = sql_key(*subscription);
            statement.execute(params![key, root, scope, "MATCH_BUFFERED", subscription, none, none, none, none, none])
        }
    }
}

pub fn follow_up(row: &Row) -> Result<FollowUp> {
    let work = match row.get_ref(3)?.as_str()? {
        "ARRIVE" => Work::Arrive { element: row.get(4)?, flow: row.get(5)? },
        "TERMINATE" => Work::Terminate,
        "START_NEXT" => Work::StartNext {
            tenant: row.get(6)?,
            process_id: row.get(7)?,
            message: row.get(8)?,
            correlation_key: row.get(9)?,
        },
        "MATCH_BUFFERED" => Work::MatchBuffered { subscription: key(row, 4)? },
        other => return Err::<_, Error>(malformed(3, &format!("unknown work {other:?}"))),
    };
    Ok(FollowUp { key: key(row, 0)?, root: key(row, 1)?, scope: key(row, 2)?, work })
}
