//! The store's file as somebody with a shell reads it: what no tenant's API shows.
//! Uses the documented views where they suffice.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use serde_json::value::RawValue;

pub fn open(database: &Path) -> Connection {
    Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the store opens")
}

/// (instance, event type) → how often.
pub fn event_counts(database: &Path, kinds: &[&str]) -> BTreeMap<(String, String), u64> {
    let connection = open(database);
    let mut query = connection.prepare("SELECT CAST(root AS TEXT), type FROM audit_events").expect("the view");
    let rows = query.query_map([], |row| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, String>(1)?)));
    let mut counts = BTreeMap::new();
    for (root, kind) in rows.expect("rows").map(|row| row.expect("a row")) {
        if kinds.contains(&kind.as_str()) {
            *counts.entry((root.unwrap_or_default(), kind)).or_default() += 1;
        }
    }
    counts
}

/// L6.1: positions follow one another, except where an epoch was opened that names what precedes it.
pub fn audit_gaps(database: &Path) -> Vec<String> {
    let connection = open(database);
    let mut query = connection.prepare("SELECT position, events FROM audit_log ORDER BY position").expect("the log");
    let rows = query.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))).expect("rows");
    let (mut gaps, mut last) = (Vec::new(), None);
    for (position, events) in rows.map(|row| row.expect("a row")) {
        let is_next = last.is_none_or(|last| position == last + 1);
        let opened = serde_json::from_str::<Value>(&events).ok().and_then(|events| previous_position(&events));
        let is_named = opened.is_some_and(|named| last.is_none_or(|last| named == last));
        if !is_next && !is_named {
            gaps.push(format!("{last:?} → {position}: {events}"));
        }
        last = Some(position);
    }
    gaps
}

/// What an `epoch.opened` says of the position before it.
fn previous_position(events: &Value) -> Option<i64> {
    let opened = events.as_array()?.iter().find(|event| event["type"] == "epoch.opened")?;
    let previous = &opened["payload"]["previousPosition"];
    previous.as_i64().or_else(|| previous.as_str()?.parse().ok())
}

/// L6.2, as docs/store.md describes the chain, computed by nobody else's code.
pub fn chain_breaks(database: &Path) -> Vec<String> {
    let connection = open(database);
    let columns = "position, partition, time, tenant, actor, chain, events";
    let mut query = connection.prepare(&format!("SELECT {columns} FROM audit_log ORDER BY position")).expect("the log");
    let mut rows = query.query([]).expect("rows");
    let (mut breaks, mut chain) = (Vec::new(), vec![0; 32]);
    while let Some(row) = rows.next().expect("a row") {
        let number = |column: usize| row.get::<_, i64>(column).expect("a number");
        let text = |column: usize| row.get::<_, String>(column).expect("a text");
        let (position, partition) = (number(0), number(1));
        let header = header(number(2), &text(3), &text(4));
        let mut move_on = |id: String, what: &[u8]| {
            chain = blake3::hash(&[&chain, id.as_bytes(), what].concat()).as_bytes().to_vec();
        };
        let id =
            |n: usize| format!("ev-{partition}-{position}{}", if n == 1 { String::new() } else { format!("-{n}") });
        move_on(id(1), &header);
        let events = text(6);
        let events: Vec<&RawValue> = serde_json::from_str(&events).expect("a list of events");
        for (n, event) in (1..).zip(events) {
            move_on(id(n), blake3::hash(event.get().as_bytes()).as_bytes());
        }
        let head: Vec<u8> = row.get(5).expect("a hash");
        if chain != head {
            breaks.push(format!("{position}"));
            chain = head;
        }
    }
    breaks
}

/// Each part with its length before it.
fn header(time: i64, tenant: &str, actor: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in [&time.to_le_bytes()[..], tenant.as_bytes(), actor.as_bytes()] {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    }
    blake3::hash(&bytes).as_bytes()[..16].to_vec()
}
