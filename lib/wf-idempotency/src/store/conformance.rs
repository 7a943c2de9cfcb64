//! What every store must do, run by ours and by anybody's: make a [`Bench`] for a store and give it to [`all`]. A case that
//! fails panics with what it saw. It needs no runtime of its own. Next: `entry.rs`, which most of it is about.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;

use super::{Claim, Claimed, Ended, Owner, Slot, Store};
use crate::decide::OnUnknown;
use crate::{Answer, Fingerprint, Key, Policy};

/// A store under test, and its time.
pub trait Bench {
    type Store: Store;

    /// An empty one.
    fn store(&self) -> impl Future<Output = Self::Store>;

    /// The store's clock goes on by so much; for one that takes its time from a server, its rows become older.
    fn advance(&self, store: &Self::Store, ms: i64) -> impl Future<Output = ()>;
}

const LEASE_MS: i64 = 10_000;
const TTL_MS: i64 = 86_400_000;

/// Every case, each on a store of its own.
pub async fn all<B: Bench>(bench: &B) {
    one_wins(bench).await;
    an_answer_is_given_again_as_it_was(bench).await;
    another_request_is_told_so(bench).await;
    a_lease_that_is_extended_keeps_others_out(bench).await;
    an_owner_that_vanished_leaves_the_unknown(bench).await;
    a_run_is_taken_over_where_the_route_can_bear_it(bench).await;
    what_had_no_effect_frees_the_key(bench).await;
    a_key_is_new_after_its_time(bench).await;
    tenants_do_not_meet(bench).await;
    a_lost_answer_to_a_claim_is_asked_for_again(bench).await;
    secrets_change_while_records_live(bench).await;
    a_sweep_takes_only_what_is_over(bench).await;
}

fn slot(tenant: &str, key: &str) -> Slot {
    Slot { tenant: tenant.into(), key: Key::new(key).unwrap_or_else(|error| panic!("{key}: {error}")) }
}

fn owner(n: u8) -> Owner {
    [n; 16]
}

fn claim(n: u8) -> Claim {
    Claim {
        slot: slot("t", "k"),
        fingerprints: vec![(1, Fingerprint([1; 32]))],
        owner: owner(n),
        lease_ms: LEASE_MS,
        ttl_ms: TTL_MS,
        policy: Policy::default(),
    }
}

fn with(on_unknown: OnUnknown, n: u8) -> Claim {
    Claim { policy: Policy { on_unknown, ..Policy::default() }, ..claim(n) }
}

fn answer() -> Answer {
    let headers = [("content-type", "application/json"), ("link", "<a>"), ("link", "<b>; x: y"), ("etag", "")];
    let headers = headers.map(|(name, value)| (Arc::from(name), Arc::from(value)));
    Answer { status: 201, headers: headers.into(), body: (0..=255).collect::<Vec<u8>>().into() }
}

const WON: Claimed = Claimed::Won { attempt: 1, resume: false };

async fn claimed<S: Store>(store: &S, claim: Claim) -> Claimed {
    store.claim(claim).await.unwrap_or_else(|error| panic!("a claim: {error}"))
}

async fn ended<S: Store>(store: &S, n: u8, ended: Ended) -> bool {
    store.end(slot("t", "k"), owner(n), ended).await.unwrap_or_else(|error| panic!("an end: {error}"))
}

async fn extended<S: Store>(store: &S, n: u8) -> bool {
    store.extend(slot("t", "k"), owner(n), LEASE_MS).await.unwrap_or_else(|error| panic!("an extension: {error}"))
}

async fn one_wins<B: Bench>(bench: &B) {
    let store = bench.store().await;
    let all = join_all((1..=32).map(|n| claimed(&store, claim(n)))).await;
    let won = all.iter().filter(|claimed| **claimed == WON).count();
    let busy = all.iter().filter(|claimed| matches!(claimed, Claimed::Busy { retry_after_ms } if *retry_after_ms >= 1));
    assert_eq!((won, busy.count()), (1, 31), "{all:?}");
}

async fn an_answer_is_given_again_as_it_was<B: Bench>(bench: &B) {
    let empty = Answer { status: 204, headers: vec![], body: Bytes::new() };
    for given in [answer(), empty] {
        let store = bench.store().await;
        assert_eq!(claimed(&store, claim(1)).await, WON);
        assert!(!ended(&store, 2, Ended::Answered(empty_status(500))).await, "not its claim");
        assert!(ended(&store, 1, Ended::Answered(given.clone())).await);
        for n in [1, 2] {
            assert_eq!(claimed(&store, claim(n)).await, Claimed::Replay(given.clone()));
            assert!(!ended(&store, n, Ended::Answered(empty_status(500))).await, "what is completed stays");
            assert!(!ended(&store, n, Ended::NotExecuted).await && !extended(&store, n).await);
        }
    }
    let store = bench.store().await;
    claimed(&store, claim(1)).await;
    assert!(ended(&store, 1, Ended::NotKept(answer())).await);
    assert_eq!(claimed(&store, claim(2)).await, Claimed::NotKept(Answer { body: Bytes::new(), ..answer() }));
}

fn empty_status(status: u16) -> Answer {
    Answer { status, headers: vec![], body: Bytes::new() }
}

async fn another_request_is_told_so<B: Bench>(bench: &B) {
    let store = bench.store().await;
    let other = || Claim { fingerprints: vec![(1, Fingerprint([2; 32]))], ..claim(2) };
    claimed(&store, claim(1)).await;
    assert_eq!(claimed(&store, other()).await, Claimed::Mismatch, "while the first runs");
    assert!(ended(&store, 1, Ended::Answered(answer())).await, "which goes on");
    assert_eq!(claimed(&store, other()).await, Claimed::Mismatch);
    assert_eq!(claimed(&store, claim(3)).await, Claimed::Replay(answer()));
}

async fn a_lease_that_is_extended_keeps_others_out<B: Bench>(bench: &B) {
    let store = bench.store().await;
    claimed(&store, with(OnUnknown::Resume, 1)).await;
    for _ in 0..3 {
        bench.advance(&store, LEASE_MS - 1_000).await;
        assert!(extended(&store, 1).await);
        assert!(!extended(&store, 2).await);
        let other = claimed(&store, with(OnUnknown::Resume, 2)).await;
        assert!(matches!(other, Claimed::Busy { .. }), "{other:?}");
    }
}

async fn an_owner_that_vanished_leaves_the_unknown<B: Bench>(bench: &B) {
    let store = bench.store().await;
    claimed(&store, claim(1)).await;
    bench.advance(&store, LEASE_MS).await;
    assert_eq!(claimed(&store, claim(2)).await, Claimed::Unknown);
    assert!(ended(&store, 1, Ended::Answered(answer())).await, "it was only slow");
    assert_eq!(claimed(&store, claim(2)).await, Claimed::Replay(answer()));
    let store = bench.store().await;
    claimed(&store, claim(1)).await;
    assert!(ended(&store, 1, Ended::Unknown).await);
    assert_eq!(claimed(&store, claim(2)).await, Claimed::Unknown);
    assert!(!ended(&store, 1, Ended::NotExecuted).await, "it has said that it does not know");
}

async fn a_run_is_taken_over_where_the_route_can_bear_it<B: Bench>(bench: &B) {
    for (on_unknown, resume) in [(OnUnknown::Resume, true), (OnUnknown::Release, false)] {
        let store = bench.store().await;
        assert_eq!(claimed(&store, with(on_unknown, 1)).await, WON);
        bench.advance(&store, LEASE_MS).await;
        let all = join_all((2..=9).map(|n| claimed(&store, with(on_unknown, n)))).await;
        let won = all.iter().filter(|claimed| **claimed == Claimed::Won { attempt: 2, resume }).count();
        assert_eq!(won, 1, "{all:?}");
        assert!(!extended(&store, 1).await && !ended(&store, 1, Ended::NotExecuted).await, "its lease is lost");
        assert!(!ended(&store, 1, Ended::Answered(answer())).await);
        let busy = claimed(&store, with(on_unknown, 10)).await;
        assert!(matches!(busy, Claimed::Busy { .. }), "{busy:?}");
    }
    let store = bench.store().await;
    claimed(&store, claim(1)).await;
    ended(&store, 1, Ended::Unknown).await;
    let again = claimed(&store, with(OnUnknown::Resume, 2)).await;
    assert_eq!(again, Claimed::Won { attempt: 2, resume: true });
}

async fn what_had_no_effect_frees_the_key<B: Bench>(bench: &B) {
    let store = bench.store().await;
    claimed(&store, claim(1)).await;
    assert!(ended(&store, 1, Ended::NotExecuted).await);
    let corrected = Claim { fingerprints: vec![(1, Fingerprint([2; 32]))], ..claim(2) };
    assert_eq!(claimed(&store, corrected).await, WON);
    assert!(!ended(&store, 1, Ended::Answered(answer())).await);
}

async fn a_key_is_new_after_its_time<B: Bench>(bench: &B) {
    let store = bench.store().await;
    claimed(&store, claim(1)).await;
    ended(&store, 1, Ended::Answered(answer())).await;
    bench.advance(&store, TTL_MS - 1_000).await;
    assert_eq!(claimed(&store, claim(2)).await, Claimed::Replay(answer()));
    bench.advance(&store, 1_000).await;
    let tombstone = Claim { policy: Policy { tombstone: true, ..Policy::default() }, ..claim(2) };
    assert_eq!(claimed(&store, tombstone).await, Claimed::Expired);
    let all = join_all((2..=9).map(|n| claimed(&store, claim(n)))).await;
    assert_eq!(all.iter().filter(|claimed| **claimed == WON).count(), 1, "{all:?}");
}

async fn tenants_do_not_meet<B: Bench>(bench: &B) {
    let store = bench.store().await;
    let of = |tenant, key, n| Claim { slot: slot(tenant, key), ..claim(n) };
    let longest = "k".repeat(crate::key::KEY_BYTES_MAX);
    let all = [("t", "k"), ("t", "K"), ("T", "k"), ("t", "k "), ("t", "'; --"), ("", &*longest), ("\u{e9}", "k")];
    for (n, (tenant, key)) in (1..).zip(all) {
        assert_eq!(claimed(&store, of(tenant, key, n)).await, WON, "{tenant:?} {key:?}");
    }
}

async fn a_lost_answer_to_a_claim_is_asked_for_again<B: Bench>(bench: &B) {
    let store = bench.store().await;
    claimed(&store, claim(1)).await;
    assert_eq!(claimed(&store, claim(1)).await, WON, "its own claim");
    assert!(ended(&store, 1, Ended::Answered(answer())).await);
}

async fn secrets_change_while_records_live<B: Bench>(bench: &B) {
    let store = bench.store().await;
    claimed(&store, claim(1)).await;
    ended(&store, 1, Ended::Answered(answer())).await;
    let newer = |old| Claim { fingerprints: vec![(2, Fingerprint([9; 32])), (1, Fingerprint([old; 32]))], ..claim(2) };
    assert_eq!(claimed(&store, newer(1)).await, Claimed::Replay(answer()));
    assert_eq!(claimed(&store, newer(2)).await, Claimed::Mismatch);
    let forgotten = Claim { fingerprints: vec![(2, Fingerprint([9; 32]))], ..claim(2) };
    assert!(store.claim(forgotten).await.is_err(), "nobody can say whether it is the same request");
}

async fn a_sweep_takes_only_what_is_over<B: Bench>(bench: &B) {
    let store = bench.store().await;
    let of = |key: &str, n| Claim { slot: slot("t", key), ..claim(n) };
    for (n, key) in (1..).zip(["a", "b", "c", "living"]) {
        claimed(&store, of(key, n)).await;
    }
    for (n, key) in (1..).zip(["a", "b", "c"]) {
        let _ = store.end(slot("t", key), owner(n), Ended::Answered(answer())).await;
    }
    bench.advance(&store, TTL_MS - 1_000).await;
    assert_eq!(store.sweep(0, 10).await, Ok(0));
    let _ = store.extend(slot("t", "living"), owner(4), LEASE_MS).await;
    bench.advance(&store, 1_000).await;
    assert_eq!(store.sweep(1_000, 10).await, Ok(0), "for a second they are kept");
    assert_eq!((store.sweep(0, 2).await, store.sweep(0, 2).await), (Ok(2), Ok(1)));
    let held = store.end(slot("t", "living"), owner(4), Ended::Answered(answer())).await;
    assert_eq!(held, Ok(true), "a claim that lives is not swept");
}
