//! A message broker that forgets to answer, delivers twice, refuses for a while or for good, and its one consumer, who
//! writes down what came. The shipper before it is the real one. Next: `client.rs`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use wf_ship::{Later, ShipResult, Shipment, Sink, SinkError, SinkInfo};

use crate::node::{SINK, WINDOW_MS};
use crate::store::Pulse;
use crate::trace::lock;
use crate::world::World;

#[derive(Default)]
pub struct Broker(Mutex<Inbox>);

#[derive(Default)]
struct Inbox {
    /// By event id.
    messages: BTreeMap<String, Message>,
    arrivals: u64,
}

/// The first delivery under an id.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its place among all first deliveries.
    pub arrival: u64,
    pub order_key: u64,
    pub envelope: Vec<u8>,
    pub deliveries: u64,
}

impl Broker {
    /// Whether the id was used for something else before.
    fn deliver(&self, shipment: &Shipment) -> bool {
        let mut inbox = lock(&self.0);
        inbox.arrivals += 1;
        let arrival = inbox.arrivals;
        let first =
            || Message { arrival, order_key: shipment.order_key, envelope: shipment.envelope.to_vec(), deliveries: 0 };
        let message = inbox.messages.entry(shipment.event_id.to_string()).or_insert_with(first);
        message.deliveries += 1;
        message.envelope != *shipment.envelope || message.order_key != shipment.order_key
    }

    pub fn messages(&self) -> BTreeMap<String, Message> {
        lock(&self.0).messages.clone()
    }
}

/// A node's line to the broker.
pub struct BrokerSink {
    world: Arc<World>,
    pulse: Arc<Pulse>,
}

impl BrokerSink {
    pub fn new(world: Arc<World>, pulse: Arc<Pulse>) -> BrokerSink {
        BrokerSink { world, pulse }
    }

    async fn travel(&self) {
        self.world.sleep(self.world.between(1, 30)).await;
        if !self.pulse.is_alive() {
            std::future::pending().await
        }
    }

    async fn ship_one(&self, shipment: &Shipment) -> ShipResult {
        let retry = |error: &str| ShipResult::Retry { error: error.to_owned(), retry_after_ms: None };
        self.travel().await;
        if self.world.fault("broker refuses", 40) {
            return retry("try later");
        }
        if self.world.fault("broker refuses for good", 10) {
            return ShipResult::Refused { error: "never".to_owned() };
        }
        self.deliver(shipment);
        if self.world.fault("broker delivers twice", 60) {
            self.deliver(shipment);
        }
        if self.world.fault("node dies between ack and mark", 8) {
            self.pulse.stop();
        }
        self.travel().await;
        match self.world.fault("broker loses its ack", 60) {
            true => retry("no ack"),
            false => ShipResult::Shipped { duplicate: false },
        }
    }

    fn deliver(&self, shipment: &Shipment) {
        let is_other = self.world.broker.deliver(shipment);
        self.world.say("broker", format_args!("gets {} of {}", shipment.event_id, shipment.order_key));
        if is_other {
            self.world.violated("published-iff-committed", format!("{} came with other content", shipment.event_id));
        }
    }
}

impl Sink for BrokerSink {
    fn name(&self) -> &str {
        SINK
    }

    fn check(&self) -> Later<'_, Result<SinkInfo, SinkError>> {
        Box::pin(async {
            self.travel().await;
            match self.world.fault("broker is away", 50) {
                true => Err(SinkError::Unreachable("away".to_owned())),
                false => Ok(SinkInfo { window_ms: Some(WINDOW_MS) }),
            }
        })
    }

    /// Some get no answer at all: the shipper's own time runs out.
    fn ship<'a>(&'a self, batch: &'a [Shipment]) -> Later<'a, Vec<ShipResult>> {
        Box::pin(async move {
            let mut results = Vec::new();
            for shipment in batch {
                results.push(self.ship_one(shipment).await);
            }
            if self.world.fault("broker hangs", 10) {
                std::future::pending().await
            }
            results
        })
    }

    fn batch_max(&self) -> usize {
        8
    }
}
