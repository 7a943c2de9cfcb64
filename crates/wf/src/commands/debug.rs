//! `wf debug idempotency-check`: which keys were used how often, and which for something else (T1).

use serde_json::json;
use wf_client::{Client, KeyUses};

use crate::cli::{IdempotencyCheckArgs, Output};
use crate::output::{self, Done, Failure};

use super::connect;

pub async fn idempotency_check(args: IdempotencyCheckArgs) -> Done {
    let remote = &args.list.remote;
    let uses = all(&connect(remote)?, args.hours, args.list.limit).await?;
    if remote.output == Output::Json {
        return output::print(&output::json(&json!({ "items": uses.items, "totals": uses.totals })));
    }
    let rows = uses.items.iter().map(|key| {
        vec![
            output::short(&key.key_hash, 16),
            key.route.clone(),
            key.state.clone(),
            key.hits.to_string(),
            key.conflicts.to_string(),
            key.first_seen_at.clone(),
            key.last_seen_at.clone(),
        ]
    });
    let headings = ["key hash", "route", "state", "repeats", "conflicts", "first seen", "last seen"];
    output::print(&output::table(&headings, rows.collect()))?;
    let totals: Vec<String> = uses.totals.iter().map(|(name, count)| format!("{name} {count}")).collect();
    output::print(&format!("last {} h: {}", args.hours, totals.join(", ")))
}

async fn all(client: &Client, hours: u32, limit: usize) -> Result<KeyUses, Failure> {
    let mut uses = client.idempotency(hours, None).await?;
    while let Some(cursor) = uses.next_cursor.take().filter(|_| uses.items.len() < limit) {
        let next = client.idempotency(hours, Some(&cursor)).await?;
        uses.items.extend(next.items);
        uses.next_cursor = next.next_cursor;
    }
    uses.items.truncate(limit);
    Ok(uses)
}
