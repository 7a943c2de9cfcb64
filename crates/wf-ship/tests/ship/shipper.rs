//! The shipper over the memory store: order, repeats, dead letters, back-off, two at once, the end.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use wf_core::Key;
use wf_ship::shipper::LEASE_MS;
use wf_ship::{Kind, OnDead, ShipResult, Shipment, Shipper, SinkConfig, SinkState, backoff_ms};
use wf_store::OutboxState::{Dead, Pending, Shipped};

use crate::outbox::{NOW, Scripted, World, retry, shipped};

fn config() -> SinkConfig {
    SinkConfig::new("log", Kind::Stdout, "")
}

/// L5.1, L5.2
#[tokio::test(start_paused = true)]
async fn everything_is_shipped_once_and_in_order_per_key() {
    let world = World::new().await;
    let sink = Scripted::new("log", |_| shipped());
    let shipper = world.start(&config(), sink.clone());
    let keys: Vec<Key> = (0..500).map(|n| n % 7).collect();
    let ids = world.write("log", &keys[..250]).await;
    world.until(|rows| rows.values().all(|row| row.state == Shipped)).await;
    let more = world.write("log", &keys[250..]).await;
    world.until(|rows| rows.values().all(|row| row.state == Shipped)).await;
    shipper.shutdown().await;

    let seen = sink.seen();
    let written: Vec<String> = ids.into_iter().chain(more).collect();
    for key in 0..7 {
        let of_key = |id: &&String| written.iter().position(|it| it == *id).is_some_and(|n| keys[n] == key);
        let (got, wanted): (Vec<_>, Vec<_>) =
            (seen.iter().filter(of_key).collect(), written.iter().filter(of_key).collect());
        assert_eq!(got, wanted, "key {key}");
    }
    assert_eq!(seen.len(), written.len());
    assert!(world.rows().await.values().all(|row| row.attempts == 1 && row.shipped_at == NOW));
}

/// L5.2, webhooks out 169: the ack came, the mark did not.
#[tokio::test(start_paused = true)]
async fn a_crash_between_ship_and_mark_ships_the_same_id_again() {
    let world = World::new().await;
    let ids = world.write("log", &[1, 1]).await;
    let dying = Scripted::new("log", |_| None);
    let shipper = world.start(&config(), dying.clone());
    dying.has_seen(1).await;
    drop(shipper);

    let sink = Scripted::new("log", |_| shipped());
    let shipper = world.start(&config(), sink.clone());
    world.some_rounds().await;
    assert_eq!(sink.seen(), [""; 0], "the claim of the dead one still holds");
    world.set_clock(NOW + LEASE_MS);
    world.until(|rows| rows.values().all(|row| row.state == Shipped)).await;
    shipper.shutdown().await;
    assert_eq!(dying.seen(), ids[..1]);
    assert_eq!(sink.seen(), ids, "the same id first, then the one behind it");
}

/// L5.2: at the bound, or at once where the other side refuses.
#[tokio::test(start_paused = true)]
async fn a_dead_letter_blocks_its_key_or_lets_it_pass() {
    for (on_dead, second) in [(OnDead::Block, Pending), (OnDead::Pass, Shipped)] {
        let world = World::new().await;
        let ids = world.write("log", &[1, 1, 2]).await;
        let first = ids[0].clone();
        let refuse = move |shipment: &Shipment| match *shipment.event_id == *first {
            true => Some(ShipResult::Refused { error: "too big".to_owned() }),
            false => shipped(),
        };
        let sink = Scripted::new("log", refuse);
        let shipper = world.start(&SinkConfig { on_dead, ..config() }, sink.clone());
        world.until(|rows| rows[&ids[2]].state == Shipped).await;
        world.some_rounds().await;
        shipper.shutdown().await;
        assert_eq!(world.states().await, [Dead, second, Shipped], "{on_dead:?}");
        assert_eq!(world.rows().await[&ids[0]].last_error.as_deref(), Some("too big"));
    }
}

/// L5.2: attempts are bounded, and an operator's retry sends the same id.
#[tokio::test(start_paused = true)]
async fn attempts_end_in_a_dead_letter_that_can_be_sent_again() {
    let world = World::new().await;
    let ids = world.write("log", &[1]).await;
    let failures = Arc::new(AtomicUsize::new(3));
    let left = failures.clone();
    let take = move |n: usize| n.checked_sub(1);
    let sink = Scripted::new("log", move |_| {
        if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() { retry(None) } else { shipped() }
    });
    let shipper = world.start(&SinkConfig { attempts_max: 3, ..config() }, sink.clone());
    for attempt in 1..=3 {
        world.until(|rows| rows[&ids[0]].attempts == attempt).await;
        world.set_clock(NOW + i64::from(attempt) * 600_000);
    }
    let row = world.rows().await[&ids[0]].clone();
    assert_eq!((row.state, row.attempts, row.last_error.as_deref()), (Dead, 3, Some("not now")));
    world.ship_again("log", row.entry.id.position).await;
    world.until(|rows| rows[&ids[0]].state == Shipped).await;
    shipper.shutdown().await;
    assert_eq!(sink.seen(), vec![ids[0].clone(); 4]);
}

/// L5.2: the engine's clock rules, not the machine's.
#[tokio::test(start_paused = true)]
async fn retries_come_when_the_engines_clock_says_so() {
    let world = World::new().await;
    let ids = world.write("log", &[1]).await;
    let sink = Scripted::new("log", |_| retry(None));
    let shipper = world.start(&config(), sink.clone());
    let mut due = NOW;
    for attempt in 1..=12 {
        world.set_clock(due);
        sink.has_seen(attempt).await;
        world.until(|rows| rows[&ids[0]].attempts == attempt as u32).await;
        due += backoff_ms(&ids[0], attempt as u32);
        assert_eq!(world.rows().await[&ids[0]].retry_at, due);
        world.set_clock(due - 1);
        world.some_rounds().await;
        assert_eq!(sink.seen().len(), attempt, "not a millisecond too early");
    }
    shipper.shutdown().await;
}

/// Webhooks out 170: who asks for a pause gets it for everything.
#[tokio::test(start_paused = true)]
async fn a_pause_that_is_asked_for_holds_the_whole_sink() {
    let world = World::new().await;
    let ids = world.write("log", &[1]).await;
    let asked = AtomicUsize::new(0);
    let sink = Scripted::new("log", move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => retry(Some(3_600_000)),
        _ => shipped(),
    });
    let shipper = world.start(&config(), sink.clone());
    world.until(|rows| rows[&ids[0]].attempts == 1).await;
    world.write("log", &[2]).await;
    world.set_clock(NOW + 3_599_999);
    world.some_rounds().await;
    assert_eq!(sink.seen(), ids);
    world.set_clock(NOW + 3_600_000);
    world.until(|rows| rows.values().all(|row| row.state == Shipped)).await;
    shipper.shutdown().await;
}

/// Webhooks out 171: claims keep two senders apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_shippers_never_hold_one_row_at_once() {
    let world = World::new().await;
    let keys: Vec<Key> = (0..2_000).map(|n| n % 300).collect();
    world.write("log", &keys).await;
    let held = Arc::new(Mutex::new(BTreeSet::new()));
    let shippers: Vec<(Shipper, Arc<Scripted>)> = (0..2)
        .map(|_| {
            let held = held.clone();
            let sink = Scripted::new("log", move |shipment| {
                // Marks come after this answer: also a later claim of the same row would be seen.
                assert!(held.lock().unwrap().insert(shipment.event_id.clone()), "{} twice", shipment.event_id);
                shipped()
            });
            (world.start(&config(), sink.clone()), sink)
        })
        .collect();
    // A quick one may be through before the other has begun.
    let mut written = keys.len();
    while shippers.iter().any(|(_, sink)| sink.seen().is_empty()) {
        written += world.write("log", &[1]).await.len();
        world.filled.notify_one();
        tokio::task::yield_now().await;
    }
    let mut seen = 0;
    while !world.rows().await.values().all(|row| row.state == Shipped) {
        world.filled.notify_one();
        tokio::task::yield_now().await;
    }
    for (shipper, sink) in shippers {
        shipper.shutdown().await;
        seen += sink.seen().len();
    }
    assert_eq!(seen, written);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_cannot_be_used_costs_no_attempts() {
    let world = World::new().await;
    let ids = world.write("log", &[1]).await;
    let sink = Scripted::new("log", |_| shipped());
    sink.usable.send_replace(false);
    let shipper = world.start(&config(), sink.clone());
    shipper.state_of("log", |state| matches!(state, SinkState::Waiting { .. })).await;
    world.some_rounds().await;
    assert_eq!((sink.seen().len(), world.rows().await[&ids[0]].attempts), (0, 0));
    sink.usable.send_replace(true);
    world.until(|rows| rows[&ids[0]].state == Shipped).await;
    assert_eq!(shipper.status()[0].state, SinkState::Shipping);
    shipper.shutdown().await;
}

/// Webhooks out 170: 410.
#[tokio::test(start_paused = true)]
async fn a_disabled_sink_stops_and_keeps_its_rows() {
    let world = World::new().await;
    world.write("log", &[1, 1, 2]).await;
    let sink = Scripted::new("log", |_| Some(ShipResult::Disabled { error: "gone".to_owned() }));
    let shipper = world.start(&config(), sink.clone());
    shipper.state_of("log", |state| matches!(state, SinkState::Disabled { .. })).await;
    world.some_rounds().await;
    assert_eq!(sink.seen().len(), 2, "one batch, no more");
    shipper.shutdown().await;
    assert!(world.rows().await.values().all(|row| row.state == Pending && row.attempts == 0));
    let next = Scripted::new("log", |_| shipped());
    let shipper = world.start(&config(), next.clone());
    world.until(|rows| rows.values().all(|row| row.state == Shipped)).await;
    shipper.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_marks_what_was_being_sent() {
    let world = World::new().await;
    world.write("log", &[1, 1]).await;
    let sink = Scripted::new("log", |_| shipped());
    let gate = Arc::new(tokio::sync::Notify::new());
    let gated = Arc::new(Gated { sink: sink.clone(), gate: gate.clone() });
    let shipper = world.start(&config(), gated);
    sink.has_seen(1).await;
    let (_, ()) = tokio::join!(shipper.shutdown(), async { gate.notify_one() });
    assert_eq!(world.states().await, [Shipped, Pending]);
    let sink = Scripted::new("log", |_| shipped());
    let shipper = world.start(&config(), sink.clone());
    world.until(|rows| rows.values().all(|row| row.state == Shipped)).await;
    shipper.shutdown().await;
    assert_eq!(sink.seen().len(), 1, "nothing waits for a lease to end");
}

/// Answers when the gate opens.
struct Gated {
    sink: Arc<Scripted>,
    gate: Arc<tokio::sync::Notify>,
}

impl wf_ship::Sink for Gated {
    fn name(&self) -> &str {
        "log"
    }

    fn check(&self) -> wf_ship::Later<'_, Result<wf_ship::SinkInfo, wf_ship::SinkError>> {
        self.sink.check()
    }

    fn ship<'a>(&'a self, batch: &'a [Shipment]) -> wf_ship::Later<'a, Vec<ShipResult>> {
        Box::pin(async move {
            let results = self.sink.ship(batch).await;
            self.gate.notified().await;
            results
        })
    }
}
