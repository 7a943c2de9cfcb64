//! L1: a key, one effect, one answer.

use crate::common::*;
use std::task::Poll;
use wf_core::Rejection;
use wf_engine::{Answered, Ask, Options, OutboxRefusal, Refusal, Request};

fn same(first: &Answered, again: &Answered) {
    assert_eq!(first.answer, again.answer, "status, headers and body, byte for byte");
    assert!(again.replayed, "and it says that it is a replay");
}

#[tokio::test]
async fn l1_3_a_repeat_gets_the_first_answer_byte_for_byte_and_says_so() {
    let world = World::new().await;
    let request = || keyed("k", start("order"));
    let first = world.ask(request()).await.unwrap();
    assert!(!first.replayed);
    same(&first, &world.ask(request()).await.unwrap());
    // From the store, too: another engine has it not in memory.
    let world = world.restart().await;
    same(&first, &world.ask(request()).await.unwrap());
    assert_eq!(world.end().await.count("instance.started"), 1);
}

#[tokio::test]
async fn l1_4_the_same_key_with_another_payload_runs_nothing() {
    let world = World::new().await;
    let first = world.ask(keyed("k", start("order"))).await.unwrap();
    for other in [start("paid"), start_with("order", vec![]), activate("a", "w", 1)] {
        assert!(matches!(world.ask(keyed("k", other)).await, Err(Refusal::Conflict)));
    }
    same(&first, &world.ask(keyed("k", start("order"))).await.unwrap());
    let left = world.end().await;
    assert_eq!((left.count("instance.started"), left.count("job.activated")), (1, 0));
}

/// An earlier life answered it; from the second repeat on the door does, whatever the actor is busy with.
#[tokio::test]
async fn l1_3_a_repeat_after_a_restart_is_answered_at_the_door() {
    let world = World::new().await;
    let request = || keyed("k", start("order"));
    let first = world.ask(request()).await.unwrap();
    let world = world.restart().await;
    same(&first, &world.ask(request()).await.unwrap());
    world.stage.hold();
    let busy = world.later(publish("filler", "1", None, 0));
    // At once: what has to wait for the commit is not answered at the door.
    let asked = {
        let mut asking = std::pin::pin!(world.ask(request()));
        std::future::poll_fn(|context| Poll::Ready(asking.as_mut().poll(context))).await
    };
    let Poll::Ready(again) = asked else { panic!("it waits") };
    same(&first, &again.unwrap());
    world.stage.release();
    busy.await.unwrap().unwrap();
    world.end().await;
}

/// Repeats that were told to come again do not stay in the mailbox: it would stay full of them.
#[tokio::test]
async fn l1_5_a_repeat_that_nobody_waits_for_is_dropped() {
    let world = World::with(Options { turn_max: 1, ..options() }).await;
    world.stage.hold();
    let begun = world.stage.begun();
    let busy = world.later(publish("filler", "1", None, 0));
    world.stage.until_begun(begun + 1).await;
    // The next turn takes this one; the others wait behind it, and not for long.
    let first = world.later(keyed("k", start("order")));
    tokio::task::yield_now().await;
    for _ in 0..3 {
        let again = world.ask(keyed("k", start("order"))).await;
        assert!(matches!(again, Err(Refusal::InProgress { .. })), "{again:?}");
    }
    world.stage.release();
    busy.await.unwrap().unwrap();
    first.await.unwrap().unwrap();
    let stage = world.stage.clone();
    assert_eq!(world.end().await.count("instance.started"), 1);
    let slice = wf_store::Slice { after: None, limit: 10 };
    let query = wf_store::IdempotencyQuery { tenant: None, since: 0, now: START, slice };
    let uses = wf_store::Store::idempotency(&*stage.inner, query).await.unwrap();
    assert_eq!((uses.hits, uses.in_progress), (0, 3));
}

#[tokio::test]
async fn l1_5_twenty_at_once_are_one_effect_and_twenty_equal_answers() {
    let world = World::new().await;
    let asked: Vec<_> = (0..20).map(|_| world.later(keyed("k", start("order")))).collect();
    let mut answers = Vec::new();
    for one in asked {
        answers.push(one.await.unwrap().unwrap());
    }
    assert!(answers.iter().all(|one| one.answer == answers[0].answer));
    assert_eq!(answers.iter().filter(|one| !one.replayed).count(), 1);
    assert_eq!(world.end().await.count("instance.started"), 1);
}

#[tokio::test]
async fn l1_5_a_repeat_waits_a_bounded_time_for_the_first_also_when_its_client_has_gone() {
    let world = World::new().await;
    world.stage.hold();
    let begun = world.stage.begun();
    let first = world.later(keyed("k", start("order")));
    world.stage.until_begun(begun + 1).await;
    first.abort();
    assert!(first.await.is_err());
    let again = world.ask(keyed("k", start("order"))).await;
    assert!(matches!(again, Err(Refusal::InProgress { retry_after_ms: 1.. })), "{again:?}");
    world.stage.release();
    assert!(world.ask(keyed("k", start("order"))).await.unwrap().replayed, "its effect stands");
    assert_eq!(world.end().await.count("instance.started"), 1);
}

#[tokio::test]
async fn l1_2_tenants_do_not_share_keys() {
    let world = World::new().await;
    world.ok(of_tenant("other", deploy())).await;
    let ours = world.ok(keyed("k", start("order"))).await;
    let theirs = world.ask(of_tenant("other", keyed("k", start("order")))).await.unwrap();
    assert!(!theirs.replayed && text(&theirs) != ours);
    // What is not theirs does not exist for them, key or not.
    let job = world.activate("a").await[0];
    let refused = world.ask(of_tenant("other", keyed("j", complete(job)))).await;
    assert!(matches!(refused, Err(Refusal::Rejected(Rejection::NotFound(_)))), "{refused:?}");
    world.end().await;
}

#[tokio::test]
async fn k3_a_refusal_leaves_the_key_free() {
    let world = World::new().await;
    world.start("order").await;
    let (job, lease) = world.activate("a").await[0];
    let refused = world.ask(keyed("k", complete((job, lease + 1)))).await;
    assert!(matches!(refused, Err(Refusal::Rejected(Rejection::LeaseLost(_)))), "{refused:?}");
    assert!(!world.ask(keyed("k", complete((job, lease)))).await.unwrap().replayed);
    world.end().await;
}

#[tokio::test]
async fn f4_l1_7_an_expired_record_is_a_new_request_wherever_it_still_stands() {
    let world = World::new().await;
    let first = world.ok(keyed("k", start("order"))).await;
    // One millisecond early it is still the old one, from the doors' memory.
    world.advance(TTL_MS - 1).await;
    assert_eq!(world.ok(keyed("k", start("order"))).await, first);
    world.advance(1).await;
    let second = world.ask(keyed("k", start("order"))).await.unwrap();
    assert!(!second.replayed && text(&second) != first);
    // The new record stands in the place of the old one, in memory and in the store.
    assert_eq!(world.ok(keyed("k", start("order"))).await, text(&second));
    let world = world.restart().await;
    same(&second, &world.ask(keyed("k", start("order"))).await.unwrap());
    assert_eq!(world.end().await.count("instance.started"), 2);
}

#[tokio::test]
async fn l5_7_a_message_id_is_received_once_with_and_without_a_key() {
    let world = World::new().await;
    world.start("paid").await;
    let first = world.ok(publish("paid", "1", Some("m1"), 0)).await;
    assert!(first.contains("duplicate: false"), "{first}");
    for request in [publish("paid", "1", Some("m1"), 0), keyed("k", publish("paid", "1", Some("m1"), 0))] {
        let again = world.ok(request).await;
        assert!(again.contains("duplicate: true") && again.contains("correlated: []"), "{again}");
    }
    assert_eq!(world.end().await.count("message.correlated"), 1);
}

/// K7, T1: what was suppressed is counted, also when nothing else is committed.
#[tokio::test]
async fn k7_repeats_and_conflicts_are_counted_without_a_position() {
    let world = World::new().await;
    for _ in 0..3 {
        world.ok(keyed("k", start("order"))).await;
    }
    let _ = world.ask(keyed("k", start("paid"))).await;
    let positions = world.stage.inner.log().len();
    let stage = world.stage.clone();
    world.end().await;
    assert_eq!(stage.inner.log().len(), positions);
    let slice = wf_store::Slice { after: None, limit: 10 };
    let query = wf_store::IdempotencyQuery { tenant: None, since: 0, now: START, slice };
    let uses = wf_store::Store::idempotency(&*stage.inner, query).await.unwrap();
    assert_eq!((uses.keys, uses.hits, uses.conflicts), (1, 2, 1));
}

/// K7, L3.4, L5.7: repeats that need no key of the client's are seen as well.
#[tokio::test]
async fn k7_repeats_that_the_state_knows_are_counted() {
    let world = World::new().await;
    for _ in 0..3 {
        world.ok(publish("paid", "1", Some("m1"), 0)).await;
    }
    world.start("order").await;
    let held = world.activate("a").await[0];
    world.ok(complete(held)).await;
    world.ok(complete(held)).await;
    let stage = world.stage.clone();
    world.end().await;
    let slice = wf_store::Slice { after: None, limit: 10 };
    let query = wf_store::IdempotencyQuery { tenant: None, since: 0, now: START, slice };
    let uses = wf_store::Store::idempotency(&*stage.inner, query).await.unwrap();
    let mut seen: Vec<(&str, u64)> = uses.items.iter().map(|item| (&*item.route, item.hits)).collect();
    seen.sort();
    assert_eq!(seen, [("complete-job", 1), ("publish-message", 2)]);
}

/// L4.1, F4: the lineage key is the same when a request comes again to a restored store, and another one when its
/// idempotency key is used again after its time for something else: a provider must not take the new for the old.
#[tokio::test]
async fn l4_1_a_lineage_is_its_request_s_not_its_key_s_alone() {
    let other = || start_with("order", vec![("id".into(), "2".into())]);
    let world = World::new().await;
    world.ok(keyed("k", start("order"))).await;
    world.advance(TTL_MS + 1).await;
    world.ok(keyed("k", other())).await;
    let [first, second] = lineages(&world)[..] else { panic!("two jobs") };
    world.end().await;
    assert_ne!(first, second);

    let restored = World::new().await;
    restored.ok(keyed("another", other())).await;
    restored.ok(keyed("k", start("order"))).await;
    assert_eq!(lineages(&restored)[1], first);
    restored.end().await;
}

fn lineages(world: &World) -> Vec<[u8; 16]> {
    let rows = world.stage.inner.rows();
    let jobs = rows.iter().filter_map(|row| match row {
        wf_core::Row::Job(job) => Some(job.lineage),
        _ => None,
    });
    jobs.collect()
}

/// L5.2: a message whose broker may have forgotten its id is sent again only with force, shipped or dead.
#[tokio::test]
async fn l5_2_a_late_retry_needs_force() {
    use wf_store::{Claim, Mark, MarkResult, Store};
    let world = World::new().await;
    world.start("order").await;
    let owner = [7; 16];
    let sink = options().sinks[0].name.clone();
    let claim = Claim { sink, owner, now: START, lease_ms: 1_000, limit: 10, dead_pass: false };
    let claimed = world.stage.inner.claim_outbox(claim).await.unwrap();
    let id = claimed[0].entry.id.clone();
    let dead = Mark { id: id.clone(), owner, result: MarkResult::Dead { error: "no".into() } };
    world.stage.inner.mark_outbox(vec![dead]).await.unwrap();
    let retry = |force| Request { ask: Ask::RetryOutbox { id: id.clone(), force }, ..start("order") };
    assert!(world.ask(retry(false)).await.is_ok(), "the broker still knows the id");

    let again = Claim { sink: id.sink.clone(), owner, now: START, lease_ms: 1_000, limit: 10, dead_pass: false };
    world.stage.inner.claim_outbox(again).await.unwrap();
    let dead = Mark { id: id.clone(), owner, result: MarkResult::Dead { error: "no".into() } };
    world.stage.inner.mark_outbox(vec![dead]).await.unwrap();
    world.advance(options().sinks[0].window_ms).await;
    let late = world.ask(retry(false)).await;
    assert!(matches!(late, Err(Refusal::Outbox(OutboxRefusal::PastWindow))), "{late:?}");
    assert!(world.ask(retry(true)).await.is_ok());
    world.end().await;
}
