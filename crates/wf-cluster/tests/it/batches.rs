//! Batch completions over several partitions, under a key: claimed, done in parts, finished; also after a crash.

use wf_cluster::many::{self, Claim, Held};
use wf_cluster::{Owner, Search};
use wf_core::{Command, Key, Partitions};

const THREE: Partitions = Partitions::of(3);
use wf_engine::{Answered, Engine, Refusal, Request};
use wf_idempotency::record::{Answer, State};
use wf_store::{RecordId, Store};

use crate::support::*;

struct Batch {
    world: World,
    a: Member,
    b: Member,
    jobs: Vec<Key>,
}

/// One job in each of three partitions, leased.
async fn batch() -> Batch {
    let world = World::new(3);
    let (mut a, mut b) = (world.member("a").await, world.member("b").await);
    world.settle(&mut [&mut a, &mut b]).await;
    world.deploy(&a.node).await;
    let mut jobs = Vec::new();
    for partition in 1..=3 {
        world.ask_at(&a.node, partition, request(start())).await.unwrap();
        jobs.extend(keys_in(&world.ask_at(&a.node, partition, request(activate())).await.unwrap()));
    }
    assert_eq!(jobs.len(), 3);
    Batch { world, a, b, jobs }
}

fn claimed(claim: Result<Claim, Refusal>) -> Held {
    match claim {
        Ok(Claim::Held(held)) => held,
        Ok(Claim::Replay(answered)) => panic!("{answered:?}"),
        Err(refusal) => panic!("{refusal:?}"),
    }
}

impl Batch {
    fn engine(&self) -> Engine {
        self.a.node.engine().unwrap()
    }

    async fn claim(&self, request: &Request) -> Result<Claim, Refusal> {
        many::claim(&self.engine(), request, request.passport.as_ref().unwrap()).await
    }

    async fn part(&self, request: &Request, partition: u16) -> Answered {
        let part = many::part(request, partition, THREE).unwrap();
        self.world.ask_at(&self.b.node, partition, part).await.unwrap()
    }

    async fn finish(&self, held: Held, parts: &[Answered]) -> Answered {
        let body: String = parts.iter().map(text).collect();
        let answer = Answer { status: 200, headers: Vec::new(), body: body.into() };
        many::finish(&self.world.store, held, answer).await.unwrap()
    }

    async fn state(&self) -> State {
        let id = RecordId { tenant: TENANT.into(), key: "batch".into() };
        self.world.store.record(id).await.unwrap().unwrap().state.clone()
    }
}

/// L1.7: whoever crashes between two parts, a repeat finishes it: each job is completed once, and the answer is one.
#[tokio::test]
async fn a_repeat_finishes_what_a_crash_left() {
    let batch = batch().await;
    let request = keyed("batch", request(complete(&batch.jobs)));
    // The first one gets as far as one part.
    drop(claimed(batch.claim(&request).await));
    let first = batch.part(&request, 1).await;
    assert!(matches!(batch.state().await, State::InProgress { .. }));
    // Its repeats go through all parts. Two at once do no harm.
    let (one, other) = (claimed(batch.claim(&request).await), claimed(batch.claim(&request).await));
    let mut parts = Vec::new();
    for partition in 1..=3 {
        parts.push(batch.part(&request, partition).await);
    }
    assert_eq!(parts.iter().map(|part| part.replayed).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(text(&parts[0]), text(&first));
    let answered = batch.finish(one, &parts).await;
    assert!(!answered.replayed);
    let late = batch.finish(other, &parts).await;
    assert_eq!((late.replayed, text(&late)), (true, text(&answered)));
    let Ok(Claim::Replay(replay)) = batch.claim(&request).await else { panic!("it is done") };
    assert_eq!((replay.replayed, text(&replay)), (true, text(&answered)));
    for part in &parts {
        assert!(text(part).contains("Ok(false)"), "completed, and no duplicate: {}", text(part));
    }
}

/// L1.6: the same key with another batch, while the first is under way and when it is done.
#[tokio::test]
async fn another_batch_under_the_key_is_a_conflict() {
    let batch = batch().await;
    let first = keyed("batch", request(complete(&batch.jobs)));
    let another = keyed("batch", request(complete(&batch.jobs[..2])));
    let held = claimed(batch.claim(&first).await);
    assert!(matches!(batch.claim(&another).await, Err(Refusal::Conflict)));
    // One that belongs to a partition alone meets the claim in its turn.
    let single = keyed("batch", request(complete(&batch.jobs[..1])));
    let refused = batch.world.ask_at(&batch.a.node, 1, single).await;
    assert!(matches!(refused, Err(Refusal::Conflict)), "{refused:?}");
    batch.finish(held, &[]).await;
    assert!(matches!(batch.claim(&another).await, Err(Refusal::Conflict)));
}

/// No key from outside is a part's.
#[tokio::test]
async fn parts_have_keys_of_their_own() {
    let batch = batch().await;
    let request = keyed("batch", request(complete(&batch.jobs)));
    let part = many::part(&request, 2, THREE).unwrap();
    let key = part.passport.unwrap().key;
    assert_eq!(key.as_str(), "batch\u{1f}2");
    assert!(wf_idempotency::key::Key::new(key.as_str()).is_err());
    assert!(many::part(&request, 7, THREE).is_none());
    let wf_engine::Ask::Command(Command::CompleteJobs { items, .. }) = part.ask else { panic!("no batch") };
    assert_eq!(items.iter().map(|item| item.job).collect::<Vec<_>>(), batch.jobs[1..2]);
    let owner = batch.a.node.owner(2, &batch.a.node.patience()).await.unwrap();
    assert!(matches!(owner, Owner::Here(_) | Owner::Elsewhere(_)));
    let _: fn(&mut Search) = Search::found_none;
}
