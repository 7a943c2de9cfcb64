//! Several partitions in one store: each its own rows, logs and fence, and what is unique over all of them. Next: `inboxes.rs`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use wf_core::ranges::Due;
use wf_core::rows::*;
use wf_core::{RangeId, Row, RowId, ids};

use crate::batch::*;
use crate::conformance::records::completed;
use crate::conformance::samples::*;
use crate::conformance::world::*;
use crate::ledger::Ledger;
use crate::load::Needs;
use crate::store::Store;

/// The owners of the first partitions.
pub(super) async fn worlds<const N: usize>(store: &Arc<dyn Store>) -> Result<[World; N], Failed> {
    let mut worlds = Vec::new();
    for partition in (1..).take(N) {
        worlds.push(World::open_at(store.clone(), partition).await?);
    }
    worlds.try_into().map_err(|_| Failed("not as many worlds as wanted".to_owned()))
}

pub async fn partitions_are_numbered_from_one(store: Arc<dyn Store>) -> Result<(), Failed> {
    let last = store.partitions().last();
    same("there are three or more, as the cases want", last >= 3, true)?;
    for partition in [1, last] {
        same("a fresh one", World::open_at(store.clone(), partition).await?.fence.new_position, 0)?;
    }
    for partition in [0, last + 1] {
        same("there is no such partition", store.open(partition).await.is_err(), true)?;
    }
    Ok(())
}

/// Rows whose ids do not tell their partition, different in each.
fn namesakes(partition: u16) -> Vec<Row> {
    let key = ids::key(partition, 1);
    let lock = |root| StartLock { tenant: TENANT.into(), process_id: "p".into(), correlation_key: "k".into(), root };
    let starts = StartSubscription {
        tenant: TENANT.into(),
        message: "go".into(),
        process_id: "p".into(),
        definition: key,
        element: u32::from(partition),
    };
    vec![
        row(lock(key)),
        row(starts),
        // Copies have the key of what they are a copy of.
        row(Definition { deployed_at: i64::from(partition), ..definition(7, "p", 1) }),
        row(Subscription { scope: u64::from(partition), ..subscription(8, "paid", "A1") }),
    ]
}

pub async fn rows_of_two_partitions_do_not_mix(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second, third] = worlds(&store).await?;
    let names = |partition| namesakes(partition).into_iter().map(|row| row.id());
    first.put(namesakes(1)).await?;
    second.check_rows(names(1)).await?;
    second.put(namesakes(2)).await?;
    for world in [&first, &second, &third] {
        world.check_rows(names(1)).await?;
        world.check_ranges([]).await?;
    }
    second.put(namesakes(3)).await?;
    first.check_rows(names(1)).await?;
    first.delete(names(1)).await?;
    for world in [&first, &second, &third] {
        world.check_rows(names(1)).await?;
        world.check_ranges([]).await?;
    }
    let gone = first.batch();
    let update = Change { id: namesakes(1)[0].id(), existed: true, new: Some(namesakes(1)[0].clone()) };
    let result = store.commit(Arc::new(Batch { rows: vec![update], ..gone })).await;
    same("another's row is not there to be changed", ending(&result), "conflict")
}

/// Due rows, ready jobs, messages and follow-ups: everything that is found without a key.
pub async fn ranges_hold_rows_of_their_own_partition(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second, third] = worlds(&store).await?;
    let rows = |partition: u16, count: u64| {
        (1..=count).flat_map(move |n| {
            let key = |table: u64| ids::key(partition, table * 100 + n);
            let due = |state| Job { state, due: 5, ..job(key(1 + state as u64)) };
            let ended = Scope { state: ScopeState::Completed, ..root(key(20)) };
            [
                row(due(JobState::Ready)),
                row(due(JobState::Activated)),
                row(due(JobState::Backoff)),
                row(due(JobState::Completed)),
                row(timer(key(21), 5)),
                row(message(key(22), "paid", "A1")),
                row(subscription(key(23), "paid", "A1")),
                row(follow_up(key(24), Work::Terminate)),
                row(message_id(key(25), "paid", &format!("{partition}-{n}"))),
                row(ended),
                row(definition(key(26), "order", n as u32)),
            ]
        })
    };
    first.put(rows(1, 3)).await?;
    second.put(rows(2, 2)).await?;
    let all: Vec<RangeId> =
        [Due::Timers, Due::Leases, Due::Backoffs, Due::Messages, Due::MessageIds, Due::Ended, Due::FinishedJobs]
            .map(RangeId::Due)
            .into_iter()
            .chain([RangeId::FollowUps, RangeId::Ready { tenant: TENANT.into(), job_type: "pay".into() }])
            .collect();
    for world in [&first, &second, &third] {
        world.check_ranges(all.clone()).await?;
    }
    Ok(())
}

pub async fn each_partition_has_its_own_fence(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second] = worlds(&store).await?;
    first.put([row(timer(ids::key(1, 1), 1))]).await?;
    first.put([row(timer(ids::key(1, 2), 1))]).await?;
    second.put([row(timer(ids::key(2, 1), 1))]).await?;
    let mut owner = second.take_over().await?;
    same("its position", (owner.fence.new_position, owner.head), (1, second.head))?;
    same("the deposed", ending(&second.put([row(timer(ids::key(2, 2), 1))]).await), "fenced")?;
    same("the other is not", ending(&first.put([row(timer(ids::key(1, 3), 1))]).await), "committed")?;
    owner.put([row(timer(ids::key(2, 2), 1))]).await?;
    let at = |world: &World| Fence { old_position: world.fence.new_position, ..world.fence };
    same("checked", ending(&store.check_fence(at(&first)).await), "committed")?;
    same("checked", ending(&store.check_fence(at(&second)).await), "fenced")
}

/// A ledger tells its own partition's rows, log and audit.
pub async fn each_partition_is_summed_alone(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second, third] = worlds(&store).await?;
    for world in [&mut first, &mut second] {
        let partition = world.fence.partition;
        for digest in 0..u128::from(partition) {
            let mut batch = world.batch();
            batch.head.digest = u128::from(partition) << 64 | digest;
            batch.audit = vec![audit_entry(batch.fence.new_position)];
            world.commit(batch).await?;
        }
        world.put(namesakes(partition)).await?;
    }
    for (world, commands) in [(&first, 2), (&second, 3), (&third, 0)] {
        let partition = world.fence.partition;
        let mut ledger = store.ledger(partition).await?;
        let standing = ledger.standing()?;
        same("where it stands", (standing.fence.partition, standing.fence.new_position), (partition, commands))?;
        same("its head", standing.head, world.head)?;
        let log = ledger.log(0, 100)?;
        let want: Vec<_> = (1..=commands).map(|at| (at, log_entry_at(partition, at).id)).collect();
        same("its log", log.iter().map(|row| (row.position, row.id)).collect(), want)?;
        same("how many", ledger.count_log(2)?, commands.saturating_sub(1))?;
        same("its audit", ledger.audit(0, 100)?.len() as u64, commands.saturating_sub(1))?;
        same("its rows", rows(&mut *ledger)?, world.mirror.clone())?;
        for id in namesakes(1).into_iter().map(|row| row.id()) {
            same("one row", ledger.row(&id)?, world.mirror.get(&id).cloned())?;
        }
    }
    Ok(())
}

fn rows(ledger: &mut dyn Ledger) -> Result<BTreeMap<RowId, Row>, Failed> {
    let mut rows = Vec::new();
    ledger.rows(&mut |row| {
        rows.push((row.id(), row));
        ControlFlow::Continue(())
    })?;
    let count = rows.len();
    let rows: BTreeMap<RowId, Row> = rows.into_iter().collect();
    same("each row comes once", rows.len(), count)?;
    Ok(rows)
}

/// The backstop: engines route such starts to one partition.
pub async fn unique_values_are_unique_over_partitions(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second] = worlds(&store).await?;
    let unique = |value: u8, root| {
        let (process_id, variable) = ("order".into(), "orderId".into());
        row(Unique { tenant: TENANT.into(), process_id, variable, value: [value; 16], root })
    };
    first.put([unique(1, ids::key(1, 5))]).await?;
    let taken = second.put([row(timer(ids::key(2, 9), 1)), unique(1, ids::key(2, 5))]).await;
    same("the same value", ending(&taken), "conflict")?;
    second.check_rows([unique(1, 0).id(), RowId::Timer(ids::key(2, 9))]).await?;
    second.put([unique(2, ids::key(2, 5))]).await?;
    let released = first.delete([unique(1, 0).id()]).await;
    same("it ends", ending(&released), "committed")?;
    second.put([unique(1, ids::key(2, 6))]).await?;
    same("now it is the other's", ending(&first.put([unique(1, ids::key(1, 6))]).await), "conflict")
}

/// Puts a message id at a time.
async fn receive(world: &mut World, at: i64, received: MessageId) -> &'static str {
    let change = world.change(received.id(), Some(row(received)));
    let mut batch = world.batch();
    batch.head.last_time = at;
    batch.log[0].time = at;
    batch.rows = vec![change];
    ending(&world.commit(batch).await)
}

/// L1.5: until the first one expires, at the time of the turn.
pub async fn message_ids_are_unique_over_partitions(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second, mut third] = worlds(&store).await?;
    let received = |partition, expires_at| MessageId { expires_at, ..message_id(ids::key(partition, 3), "paid", "m1") };
    same("the first", receive(&mut first, 10, received(1, 100)).await, "committed")?;
    same("a twin", receive(&mut second, 10, received(2, 200)).await, "conflict")?;
    let other = MessageId { name: "sent".into(), ..received(2, 100) };
    same("another name", receive(&mut second, 10, other).await, "committed")?;
    let other = MessageId { tenant: "other".into(), ..received(2, 100) };
    same("another tenant", receive(&mut second, 10, other).await, "committed")?;
    same("in its last millisecond", receive(&mut second, 99, received(2, 200)).await, "conflict")?;
    same("when it is over", receive(&mut second, 100, received(2, 200)).await, "committed")?;
    for world in [&first, &second, &third] {
        world.check_rows([received(1, 0).id()]).await?;
        world.check_ranges([RangeId::Due(Due::MessageIds)]).await?;
    }
    same("the newer one counts", receive(&mut third, 199, received(3, 300)).await, "conflict")?;
    first.delete([received(1, 0).id()]).await?;
    same("a row that goes takes nothing with it", receive(&mut third, 199, received(3, 300)).await, "conflict")?;
    second.check_rows([received(1, 0).id()]).await?;
    second.delete([received(1, 0).id()]).await?;
    same("it was dropped", receive(&mut third, 199, received(3, 300)).await, "committed")
}

pub async fn what_another_partition_received_is_told(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second] = worlds(&store).await?;
    let mine = message_id(ids::key(1, 3), "paid", "m1");
    let theirs = MessageId { content: [9; 16], expires_at: 5, ..message_id(ids::key(2, 3), "paid", "m2") };
    first.put([row(mine.clone())]).await?;
    second.put([row(theirs.clone())]).await?;
    let unknown = message_id(0, "sent", "m2").id();
    let asked = [mine.id(), theirs.id(), unknown.clone()];
    for (partition, want) in [
        (1, [None, Some(theirs.clone()), None]),
        (2, [Some(mine.clone()), None, None]),
        (3, [Some(mine.clone()), Some(theirs.clone()), None]),
    ] {
        let needs = Needs { received_elsewhere: asked.iter().cloned().collect(), ..Needs::of(partition) };
        let loaded = store.load(needs).await?.received_elsewhere;
        let got: BTreeMap<RowId, Option<Arc<MessageId>>> = loaded.into_iter().collect();
        let want = asked.iter().cloned().zip(want.map(|row| row.map(Arc::new))).collect();
        same(&format!("as seen from {partition}"), got, want)?;
    }
    Ok(())
}

/// L1.1: a key is one key, whichever partition its request comes to.
pub async fn records_are_shared_over_partitions(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second] = worlds(&store).await?;
    let record = completed("k", 0, 100);
    first.turn(|batch| batch.records = vec![record.clone()]).await?;
    let needs = Needs { records: [record.id.clone()].into(), ..Needs::of(2) };
    let seen = store.load(needs).await?.records;
    same("seen from another", seen, vec![(record.id.clone(), Some(record.record.clone()))])?;
    let mut batch = second.batch();
    batch.records = vec![completed("k", 99, 200)];
    batch.rows = vec![second.change(RowId::Timer(1), Some(row(timer(1, 1))))];
    same("unexpired", ending(&second.commit(batch).await), "conflict")?;
    second.check_rows([RowId::Timer(1)]).await?;
    let again = second.turn(|batch| batch.records = vec![completed("k", 100, 200)]).await;
    same("expired", ending(&again), "committed")
}
