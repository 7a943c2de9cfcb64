//! Messages: published if and only if committed, the same under an id, in order per instance. Next: `lineage.rs`.

use std::collections::{BTreeMap, BTreeSet};

use wf_store::{OutboxState, event_id, parse_event_id};

use super::history::History;
use super::{Findings, Scene};
use crate::world::PARTITION;

/// A position and an event's number there.
type Place = (u64, u32);

const PUBLISHED: [&str; 5] =
    ["instance.started", "instance.completed", "instance.canceled", "job.completed", "incident.created"];

fn published_ids(history: &History) -> BTreeSet<String> {
    let published = history.events.iter().filter(|event| PUBLISHED.contains(&event.kind.as_str()));
    published.map(|event| event_id(PARTITION, event.position, event.n)).collect()
}

/// A row for every published event and none besides; each was shipped, and nothing else arrived.
pub fn published(scene: &Scene<'_>) -> Findings {
    let wanted = published_ids(scene.now);
    let messages = scene.world.broker.messages();
    let mut wrong = Vec::new();
    let mut found = BTreeSet::new();
    for row in scene.store.outbox_rows() {
        let id = row.entry.event_id.to_string();
        if row.state != OutboxState::Shipped {
            wrong.push(format!("{id} is {:?} after {} attempts", row.state, row.attempts));
        }
        match messages.get(&id) {
            None => wrong.push(format!("{id} is said to be shipped, and never arrived")),
            Some(message) if message.envelope != row.entry.envelope => {
                wrong.push(format!("{id} arrived with other content"));
            }
            Some(_) => (),
        }
        found.insert(id);
    }
    wrong.extend(wanted.difference(&found).map(|id| format!("{id} is in the audit, not in the outbox")));
    wrong.extend(found.difference(&wanted).map(|id| format!("{id} is in the outbox, not in the audit")));
    let lost = scene.lost.map(|lost| published_ids(&lost.all)).unwrap_or_default();
    let unknown = messages.keys().filter(|id| !found.contains(*id) && !lost.contains(*id));
    wrong.extend(unknown.map(|id| format!("{id} arrived, and was never committed")));
    wrong
}

/// Per instance, first deliveries come in the order of their positions.
pub fn order(scene: &Scene<'_>) -> Findings {
    let mut by_key: BTreeMap<u64, Vec<(u64, Place)>> = BTreeMap::new();
    for (id, message) in scene.world.broker.messages() {
        if let Some((_, position, n)) = parse_event_id(&id) {
            by_key.entry(message.order_key).or_default().push((message.arrival, (position, n)));
        }
    }
    let mut wrong = Vec::new();
    for (key, mut arrived) in by_key {
        arrived.sort_unstable();
        let overtaken = arrived.windows(2).filter(|pair| pair[0].1 > pair[1].1);
        wrong.extend(overtaken.map(|pair| format!("of {key}, {:?} came before {:?}", pair[0].1, pair[1].1)));
    }
    wrong
}
