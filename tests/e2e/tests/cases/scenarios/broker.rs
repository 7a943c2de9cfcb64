//! S9: between the broker's acknowledgement and the mark the process dies. Next: `operator.rs`.

use std::collections::BTreeSet;

use e2e::api::{Api, text};
use e2e::until;
use serde_json::json;

use crate::fresh_setup;

use super::{Shop, invoice, picked_up, start};
use e2e::stream::stream;

/// Twice in one order's life an event is shipped by a process that dies right behind the broker's acknowledgement. The next
/// process cannot know, and ships it again under the same id: the broker keeps one, a consumer sees one.
#[test]
fn s9_broker_acknowledges_and_the_shipper_dies_before_marking() {
    for point in ["after-ship", "before-mark"] {
        let shop = Shop::open(fresh_setup());
        let doomed = shop.setup.start_armed(point);
        // It may die before the answer is out: the key tells.
        let _ = start(&doomed.api, "O-1").send();
        doomed.dies();
        let shipped = stream(&shop.broker.url());
        assert_eq!(shipped.len(), 1, "{point}: the broker has it");
        let node = shop.node();
        let answer = start(&node.api, "O-1").answer().expect(201);
        assert!(answer.is_replay(), "{point}");
        let order = text(&answer.json()["key"]);
        assert_eq!(shop.published(&node.api), shipped, "{point}: the same once, though it came twice");
        dropped(&node.api, "wf.instance.started", point);
        node.kill();

        let doomed = shop.setup.start_armed(point);
        let job = doomed.api.job("charge-card", "till");
        shop.provider.charge(&text(&job["idempotencyKey"]), &job["variables"]).expect(200);
        let _ = doomed.api.complete(&job, "till", json!({})).send();
        doomed.dies();
        let node = shop.node();
        let again = node.api.complete(&job, "till", json!({})).answer().expect(200).json();
        assert_eq!(again["duplicate"], true, "{point}");
        assert_eq!(shop.published(&node.api).len(), 2, "{point}");
        dropped(&node.api, "wf.job.completed", point);

        picked_up(&node.api, "O-1").answer().expect(200);
        invoice(&node.api);
        shop.went_through_once(&node.api, &order);
        shop.charged_once_each(&["O-1"]);
        // Published if and only if it happened.
        let happened: BTreeSet<String> = node.api.audit().iter().map(|event| text(&event["eventId"])).collect();
        assert!(shop.published(&node.api).iter().all(|message| happened.contains(&message.id)), "{point}");
    }
}

/// The broker said that it had this already, and that is counted.
#[track_caller]
fn dropped(api: &Api, topic: &str, point: &str) {
    let name = format!("wf_outbox_dedup_drops_total{{topic=\"{topic}\"}}");
    let count = until("a count", || Some(api.metric(&name)).filter(|count| *count > 0.0));
    assert_eq!(count, 1.0, "{point}: {topic}");
}
