//! The fence, and all or nothing. Next: `rows.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use wf_core::{Need, Row};

use crate::batch::*;
use crate::conformance::messages::entry;
use crate::conformance::records::completed;
use crate::conformance::samples::*;
use crate::conformance::world::*;
use crate::load::Needs;
use crate::query::{AuditQuery, IdempotencyQuery, Slice};

pub async fn a_fresh_partition_stands_at_zero(world: World) -> Result<(), Failed> {
    let want = Fence { partition: PARTITION, epoch: world.fence.epoch, old_position: 0, new_position: 0 };
    same("the fence", world.fence, want)?;
    same("the head", world.head, Head::default())?;
    same("it has an epoch", world.fence.epoch > 0, true)
}

pub async fn opening_raises_the_epoch_and_keeps_the_head(mut world: World) -> Result<(), Failed> {
    let odd = Head {
        next_counter: (1 << 51) - 1,
        digest: u128::MAX - 1,
        chain: [255; 32],
        last_time: i64::MAX,
        clock: Some(TestClock { now: i64::MIN, frozen: true }),
    };
    let small = Head { digest: 1, last_time: i64::MIN, clock: Some(TestClock { now: 0, frozen: false }), ..odd };
    for head in [odd, small, Head { clock: None, ..odd }] {
        world.turn(|batch| batch.head = head).await?;
        let next = world.take_over().await?;
        same("the epoch is higher", next.fence.epoch > world.fence.epoch, true)?;
        let position = world.fence.new_position;
        same("the position", (next.fence.old_position, next.fence.new_position), (position, position))?;
        same("the head", next.head, head)?;
        world = next;
    }
    Ok(())
}

/// A batch with something in every table.
fn full_batch(world: &World, row: Row) -> Batch {
    let mut batch = world.batch();
    let position = batch.fence.new_position;
    batch.rows = vec![world.change(row.id(), Some(row))];
    batch.audit = vec![audit_entry(position)];
    batch.outbox = vec![entry(position, 1, "nats", 1)];
    batch.records = vec![completed("full", 0, 100)];
    batch.suppressed = vec![Suppressed {
        tenant: TENANT.into(),
        key_hash: [9; 16],
        kind: SuppressedKind::Replay,
        route: "POST /x".into(),
        minute: 0,
        count: 1,
        first: 0,
        last: 0,
    }];
    batch
}

/// What of this batch is visible: of nothing or of everything, table by table.
async fn traces(world: &World, batch: &Batch) -> Result<[bool; 6], Failed> {
    let needs = Needs {
        core: batch.rows.iter().map(|change| Need::Row(change.id.clone())).collect(),
        records: batch.records.iter().map(|entry| entry.id.clone()).collect(),
        commands: batch.log.iter().map(|entry| entry.id).collect(),
        outbox: batch.outbox.iter().map(|entry| entry.id.clone()).collect(),
        ..Needs::of(PARTITION)
    };
    let loaded = world.store.load(needs).await?;
    let slice = || Slice { after: None, limit: 100 };
    let audit = AuditQuery {
        tenant: TENANT.into(),
        partition: PARTITION,
        is_alone: false,
        from: Some(batch.fence.new_position),
        until: None,
        slice: slice(),
    };
    let uses = IdempotencyQuery { tenant: None, since: 0, now: 0, slice: slice() };
    Ok([
        loaded.commands.iter().any(|(_, known)| *known),
        loaded.rows.iter().any(|(id, row)| row.is_some() && !world.mirror.contains_key(id)),
        loaded.records.iter().any(|(_, record)| record.is_some()),
        loaded.outbox.iter().any(|(_, row)| row.is_some()),
        !world.store.audit(audit).await?.items.is_empty(),
        world.store.idempotency(uses).await?.hits > 0,
    ])
}

async fn refused(world: &mut World, batch: Batch, want: &'static str) -> Result<(), Failed> {
    let before = (world.fence, world.head);
    let result = world.store.commit(Arc::new(batch)).await;
    same("the commit", ending(&result), want)?;
    let opened = world.take_over().await?;
    same("the position", opened.fence.new_position, before.0.new_position)?;
    same("the head", opened.head, before.1)?;
    *world = opened;
    Ok(())
}

pub async fn an_old_epoch_is_fenced(mut world: World) -> Result<(), Failed> {
    let batch = full_batch(&world, row(timer(1, 1)));
    let mut owner = world.take_over().await?;
    refused(&mut world, batch.clone(), "fenced").await?;
    same("nothing is visible", traces(&world, &batch).await?, [false; 6])?;
    let mut unborn = batch.clone();
    unborn.fence.epoch = world.fence.epoch + 1;
    refused(&mut world, unborn, "fenced").await?;
    let mut elsewhere = batch;
    elsewhere.fence.partition = PARTITION + 1;
    refused(&mut world, elsewhere, "fenced").await?;
    let deposed = owner.put([row(timer(1, 1))]).await;
    same("the first one to take it over", ending(&deposed), "fenced")
}

/// What a deposed owner would answer without a commit is not its to say.
pub async fn a_fence_is_checked_without_a_commit(mut world: World) -> Result<(), Failed> {
    let at = |world: &World| Fence { old_position: world.fence.new_position, ..world.fence };
    same("a fresh owner", ending(&world.store.check_fence(at(&world)).await), "committed")?;
    world.put([row(timer(1, 1))]).await?;
    same("after a turn", ending(&world.store.check_fence(at(&world)).await), "committed")?;
    let mut owner = world.take_over().await?;
    same("deposed", ending(&world.store.check_fence(at(&world)).await), "fenced")?;
    same("the new owner", ending(&world.store.check_fence(at(&owner)).await), "committed")?;
    owner.put([row(timer(2, 1))]).await?;
    same("checking changed nothing", ending(&world.put([row(timer(3, 1))]).await), "fenced")
}

pub async fn an_old_position_is_fenced(mut world: World) -> Result<(), Failed> {
    world.put([row(timer(1, 1))]).await?;
    let batch = full_batch(&world, row(timer(2, 1)));
    for old_position in [world.fence.new_position - 1, world.fence.new_position + 1] {
        let mut wrong = batch.clone();
        wrong.fence.old_position = old_position;
        let result = world.store.commit(Arc::new(wrong)).await;
        same("the commit", ending(&result), "fenced")?;
    }
    same("nothing is visible", traces(&world, &batch).await?, [false; 6])?;
    world.commit(batch.clone()).await?;
    same("all is visible", traces(&world, &batch).await?, [true, false, true, true, true, true])?;
    world.check_rows([batch.rows[0].id.clone()]).await?;
    let again = world.store.commit(Arc::new(batch)).await;
    same("the same batch again", ending(&again), "fenced")
}

pub async fn two_owners_take_turns(mut first: World) -> Result<(), Failed> {
    first.put([row(timer(1, 1))]).await?;
    let mut second = first.take_over().await?;
    same("the deposed", ending(&first.put([row(timer(2, 1))]).await), "fenced")?;
    second.put([row(timer(3, 1))]).await?;
    same("still deposed", ending(&first.put([row(timer(2, 1))]).await), "fenced")?;
    let mut first = second.take_over().await?;
    same("the other is deposed", ending(&second.delete([row(timer(3, 1)).id()]).await), "fenced")?;
    first.put([row(timer(2, 1))]).await?;
    first.check_ranges([]).await
}

/// Counts of repeats, or a message to ship again, take no position.
pub async fn a_turn_without_commands_keeps_its_position(mut world: World) -> Result<(), Failed> {
    world.put([row(timer(1, 1))]).await?;
    for _ in 0..2 {
        let mut batch = world.batch();
        batch.log.clear();
        batch.head = world.head;
        batch.fence.new_position = batch.fence.old_position;
        world.commit(batch).await?;
    }
    let opened = world.take_over().await?;
    same("the position", opened.fence.new_position, 1)
}

/// An opened epoch lifts the position; one turn may hold many commands.
pub async fn positions_may_jump(mut world: World) -> Result<(), Failed> {
    let start = 1 << 45;
    let mut batch = world.batch();
    batch.fence.new_position = start + 3;
    batch.log = (start + 1..=start + 3).map(log_entry).collect();
    batch.rows = vec![world.change(row(timer(1, 1)).id(), Some(row(timer(1, 1))))];
    world.commit(batch).await?;
    let mut opened = world.take_over().await?;
    same("the position", opened.fence.new_position, start + 3)?;
    opened.put([row(timer(2, 1))]).await?;
    opened.check_ranges([]).await
}

pub async fn known_commands_are_told(mut world: World) -> Result<(), Failed> {
    let known = [[0; 16], [255; 16], *b"\0ascending\0ids\0\0"];
    let mut batch = world.batch();
    batch.fence.new_position = known.len() as u64;
    batch.log = (1..).zip(known).map(|(position, id)| LogEntry { id, ..log_entry(position) }).collect();
    world.commit(batch).await?;
    let asked: BTreeSet<[u8; 16]> = known.into_iter().chain([[1; 16]]).collect();
    let loaded = world.store.load(Needs { commands: asked.clone(), ..Needs::of(PARTITION) }).await?;
    let mut got = loaded.commands;
    got.sort_unstable();
    let want: Vec<([u8; 16], bool)> = asked.into_iter().map(|id| (id, id != [1; 16])).collect();
    same("which stand in the log", got, want)
}

pub async fn a_known_command_voids_its_whole_batch(mut world: World) -> Result<(), Failed> {
    world.put([row(timer(1, 1))]).await?;
    let good = full_batch(&world, row(timer(2, 1)));
    let mut known = good.clone();
    known.fence.new_position += 1;
    let repeat = LogEntry { id: log_entry(1).id, ..log_entry(known.fence.new_position) };
    known.log.push(repeat.clone());
    let result = world.store.commit(Arc::new(known)).await;
    same("one of two is known", ending(&result), "conflict")?;
    same("nothing is visible", traces(&world, &good).await?, [false; 6])?;
    let mut twice = good.clone();
    twice.fence.new_position += 1;
    twice.log.push(LogEntry { id: log_entry(2).id, ..repeat });
    let result = world.store.commit(Arc::new(twice)).await;
    same("twice in one batch", ending(&result), "conflict")?;
    same("nothing is visible", traces(&world, &good).await?, [false; 6])?;
    world.commit(good.clone()).await?;
    world.check_rows([good.rows[0].id.clone()]).await?;
    world.check_ranges([]).await
}

pub async fn a_row_that_is_there_already_voids_the_batch(mut world: World) -> Result<(), Failed> {
    for table in odd_rows() {
        let Some(known) = table.first().cloned() else { continue };
        world.put([known.clone()]).await?;
        let mut batch = full_batch(&world, row(timer(2, 1)));
        batch.rows.push(Change { id: known.id(), existed: false, new: Some(known.clone()) });
        let result = world.store.commit(Arc::new(batch.clone())).await;
        same(&format!("inserted again: {:?}", known.id()), ending(&result), "conflict")?;
        same("nothing is visible", traces(&world, &batch).await?, [false; 6])?;
    }
    Ok(())
}

pub async fn a_secret_is_made_once(world: World) -> Result<(), Failed> {
    let store = &world.store;
    same("fresh", store.secret("mac", [1; 32]).await?, [1; 32])?;
    same("kept", store.secret("mac", [2; 32]).await?, [1; 32])?;
    same("another name", store.secret("other", [3; 32]).await?, [3; 32])?;
    same("kept still", store.secret("mac", [4; 32]).await?, [1; 32])
}
