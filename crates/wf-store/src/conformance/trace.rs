//! One request followed through all layers: single rows by what refers to them, and no other tenant's.
//! Next: `partitions.rs`.

use wf_core::ids;

use crate::batch::{AuditEntry, LogEntry, Suppressed, SuppressedKind, event_id};
use crate::conformance::messages::entry;
use crate::conformance::records::{completed, record_id};
use crate::conformance::samples::{KEY_MAX, ODD};
use crate::conformance::world::*;
use crate::outbox::OutboxState;
use crate::trace::*;

pub async fn a_record_is_shown_as_it_was_filed(mut world: World) -> Result<(), Failed> {
    let entries =
        [completed("b", 10, 500), completed(ODD, 10, 500), completed("later", 10, 501), completed("c", 11, 500)];
    world.turn(|batch| batch.records = entries.to_vec()).await?;
    let filed = |at: usize| Filed {
        key: entries[at].id.key.clone(),
        key_hash: entries[at].key_hash,
        route: entries[at].route.into(),
        record: entries[at].record.clone(),
    };
    let store = &world.store;
    same("under its key", store.filed(record_id(TENANT, ODD)).await?, Some(filed(1)))?;
    same("another tenant's", store.filed(record_id("other", "b")).await?, None)?;
    let at = |tenant: &str, limit| FiledQuery { tenant: tenant.into(), created_at: 10, expires_at: 500, limit };
    same("by its times", store.filed_at(at(TENANT, 10)).await?, vec![filed(1), filed(0)])?;
    same("at most", store.filed_at(at(TENANT, 1)).await?.len(), 1)?;
    same("of another tenant", store.filed_at(at("other", 10)).await?, vec![])?;
    store.sweep(500, 10).await?;
    same("swept", store.filed(record_id(TENANT, "b")).await?, None)
}

pub async fn a_command_is_found_by_id_position_and_time(mut world: World) -> Result<(), Failed> {
    let command = |position: u64, time: i64, tenant: &str| LogEntry {
        id: ids::command_id(time, &[&position.to_be_bytes()]),
        time,
        tenant: tenant.into(),
        ..log_entry(position)
    };
    let log = vec![
        command(1, 999, TENANT),
        command(2, 1000, TENANT),
        command(3, 1000, "other"),
        command(4, 1000, TENANT),
        command(5, 1001, TENANT),
    ];
    let entries = log.clone();
    world.turn(|batch| (batch.log, batch.fence.new_position) = (entries, 5)).await?;
    let ask = |tenant: &'static str, which| {
        let store = &world.store;
        async move {
            let found = store.logged(LoggedQuery { tenant: tenant.into(), which }).await?;
            Ok::<_, Failed>(found.into_iter().map(|command| command.position).collect::<Vec<u64>>())
        }
    };
    let at = |limit| Which::At { time: 1000, verb: "set-clock", limit };
    let table = [
        (TENANT, Which::Id(log[1].id), vec![2]),
        (TENANT, Which::Id(log[2].id), vec![]),
        ("other", Which::Id(log[2].id), vec![3]),
        (TENANT, at_position(5), vec![5]),
        (TENANT, at_position(3), vec![]),
        (TENANT, at_position(KEY_MAX), vec![]),
        (TENANT, at(9), vec![2, 4]),
        ("other", at(9), vec![3]),
        (TENANT, Which::At { time: 1000, verb: "deploy", limit: 9 }, vec![]),
    ];
    for (tenant, which, want) in table {
        same(&format!("{which:?}"), ask(tenant, which).await?, want)?;
    }
    same("at most", ask(TENANT, at(1)).await?.len(), 1)?;
    let found = world.store.logged(LoggedQuery { tenant: TENANT.into(), which: at_position(2) }).await?;
    let want = Logged {
        partition: PARTITION,
        position: 2,
        id: log[1].id,
        time: 1000,
        verb: "set-clock".into(),
        payload: log[1].payload.clone(),
    };
    same("a command", found, vec![want])
}

fn at_position(position: u64) -> Which {
    Which::Position { partition: PARTITION, position }
}

fn about(position: u64, tenant: &str, root: u64) -> AuditEntry {
    let events = format!("[{{\"type\":\"job.ready\",\"resource\":\"9\",\"root\":\"{root}\",\"payload\":{{}}}}]");
    AuditEntry { tenant: tenant.into(), actor: ODD.into(), events, ..audit_entry(position) }
}

pub async fn a_trail_names_its_instance(mut world: World) -> Result<(), Failed> {
    let audit =
        [(2, 7), (3, 77), (4, 7), (5, 8), (9, 7), (11, 8)].map(|(position, root)| about(position, TENANT, root));
    let audit = audit.into_iter().chain([about(6, "other", 7)]).collect();
    world.turn(|batch| batch.audit = audit).await?;
    let ask = |from, until, limit, passed_max| {
        let store = &world.store;
        async move {
            let query =
                TrailQuery { tenant: TENANT.into(), partition: PARTITION, instance: 7, from, until, limit, passed_max };
            let trail = store.trail(query).await?;
            Ok::<_, Failed>((trail.rows.into_iter().map(|row| row.position).collect::<Vec<u64>>(), trail.next))
        }
    };
    let table = [
        ((0, u64::MAX, 100, 100), (vec![2, 4, 9], None)),
        ((4, 8, 100, 100), (vec![4], None)),
        ((4, 9, 100, 100), (vec![4, 9], None)),
        ((0, KEY_MAX, 3, 100), (vec![2, 4, 9], None)),
        ((0, KEY_MAX, 2, 100), (vec![2, 4], Some(9))),
        ((0, KEY_MAX, 100, 2), (vec![2], Some(4))),
        ((0, KEY_MAX, 100, 3), (vec![2, 4], Some(5))),
        ((0, KEY_MAX, 100, 7), (vec![2, 4, 9], None)),
        ((12, KEY_MAX, 100, 100), (vec![], None)),
    ];
    for (question, want) in table {
        let (from, until, limit, passed_max) = question;
        same(&format!("{question:?}"), ask(from, until, limit, passed_max).await?, want)?;
    }
    Ok(())
}

pub async fn messages_are_found_by_position(mut world: World) -> Result<(), Failed> {
    let mut theirs = entry(4, 1, "bus", 3);
    theirs.tenant = "other".into();
    let sent =
        vec![entry(2, 2, "hook", 3), entry(2, 1, "hook", 3), entry(2, 1, "bus", 3), entry(3, 1, "bus", 4), theirs];
    world.turn(|batch| batch.outbox = sent).await?;
    let found = world.store.outbox_of(TENANT.into(), PARTITION, vec![1, 2, 4]).await?;
    let ids: Vec<(u64, u32, &str)> =
        found.iter().map(|row| (row.entry.id.position, row.entry.id.n, &*row.entry.id.sink)).collect();
    same("messages", ids, vec![(2, 1, "bus"), (2, 1, "hook"), (2, 2, "hook")])?;
    let first = found.first().map(|row| (&*row.entry.event_id, row.state, row.attempts, row.entry.envelope.len()));
    let want = (&*event_id(PARTITION, 2, 1), OutboxState::Pending, 0, entry(2, 1, "bus", 3).envelope.len());
    same("a message", first, Some(want))
}

pub async fn repeats_are_found_by_subject(mut world: World) -> Result<(), Failed> {
    let hash = |subject: &str| ids::hash16(&[subject.as_bytes()]);
    let repeat = |subject: &str, kind, minute: i64, count| Suppressed {
        tenant: TENANT.into(),
        key_hash: hash(subject),
        kind,
        route: ODD.into(),
        minute,
        count,
        first: minute * 60_000 + 5,
        last: minute * 60_000 + 9,
    };
    let k = [
        repeat("k", SuppressedKind::Conflict, 3, 1),
        repeat("k", SuppressedKind::Replay, 3, 4),
        repeat("k", SuppressedKind::Replay, 70, 1),
    ];
    let job = repeat("job", SuppressedKind::Job, 69, 2);
    let theirs = Suppressed { tenant: "other".into(), ..k[2].clone() };
    let noise = (0..100).map(|minute| repeat("noise", SuppressedKind::Replay, minute, 1));
    let all: Vec<Suppressed> = noise.chain(k.clone()).chain([job.clone(), theirs]).collect();
    world.turn(|batch| batch.suppressed = all).await?;
    let ask = |subjects: &[&str], since, limit| {
        let subjects = subjects.iter().map(|subject| hash(subject)).collect();
        world.store.repeats(RepeatsQuery { tenant: TENANT.into(), subjects, since, limit })
    };
    let [conflict, first, last] = k;
    let whole = vec![conflict.clone(), first.clone(), last.clone()];
    same("one key", ask(&["k"], 0, 3).await?, Repeats { rows: whole, is_cut: false })?;
    same("at most", ask(&["k"], 0, 2).await?, Repeats { rows: vec![conflict, first], is_cut: true })?;
    let both = vec![job, last.clone()];
    same("two subjects", ask(&["k", "job", "k"], 4 * 60_000, 9).await?, Repeats { rows: both, is_cut: false })?;
    let late = Repeats { rows: vec![last], is_cut: false };
    same("the minute that has begun", ask(&["k"], 70 * 60_000 + 59_999, 9).await?, late)?;
    same("later", ask(&["k"], 71 * 60_000, 9).await?, Repeats::default())?;
    same("nothing", ask(&[], 0, 9).await?, Repeats::default())
}
