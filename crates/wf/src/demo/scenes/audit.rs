//! Layer 6: the audit has each effect once, no more and no less; and what left the engine is what the audit says.

use std::collections::{BTreeMap, BTreeSet};

use wf_client::AuditEvent;

use crate::demo::ledger::{Ledger, Line};
use crate::demo::stage::Stage;
use crate::output::{Done, Failure};

const LAYER: &str = "6 audit";
/// What the sink gets, see the API's list of published events.
const PUBLISHED: [&str; 5] =
    ["instance.started", "instance.completed", "instance.canceled", "job.completed", "incident.created"];

pub async fn play(stage: &mut Stage, ledger: &mut Ledger) -> Done {
    let events = events(stage).await?;
    ledger.add(against_the_engine(stage, &events).await?);
    ledger.add(against_the_receiver(stage, &events));
    Ok(())
}

async fn events(stage: &Stage) -> Result<Vec<AuditEvent>, Failure> {
    let (mut events, mut cursor) = (Vec::new(), None);
    loop {
        let page = stage.client.audit(None, None, cursor.as_deref()).await?;
        events.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(events);
        }
    }
}

/// Three jobs an order: charge, pack, receipt.
async fn against_the_engine(stage: &Stage, events: &[AuditEvent]) -> Result<Line, Failure> {
    let instances = stage.instances(None).await?;
    let ended = instances.iter().filter(|instance| instance.state == "COMPLETED").count();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    events.iter().for_each(|event| *counts.entry(event.kind.as_str()).or_default() += 1);
    let count = |kind: &str| counts.get(kind).copied().unwrap_or(0);
    let ids: BTreeSet<&str> = events.iter().map(|event| event.event_id.as_str()).collect();
    Ok(Line::new(LAYER, "the whole audit, read back")
        .check("orders that ended", instances.len(), ended)
        .check("instance.started", instances.len(), count("instance.started"))
        .check("instance.completed", instances.len(), count("instance.completed"))
        .check("job.completed", instances.len() * 3, count("job.completed"))
        .check("event ids that occur twice", 0, events.len() - ids.len())
        .happened(format!("{} events: {} orders, {} jobs", events.len(), instances.len(), count("job.completed")))
        .suppressed("0 effects twice, 0 never"))
}

fn against_the_receiver(stage: &Stage, events: &[AuditEvent]) -> Line {
    let published: BTreeSet<String> = events
        .iter()
        .filter(|event| PUBLISHED.contains(&event.kind.as_str()))
        .map(|event| event.event_id.clone())
        .collect();
    let received: BTreeSet<String> = stage.outside.events().into_keys().collect();
    Line::new(LAYER, "the receiver's books against it")
        .check("events never received", 0, published.difference(&received).count())
        .check("events from nowhere", 0, received.difference(&published).count())
        .happened(format!("{} events received", received.len()))
}
