//! Lists, messages and traces over several partitions. Next: `nodes.rs`.

use std::sync::Arc;

use wf_core::rows::*;
use wf_core::{Key, ids};

use crate::batch::*;
use crate::conformance::lists::paged;
use crate::conformance::messages::entry;
use crate::conformance::partitions::worlds;
use crate::conformance::records::completed;
use crate::conformance::samples::*;
use crate::conformance::world::*;
use crate::load::Needs;
use crate::outbox::*;
use crate::query::*;
use crate::store::Store;
use crate::trace::*;

const ME: [u8; 16] = [1; 16];

fn message_of(partition: u16, position: u64, order_key: Key) -> OutboxEntry {
    let entry = entry(position, 1, "nats", order_key);
    let id = OutboxId { partition, ..entry.id };
    OutboxEntry { id, event_id: event_id(partition, position, 1).into(), ..entry }
}

/// L3.3: claims, marks, retries and reads all name the partition.
pub async fn messages_of_equal_positions_are_kept_apart(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second] = worlds(&store).await?;
    let of = |partition: u16| {
        vec![message_of(partition, 1, ids::key(partition, 7)), message_of(partition, 2, ids::key(partition, 7))]
    };
    first.turn(|batch| batch.outbox = of(1)).await?;
    second.turn(|batch| batch.outbox = of(2)).await?;
    let claim = |now| Claim { sink: "nats".into(), owner: ME, now, lease_ms: 100, limit: 10, dead_pass: false };
    let at = |rows: Vec<OutboxRow>| {
        rows.into_iter().map(|row| (row.entry.id.partition, row.entry.id.position)).collect::<Vec<_>>()
    };
    same("the first of each", at(store.claim_outbox(claim(0)).await?), vec![(1, 1), (2, 1)])?;
    let shipped = Mark { id: message_of(2, 1, 0).id, owner: ME, result: MarkResult::Shipped { at: 5 } };
    store.mark_outbox(vec![shipped]).await?;
    same("the next of one", at(store.claim_outbox(claim(1)).await?), vec![(2, 2)])?;
    let list = |state| {
        let query = move |slice| OutboxQuery { tenant: TENANT.into(), state, id: None, slice };
        let store = &store;
        async move { paged(|slice| store.outbox(query(slice))).await }
    };
    same("by partition, then position", at(list(None).await?), vec![(1, 1), (1, 2), (2, 1), (2, 2)])?;
    same("shipped", at(list(Some(OutboxState::Shipped)).await?), vec![(2, 1)])?;
    same("of a command", at(store.outbox_of(TENANT.into(), 2, vec![1]).await?), vec![(2, 1)])?;
    let again = message_of(2, 1, 0).id;
    second.turn(|batch| batch.outbox_retries = vec![again.clone()]).await?;
    let loaded =
        store.load(Needs { outbox: of(2).into_iter().map(|entry| entry.id).collect(), ..Needs::of(2) }).await?;
    let states: Vec<_> = loaded.outbox.into_iter().map(|(id, row)| (id.partition, row.map(|row| row.state))).collect();
    same("ships again", states, vec![(2, Some(OutboxState::Pending)); 2])
}

/// Each partition's from its begin, but the first one's from where it was asked.
pub async fn audit_is_read_over_partitions(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second, mut third] = worlds(&store).await?;
    let audit = |positions: &[u64]| positions.iter().map(|at| audit_entry(*at)).collect::<Vec<_>>();
    let foreign = AuditEntry { tenant: "other".into(), ..audit_entry(4) };
    first.turn(|batch| batch.audit = audit(&[2, 3, 10])).await?;
    second.turn(|batch| batch.audit = [audit(&[1, 3]), vec![foreign]].concat()).await?;
    third.turn(|batch| batch.audit = audit(&[2])).await?;
    let table = [
        ((1, false, None, None), vec![(1, 2), (1, 3), (1, 10), (2, 1), (2, 3), (3, 2)]),
        ((1, false, Some(3), None), vec![(1, 3), (1, 10), (2, 1), (2, 3), (3, 2)]),
        ((1, true, None, None), vec![(1, 2), (1, 3), (1, 10)]),
        ((2, false, Some(2), None), vec![(2, 3), (3, 2)]),
        ((2, true, Some(2), None), vec![(2, 3)]),
        ((2, true, None, Some(2)), vec![(2, 1)]),
        ((1, false, Some(3), Some(9)), vec![(1, 3)]),
        ((2, false, Some(9), None), vec![(3, 2)]),
        ((3, true, Some(3), None), vec![]),
    ];
    for (asked, want) in table {
        let (partition, is_alone, from, until) = asked;
        let query = |slice| AuditQuery { tenant: TENANT.into(), partition, is_alone, from, until, slice };
        let found = paged(|slice| store.audit(query(slice))).await?;
        same(&format!("{asked:?}"), found.iter().map(|row| (row.partition, row.position)).collect(), want)?;
    }
    let trail = |partition| TrailQuery {
        tenant: TENANT.into(),
        partition,
        instance: 7,
        from: 0,
        until: u64::MAX,
        limit: 10,
        passed_max: 10,
    };
    let about = |position| AuditEntry { events: format!("[{{{}}}]", root_member(7)), ..audit_entry(position) };
    second.turn(|batch| batch.audit = vec![about(20)]).await?;
    let found = store.trail(trail(2)).await?.rows;
    same("a trail", found.iter().map(|row| (row.partition, row.position)).collect(), vec![(2, 20)])?;
    same("not of another partition", store.trail(trail(1)).await?, Trail::default())
}

/// Copies stand at all of them, some a moment later.
pub async fn definitions_are_those_of_the_first_partition(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second] = worlds(&store).await?;
    let deployed = [definition(ids::key(1, 1), "order", 1), definition(ids::key(1, 2), "order", 2)];
    first.put(deployed.clone().map(row)).await?;
    second.put(deployed.clone().map(row)).await?;
    second.put([row(definition(ids::key(1, 3), "order", 3))]).await?;
    let query = |slice| DefinitionQuery { tenant: TENANT.into(), process_id: None, slice };
    let found = paged(|slice| store.definitions(query(slice))).await?;
    same("each once", found.iter().map(|info| info.key).collect(), vec![ids::key(1, 1), ids::key(1, 2)])?;
    let latest = store.definition(TENANT.into(), "order".into(), None).await?;
    same("the latest", latest.as_deref(), Some(&deployed[1]))?;
    second.delete([deployed[0].clone(), deployed[1].clone()].map(|row| row.id())).await?;
    let first = store.definition(TENANT.into(), "order".into(), Some(1)).await?;
    same("a copy less", first.as_deref(), Some(&deployed[0]))
}

/// Partitions count apart: the newest is known by its start.
pub async fn instances_are_listed_over_partitions(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [mut first, mut second, mut third] = worlds(&store).await?;
    let started = |partition, counter, started_at| {
        let own = Instance { started_at, ..instance() };
        row(Scope { instance: Some(Arc::new(own)), ..root(ids::key(partition, counter)) })
    };
    first.put([started(1, 1, 10), started(1, 2, 40), started(1, 3, 40)]).await?;
    second.put([started(2, 1, 20), started(2, 9, 40)]).await?;
    third.put([started(3, 1, -5), row(sub_scope(ids::key(3, 4), ids::key(3, 1)))]).await?;
    let named = |key| row(variable(key, "order", "\"A1\""));
    first.put([named(ids::key(1, 1))]).await?;
    second.put([named(ids::key(2, 9))]).await?;
    type Filter = (Option<i64>, &'static [(&'static str, &'static str)]);
    let table: [(Filter, Vec<(u16, u64)>); 3] = [
        ((None, &[]), vec![(2, 9), (1, 3), (1, 2), (2, 1), (1, 1), (3, 1)]),
        ((Some(10), &[]), vec![(2, 9), (1, 3), (1, 2), (2, 1)]),
        ((None, &[("order", "A1")]), vec![(2, 9), (1, 1)]),
    ];
    for ((started_after, variables), want) in table {
        let variables: Vec<(String, String)> =
            variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let query = |slice| InstanceQuery {
            tenant: TENANT.into(),
            state: Some(InstanceState::Active),
            process_id: None,
            started_after,
            variables: variables.clone(),
            slice,
        };
        let found = paged(|slice| store.instances(query(slice))).await?;
        let want = want.into_iter().map(|(partition, counter)| ids::key(partition, counter)).collect();
        same("instances", found.iter().map(|root| root.key).collect::<Vec<Key>>(), want)?;
    }
    Ok(())
}

/// A copy of a subscription stands at its message's partition, under the same key and with scope 0.
pub async fn an_instance_is_shown_without_its_copies(store: Arc<dyn Store>) -> Result<(), Failed> {
    let [_, mut second, mut third] = worlds(&store).await?;
    let key = |counter| ids::key(2, counter);
    let waits = |counter| Subscription { root: key(1), scope: key(1), ..subscription(key(counter), "paid", "A1") };
    let copy = |counter| row(Subscription { host: 0, scope: 0, ..waits(counter) });
    second.put([row(root(key(1))), row(waits(5)), row(waits(6)), row(Job { root: key(1), ..job(key(7)) })]).await?;
    third.put([copy(5), copy(6), copy(9), row(Job { root: ids::key(3, 1), ..job(ids::key(3, 7)) })]).await?;
    let Some(detail) = store.instance(key(1)).await? else {
        return Err(Failed("the instance is not found".to_owned()));
    };
    let shown: Vec<_> = detail.subscriptions.iter().map(|row| (row.key, row.scope)).collect();
    same("subscriptions", shown, vec![(key(5), key(1)), (key(6), key(1))])?;
    same("jobs", detail.jobs.iter().map(|job| job.key).collect(), vec![key(7)])?;
    same("a key of no instance", store.instance(ids::key(3, 1)).await?.is_some(), false)
}

pub async fn jobs_and_incidents_are_listed_over_partitions(store: Arc<dyn Store>) -> Result<(), Failed> {
    for world in &mut worlds::<3>(&store).await? {
        let partition = world.fence.partition;
        let key = |counter| ids::key(partition, counter);
        let mine = |counter| Job { root: key(1), ..job(key(counter)) };
        let failed = Job { state: JobState::Failed, ..mine(4) };
        world.put([row(mine(3)), row(mine(2)), row(failed), row(incident(key(5), key(1)))]).await?;
    }
    let jobs = async |state, instance| {
        let query = |slice| JobQuery { tenant: TENANT.into(), job_type: Some("pay".into()), state, instance, slice };
        let found = paged(|slice| store.jobs(query(slice))).await?;
        Ok::<_, Failed>(found.into_iter().map(|job| job.key).collect::<Vec<Key>>())
    };
    let want: Vec<Key> = (1..=3).flat_map(|partition| [ids::key(partition, 2), ids::key(partition, 3)]).collect();
    same("by key", jobs(Some(JobState::Ready), None).await?, want)?;
    let one = jobs(None, Some(ids::key(2, 1))).await?;
    same("of an instance", one, vec![ids::key(2, 2), ids::key(2, 3), ids::key(2, 4)])?;
    let query = |slice| IncidentQuery { tenant: TENANT.into(), instance: None, slice };
    let found = paged(|slice| store.incidents(query(slice))).await?;
    let want = vec![ids::key(1, 5), ids::key(2, 5), ids::key(3, 5)];
    same("incidents", found.iter().map(|incident| incident.key).collect::<Vec<Key>>(), want)
}

pub async fn commands_are_found_in_their_partition(store: Arc<dyn Store>) -> Result<(), Failed> {
    let mut log = Vec::new();
    for world in &mut worlds::<2>(&store).await? {
        let mut batch = world.batch();
        let id = ids::command_id(1000, &[&world.fence.partition.to_be_bytes()]);
        batch.log[0] = LogEntry { id, time: 1000, ..batch.log[0].clone() };
        log.push(batch.log[0].id);
        world.commit(batch).await?;
    }
    let at = |partition, position| Which::Position { partition, position };
    let time = |limit| Which::At { time: 1000, verb: "set-clock", limit };
    let table = [
        (at(1, 1), vec![(1, 1)]),
        (at(2, 1), vec![(2, 1)]),
        (at(2, 2), vec![]),
        (Which::Id(log[1]), vec![(2, 1)]),
        (time(9), vec![(1, 1), (2, 1)]),
        (time(1), vec![(1, 1)]),
    ];
    for (which, want) in table {
        let found = store.logged(LoggedQuery { tenant: TENANT.into(), which }).await?;
        same(&format!("{which:?}"), found.iter().map(|row| (row.partition, row.position)).collect(), want)?;
    }
    let asked = Needs { commands: [log[0]].into(), ..Needs::of(1) };
    same("known", store.load(asked).await?.commands, vec![(log[0], true)])
}

pub async fn uses_and_gauges_are_summed_over_partitions(store: Arc<dyn Store>) -> Result<(), Failed> {
    let hash = ids::hash16(&[b"k"]);
    for world in &mut worlds::<2>(&store).await? {
        let partition = world.fence.partition;
        let repeats = Suppressed {
            tenant: TENANT.into(),
            key_hash: hash,
            kind: SuppressedKind::Replay,
            route: "POST /api/v1/instances".into(),
            minute: 0,
            count: u64::from(partition),
            first: 10,
            last: 20,
        };
        world.turn(|batch| batch.suppressed = vec![repeats]).await?;
        world.turn(|batch| batch.records = vec![completed(&format!("k{partition}"), 0, 100)]).await?;
        world.put([row(job(ids::key(partition, 1))), row(incident(ids::key(partition, 2), 1))]).await?;
    }
    let query = IdempotencyQuery { tenant: None, since: 0, now: 0, slice: Slice { after: None, limit: 10 } };
    let uses = store.idempotency(query).await?;
    same("uses", (uses.keys, uses.hits), (3, 3))?;
    let gauges = store.gauges().await?;
    let jobs: u64 = gauges.jobs.iter().map(|(_, _, count)| count).sum();
    same("jobs, incidents, records", (jobs, gauges.incidents, gauges.records), (2, 2, 2))
}
