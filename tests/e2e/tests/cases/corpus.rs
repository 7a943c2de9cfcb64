//! Real models through the API as users have it, timers by the test clock. One branch each: `wf-core` has all of them.

use e2e::api::{Api, text};
use e2e::models::file;
use e2e::node::Node;
use serde_json::{Value, json};

use crate::fresh_setup;

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

fn deployed(path: &str) -> Node {
    let node = fresh_setup().test_clock().start();
    let deployed = node.api.deploy(&file(&format!("tests/corpus/{path}"))).answer().expect(201).json();
    assert_eq!(deployed["definitions"][0]["version"], 1);
    node
}

fn work(api: &Api, job_type: &str, variables: Value) {
    let job = api.job(job_type, "w");
    api.complete(&job, "w", variables).answer().expect(200);
}

/// Active elements' ids, in the order of their names.
fn stands_at(api: &Api, instance: &str) -> Vec<String> {
    let shown = api.instance(instance);
    let elements = shown["activeElements"].as_array().expect("a list").iter();
    let mut ids: Vec<String> = elements.map(|element| text(&element["elementId"])).collect();
    ids.sort();
    ids
}

/// 02, with its two constant conditions the other way round: error boundary, receive task, and a week that passes.
#[test]
fn corpus_02_payment_that_fails_after_seven_days() {
    let node = fresh_setup().test_clock().start();
    let api = &node.api;
    let xml = file("tests/corpus/02-payment-error-timer-receive.bpmn");
    let xml = xml.replace("=false<", "=maybe<").replace("=true<", "=false<").replace("=maybe<", "=true<");
    api.deploy(&xml).answer().expect(201);
    let started =
        api.publish("RetrievePaymentCommand", "", "p-1", json!({"traceId": "t-1"})).answer().expect(200).json();
    let instance = text(&started["correlated"][0]["processInstanceKey"]);
    work(api, "noop", json!({}));
    assert_eq!(api.all("/api/v1/jobs?type=emitEvent").len(), 1);
    work(api, "emitEvent", json!({}));
    let charge = api.job("chargeCreditCard", "w");
    let thrown = json!({"worker": "w", "lease": charge["lease"], "errorCode": "Error_PaymentError"});
    let caught = api.about(&charge, "error", thrown).answer().expect(200).json();
    assert_eq!(caught["caughtBy"], "BoundaryEvent_0s43v6m", "{caught}");
    work(api, "noop", json!({}));
    api.advance(7 * DAY_MS - 1);
    assert_eq!(api.state(&instance), "ACTIVE");
    api.advance(1);
    assert_eq!(api.state(&instance), "COMPLETED");
}

#[test]
fn corpus_08_order_that_is_reminded_then_paid() {
    let node = deployed("08-order-eventgateway-parallel.bpmn");
    let api = &node.api;
    let instance = api.started("ordering-items-workflow", json!({"orderId": "O-1"}));
    work(api, "validate-order", json!({}));
    work(api, "send-payment-notification", json!({}));
    api.advance(5 * MINUTE_MS);
    work(api, "send-friendly-reminder", json!({}));
    assert_eq!(stands_at(api, &instance), ["Gateway_12peq2t"]);
    let paid = api.publish("payment-received", "O-1", "pay-1", json!({})).answer().expect(200).json();
    assert_eq!(paid["correlated"][0]["processInstanceKey"], instance.as_str());
    assert_eq!(stands_at(api, &instance), ["package-and-deliver", "update-accounting"]);
    work(api, "package-and-deliver", json!({}));
    assert_eq!(api.state(&instance), "ACTIVE");
    work(api, "send-bill", json!({}));
    assert_eq!(api.state(&instance), "COMPLETED");
    // The other timer is gone with its branch.
    api.advance(DAY_MS);
    assert_eq!(api.all("/api/v1/jobs?type=send-cancellation"), Vec::<Value>::new());
}

#[test]
fn corpus_11_message_that_interrupts_a_task() {
    let node = deployed("11-spec-message-boundary.bpmn");
    let api = &node.api;
    let instance = api.started("message-boundary-event", json!({"key": "key-1"}));
    let held = api.job("a", "w");
    api.publish("cancel", "key-1", "c-1", json!({"x": 1})).answer().expect(200);
    assert_eq!(stands_at(api, &instance), ["Activity_1q4n0ea"]);
    assert_eq!(api.instance(&instance)["variables"], json!({"key": "key-1", "x": 1}));
    let late = api.complete(&held, "w", json!({})).answer().expect_problem(409, "job-lease-lost");
    assert_eq!(late["reason"], "finished", "{late}");
    work(api, "c", json!({}));
    assert_eq!(api.state(&instance), "COMPLETED");
}

#[test]
fn corpus_12_gateway_that_takes_its_default() {
    let node = deployed("12-spec-exclusive-gateway.bpmn");
    let api = &node.api;
    let instance = api.started("exclusive-gateway", json!({}));
    work(api, "a", json!({"x": 3}));
    assert_eq!(stands_at(api, &instance), ["Activity_1iq4mqw"]);
    work(api, "c", json!({}));
    assert_eq!(api.state(&instance), "COMPLETED");
}

/// Refused as a whole, with element, line and reason for everything that is not executed.
#[test]
fn corpus_what_is_not_executed_is_refused_at_deployment() {
    let node = fresh_setup().start();
    let problem = node.api.deploy(&file("tests/corpus/09-inclusive-gateway.bpmn")).answer();
    let problem = problem.expect_problem(422, "definition-invalid");
    let error = &problem["errors"][0];
    assert!(!text(&error["elementId"]).is_empty() && error["line"].as_u64() > Some(1), "{problem}");
    assert!(text(&error["message"]).contains("nclusive"), "{problem}");
    assert_eq!(node.api.all("/api/v1/definitions"), Vec::<Value>::new());
}
