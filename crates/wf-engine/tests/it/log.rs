//! L5.1, L6.1: messages and audit stand and fall with the state; `World::end` compares them row by row.

use crate::common::*;
use serde_json::{Value, json};
use wf_store::{OutboxQuery, Slice, Store};

#[tokio::test]
async fn l5_1_events_are_cloud_events_frozen_in_the_turn() {
    let world = World::new().await;
    let key = world.start("order").await;
    world.ok(cancel(key)).await;
    let slice = Slice { after: None, limit: 10 };
    let query = OutboxQuery { tenant: "acme".into(), state: None, id: None, slice };
    let rows = world.stage.outbox(query).await.unwrap().items;
    let position = world.stage.inner.log()[2].position;
    let first = &rows[0].entry;
    assert_eq!((&*first.topic, first.order_key, first.created_at), ("wf.instance.started", key, START));
    let envelope: Value = serde_json::from_slice(&first.envelope).unwrap();
    assert_eq!(
        envelope,
        json!({
            "specversion": "1.0", "id": format!("ev-1-{position}"), "source": "onceflow",
            "type": "wf.instance.started", "subject": key.to_string(), "time": "2027-01-15T08:00:00.000Z",
            "tenantid": "acme", "datacontenttype": "application/json",
            "data": {"processDefinitionId": "order", "version": 1, "variables": {"id": 1}},
        })
    );
    assert_eq!(&*first.event_id, format!("ev-1-{position}"));
    assert_eq!(&*rows[1].entry.topic, "wf.instance.canceled");
    world.end().await;
}

/// L6.1: every executed command has its audit row, every refused one has none.
#[tokio::test]
async fn l6_1_the_audit_has_no_gap_and_no_extra() {
    let world = World::new().await;
    let paid = world.start("paid").await;
    world.start("late").await;
    let _ = world.ask(start("ghost")).await;
    world.ok(publish("nobody", "1", None, 0)).await;
    world.ok(publish("paid", "1", Some("m"), 60_000)).await;
    world.ok(set_variable(paid, "x", "1")).await;
    world.ok(set_variable(paid, "x", "1")).await;
    let held = world.activate("c").await[0];
    let _ = world.ask(complete((held.0, held.1 + 9))).await;
    world.advance(60_000).await;
    let held = world.activate("c").await[0];
    world.ok(complete(held)).await;
    let left = world.end().await;
    let verbs: Vec<&str> = left.log.iter().map(|(_, verb)| *verb).collect();
    expect_test::expect![[r#"
        [
            "open-epoch",
            "deploy",
            "start-instance",
            "start-instance",
            "publish-message",
            "publish-message",
            "set-variables",
            "set-variables",
            "activate-jobs",
            "set-clock",
            "fire-timer",
            "expire-lease",
            "expire-message",
            "activate-jobs",
            "complete-job",
        ]
    "#]]
    .assert_debug_eq(&verbs);
}

#[tokio::test]
async fn s5_keys_and_positions_never_repeat_over_restarts() {
    let mut world = World::new().await;
    let mut keys = Vec::new();
    for _ in 0..4 {
        keys.push(world.start("order").await);
        world = world.restart().await;
    }
    assert!(keys.is_sorted_by(|a, b| a < b));
    world.advance(5_000).await;
    // Time has passed: the new epoch jumps ahead of whatever a lost history may have given.
    let before = world.start("order").await;
    let world = world.restart().await;
    assert!(world.start("order").await > before + (4_000 * wf_core::ids::EPOCH_IDS_PER_MS));
    let left = world.end().await;
    assert_eq!(left.count("epoch.opened"), 6);
}
