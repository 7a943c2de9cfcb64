//! An operator who resolves incidents and ships dead letters again, and the weather: clocks that jump.
//! Next: `restore.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use wf_store::{IncidentQuery, OutboxId, OutboxQuery, OutboxState, Slice, Store};

use crate::client::pursue;
use crate::door::{Call, Route};
use crate::world::{TENANT, World};

pub async fn operate(world: Arc<World>) {
    let mut shipped_again: BTreeMap<OutboxId, u32> = BTreeMap::new();
    while !world.is_over() {
        world.sleep(world.between(1_000, 4_000)).await;
        resolve_incidents(&world).await;
        ship_again(&world, &mut shipped_again).await;
    }
}

fn call(route: Route, body: serde_json::Value, key: String) -> Call {
    Call { actor: "operator".to_owned(), route, body: body.to_string(), key: Some(key) }
}

fn all() -> Slice {
    Slice { after: None, limit: 1_000 }
}

async fn resolve_incidents(world: &Arc<World>) {
    let query = IncidentQuery { tenant: TENANT.into(), instance: None, slice: all() };
    let Ok(page) = world.store().incidents(query).await else { return };
    for incident in page.items {
        world.count("incident resolved");
        let key = format!("resolve-{}-{}", incident.key, world.history());
        pursue(world, &format!("resolve {}", incident.key), call(Route::Resolve(incident.key), json!({}), key)).await;
    }
}

/// The consumer knows every id for ever, so force is right.
async fn ship_again(world: &Arc<World>, tries: &mut BTreeMap<OutboxId, u32>) {
    let query = OutboxQuery { tenant: TENANT.into(), state: Some(OutboxState::Dead), id: None, slice: all() };
    let Ok(page) = world.store().outbox(query).await else { return };
    for row in page.items {
        world.count("dead letter shipped again");
        let id = row.entry.id;
        let count = tries.entry(id.clone()).or_default();
        *count += 1;
        let key = format!("ship-{}-{count}-{}", wf_api::outbox::id_text(&id), world.history());
        let what = format!("ship {} again", row.entry.event_id);
        pursue(world, &what, call(Route::RetryOutbox(id), json!({"force": true}), key)).await;
    }
}

/// Clocks jump, to and fro; a node's command time never does.
pub async fn weather(world: Arc<World>) {
    const JUMPS_MS: [i64; 8] = [300, 2_000, 30_000, 300_000, -300, -2_000, -30_000, -300_000];
    loop {
        world.sleep(world.between(2_000, 12_000)).await;
        if !world.is_storm() || world.history() > 0 {
            return;
        }
        let node = &world.nodes[world.below(world.nodes.len() as u64) as usize];
        let jump = world.one_of(&JUMPS_MS);
        world.count(if jump > 0 { "clock jumps ahead" } else { "clock jumps back" });
        world.say(node.name, format_args!("clock jumps by {jump} ms"));
        world.set_offset(node, node.offset() + jump);
    }
}
