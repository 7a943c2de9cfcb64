//! The outbox: order, claims, marks. Next: `lists.rs`.

use std::sync::Arc;

use bytes::Bytes;
use wf_core::Key;
use wf_core::rows::Text;

use crate::batch::event_id;
use crate::conformance::samples::KEY_MAX;
use crate::conformance::world::*;
use crate::load::Needs;
use crate::outbox::*;

const ME: [u8; 16] = [1; 16];
const OTHER: [u8; 16] = [2; 16];
/// No claim of a case lasts longer.
const LEASE_MS: i64 = 100;
const DAY_MS: i64 = 86_400_000;

pub(super) fn entry(position: u64, n: u32, sink: &str, order_key: Key) -> OutboxEntry {
    OutboxEntry {
        id: OutboxId { partition: PARTITION, position, n, sink: sink.into() },
        tenant: TENANT.into(),
        order_key,
        topic: "wf.instance.started".into(),
        event_id: event_id(PARTITION, position, n).into(),
        envelope: Bytes::from_static(b"{\"specversion\":\"1.0\"}"),
        // The partition's clock may be ahead of a shipper's.
        created_at: 1_000_000i64.saturating_add_unsigned(position),
    }
}

/// Writes entries at these (position, n, order key) for one sink.
async fn send(world: &mut World, sink: &str, ids: &[(u64, u32, Key)]) -> Result<(), Failed> {
    let entries = ids.iter().map(|(position, n, order_key)| entry(*position, *n, sink, *order_key)).collect();
    Ok(world.turn(|batch| batch.outbox = entries).await?)
}

fn claim(now: i64) -> Claim {
    Claim { sink: "nats".into(), owner: ME, now, lease_ms: LEASE_MS, limit: 10, dead_pass: false }
}

async fn claimed(world: &World, claim: Claim) -> Result<Vec<(u64, u32)>, Failed> {
    let rows = world.store.claim_outbox(claim).await?;
    Ok(rows.into_iter().map(|row| (row.entry.id.position, row.entry.id.n)).collect())
}

async fn mark(world: &World, owner: [u8; 16], ids: &[(u64, u32)], result: MarkResult) -> Result<(), Failed> {
    let id = |(position, n)| OutboxId { partition: PARTITION, position, n, sink: "nats".into() };
    let marks = ids.iter().map(|at| Mark { id: id(*at), owner, result: result.clone() }).collect();
    Ok(world.store.mark_outbox(marks).await?)
}

async fn stands(world: &World, position: u64, n: u32) -> Result<Option<OutboxRow>, Failed> {
    let id = OutboxId { partition: PARTITION, position, n, sink: "nats".into() };
    let loaded = world.store.load(Needs { outbox: [id.clone()].into(), ..Needs::of(PARTITION) }).await?;
    let mut rows = loaded.outbox.into_iter();
    match (rows.next(), rows.next()) {
        (Some((got, row)), None) if got == id => Ok(row),
        other => Err(Failed(format!("asked for {id:?}, got {other:?}"))),
    }
}

fn state(row: Option<OutboxRow>) -> Option<(OutboxState, u32, Option<Text>)> {
    row.map(|row| (row.state, row.attempts, row.last_error))
}

/// L3.3: order per sink and order key; claimed counts as unsent.
pub async fn the_oldest_unsent_of_an_order_key_goes_first(mut world: World) -> Result<(), Failed> {
    send(&mut world, "nats", &[(1, 1, 7), (1, 2, 7), (2, 1, 8), (3, 1, 7), (3, 2, KEY_MAX)]).await?;
    send(&mut world, "hook", &[(1, 1, 7), (1, 2, 7)]).await?;
    let first = world.store.claim_outbox(claim(0)).await?;
    let fresh = OutboxRow {
        entry: entry(1, 1, "nats", 7),
        state: OutboxState::Pending,
        attempts: 0,
        last_error: None,
        retry_at: 0,
        shipped_at: 0,
    };
    same("as it was written", first.first(), Some(&fresh))?;
    let at: Vec<(u64, u32)> = first.iter().map(|row| (row.entry.id.position, row.entry.id.n)).collect();
    same("one of each order key", at, vec![(1, 1), (2, 1), (3, 2)])?;
    same("the rest waits", claimed(&world, claim(1)).await?, vec![])?;
    let hook = Claim { sink: "hook".into(), ..claim(1) };
    same("another sink has its own order", claimed(&world, hook).await?, vec![(1, 1)])?;
    mark(&world, ME, &[(1, 1)], MarkResult::Shipped { at: 5 }).await?;
    same("the next of its key", claimed(&world, claim(2)).await?, vec![(1, 2)])?;
    same(
        "shipped",
        stands(&world, 1, 1).await?.map(|row| (row.state, row.shipped_at)),
        Some((OutboxState::Shipped, 5)),
    )?;
    mark(&world, ME, &[(1, 2), (2, 1)], MarkResult::Shipped { at: 6 }).await?;
    same("in order", claimed(&world, claim(2)).await?, vec![(3, 1)])
}

pub async fn positions_order_by_number(mut world: World) -> Result<(), Failed> {
    send(&mut world, "nats", &[(10, 1, 1), (9, 10, 2), (9, 2, 3), (KEY_MAX, u32::MAX, 4), (2, 1, 5)]).await?;
    let three = Claim { limit: 3, ..claim(0) };
    same("the first three", claimed(&world, three).await?, vec![(2, 1), (9, 2), (9, 10)])?;
    same("the others", claimed(&world, claim(0)).await?, vec![(10, 1), (KEY_MAX, u32::MAX)])?;
    let none = Claim { limit: 0, ..claim(1000) };
    same("nothing is asked", claimed(&world, none).await?, vec![])?;
    same("it is not there", stands(&world, 11, 1).await?, None)
}

pub async fn a_claim_lasts_for_its_lease(mut world: World) -> Result<(), Failed> {
    send(&mut world, "nats", &[(1, 1, 7), (2, 1, 7)]).await?;
    let others = |now| Claim { owner: OTHER, ..claim(now) };
    same("mine", claimed(&world, claim(0)).await?, vec![(1, 1)])?;
    same("in its last millisecond", claimed(&world, others(LEASE_MS - 1)).await?, vec![])?;
    same("when it is over", claimed(&world, others(LEASE_MS)).await?, vec![(1, 1)])?;
    same("now it is theirs", claimed(&world, claim(2 * LEASE_MS - 1)).await?, vec![])
}

pub async fn a_stale_owners_marks_are_ignored(mut world: World) -> Result<(), Failed> {
    send(&mut world, "nats", &[(1, 1, 7), (2, 1, 7)]).await?;
    mark(&world, ME, &[(1, 1)], MarkResult::Shipped { at: 1 }).await?;
    same("never claimed", state(stands(&world, 1, 1).await?), Some((OutboxState::Pending, 0, None)))?;
    claimed(&world, claim(0)).await?;
    claimed(&world, Claim { owner: OTHER, ..claim(LEASE_MS) }).await?;
    for result in [MarkResult::Shipped { at: 1 }, MarkResult::Dead { error: "no".into() }, MarkResult::Release] {
        mark(&world, ME, &[(1, 1)], result).await?;
    }
    same("still theirs", state(stands(&world, 1, 1).await?), Some((OutboxState::Pending, 0, None)))?;
    same("and held", claimed(&world, claim(LEASE_MS + 1)).await?, vec![])?;
    mark(&world, OTHER, &[(1, 1), (99, 1)], MarkResult::Shipped { at: 300 }).await?;
    same("the holder's counts", state(stands(&world, 1, 1).await?), Some((OutboxState::Shipped, 1, None)))?;
    mark(&world, OTHER, &[(1, 1)], MarkResult::Dead { error: "late".into() }).await?;
    same("once", state(stands(&world, 1, 1).await?), Some((OutboxState::Shipped, 1, None)))
}

pub async fn a_retry_waits_for_its_time(mut world: World) -> Result<(), Failed> {
    send(&mut world, "nats", &[(1, 1, 7), (2, 1, 7)]).await?;
    claimed(&world, claim(0)).await?;
    mark(&world, ME, &[(1, 1)], MarkResult::Retry { at: 50, error: "refused".into() }).await?;
    let waiting = stands(&world, 1, 1).await?;
    same("when", waiting.as_ref().map(|row| row.retry_at), Some(50))?;
    same("why", state(waiting), Some((OutboxState::Pending, 1, Some("refused".into()))))?;
    same("not yet, and nothing passes it", claimed(&world, claim(49)).await?, vec![])?;
    same("then", claimed(&world, claim(50)).await?, vec![(1, 1)])?;
    mark(&world, ME, &[(1, 1)], MarkResult::Retry { at: 60, error: "again".into() }).await?;
    same("counted", state(stands(&world, 1, 1).await?), Some((OutboxState::Pending, 2, Some("again".into()))))
}

pub async fn dead_letters_block_or_let_pass(mut world: World) -> Result<(), Failed> {
    send(&mut world, "nats", &[(1, 1, 7), (2, 1, 7), (3, 1, 8)]).await?;
    claimed(&world, Claim { limit: 1, ..claim(0) }).await?;
    mark(&world, ME, &[(1, 1)], MarkResult::Dead { error: "too big".into() }).await?;
    same("dead", state(stands(&world, 1, 1).await?), Some((OutboxState::Dead, 1, Some("too big".into()))))?;
    same("it blocks its order key alone", claimed(&world, claim(1)).await?, vec![(3, 1)])?;
    let passing = Claim { dead_pass: true, ..claim(1000) };
    same("or lets pass, but is not claimed", claimed(&world, passing).await?, vec![(2, 1), (3, 1)])
}

pub async fn released_messages_are_free_at_once(mut world: World) -> Result<(), Failed> {
    send(&mut world, "nats", &[(1, 1, 7)]).await?;
    claimed(&world, claim(0)).await?;
    mark(&world, ME, &[(1, 1)], MarkResult::Release).await?;
    same("no attempt", state(stands(&world, 1, 1).await?), Some((OutboxState::Pending, 0, None)))?;
    same("free", claimed(&world, Claim { owner: OTHER, ..claim(0) }).await?, vec![(1, 1)])
}

/// Pending again with attempts 0 and the same dedup key, from wherever it was.
pub async fn an_operator_ships_again(mut world: World) -> Result<(), Failed> {
    send(&mut world, "nats", &[(1, 1, 7), (2, 1, 8), (3, 1, 9), (4, 1, 7)]).await?;
    claimed(&world, claim(0)).await?;
    mark(&world, ME, &[(1, 1)], MarkResult::Dead { error: "no".into() }).await?;
    mark(&world, ME, &[(2, 1)], MarkResult::Shipped { at: 1 }).await?;
    mark(&world, ME, &[(3, 1)], MarkResult::Retry { at: i64::MAX, error: "later".into() }).await?;
    let id = |position| OutboxId { partition: PARTITION, position, n: 1, sink: "nats".into() };
    world.turn(|batch| batch.outbox_retries = vec![id(1), id(2), id(3)]).await?;
    let rows = world.store.claim_outbox(claim(1)).await?;
    let got: Vec<(Text, OutboxState, u32)> =
        rows.into_iter().map(|row| (row.entry.event_id, row.state, row.attempts)).collect();
    let want = [1, 2, 3].map(|position| (event_id(PARTITION, position, 1).into(), OutboxState::Pending, 0));
    same("all three again, before the fourth", got, want.to_vec())
}

pub async fn sinks_are_counted(mut world: World) -> Result<(), Failed> {
    send(&mut world, "nats", &[(1, 1, 6), (2, 1, 7), (3, 1, 8), (4, 1, 8)]).await?;
    send(&mut world, "hook", &[(1, 1, 6)]).await?;
    claimed(&world, Claim { limit: 2, ..claim(0) }).await?;
    mark(&world, ME, &[(1, 1)], MarkResult::Shipped { at: 1 }).await?;
    mark(&world, ME, &[(2, 1)], MarkResult::Dead { error: "no".into() }).await?;
    claimed(&world, Claim { limit: 1, ..claim(0) }).await?;
    let mut stats = world.store.outbox_stats().await?;
    stats.sort_by(|a, b| a.sink.cmp(&b.sink));
    let of = |sink: &str, pending, dead, oldest: i64| OutboxStats {
        sink: sink.into(),
        pending,
        dead,
        oldest_pending: Some(1_000_000 + oldest),
    };
    same("claimed ones are pending", stats, vec![of("hook", 1, 0, 1), of("nats", 2, 1, 3)])
}

pub async fn old_shipped_messages_are_swept(mut world: World) -> Result<(), Failed> {
    send(&mut world, "nats", &[(1, 1, 6), (2, 1, 7), (3, 1, 8), (4, 1, 9)]).await?;
    claimed(&world, claim(0)).await?;
    mark(&world, ME, &[(1, 1)], MarkResult::Shipped { at: DAY_MS }).await?;
    mark(&world, ME, &[(2, 1)], MarkResult::Shipped { at: 9 * DAY_MS }).await?;
    mark(&world, ME, &[(3, 1)], MarkResult::Dead { error: "no".into() }).await?;
    same("the old one", world.store.sweep(35 * DAY_MS, 10).await?, 1)?;
    for (position, stays) in [(1, false), (2, true), (3, true), (4, true)] {
        same("what stays", stands(&world, position, 1).await?.is_some(), stays)?;
    }
    Ok(())
}

/// For lists: three messages of two tenants, one of them dead.
pub(super) async fn a_few(world: &mut World) -> Result<Vec<Arc<OutboxEntry>>, Failed> {
    let mut entries =
        vec![entry(9, 1, "nats", 7), entry(9, 1, "a-b", 7), entry(10, 2, "nats", 7), entry(8, 1, "nats", 9)];
    if let Some(last) = entries.last_mut() {
        last.tenant = "other".into();
    }
    world.turn(|batch| batch.outbox = entries.clone()).await?;
    world.store.claim_outbox(Claim { limit: 2, ..claim(0) }).await?;
    mark(world, ME, &[(9, 1)], MarkResult::Dead { error: "no".into() }).await?;
    Ok(entries.into_iter().map(Arc::new).collect())
}
