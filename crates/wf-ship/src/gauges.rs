//! The shipper's numbers: what waits, how old it is, what went out, what is dead. Names are fixed; labels are bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio::sync::watch;
use tracing::warn;
use wf_core::Millis;
use wf_store::{Mark, MarkResult, OutboxRow, OutboxStats, Store};

use crate::shipper::Clock;
use crate::sink::ShipResult;

const PENDING: &str = "wf_outbox_pending";
const OLDEST_AGE: &str = "wf_outbox_oldest_age_seconds";
const SHIPPED: &str = "wf_outbox_shipped_total";
const DEAD: &str = "wf_outbox_dead_total";
const DEDUP_DROPS: &str = "wf_outbox_dedup_drops_total";
/// Between two countings of what waits: a store may have to scan for it.
const EVERY: Duration = Duration::from_secs(5);

/// Counts what a round came to.
pub(crate) fn count(sink: &str, rows: &[OutboxRow], results: &[ShipResult], marks: &[Mark]) {
    let count_of = |is: fn(&MarkResult) -> bool| marks.iter().filter(|mark| is(&mark.result)).count() as u64;
    counter!(SHIPPED, "sink" => sink.to_owned()).increment(count_of(|mark| matches!(mark, MarkResult::Shipped { .. })));
    counter!(DEAD, "sink" => sink.to_owned()).increment(count_of(|mark| matches!(mark, MarkResult::Dead { .. })));
    for (row, result) in rows.iter().zip(results) {
        if *result == (ShipResult::Shipped { duplicate: true }) {
            counter!(DEDUP_DROPS, "topic" => row.entry.topic.to_string()).increment(1);
        }
    }
}

/// Keeps the gauges until the shipper ends, and a last time then.
pub(crate) async fn keep(
    store: Arc<dyn Store>,
    sinks: BTreeSet<String>,
    clock: Clock,
    mut stopped: watch::Receiver<bool>,
) {
    describe();
    let mut stranded = BTreeSet::new();
    loop {
        let is_last = *stopped.borrow();
        match store.outbox_stats().await {
            Ok(stats) => show(store.partitions().first(), &sinks, &stats, clock(), &mut stranded),
            Err(error) => warn!(%error, "the outbox cannot be counted"),
        }
        if is_last {
            return;
        }
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => (),
            () = tokio::time::sleep(EVERY) => (),
        }
    }
}

fn describe() {
    describe_gauge!(PENDING, "Messages that wait to be shipped, by sink");
    describe_gauge!(OLDEST_AGE, "Age of the oldest message that waits, by sink");
    describe_counter!(SHIPPED, "Messages that a sink has acknowledged");
    describe_counter!(DEAD, "Messages that were given up");
    describe_counter!(DEDUP_DROPS, "Messages that the broker had already, by topic");
}

/// What waits and how old the oldest is, by sink and by the store's first partition: a node with several stores ships from
/// each, and tells of all.
static WAITING: Mutex<BTreeMap<(String, u16), (u64, Millis)>> = Mutex::new(BTreeMap::new());

/// A sink without rows has no stats: it shows 0. Rows of a sink that is not configured are named once.
fn show(store: u16, sinks: &BTreeSet<String>, stats: &[OutboxStats], now: Millis, stranded: &mut BTreeSet<String>) {
    let nothing = OutboxStats::default();
    for sink in sinks {
        let stats = stats.iter().find(|stats| *stats.sink == **sink).unwrap_or(&nothing);
        let age_ms = stats.oldest_pending.map_or(0, |oldest| (now - oldest).max(0));
        let (pending, age_ms) = over_all(sink, store, (stats.pending, age_ms));
        gauge!(PENDING, "sink" => sink.clone()).set(pending as f64);
        gauge!(OLDEST_AGE, "sink" => sink.clone()).set(age_ms as f64 / 1_000.0);
    }
    for stats in stats.iter().filter(|stats| stats.pending > 0 && !sinks.contains(&*stats.sink)) {
        if stranded.insert(stats.sink.to_string()) {
            warn!(sink = &*stats.sink, pending = stats.pending, "messages wait for a sink that is not configured");
        }
    }
}

fn over_all(sink: &str, store: u16, of_one: (u64, Millis)) -> (u64, Millis) {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.insert((sink.to_owned(), store), of_one);
    let of_sink = waiting.iter().filter(|((name, _), _)| name == sink).map(|(_, one)| one);
    of_sink.fold((0, 0), |(pending, age_ms), one| (pending + one.0, age_ms.max(one.1)))
}
