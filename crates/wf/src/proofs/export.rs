//! `wf audit export`: one line of JSON per event, in order. Its id is the event's own, whoever exports and however often:
//! a receiver that keeps ids takes a repeated export for what it is.
//! Next: `archive.rs`.

use serde::Serialize;
use wf_api::audit::{self, EventOut};
use wf_store::{AuditEntry, AuditRow, Ledger, parse_event_id};

use super::local::Local;
use crate::cli::AuditExportArgs;
use crate::commands::connect;
use crate::output::{self, Done, Failure};

const PAGE_ROWS: usize = 1_000;

#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    event: EventOut,
    tenant: String,
}

pub async fn export(args: AuditExportArgs) -> Done {
    let from = args.from.as_deref().map(place).transpose()?.unwrap_or((1, 0, 1));
    match Local::of(&args.source) {
        Some(local) => export_here(&local, from),
        None => export_server(&args).await,
    }
}

/// A partition, a position there, an event's number.
type Place = (u16, u64, u32);

fn place(text: &str) -> Result<Place, Failure> {
    parse_event_id(text).ok_or_else(|| Failure::usage(format!("{text:?} is not an event id such as ev-1-42")))
}

/// All tenants, each line with its own; partition by partition.
fn export_here(local: &Local<'_>, from: Place) -> Done {
    let partitions = local.partitions()?.into_iter().filter(|partition| *partition >= from.0);
    // Nothing leaves the audit before the last partition has had its turn.
    let mut held = local.ledger(1)?;
    held.audit_begin().map_err(Failure::work)?;
    for partition in partitions {
        export_partition(&mut *local.ledger(partition)?, from)?;
    }
    Ok(())
}

fn export_partition(ledger: &mut dyn Ledger, from: Place) -> Done {
    let partition = ledger.standing().map_err(Failure::work)?.fence.partition;
    let mut next = if from.0 == partition { from.1 } else { 0 };
    loop {
        let page = ledger.audit(next, PAGE_ROWS).map_err(Failure::work)?;
        let is_last = page.len() < PAGE_ROWS;
        next = page.last().map_or(next, |entry| entry.position + 1);
        let mut text = String::new();
        for entry in page {
            write_lines(partition, entry, from, &mut text)?;
        }
        if !text.is_empty() {
            output::print(text.trim_end())?;
        }
        if is_last {
            return Ok(());
        }
    }
}

fn write_lines(partition: u16, entry: AuditEntry, from: Place, out: &mut String) -> Result<(), Failure> {
    let (position, tenant) = (entry.position, entry.tenant.to_string());
    let row = AuditRow { partition, position, time: entry.time, actor: entry.actor, events: entry.events };
    let events = audit::events_of(&row, None);
    let events = events.ok_or_else(|| Failure::work(format!("the audit row at {position} cannot be read")))?;
    for event in events.into_iter().filter(|event| event.place() >= from) {
        let line = Line { event: event.event, tenant: tenant.clone() };
        out.push_str(&serde_json::to_string(&line).map_err(Failure::work)?);
        out.push('\n');
    }
    Ok(())
}

/// The tenant's own events.
async fn export_server(args: &AuditExportArgs) -> Done {
    let client = connect(&args.source.remote)?;
    let (mut from, mut cursor) = (args.from.clone(), None);
    loop {
        let page = client.audit(from.take().as_deref(), None, cursor.as_deref()).await?;
        let lines =
            page.items.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>().map_err(Failure::work)?;
        if !lines.is_empty() {
            output::print(&lines.join("\n"))?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}
