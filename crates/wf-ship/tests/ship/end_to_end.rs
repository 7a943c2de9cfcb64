//! Outbox, shipper and a real broker together: what a crash does, and what the numbers say.

use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusBuilder;
use wf_ship::conformance::Receiver;
use wf_ship::shipper::LEASE_MS;
use wf_ship::{Kind, Later, ShipResult, Shipment, Sink, SinkConfig, SinkError, SinkInfo, SinkState, build};
use wf_store::OutboxState::Shipped;

use crate::outbox::{NOW, World};
use crate::receiver::Broker;

/// Sends, hears the acks, and takes them to the grave.
struct Dying {
    sink: Arc<dyn Sink>,
    has_acks: tokio::sync::watch::Sender<bool>,
}

impl Sink for Dying {
    fn name(&self) -> &str {
        self.sink.name()
    }

    fn check(&self) -> Later<'_, Result<SinkInfo, SinkError>> {
        self.sink.check()
    }

    fn ship<'a>(&'a self, batch: &'a [Shipment]) -> Later<'a, Vec<ShipResult>> {
        Box::pin(async move {
            let results = self.sink.ship(batch).await;
            assert!(results.iter().all(|result| *result == ShipResult::Shipped { duplicate: false }), "{results:?}");
            self.has_acks.send_replace(true);
            std::future::pending().await
        })
    }
}

/// L5.1-L5.3: acknowledged but not marked, sent again, dropped by the broker, counted.
#[tokio::test]
async fn the_broker_drops_what_a_crash_made_us_send_twice() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let broker = Broker::start();
    let config = SinkConfig { stream: Some("EVENTS".to_owned()), ..SinkConfig::new("bus", Kind::Nats, &broker.url) };
    let world = World::new().await;
    let ids = world.write("bus", &[1, 2, 1]).await;

    world.set_clock(NOW + 5_000);
    let dying = Arc::new(Dying { sink: build(&config).unwrap(), has_acks: tokio::sync::watch::Sender::new(false) });
    let shipper = world.start(&config, dying.clone());
    dying.has_acks.subscribe().wait_for(|has_acks| *has_acks).await.unwrap();
    drop(shipper);
    holds(&metrics.render(), &["wf_outbox_pending{sink=\"bus\"} 3", "wf_outbox_oldest_age_seconds{sink=\"bus\"} 5"]);

    world.set_clock(NOW + 5_000 + LEASE_MS);
    let shipper = world.start(&config, build(&config).unwrap());
    world.until(|rows| rows.values().all(|row| row.state == Shipped)).await;
    shipper.shutdown().await;

    let stored: Vec<String> =
        broker.messages().await.iter().map(|it| it.headers.get("Nats-Msg-Id").unwrap().to_string()).collect();
    assert_eq!(stored, ids, "each once, in order");
    let wanted = [
        "wf_outbox_dedup_drops_total{topic=\"wf.instance.started\"} 2",
        "wf_outbox_shipped_total{sink=\"bus\"} 3",
        "wf_outbox_dead_total{sink=\"bus\"} 0",
        "wf_outbox_pending{sink=\"bus\"} 0",
        "wf_outbox_oldest_age_seconds{sink=\"bus\"} 0",
    ];
    holds(&metrics.render(), &wanted);
}

/// L5.2: a broker that dies and comes back costs nobody a message, and no message an attempt too many.
#[tokio::test]
async fn an_outage_loses_and_doubles_nothing() {
    let broker = Broker::start();
    let config = SinkConfig { stream: Some("EVENTS".to_owned()), ..SinkConfig::new("bus", Kind::Nats, &broker.url) };
    let world = World::new().await;
    let mut ids = world.write("bus", &[1, 2]).await;
    let shipper = world.start(&config, build(&config).unwrap());
    world.until(|rows| rows.values().all(|row| row.state == Shipped)).await;

    broker.fail().await;
    ids.extend(world.write("bus", &[1, 2, 1]).await);
    shipper.state_of("bus", |state| matches!(state, SinkState::Waiting { .. })).await;
    broker.mend().await;
    // What was tried while nobody knew yet that the broker was gone comes back later.
    world.set_clock(NOW + 600_000);
    world.until(|rows| rows.values().all(|row| row.state == Shipped)).await;
    shipper.shutdown().await;

    let mut stored: Vec<String> = broker.arrivals().await.into_iter().map(|arrival| arrival.event_id).collect();
    assert!(position(&stored, &ids[2]) < position(&stored, &ids[4]), "order of a key: {stored:?}");
    stored.sort();
    assert_eq!(stored, ids);
    assert!(world.rows().await.values().all(|row| row.attempts <= 2));
}

fn position(stored: &[String], id: &String) -> Option<usize> {
    stored.iter().position(|it| it == id)
}

fn holds(shown: &str, lines: &[&str]) {
    for wanted in lines {
        assert!(shown.lines().any(|line| line == *wanted), "{wanted} in\n{shown}");
    }
}
