//! Idempotency records and the counts of repeats. Next: `outbox.rs`.

use bytes::Bytes;
use tokio_postgres::Row;
use wf_core::ids;
use wf_idempotency::Fingerprint;
use wf_idempotency::record::{Answer, Record, State};
use wf_store::codec::{headers_from_json, headers_to_json};
use wf_store::{RecordEntry, RecordId, Suppressed, SuppressedKind};

use super::columns::*;
use crate::connection::Values;

/// Under which the answer's bytes stand, beside their time of expiry.
pub fn answer_id(id: &RecordId) -> [u8; 16] {
    ids::hash16(&[id.tenant.as_bytes(), id.key.as_bytes()])
}

#[derive(Default)]
struct StateColumns<'a> {
    name: &'static str,
    status: Option<i32>,
    subject: Option<i64>,
    owner: Option<&'a [u8]>,
    lease_until: Option<i64>,
    since: Option<i64>,
}

fn state_columns(state: &State) -> StateColumns<'_> {
    let none = StateColumns::default();
    match state {
        State::Completed(answer) => StateColumns { name: "COMPLETED", status: Some(i32::from(answer.status)), ..none },
        State::Started { subject } => StateColumns { name: "STARTED", subject: Some(*subject as i64), ..none },
        State::InProgress { owner, lease_until_ms } => {
            StateColumns { name: "IN_PROGRESS", owner: Some(owner), lease_until: Some(*lease_until_ms), ..none }
        }
        State::Unknown { since_ms } => StateColumns { name: "UNKNOWN", since: Some(*since_ms), ..none },
    }
}

fn answer(record: &Record) -> Option<&Answer> {
    if let State::Completed(answer) = &record.state { Some(answer) } else { None }
}

/// As `put_record` takes them.
pub fn record_columns<'a>(entries: &[&'a RecordEntry]) -> Values<'a> {
    fn column<'a, V>(entries: &[&'a RecordEntry], value: impl Fn(&'a RecordEntry) -> V) -> Vec<V> {
        entries.iter().map(|entry| value(entry)).collect()
    }
    let answer_id = |entry: &RecordEntry| answer(&entry.record).map(|_| answer_id(&entry.id).to_vec());
    Values::none()
        .with(column(entries, |entry| &*entry.id.tenant))
        .with(column(entries, |entry| &*entry.id.key))
        .with(column(entries, |entry| &entry.key_hash[..]))
        .with(column(entries, |entry| entry.route))
        .with(column(entries, |entry| &entry.record.fingerprint.0[..]))
        .with(column(entries, |entry| i64::from(entry.record.mac_key_id)))
        .with(column(entries, |entry| entry.record.created_ms))
        .with(column(entries, |entry| entry.record.expires_ms))
        .with(column(entries, |entry| state_columns(&entry.record.state).name))
        .with(column(entries, |entry| state_columns(&entry.record.state).status))
        .with(column(entries, answer_id))
        .with(column(entries, |entry| state_columns(&entry.record.state).subject))
        .with(column(entries, |entry| state_columns(&entry.record.state).owner))
        .with(column(entries, |entry| state_columns(&entry.record.state).lease_until))
        .with(column(entries, |entry| state_columns(&entry.record.state).since))
}

/// As `put_answer` takes them; `None` where no record has an answer.
pub fn answer_columns<'a>(entries: &[&'a RecordEntry]) -> Option<Values<'a>> {
    let answers: Vec<_> = entries.iter().filter_map(|entry| Some((*entry, answer(&entry.record)?))).collect();
    let values = Values::none()
        .with(answers.iter().map(|(entry, _)| entry.record.expires_ms).collect::<Vec<_>>())
        .with(answers.iter().map(|(entry, _)| answer_id(&entry.id).to_vec()).collect::<Vec<_>>())
        .with(answers.iter().map(|(_, answer)| headers_to_json(&answer.headers)).collect::<Vec<_>>())
        .with(answers.iter().map(|(_, answer)| &answer.body[..]).collect::<Vec<_>>());
    (!answers.is_empty()).then_some(values)
}

/// As `finish_record` takes them; `None` without an answer.
pub fn finished_columns(entry: &RecordEntry) -> Option<Values<'_>> {
    let answer = answer(&entry.record)?;
    let values = Values::none()
        .with(&*entry.id.tenant)
        .with(&*entry.id.key)
        .with(&entry.record.fingerprint.0[..])
        .with(entry.record.created_ms)
        .with(entry.record.expires_ms)
        .with(i32::from(answer.status))
        .with(answer_id(&entry.id).to_vec())
        .with(headers_to_json(&answer.headers))
        .with(&answer.body[..]);
    Some(values)
}

/// Columns as `get_record` selects them.
pub fn record(row: &Row) -> Result<Record> {
    Ok(Record {
        fingerprint: Fingerprint(hash(row, 0)?),
        mac_key_id: number(row, 1)?,
        created_ms: get(row, 2)?,
        expires_ms: get(row, 3)?,
        state: state(row)?,
    })
}

fn state(row: &Row) -> Result<State> {
    Ok(match get(row, 4)? {
        "COMPLETED" => State::Completed(Answer {
            status: u16::try_from(get::<i32>(row, 5)?).map_err(|_| malformed(5, "not a status"))?,
            headers: headers_from_json(get(row, 6)?).map_err(|error| malformed(6, &error.to_string()))?,
            body: Bytes::copy_from_slice(get(row, 7)?),
        }),
        "STARTED" => State::Started { subject: key(row, 8)? },
        "IN_PROGRESS" => State::InProgress { owner: hash(row, 9)?, lease_until_ms: get(row, 10)? },
        "UNKNOWN" => State::Unknown { since_ms: get(row, 11)? },
        other => return Err(malformed(4, &format!("unknown state {other:?}"))),
    })
}

/// As `known_keys` selects it.
pub fn known_key(row: &Row) -> Result<RecordId> {
    Ok(RecordId { tenant: text(row, 0)?, key: text(row, 1)? })
}

pub fn record_id(row: &Row) -> Result<RecordId> {
    Ok(RecordId { tenant: text(row, 12)?, key: text(row, 13)? })
}

/// As `add_suppressed` takes them.
pub fn suppressed_columns<'a>(rows: &[&'a Suppressed]) -> Values<'a> {
    fn column<'a, V>(rows: &[&'a Suppressed], value: impl Fn(&'a Suppressed) -> V) -> Vec<V> {
        rows.iter().map(|row| value(row)).collect()
    }
    Values::none()
        .with(column(rows, |row| row.minute))
        .with(column(rows, |row| &*row.tenant))
        .with(column(rows, |row| &row.key_hash[..]))
        .with(column(rows, |row| row.kind.name()))
        .with(column(rows, |row| &*row.route))
        .with(column(rows, |row| row.count as i64))
        .with(column(rows, |row| row.first))
        .with(column(rows, |row| row.last))
}

/// Columns tenant, key_hash, kind, route, count, first, last; the minute is not among them.
pub fn suppressed(row: &Row) -> Result<Suppressed> {
    Ok(Suppressed {
        tenant: text(row, 0)?,
        key_hash: hash(row, 1)?,
        kind: named(row, 2, &SuppressedKind::ALL.map(|kind| (kind, kind.name())))?,
        route: text(row, 3)?,
        minute: 0,
        count: key(row, 4)?,
        first: get(row, 5)?,
        last: get(row, 6)?,
    })
}
