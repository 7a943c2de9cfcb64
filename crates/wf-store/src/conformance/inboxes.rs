//! Commands between partitions: sent with one turn, taken with another, once. Next: `across.rs`.

use std::sync::Arc;

use wf_core::{RowId, ids};

use crate::batch::*;
use crate::conformance::partitions::worlds;
use crate::conformance::samples::*;
use crate::conformance::world::*;
use crate::store::Store;

/// Nobody is there to send to, so that a turn which does is mistaken.
pub async fn a_lone_partition_has_no_inbox(mut world: World) -> Result<(), Failed> {
    let sends = world.turn(|batch| batch.sent = vec![sent(1, PARTITION, 1, 1)]).await;
    same("it sends", ending(&sends), "rejected")?;
    let takes = world.turn(|batch| batch.taken = vec![InboxId { source: 1, position: 1, n: 1 }]).await;
    same("it takes", ending(&takes), "rejected")?;
    same("its inbox", world.store.inbox(PARTITION, 10).await?, vec![])?;
    same("nothing is under way", world.store.undelivered(PARTITION, vec![1]).await?, vec![])?;
    same("the next turn", ending(&world.put([row(timer(1, 1))]).await), "committed")
}

fn sent(source: u16, target: u16, position: u64, n: u32) -> Sent {
    let payload = format!("{{\"to\":{target},\"odd\":{}}}", serde_json::Value::from(ODD));
    Sent { target, id: InboxId { source, position, n }, time: -i64::from(n), payload }
}

/// One turn that sends to these targets, in this order.
async fn send(world: &mut World, targets: &[u16]) -> Result<Vec<Sent>, Failed> {
    let (source, position) = (world.fence.partition, world.fence.new_position + 1);
    let all: Vec<Sent> = targets.iter().zip(1..).map(|(target, n)| sent(source, *target, position, n)).collect();
    let batch = all.clone();
    world.turn(|turn| turn.sent = batch).await?;
    Ok(all)
}

async fn waiting(store: &Arc<dyn Store>, partition: u16) -> Result<Vec<InboxId>, Failed> {
    Ok(store.inbox(partition, 1000).await?.into_iter().map(|sent| sent.id).collect())
}

fn id(source: u16, position: u64, n: u32) -> InboxId {
    InboxId { source, position, n }
}

/// By source, position and number, as numbers.
pub async fn commands_arrive_in_order(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second, mut third] = worlds(&store).await?;
    let late = send(&mut third, &[1]).await?;
    let mut want = Vec::new();
    for _ in 0..2 {
        let targets: Vec<u16> = (0..11).map(|n| if n == 3 { 3 } else { 1 }).collect();
        want.extend(send(&mut second, &targets).await?.into_iter().filter(|sent| sent.target == 1));
    }
    second.turn(|batch| batch.fence.new_position = 9).await?;
    want.extend(send(&mut second, &[1]).await?);
    second.turn(|batch| batch.fence.new_position = KEY_MAX - 1).await?;
    want.extend(send(&mut second, &[1]).await?);
    want.extend(late);
    same("in order, as they were sent", store.inbox(1, 1000).await?, want)?;
    same("of another target", waiting(&store, 3).await?, vec![id(2, 1, 4), id(2, 2, 4)])?;
    same("none", store.inbox(2, 1000).await?, vec![])?;
    same("nothing is asked", store.inbox(1, 0).await?, vec![])?;
    let more = send(&mut first, &[2]).await?;
    same("one's own source", store.inbox(2, 10).await?, more)
}

pub async fn a_cut_page_holds_the_first_of_each_source(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [_, mut second, mut third] = worlds(&store).await?;
    send(&mut second, &[1, 1, 1]).await?;
    send(&mut third, &[1, 1]).await?;
    let whole = waiting(&store, 1).await?;
    same("all", whole.len(), 5)?;
    for limit in 1..=5 {
        let page: Vec<InboxId> = store.inbox(1, limit).await?.into_iter().map(|sent| sent.id).collect();
        same("as many as asked", page.len(), limit)?;
        same("in order", page.is_sorted(), true)?;
        for source in [2, 3] {
            let of = |ids: &[InboxId]| ids.iter().copied().filter(|id| id.source == source).collect::<Vec<_>>();
            let (got, all) = (of(&page), of(&whole));
            same("its first ones", &got[..], &all[..got.len()])?;
        }
    }
    Ok(())
}

/// C1: executing and deleting are one transaction.
pub async fn a_command_is_taken_exactly_once(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second] = worlds(&store).await?;
    send(&mut second, &[1, 1, 1]).await?;
    let take = |batch: &mut Batch, ns: &[u32]| batch.taken = ns.iter().map(|n| id(2, 1, *n)).collect();
    first.turn(|batch| take(batch, &[1])).await?;
    same("it is gone", waiting(&store, 1).await?, vec![id(2, 1, 2), id(2, 1, 3)])?;
    for (ns, what) in [(&[2, 1][..], "taken already"), (&[2, 2], "twice in one turn"), (&[2, 4], "never sent")] {
        let mut batch = first.batch();
        batch.rows = vec![first.change(RowId::Timer(1), Some(row(timer(1, 1))))];
        take(&mut batch, ns);
        same(what, ending(&first.commit(batch).await), "conflict")?;
        first.check_rows([RowId::Timer(1)]).await?;
        same("nothing is taken", waiting(&store, 1).await?, vec![id(2, 1, 2), id(2, 1, 3)])?;
    }
    first.turn(|batch| take(batch, &[3, 2])).await?;
    same("all are gone", waiting(&store, 1).await?, vec![])
}

pub async fn an_inbox_is_its_partitions_own(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second, mut third] = worlds(&store).await?;
    send(&mut second, &[1, 3]).await?;
    let thief = third.turn(|batch| batch.taken = vec![id(2, 1, 1)]).await;
    same("another's", ending(&thief), "conflict")?;
    same("it waits", waiting(&store, 1).await?, vec![id(2, 1, 1)])?;
    third.turn(|batch| batch.taken = vec![id(2, 1, 2)]).await?;
    first.turn(|batch| (batch.taken, batch.sent) = (vec![id(2, 1, 1)], vec![sent(1, 2, 1, 1)])).await?;
    same("taken and answered", (waiting(&store, 1).await?, waiting(&store, 2).await?), (vec![], vec![id(1, 1, 1)]))?;
    let nowhere = first.turn(|batch| batch.sent = vec![sent(1, u16::MAX, 2, 1)]).await;
    same("to no partition", ending(&nowhere), "rejected")
}

pub async fn a_void_turn_sends_and_takes_nothing(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second] = worlds(&store).await?;
    send(&mut second, &[1]).await?;
    let mut owner = first.take_over().await?;
    let both = |batch: &mut Batch| (batch.taken, batch.sent) = (vec![id(2, 1, 1)], vec![sent(1, 2, 1, 1)]);
    same("deposed", ending(&first.turn(both).await), "fenced")?;
    let mut known = owner.batch();
    both(&mut known);
    known.rows = vec![Change { id: RowId::Timer(ids::key(1, 1)), existed: true, new: None }];
    same("a row is gone", ending(&owner.commit(known).await), "conflict")?;
    let twice = second.turn(|batch| batch.sent = vec![sent(2, 1, 2, 1), sent(2, 1, 2, 1)]).await;
    same("sent twice in one turn", ending(&twice), "conflict")?;
    let again = second.turn(|batch| batch.sent = vec![sent(2, 1, 2, 1), sent(2, 1, 1, 1)]).await;
    same("sent before", ending(&again), "conflict")?;
    same("nothing came of it", (waiting(&store, 1).await?, waiting(&store, 2).await?), (vec![id(2, 1, 1)], vec![]))
}

pub async fn what_is_under_way_is_told(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second, mut third] = worlds(&store).await?;
    send(&mut first, &[2, 3]).await?;
    send(&mut first, &[3]).await?;
    send(&mut first, &[2]).await?;
    send(&mut third, &[2]).await?;
    let ask = async |positions: &[u64]| {
        let mut left = store.undelivered(1, positions.to_vec()).await?;
        left.sort_unstable();
        Ok::<_, Failed>(left)
    };
    same("all wait", ask(&[3, 1, 2]).await?, vec![1, 2, 3])?;
    same("nothing else was sent", ask(&[4, KEY_MAX]).await?, vec![])?;
    same("nothing is asked", ask(&[]).await?, vec![])?;
    second.turn(|batch| batch.taken = vec![id(1, 1, 1), id(1, 3, 1)]).await?;
    same("half of the first", ask(&[1, 2, 3]).await?, vec![1, 2])?;
    third.turn(|batch| batch.taken = vec![id(1, 1, 2)]).await?;
    same("what is asked", ask(&[1, 3]).await?, vec![])?;
    same("the rest", ask(&[1, 2, 3]).await?, vec![2])?;
    same("of another source", store.undelivered(3, vec![1, 2]).await?, vec![1])
}
