//! What every sink must do, held against its real other side. A third party's sink runs it as well.
//! It knows no protocol: what arrived, and how to break it, a [`Receiver`] tells. Failures panic and name the promise.

use std::time::Duration;

use bytes::Bytes;
use wf_core::Key;

use crate::sink::{Later, ShipResult, Shipment, Sink};

/// The other side, as a test sees it.
pub trait Receiver: Send + Sync {
    /// Everything that it holds, in the order of arrival.
    fn arrivals(&self) -> Later<'_, Vec<Arrival>>;

    /// It drops what it had before, and says so.
    fn remembers(&self) -> bool;

    /// From here on it takes nothing, until `mend`.
    fn fail(&self) -> Later<'_, ()>;

    fn mend(&self) -> Later<'_, ()>;

    /// The shipment, changed so that it will never be taken; `None`: there is no such thing.
    fn spoil(&self, shipment: Shipment) -> Option<Shipment>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub event_id: String,
    pub envelope: Bytes,
}

/// All promises, one after the other, over one sink and its fresh receiver.
pub async fn run_all(sink: &dyn Sink, receiver: &dyn Receiver) {
    let check = sink.check().await;
    assert!(check.is_ok(), "a sink whose other side is up can be used: {check:?}");
    if receiver.remembers() {
        let window_ms = check.ok().and_then(|info| info.window_ms);
        assert!(window_ms.is_some_and(|window_ms| window_ms > 0), "it says how long it remembers");
    }
    sends_every_byte_once(sink, receiver).await;
    keeps_the_order_of_each_key(sink, receiver).await;
    sends_a_repeat_as_it_was(sink, receiver).await;
    a_refusal_stands_alone(sink, receiver).await;
    an_outage_is_no_refusal(sink, receiver).await;
}

/// An event of its own order key. `number` gives everything: two calls with one number are the same event.
pub fn event(number: u64, order_key: Key) -> Shipment {
    // Bytes that a sink which parses and writes again would change.
    let envelope = format!("{{\"specversion\":\"1.0\", \"id\":\"ev-1-{number}\",\"data\":{{\"ä\":1.10,\"b\":[ ]}}}}");
    Shipment {
        event_id: format!("ev-1-{number}").into(),
        tenant: "acme.eu".into(),
        topic: "wf.instance.started".into(),
        order_key,
        envelope: envelope.into(),
    }
}

fn events(numbers: std::ops::Range<u64>) -> Vec<Shipment> {
    numbers.map(|number| event(number, number)).collect()
}

async fn sends_every_byte_once(sink: &dyn Sink, receiver: &dyn Receiver) {
    assert_eq!(sink.ship(&[]).await, [], "nothing in, nothing out");
    let batch = events(100..200);
    assert_shipped(&sink.ship(&batch).await, batch.len());
    let arrivals = receiver.arrivals().await;
    assert_eq!(arrivals.len(), batch.len(), "each arrives once: {arrivals:?}");
    for shipment in &batch {
        assert!(arrivals.contains(&arrival(shipment)), "{} arrives byte for byte", shipment.event_id);
    }
}

/// Four keys at once, five events each, one after the other as claims give them out.
async fn keeps_the_order_of_each_key(sink: &dyn Sink, receiver: &dyn Receiver) {
    let before = receiver.arrivals().await.len();
    for round in 0..5 {
        let batch: Vec<Shipment> = (0..4).map(|key| event(200 + 10 * key + round, key)).collect();
        assert_shipped(&sink.ship(&batch).await, batch.len());
    }
    let arrivals = receiver.arrivals().await.split_off(before);
    for key in 0..4 {
        let wanted: Vec<Arrival> = (0..5).map(|round| arrival(&event(200 + 10 * key + round, key))).collect();
        let got: Vec<Arrival> = arrivals.iter().filter(|arrival| wanted.contains(arrival)).cloned().collect();
        assert_eq!(got, wanted, "key {key} arrives in order");
    }
}

async fn sends_a_repeat_as_it_was(sink: &dyn Sink, receiver: &dyn Receiver) {
    let shipment = event(300, 1);
    assert_shipped(&sink.ship(std::slice::from_ref(&shipment)).await, 1);
    let results = sink.ship(std::slice::from_ref(&shipment)).await;
    assert_eq!(results, [ShipResult::Shipped { duplicate: receiver.remembers() }], "a repeat is a success");
    let arrivals: Vec<Arrival> = receiver.arrivals().await.into_iter().filter(|it| it.event_id == "ev-1-300").collect();
    let wanted = if receiver.remembers() { 1 } else { 2 };
    assert_eq!(arrivals, vec![arrival(&shipment); wanted], "a repeat has the same id and bytes");
}

async fn a_refusal_stands_alone(sink: &dyn Sink, receiver: &dyn Receiver) {
    let Some(spoilt) = receiver.spoil(event(401, 401)) else { return };
    let before = receiver.arrivals().await.len();
    let results = sink.ship(&[event(400, 400), spoilt, event(402, 402)]).await;
    assert_eq!(results.len(), 3, "an answer for each");
    assert_eq!(results[0], ShipResult::Shipped { duplicate: false });
    assert!(matches!(results[1], ShipResult::Refused { .. }), "refused for good: {results:?}");
    assert_eq!(results[2], ShipResult::Shipped { duplicate: false });
    assert_eq!(receiver.arrivals().await.len(), before + 2, "the neighbours arrive");
}

async fn an_outage_is_no_refusal(sink: &dyn Sink, receiver: &dyn Receiver) {
    receiver.fail().await;
    let batch = events(500..503);
    let results = sink.ship(&batch).await;
    assert_eq!(results.len(), batch.len(), "an answer for each");
    assert!(results.iter().all(|result| matches!(result, ShipResult::Retry { .. })), "to be sent again: {results:?}");
    receiver.mend().await;
    // Also what was down comes back by itself: the suite only asks again.
    while sink.check().await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let results = sink.ship(&batch).await;
    assert!(results.iter().all(|result| matches!(result, ShipResult::Shipped { .. })), "sent now: {results:?}");
    let arrivals = receiver.arrivals().await;
    assert!(batch.iter().all(|shipment| arrivals.contains(&arrival(shipment))), "all arrive after the outage");
}

fn assert_shipped(results: &[ShipResult], len: usize) {
    assert_eq!(results, vec![ShipResult::Shipped { duplicate: false }; len], "all are new and shipped");
}

fn arrival(shipment: &Shipment) -> Arrival {
    Arrival { event_id: shipment.event_id.to_string(), envelope: shipment.envelope.clone() }
}
