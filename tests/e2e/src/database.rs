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

/// L6.2, as docs/store.md describes the chain: `BLAKE3(previous ‖ event id ‖ BLAKE3(event))`, beginning with zeros.
pub fn chain_breaks(database: &Path) -> Vec<String> {
    let connection = open(database);
    let mut query = connection
        .prepare("SELECT position, partition, chain, events FROM audit_log ORDER BY position")
        .expect("the log");
    let rows = query.query_map([], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?, row.get::<_, String>(3)?))
    });
    let (mut breaks, mut chain) = (Vec::new(), vec![0; 32]);
    for (position, partition, head, events) in rows.expect("rows").map(|row| row.expect("a row")) {
        let events: Vec<&RawValue> = serde_json::from_str(&events).expect("a list of events");
        for (n, event) in (1..).zip(events) {
            let suffix = if n == 1 { String::new() } else { format!("-{n}") };
            let id = format!("ev-{partition}-{position}{suffix}");
            let event = blake3::hash(event.get().as_bytes());
            chain = blake3::hash(&[&chain, id.as_bytes(), event.as_bytes()].concat()).as_bytes().to_vec();
        }
        if chain != head {
            breaks.push(format!("{position}"));
            chain = head;
        }
    }
    breaks
}
