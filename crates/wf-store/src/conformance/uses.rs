//! What is counted: repeats under keys, and gauges. Next: `trace.rs`.

use wf_core::rows::{Job, JobState, Text};
use wf_core::{Millis, ids};

use crate::batch::{Suppressed, SuppressedKind};
use crate::conformance::records::completed;
use crate::conformance::samples::*;
use crate::conformance::world::*;
use crate::query::*;

const MINUTE_MS: Millis = 60_000;
const DAY_MS: Millis = 86_400_000;
const ROUTE: &str = "POST /api/v1/instances";

fn repeats(key: &str, kind: SuppressedKind, at: Millis, count: u64) -> Suppressed {
    Suppressed {
        tenant: TENANT.into(),
        key_hash: ids::hash16(&[key.as_bytes()]),
        kind,
        route: ROUTE.into(),
        minute: at / MINUTE_MS,
        count,
        first: at,
        last: at + 10,
    }
}

async fn uses(world: &World, tenant: Option<&str>, since: Millis, now: Millis) -> Result<KeyUses, Failed> {
    let query = |slice| IdempotencyQuery { tenant: tenant.map(Text::from), since, now, slice };
    let whole = world.store.idempotency(query(Slice { after: None, limit: 100 })).await?;
    let mut items = Vec::new();
    let mut after = None;
    loop {
        let page = world.store.idempotency(query(Slice { after, limit: 1 })).await?;
        same("totals stand on every page", (page.keys, page.hits), (whole.keys, whole.hits))?;
        same("one item at most", page.items.len() <= 1, true)?;
        items.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    same("all pages together", &items, &whole.items)?;
    Ok(whole)
}

fn totals(uses: &KeyUses) -> [u64; 4] {
    [uses.keys, uses.hits, uses.conflicts, uses.in_progress]
}

/// T1, F6: per key, over minutes and turns.
pub async fn repeats_are_counted_per_key(mut world: World) -> Result<(), Failed> {
    use SuppressedKind::*;
    let first = vec![
        repeats("k", Replay, 100, 2),
        repeats("k", Conflict, 110, 1),
        repeats("k", InProgress, 120, 5),
        repeats("gone", Replay, 130, 1),
    ];
    let second = vec![
        repeats("k", Replay, 90, 3),
        repeats("k", Replay, 5 * MINUTE_MS, 4),
        repeats("k", Message, 140, 1),
        repeats("k", Job, 150, 1),
    ];
    world.turn(|batch| batch.records = vec![completed("k", 50, 1000), completed("alone", 60, 2000)]).await?;
    world.turn(|batch| batch.suppressed = first).await?;
    world.turn(|batch| batch.suppressed = second).await?;
    let found = uses(&world, Some(TENANT), 0, 1000).await?;
    same("totals", totals(&found), [3, 12, 1, 5])?;
    let mut want = [
        ("k", "EXPIRED", 50, 5 * MINUTE_MS + 10, 11, 1),
        ("gone", "NONE", 130, 140, 1, 0),
        ("alone", "COMPLETED", 60, 60, 0, 0),
    ]
    .map(|(key, state, first_seen, last_seen, hits, conflicts)| KeyUse {
        tenant: TENANT.into(),
        key_hash: ids::hash16(&[key.as_bytes()]),
        route: ROUTE.into(),
        state,
        first_seen,
        last_seen,
        hits,
        conflicts,
    });
    want.sort_by_key(|key| key.key_hash);
    same("keys", found.items, want.to_vec())
}

pub async fn uses_are_asked_by_time_and_tenant(mut world: World) -> Result<(), Failed> {
    let old = repeats("old", SuppressedKind::Replay, 100, 1);
    let theirs = Suppressed { tenant: "other".into(), ..repeats("k", SuppressedKind::Replay, 500, 7) };
    let late = repeats("early", SuppressedKind::Replay, 500, 1);
    let mine = vec![old, theirs, late, repeats("k", SuppressedKind::Conflict, 500, 2)];
    world.turn(|batch| batch.suppressed = mine).await?;
    world.turn(|batch| batch.records = vec![completed("early", 10, 900), completed("silent", 20, 900)]).await?;
    same("everything", totals(&uses(&world, Some(TENANT), 0, 0).await?), [4, 2, 2, 0])?;
    let recent = uses(&world, Some(TENANT), 400, 0).await?;
    same("since then", totals(&recent), [2, 1, 2, 0])?;
    let early = recent.items.iter().find(|key| key.hits == 1).map(|key| (key.state, key.first_seen));
    same("its record is older", early, Some(("COMPLETED", 10)))?;
    same("another tenant", totals(&uses(&world, Some("other"), 0, 0).await?), [1, 7, 0, 0])?;
    same("all tenants", totals(&uses(&world, None, 0, 0).await?), [5, 9, 2, 0])?;
    same("nobody", totals(&uses(&world, Some("nobody"), 0, 0).await?), [0; 4])?;
    let malformed = Slice { after: Some("not a cursor".to_owned()), limit: 10 };
    let query = IdempotencyQuery { tenant: None, since: 0, now: 0, slice: malformed };
    same("a malformed cursor", world.store.idempotency(query).await?.items, vec![])
}

pub async fn old_counts_are_swept(mut world: World) -> Result<(), Failed> {
    let counts = [1, 2, 9].map(|day| repeats("k", SuppressedKind::Replay, day * DAY_MS, 1));
    world.turn(|batch| batch.suppressed = counts.to_vec()).await?;
    same("two are older than 30 days", world.store.sweep(35 * DAY_MS, 1).await?, 1)?;
    same("slice by slice", world.store.sweep(35 * DAY_MS, 10).await?, 1)?;
    same("one stays", totals(&uses(&world, None, 0, 0).await?), [1, 1, 0, 0])
}

pub async fn gauges_count_rows(mut world: World) -> Result<(), Failed> {
    let jobs = [job(1), job(2), Job { state: JobState::Failed, ..job(3) }, Job { job_type: "Pay".into(), ..job(4) }];
    world.put(jobs.map(row).into_iter().chain([row(incident(5, 2)), row(incident(6, 3))])).await?;
    world.turn(|batch| batch.records = vec![completed("a", 0, 10), completed("b", 0, 10)]).await?;
    let gauges = world.store.gauges().await?;
    let mut jobs: Vec<(String, String, u64)> = gauges
        .jobs
        .iter()
        .filter(|(_, _, count)| *count > 0)
        .map(|(job_type, state, count)| (job_type.to_string(), format!("{state:?}"), *count))
        .collect();
    jobs.sort();
    let want = [("Pay", "Ready", 1), ("pay", "Failed", 1), ("pay", "Ready", 2)];
    let want: Vec<(String, String, u64)> =
        want.into_iter().map(|(job_type, state, count)| (job_type.to_owned(), state.to_owned(), count)).collect();
    same("jobs", jobs, want)?;
    same("incidents and records", (gauges.incidents, gauges.records), (2, 2))
}
