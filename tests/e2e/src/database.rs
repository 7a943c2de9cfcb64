//! The store as somebody with a shell reads it: what no tenant's API shows. One reader for both stores: the same statement,
//! every value as text, bytes in hex. What holds for each partition is asked of each by itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Clone, Debug)]
pub enum Database {
    /// SQLite's file.
    File(PathBuf),
    /// PostgreSQL's URL.
    Server(String),
}

/// One row of the audit: what a command made happen.
#[derive(Clone, Debug)]
pub struct AuditRow {
    pub partition: i64,
    pub position: i64,
    pub time: i64,
    pub tenant: String,
    pub actor: String,
    pub chain: Vec<u8>,
    /// JSON, byte for byte.
    pub events: String,
}

impl Database {
    /// All values as text: a NULL is empty, bytes are hex.
    #[track_caller]
    pub fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        self.try_rows(sql).unwrap_or_else(|error| panic!("{error} in {sql}"))
    }

    pub fn try_rows(&self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        match self {
            Database::File(path) => of_file(path, sql).map_err(|error| error.to_string()),
            Database::Server(url) => servers::try_execute(url, &format!("SET search_path = onceflow; {sql}"))
                .map(without_prefix)
                .map_err(|error| format!("{error:?}")),
        }
    }

    /// Where the jobs stand.
    pub fn jobs(&self) -> &'static str {
        match self {
            Database::File(_) => "job",
            Database::Server(_) => "jobs",
        }
    }

    /// The one column, as text.
    #[track_caller]
    pub fn texts(&self, sql: &str) -> Vec<String> {
        self.rows(sql).into_iter().map(|mut row| row.swap_remove(0)).collect()
    }

    /// In the order of each partition.
    #[track_caller]
    pub fn audit(&self) -> Vec<AuditRow> {
        let columns = "partition, position, time, tenant, actor, chain, events";
        let rows = self.rows(&format!("SELECT {columns} FROM audit_log ORDER BY partition, position"));
        rows.into_iter().map(AuditRow::of).collect()
    }
}

/// For reading only.
pub fn open(database: &Path) -> Connection {
    Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the store opens")
}

fn of_file(path: &Path, sql: &str) -> rusqlite::Result<Vec<Vec<String>>> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut query = connection.prepare(sql)?;
    let columns = query.column_count();
    let row = |row: &rusqlite::Row| (0..columns).map(|column| Ok(text_of(row.get_ref(column)?))).collect();
    query.query_map([], row)?.collect()
}

fn text_of(value: ValueRef) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// PostgreSQL writes `\x` before its hex; nothing that we read as text begins so.
fn without_prefix(rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let bare = |value: String| value.strip_prefix("\\x").map(str::to_owned).unwrap_or(value);
    rows.into_iter().map(|row| row.into_iter().map(bare).collect()).collect()
}

impl AuditRow {
    fn of(row: Vec<String>) -> AuditRow {
        let number = |column: usize| row[column].parse().expect("a number");
        let text = |column: usize| row[column].clone();
        let chain = bytes_of(&row[5]);
        let (partition, position, time) = (number(0), number(1), number(2));
        AuditRow { partition, position, time, tenant: text(3), actor: text(4), chain, events: text(6) }
    }

    /// Each with its id.
    pub fn events(&self) -> Vec<(String, Value)> {
        let events: Vec<Value> = serde_json::from_str(&self.events).expect("a list of events");
        (1..).zip(events).map(|(n, event)| (self.id(n), event)).collect()
    }

    fn id(&self, n: usize) -> String {
        let behind = if n == 1 { String::new() } else { format!("-{n}") };
        format!("ev-{}-{}{behind}", self.partition, self.position)
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("hex"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
}

/// Of each partition by itself, in order.
fn by_partition(database: &Database) -> BTreeMap<i64, Vec<AuditRow>> {
    let mut partitions: BTreeMap<i64, Vec<AuditRow>> = BTreeMap::new();
    database.audit().into_iter().for_each(|row| partitions.entry(row.partition).or_default().push(row));
    partitions
}

/// L6.1: positions follow one another, except where an epoch was opened that names what precedes it.
pub fn audit_gaps(database: &Database) -> Vec<String> {
    by_partition(database).values().flat_map(|rows| rows.windows(2).filter_map(gap)).collect()
}

fn gap(rows: &[AuditRow]) -> Option<String> {
    let [last, row] = rows else { return None };
    let named = previous_position(row);
    let is_next = row.position == last.position + 1;
    let gap = || format!("{}: {} → {}: {}", row.partition, last.position, row.position, row.events);
    (!is_next && named != Some(last.position)).then(gap)
}

/// What an `epoch.opened` says of the position before it.
fn previous_position(row: &AuditRow) -> Option<i64> {
    let events = row.events();
    let (_, opened) = events.iter().find(|(_, event)| event["type"] == "epoch.opened")?;
    let previous = &opened["payload"]["previousPosition"];
    previous.as_i64().or_else(|| previous.as_str()?.parse().ok())
}

/// L6.2, as docs/store.md describes the chain, computed by nobody else's code.
pub fn chain_breaks(database: &Database) -> Vec<String> {
    by_partition(database).values().flat_map(|rows| breaks_of(rows)).collect()
}

fn breaks_of(rows: &[AuditRow]) -> Vec<String> {
    let (mut breaks, mut chain) = (Vec::new(), vec![0; 32]);
    for row in rows {
        chain = head_after(&chain, row);
        if chain != row.chain {
            breaks.push(row.id(1));
            chain = row.chain.clone();
        }
    }
    breaks
}

fn head_after(chain: &[u8], row: &AuditRow) -> Vec<u8> {
    let after = |chain: Vec<u8>, id: String, what: &[u8]| {
        blake3::hash(&[&chain, id.as_bytes(), what].concat()).as_bytes().to_vec()
    };
    let events: Vec<&RawValue> = serde_json::from_str(&row.events).expect("a list of events");
    let head = after(chain.to_vec(), row.id(1), &header(row.time, &row.tenant, &row.actor));
    (1..)
        .zip(events)
        .fold(head, |chain, (n, event)| after(chain, row.id(n), blake3::hash(event.get().as_bytes()).as_bytes()))
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
