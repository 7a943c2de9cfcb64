//! S1-S9: what goes wrong sooner or later, each told as a story on the real binary: a shop, its payment provider, its
//! broker; what goes wrong; and what everybody sees afterwards. Read `clients.rs`, `workers.rs`, `broker.rs`,
//! `operator.rs`, `restore.rs`. Each requirement by itself, with its corners, has tests in the other files.

mod clients;
mod workers;
mod broker;
mod operator;
pub mod restore;

use std::collections::BTreeMap;

use e2e::api::{Api, text};
use e2e::models::order;
use e2e::nats::Nats;
use e2e::node::{Node, Setup};
use e2e::provider::Provider;
use serde_json::{Value, json};

use e2e::stream::{Message, all_shipped, kinds_of, sink, stream};

/// Orders run `samples/order.bpmn`: charge the card, wait until the parcel is picked up, send the invoice. All that
/// happens is published.
pub struct Shop {
    setup: Setup,
    broker: Nats,
    provider: Provider,
}

/// What the broker has of an order that went through, in this order.
const WHOLE_ORDER: [&str; 4] = ["wf.instance.started", "wf.job.completed", "wf.job.completed", "wf.instance.completed"];

impl Shop {
    /// Deployed, and no node runs yet.
    pub fn open(setup: Setup) -> Shop {
        let broker = Nats::start();
        let setup = setup.config(&sink(&broker.url(), r#"["*"]"#));
        let node = setup.start();
        node.api.deploy(&order()).answer().expect(201);
        assert!(node.stop().success());
        Shop { setup, broker, provider: Provider::start() }
    }

    fn node(&self) -> Node {
        self.setup.start()
    }

    /// What a worker's command wrote into the shop's folder.
    #[track_caller]
    fn file(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.setup.folder.path().join(name)).expect(name);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {name}: {text}"))
    }

    /// A worker's round for the one order that waits: charge under this key of the job, and complete.
    #[track_caller]
    fn charge(&self, api: &Api, worker: &str, key: &str) {
        let job = api.job("charge-card", worker);
        let charge = self.provider.charge(&text(&job[key]), &job["variables"]).expect(200).json();
        api.complete(&job, worker, charge).answer().expect(200);
    }

    /// All that the broker has, once nothing is on the way.
    fn published(&self, api: &Api) -> Vec<Message> {
        all_shipped(api);
        let messages = stream(&self.broker.url());
        let ids: BTreeMap<&String, &Message> = messages.iter().map(|message| (&message.id, message)).collect();
        assert_eq!(ids.len(), messages.len(), "an id stands twice: {messages:?}");
        messages
    }

    /// Each effect of an order that went through, once, wherever one looks.
    #[track_caller]
    fn went_through_once(&self, api: &Api, order: &str) {
        let instance = api.instance(order);
        assert_eq!(instance["state"], "COMPLETED", "{instance}");
        let events = api.all(&format!("/api/v1/audit?instance={order}"));
        let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
        let counts = ["instance.started", "job.completed", "message.correlated", "instance.completed"].map(count);
        assert_eq!(counts, [1, 2, 1, 1], "{events:?}");
        assert_eq!(kinds_of(&self.published(api), order), WHOLE_ORDER);
    }

    /// One charge per order, under whatever keys.
    #[track_caller]
    fn charged_once_each(&self, orders: &[&str]) {
        let mut charged: Vec<String> = self.provider.charged().iter().map(|what| text(&what["orderId"])).collect();
        charged.sort();
        assert_eq!(charged, orders);
        assert!(self.provider.charges().values().all(|times| *times == 1));
    }
}

fn variables(order_id: &str) -> Value {
    json!({"orderId": order_id, "total": 99.90})
}

pub fn start(api: &Api, order_id: &str) -> e2e::api::Call {
    api.start("order", variables(order_id)).key(&format!("order-{order_id}"))
}

/// What the carrier tells; its id is the carrier's.
fn picked_up(api: &Api, order_id: &str) -> e2e::api::Call {
    api.publish("parcel-picked-up", order_id, &format!("carrier-{order_id}"), json!({}))
}

/// The last worker of an order.
#[track_caller]
fn invoice(api: &Api) {
    let job = api.job("send-invoice", "accounting");
    api.complete(&job, "accounting", json!({"invoiceNumber": "I-1"})).answer().expect(200);
}
