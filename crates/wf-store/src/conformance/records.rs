//! Remembered answers. Next: `messages.rs`.

use std::sync::Arc;

use bytes::Bytes;
use wf_idempotency::fingerprint::Fingerprint;
use wf_idempotency::record::{Answer, Record, State};

use crate::batch::{Claimed, RecordEntry, RecordId};
use crate::conformance::samples::{KEY_MAX, ODD};
use crate::conformance::world::*;
use crate::load::Needs;

pub(super) fn record_id(tenant: &str, key: &str) -> RecordId {
    RecordId { tenant: tenant.into(), key: key.into() }
}

pub(super) fn completed(key: &str, created_ms: i64, expires_ms: i64) -> RecordEntry {
    let answer = Answer { status: 201, headers: Vec::new(), body: Bytes::from_static(b"{}") };
    filed(key, Record { created_ms, expires_ms, ..record(State::Completed(answer)) })
}

fn filed(key: &str, record: Record) -> RecordEntry {
    RecordEntry {
        id: record_id(TENANT, key),
        key_hash: wf_core::ids::hash16(&[key.as_bytes()]),
        route: "POST /api/v1/instances",
        record: Arc::new(record),
    }
}

fn record(state: State) -> Record {
    Record { fingerprint: Fingerprint([6; 32]), mac_key_id: 1, created_ms: 0, expires_ms: 100, state }
}

/// What the turn and the bypass read of a key.
async fn read(world: &World, id: &RecordId) -> Result<Option<Arc<Record>>, Failed> {
    let needs = Needs { records: [id.clone()].into(), ..Needs::of(PARTITION) };
    let loaded = world.store.load(needs).await?;
    let direct = world.store.record(id.clone()).await?;
    same("one answer for the turn and beside it", loaded.records, vec![(id.clone(), direct.clone())])?;
    Ok(direct)
}

async fn file(world: &mut World, entry: &RecordEntry) -> Result<&'static str, Failed> {
    let result = world.turn(|batch| batch.records = vec![entry.clone()]).await;
    Ok(ending(&result))
}

/// L1.2: every byte, every header, in its order.
pub async fn answers_come_back_byte_for_byte(mut world: World) -> Result<(), Failed> {
    let every_byte: Vec<u8> = (0..=255).collect();
    let headers: Vec<(Arc<str>, Arc<str>)> = vec![
        ("link".into(), "<a>; rel=\"b\"".into()),
        ("content-type".into(), "".into()),
        ("link".into(), ODD.trim().into()),
    ];
    let answer = |status, body: Vec<u8>| Answer { status, headers: headers.clone(), body: body.into() };
    let states = [
        State::Completed(answer(u16::MAX, every_byte.clone())),
        State::Completed(answer(200, every_byte.repeat(4096))),
        State::Completed(Answer { status: 0, headers: Vec::new(), body: Bytes::new() }),
        State::InProgress { owner: [255; 16], lease_until_ms: i64::MIN },
        State::Started { subject: KEY_MAX },
        State::Unknown { since_ms: i64::MAX },
    ];
    for (at, state) in states.into_iter().enumerate() {
        let odd = Record {
            fingerprint: Fingerprint([255; 32]),
            mac_key_id: u32::MAX,
            created_ms: i64::MIN,
            expires_ms: i64::MAX,
            ..record(state)
        };
        let key = format!("k{at} '\"%_;");
        let entry = filed(&key, odd);
        same("absent", read(&world, &entry.id).await?, None)?;
        same("filed", file(&mut world, &entry).await?, "committed")?;
        same("the record", read(&world, &entry.id).await?, Some(entry.record.clone()))?;
    }
    Ok(())
}

pub async fn an_unexpired_record_is_never_replaced(mut world: World) -> Result<(), Failed> {
    let first = completed("k", 0, 100);
    file(&mut world, &first).await?;
    let mut batch = world.batch();
    batch.records = vec![completed("other", 0, 100), completed("k", 99, 200)];
    let result = world.store.commit(Arc::new(batch)).await;
    same("in its last millisecond", ending(&result), "conflict")?;
    same("it stands", read(&world, &first.id).await?, Some(first.record.clone()))?;
    same("nothing of the batch", read(&world, &record_id(TENANT, "other")).await?, None)
}

/// K2: the first millisecond at which the key is new again.
pub async fn an_expired_record_is_replaced(mut world: World) -> Result<(), Failed> {
    file(&mut world, &completed("k", 0, 100)).await?;
    let second = completed("k", 100, 200);
    same("at its expiry", file(&mut world, &second).await?, "committed")?;
    same("the new one", read(&world, &second.id).await?, Some(second.record.clone()))?;
    same("it counts anew", file(&mut world, &completed("k", 199, 300)).await?, "conflict")?;
    same("and again", file(&mut world, &completed("k", 1000, 2000)).await?, "committed")
}

/// An answer that comes later: the start files what it started, the end files the answer.
pub async fn an_unfinished_record_is_finished_by_its_own_request(mut world: World) -> Result<(), Failed> {
    let started = filed("k", record(State::Started { subject: 5 }));
    file(&mut world, &started).await?;
    let done = completed("k", 0, 500);
    let of_another = RecordEntry {
        record: Arc::new(Record { fingerprint: Fingerprint([7; 32]), ..(*done.record).clone() }),
        ..done.clone()
    };
    same("by another request", file(&mut world, &of_another).await?, "conflict")?;
    same("by its own", file(&mut world, &done).await?, "committed")?;
    same("the answer", read(&world, &done.id).await?, Some(done.record.clone()))?;
    same("never again", file(&mut world, &done).await?, "conflict")?;
    same("nor backwards", file(&mut world, &started).await?, "conflict")
}

/// Where several partitions answer one request: its key is claimed, its record finished by whoever has all parts.
pub async fn a_key_is_claimed_once_and_finished_once(mut world: World) -> Result<(), Failed> {
    if world.store.partitions().is_one() {
        return Ok(());
    }
    let claim = |key: &str| filed(key, record(State::InProgress { owner: [1; 16], lease_until_ms: 0 }));
    let first = claim("k");
    same("claimed", world.store.claim_record(first.clone()).await?, Claimed::Fresh)?;
    same("again, as its answer was lost", world.store.claim_record(first.clone()).await?, Claimed::Fresh)?;
    same("it stands", read(&world, &first.id).await?, Some(first.record.clone()))?;
    let of_another = RecordEntry {
        record: Arc::new(Record { fingerprint: Fingerprint([7; 32]), ..(*first.record).clone() }),
        ..first.clone()
    };
    let standing = Claimed::Standing(first.record.clone());
    same("by another", world.store.claim_record(of_another.clone()).await?, standing)?;
    same("finished by another", world.store.finish_record(of_another).await?, false)?;
    let done = completed("k", 0, 100);
    same("finished", world.store.finish_record(done.clone()).await?, true)?;
    same("once", world.store.finish_record(done.clone()).await?, false)?;
    same("the answer", read(&world, &done.id).await?, Some(done.record.clone()))?;
    same("done", world.store.claim_record(first).await?, Claimed::Standing(done.record.clone()))?;
    same("nothing to finish", world.store.finish_record(completed("other", 0, 100)).await?, false)?;
    let late = RecordEntry {
        record: Arc::new(Record { created_ms: 100, expires_ms: 200, ..(*claim("k").record).clone() }),
        ..claim("k")
    };
    same("expired", world.store.claim_record(late.clone()).await?, Claimed::Fresh)?;
    same("a turn sees it", file(&mut world, &completed("k", 150, 250)).await?, "conflict")
}

pub async fn tenants_share_no_keys(mut world: World) -> Result<(), Failed> {
    let ids = [("a", "bc"), ("ab", "c"), ("", "abc"), ("A", "bc"), ("a", "BC"), ("é", "k"), ("e\u{301}", "k")];
    for (at, (tenant, key)) in ids.into_iter().enumerate() {
        let entry = RecordEntry { id: record_id(tenant, key), ..completed(key, at as i64, 100) };
        same("a key of its own", file(&mut world, &entry).await?, "committed")?;
    }
    for (at, (tenant, key)) in ids.into_iter().enumerate() {
        let found = read(&world, &record_id(tenant, key)).await?;
        same("its own record", found.map(|record| record.created_ms), Some(at as i64))?;
    }
    same("nobody's", read(&world, &record_id("b", "bc")).await?, None)
}

pub async fn expired_records_are_swept(mut world: World) -> Result<(), Failed> {
    for (at, expires) in [50, 50, 50, 51].into_iter().enumerate() {
        file(&mut world, &completed(&format!("k{at}"), 0, expires)).await?;
    }
    same("none is due", world.store.sweep(49, 10).await?, 0)?;
    same("at most as many as asked", world.store.sweep(50, 2).await?, 2)?;
    same("the rest", world.store.sweep(50, 10).await?, 1)?;
    same("nothing more", world.store.sweep(50, 10).await?, 0)?;
    for (key, stays) in [("k0", false), ("k2", false), ("k3", true)] {
        same(key, read(&world, &record_id(TENANT, key)).await?.is_some(), stays)?;
    }
    same("a swept key is new", file(&mut world, &completed("k0", 0, 50)).await?, "committed")
}
