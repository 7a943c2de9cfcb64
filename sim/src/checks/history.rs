//! A store's own account of what happened: the command log and the audit, read once, in order. Checkers compare it with what
//! clients saw. Next: `checks.rs`.

use serde_json::Value;
use serde_json::value::RawValue;
use wf_core::{Command, Key, Millis};
use wf_store::codec::logged_from_json;
use wf_store::memory::MemoryStore;
use wf_store::{AuditQuery, Slice, Store};

use crate::world::TENANT;

#[derive(Default)]
pub struct History {
    pub commands: Vec<Logged>,
    pub events: Vec<Event>,
    /// Positions that have an audit row.
    pub audited: Vec<u64>,
}

/// A row of the log.
pub struct Logged {
    pub position: u64,
    pub id: [u8; 16],
    pub time: Millis,
    pub verb: &'static str,
    /// Where its lineage begins; empty without a key.
    pub origin: String,
    /// `None` for a deployment, which is mostly its model.
    pub command: Option<Command>,
}

/// One event of the audit.
#[derive(Clone, Debug)]
pub struct Event {
    pub position: u64,
    /// From 1, within its command.
    pub n: u32,
    pub time: Millis,
    pub actor: String,
    pub kind: String,
    pub resource: Key,
    /// 0 for none.
    pub root: Key,
    pub payload: Value,
    /// As it is stored.
    pub text: String,
}

impl History {
    pub async fn of(store: &MemoryStore) -> History {
        let mut history = History::default();
        for entry in store.log() {
            let read = match entry.verb {
                "deploy" => None,
                _ => logged_from_json(&entry.payload).ok(),
            };
            let (command, origin) =
                read.map_or((None, String::new()), |(command, origin)| (Some(command), origin.to_string()));
            let (position, id, time, verb) = (entry.position, entry.id, entry.time, entry.verb);
            history.commands.push(Logged { position, id, time, verb, origin, command });
        }
        for tenant in ["", TENANT] {
            history.read_audit(store, tenant).await;
        }
        history.events.sort_by_key(|event| (event.position, event.n));
        history.audited.sort_unstable();
        history
    }

    async fn read_audit(&mut self, store: &MemoryStore, tenant: &str) {
        let slice = Slice { after: None, limit: usize::MAX - 1 };
        let query = AuditQuery { tenant: tenant.into(), partition: 1, is_alone: false, from: None, until: None, slice };
        let Ok(page) = store.audit(query).await else { return };
        for row in page.items {
            self.audited.push(row.position);
            let texts: Vec<&RawValue> = serde_json::from_str(&row.events).unwrap_or_default();
            for (n, text) in (1..).zip(texts) {
                self.events.push(event(row.position, n, row.time, &row.actor, text.get()));
            }
        }
    }

    pub fn position(&self) -> u64 {
        self.commands.last().map_or(0, |command| command.position)
    }

    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Event> {
        self.events.iter().filter(move |event| event.kind == kind)
    }
}

fn event(position: u64, n: u32, time: Millis, actor: &str, text: &str) -> Event {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    Event {
        position,
        n,
        time,
        actor: actor.to_owned(),
        kind: value["type"].as_str().unwrap_or_default().to_owned(),
        resource: key(&value["resource"]),
        root: key(&value["root"]),
        payload: value["payload"].clone(),
        text: text.to_owned(),
    }
}

/// Keys are written as strings.
pub fn key(value: &Value) -> Key {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}
