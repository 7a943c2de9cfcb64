//! S1, S2, S4: whoever stands outside of the door sends again. Next: `workers.rs`.

use std::collections::BTreeSet;

use e2e::api::{Api, Call, jobs_of, text};
use e2e::http::Answer;
use e2e::node::run;
use e2e::proxy::Proxy;
use serde_json::json;

use crate::fresh_setup;

use super::{Shop, invoice, picked_up, start, variables};
use e2e::stream::kinds_of;

/// A line between shop and engine loses every answer that matters. Each was given, so each effect stands; the shop cannot
/// know, and sends the same again.
#[test]
fn s1_response_lost_client_retries() {
    let shop = Shop::open(fresh_setup());
    let node = shop.node();
    let line = Proxy::to(&node.api.address);
    let far = Api::at(&line.url());

    // The command line has a client that repeats by itself: its user sees nothing of it.
    line.lose(1);
    let words = ["start", "order", "--key", "order-O-1", "--var", "orderId=O-1", "--var", "total=99.90"];
    let told = run(node.wf(&words).args(["--output", "json"]).env("WF_SERVER", line.url())).expect(0).json();
    let order = text(&told["key"]);
    assert_eq!(line.lost(), 1);
    // Whoever asks under that key gets the answer that was lost, byte for byte.
    let (first, again) = (start(&node.api, "O-1").answer(), start(&node.api, "O-1").answer());
    assert!(first.is_replay() && again.is_replay() && text(&first.json()["key"]) == order, "{}", first.text());
    assert_eq!((first.status, &first.body), (again.status, &again.body));

    // A lost activation under a key leaves no job leased to nobody.
    let jobs = jobs_of(&insist(&line, &far.activate("charge-card", "till", 1).key("poll-1")).expect(200));
    assert_eq!(jobs.len(), 1);
    let charge = shop.provider.charge(&text(&jobs[0]["idempotencyKey"]), &jobs[0]["variables"]).expect(200).json();
    // Completions and messages need none: who holds the job, and the message's id, tell.
    let completed = insist(&line, &far.complete(&jobs[0], "till", charge)).expect(200).json();
    assert_eq!(completed, json!({"state": "COMPLETED", "duplicate": true}));
    let message = insist(&line, &picked_up(&far, "O-1")).expect(200).json();
    assert_eq!((&message["duplicate"], &message["correlated"]), (&json!(true), &json!([])));
    invoice(&node.api);

    assert_eq!(line.lost(), 4);
    assert_eq!(node.api.all("/api/v1/instances").len(), 1);
    shop.went_through_once(&node.api, &order);
    shop.charged_once_each(&["O-1"]);
    assert_eq!(shop.provider.calls(), 1);
    let hits = |path: &str| node.api.metric(&format!("wf_api_idempotency_hits_total{{path=\"{path}\"}}"));
    assert_eq!((hits("/api/v1/instances"), hits("/api/v1/jobs/activate")), (3.0, 1.0));
    assert_eq!(node.api.metric("wf_api_idempotency_conflicts_total"), 0.0);
}

/// The answer gets lost; the same goes out again.
#[track_caller]
fn insist(line: &Proxy, call: &Call) -> Answer {
    line.lose(1);
    let lost = call.send();
    assert!(lost.is_err(), "an answer got through: {lost:?}");
    call.answer()
}

const MINUTE_MS: u64 = 60_000;
/// When a carrier that hears no 2xx sends its webhook again, in minutes after the first time.
const SENT_AGAIN: [u64; 9] = [1, 5, 30, 2 * 60, 5 * 60, 10 * 60, 15 * 60, 20 * 60, 24 * 60 - 1];
const LATER: u64 = 25 * 60;

/// The shop's adapter passes a carrier's webhook on under the carrier's id, and its own answer never gets back: the carrier
/// sends for hours. For as long as ids are remembered the message is received once, also over a crash, and also when
/// another order waits for the same thing by now.
#[test]
fn s2_provider_resends_a_webhook_for_hours() {
    let shop = Shop::open(fresh_setup().test_clock());
    let (order, waiting) = sent_for_a_day(&shop);
    let node = shop.node();
    // After `messages.dedup_ms` (24 h unless said otherwise) an id is new, as docs/idempotency.md says.
    node.api.advance((LATER - SENT_AGAIN[8]) * MINUTE_MS);
    let late = picked_up(&node.api, "O-1").answer().expect(200).json();
    assert_eq!((&late["duplicate"], &late["correlated"]), (&json!(false), &json!([{"processInstanceKey": waiting}])));
    shop.went_through_once(&node.api, &order);
}

/// The same carrier, and a configuration that remembers ids for longer than anybody sends again.
#[test]
fn s2_an_id_that_is_remembered_for_a_week_outlasts_its_sender() {
    let shop = Shop::open(fresh_setup().test_clock().config("[messages]\ndedup_ms = 604800000"));
    let (order, waiting) = sent_for_a_day(&shop);
    let node = shop.node();
    for _day in 0..5 {
        node.api.advance(LATER * MINUTE_MS);
        assert_eq!(picked_up(&node.api, "O-1").answer().expect(200).json()["duplicate"], true);
    }
    shop.went_through_once(&node.api, &order);
    assert_eq!(node.api.state(&waiting), "ACTIVE");
    let published = shop.published(&node.api);
    assert_eq!(kinds_of(&published, &waiting), ["wf.instance.started", "wf.job.completed"]);
}

/// The order that the message is for, and another one that waits for such a message at the end.
fn sent_for_a_day(shop: &Shop) -> (String, String) {
    let node = shop.node();
    let key = |answer: Answer| text(&answer.expect(201).json()["key"]);
    let order = key(start(&node.api, "O-1").answer());
    shop.charge(&node.api, "till", "idempotencyKey");
    let first = picked_up(&node.api, "O-1").answer().expect(200).json();
    assert_eq!(first["correlated"], json!([{"processInstanceKey": order}]));
    invoice(&node.api);
    // The customer sends it back and orders again under the same number: this one's parcel was not picked up.
    let waiting = key(node.api.start("order", variables("O-1")).answer());
    shop.charge(&node.api, "till", "idempotencyKey");
    node.kill();
    let mut minutes = 0;
    for sent_at in SENT_AGAIN {
        let node = shop.node();
        node.api.advance((sent_at - minutes) * MINUTE_MS);
        minutes = sent_at;
        let again = picked_up(&node.api, "O-1").answer().expect(200).json();
        assert_eq!((&again["duplicate"], &again["correlated"]), (&json!(true), &json!([])), "after {sent_at} min");
        assert_eq!(again["key"], first["key"]);
        node.kill();
    }
    let node = shop.node();
    assert_eq!((node.api.state(&order).as_str(), node.api.state(&waiting).as_str()), ("COMPLETED", "ACTIVE"));
    assert_eq!((node.api.events("message.published"), node.api.events("message.correlated")), (1, 1));
    (order, waiting)
}

const CLICKS: usize = 20;

/// A button without a brake, three ways a shop may be written.
#[test]
fn s4_double_click() {
    let shop = Shop::open(fresh_setup());
    let node = shop.node();
    let api = &node.api;

    // The page made the key with the form: twenty clicks are one request.
    let answers = at_once(|_| start(api, "O-1"));
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.body == answers[0].body), "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);

    // Two pages with one key and different carts: one wins, whoever asked for something else is told so.
    let total = |click: usize| json!({"orderId": "O-2", "total": click % 2});
    let answers = at_once(|click| api.start("order", total(click)).key("order-O-2"));
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 201);
    assert_eq!((won.len(), lost.len()), (CLICKS / 2, CLICKS / 2));
    assert!(won.iter().all(|answer| answer.body == won[0].body));
    lost.into_iter().for_each(|answer| drop(answer.expect_problem(409, "idempotency-conflict")));

    // Each click makes a key of its own, or none, so the order's number must tell.
    let unique = json!({"processDefinitionId": "order", "variables": variables("O-3"), "uniquenessKey": "orderId"});
    let answers = at_once(|click| match api.post("/api/v1/instances", unique.clone()) {
        call if click % 2 == 0 => call.key(&format!("click-{click}")),
        call => call,
    });
    let keys: BTreeSet<String> = answers.iter().map(|answer| text(&answer.json()["key"])).collect();
    let new = answers.iter().filter(|answer| answer.status == 201 && answer.json()["existing"] == false).count();
    assert_eq!((keys.len(), new), (1, 1), "{answers:?}");

    // Three orders, and each goes through once.
    let orders = api.all("/api/v1/instances");
    assert_eq!(orders.len(), 3);
    for job in api.activated("charge-card", "till", 100) {
        shop.provider.charge(&text(&job["idempotencyKey"]), &job["variables"]).expect(200);
        api.complete(&job, "till", json!({})).answer().expect(200);
    }
    for order_id in ["O-1", "O-2", "O-3"] {
        let clicks = at_once(|_| picked_up(api, order_id));
        let first: Vec<&Answer> = clicks.iter().filter(|answer| answer.json()["duplicate"] == false).collect();
        assert_eq!(first.len(), 1, "{clicks:?}");
        invoice(api);
    }
    orders.iter().for_each(|order| shop.went_through_once(api, &text(&order["key"])));
    shop.charged_once_each(&["O-1", "O-2", "O-3"]);
    assert_eq!(api.metric("wf_api_idempotency_conflicts_total"), (CLICKS / 2) as f64);
}

/// All clicks of one impatient finger.
fn at_once(click: impl Fn(usize) -> Call + Sync) -> Vec<Answer> {
    std::thread::scope(|scope| {
        let clicks: Vec<Call> = (0..CLICKS).map(&click).collect();
        let threads: Vec<_> = clicks.into_iter().map(|click| scope.spawn(move || click.answer())).collect();
        threads.into_iter().map(|thread| thread.join().expect("an answer")).collect()
    })
}
