//! Clients: each has an order, sends its requests until it knows what became of them, and now and then once more, twice at
//! once, with another body, or long after. Next: `worker.rs`.

use std::sync::Arc;

use serde_json::{Value, json};
use wf_core::{Key, Row};

use crate::checks::history::History;
use crate::door::{Call, Heard, Reply, Route, ask};
use crate::facts;
use crate::models::LOOP_ROUNDS;
use crate::world::World;

/// What is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    /// One live instance per cart.
    Unique,
    /// Without a key: the client must know what an answer promises.
    Unkeyed,
    Both,
    Wait,
    Late,
    Risky,
    /// Started by a message.
    Begun,
    Loop,
}

const KINDS: [Kind; 9] = [
    Kind::Plain,
    Kind::Unique,
    Kind::Unkeyed,
    Kind::Unkeyed,
    Kind::Both,
    Kind::Wait,
    Kind::Late,
    Kind::Risky,
    Kind::Begun,
];

/// One client from its order to its end; after a restore it sends everything again.
pub async fn order(world: Arc<World>, number: u64) {
    let kind = if number == 0 && world.plan.has_loop { Kind::Loop } else { world.one_of(&KINDS) };
    // In bursts, so that a turn has many commands.
    world.sleep(world.below(5) * world.plan.storm_ms / 7 + world.below(40)).await;
    loop {
        let history = world.history();
        tokio::select! {
            biased;
            () = world.restored(history) => continue,
            () = run(&world, kind, number) => (),
        }
        if !world.plan.has_restore || history > 0 {
            return;
        }
        world.restored(history).await;
        world.sleep(world.below(3_000)).await;
    }
}

async fn run(world: &Arc<World>, kind: Kind, number: u64) {
    let order = format!("o{number}");
    match kind {
        Kind::Unkeyed => return start_unkeyed(world, &order).await,
        Kind::Begun => return begin(world, &order).await,
        _ => (),
    }
    let Some(instance) = start(world, kind, number, &order).await else { return };
    if kind == Kind::Wait {
        write_variables(world, &order, instance).await;
        pay(world, &order).await;
    }
    if world.chance(100) {
        let call = keyed(&order, "cancel", Route::Cancel(instance), json!({}));
        pursue(world, &format!("cancel {order}"), call).await;
    }
}

fn keyed(order: &str, what: &str, route: Route, body: Value) -> Call {
    let key = match &route {
        // What is said about an instance belongs to that instance.
        Route::Cancel(instance) | Route::SetVariables(instance) => format!("{order}-{what}-{instance}"),
        _ => format!("{order}-{what}"),
    };
    Call { actor: format!("client-{order}"), route, body: body.to_string(), key: Some(key) }
}

async fn start(world: &Arc<World>, kind: Kind, number: u64, order: &str) -> Option<Key> {
    let body = match kind {
        Kind::Unique => json!({"processDefinitionId": "order", "uniquenessKey": "cart",
            "variables": {"order": order, "cart": format!("c{}", number % 2)}}),
        Kind::Loop => {
            json!({"processDefinitionId": "loop", "variables": {"order": order, "n": 0, "rounds": LOOP_ROUNDS}})
        }
        Kind::Both => json!({"processDefinitionId": "both", "variables": {"order": order, "last": "start"}}),
        Kind::Wait => json!({"processDefinitionId": "wait", "variables": {"order": order}}),
        Kind::Late => json!({"processDefinitionId": "late", "variables": {"order": order}}),
        Kind::Risky => json!({"processDefinitionId": "risky", "variables": {"order": order}}),
        _ => json!({"processDefinitionId": "order", "variables": {"order": order}}),
    };
    let reply = pursue(world, &format!("start {order}"), keyed(order, "start", Route::Start, body)).await?;
    key_in(&reply)
}

fn key_in(reply: &Reply) -> Option<Key> {
    let body: Value = serde_json::from_str(&reply.body).ok()?;
    body["key"].as_str()?.parse().ok()
}

/// Two writers at once, each with names of its own and one that both write.
async fn write_variables(world: &Arc<World>, order: &str, instance: Key) {
    let write = async |writer: &'static str| {
        for n in 0..world.between(1, 3) {
            let body = json!({"variables": {format!("{writer}{n}"): n, "shared": format!("{writer}{n}")}});
            let call = keyed(order, &format!("{writer}{n}"), Route::SetVariables(instance), body);
            pursue(world, &format!("set {writer}{n} of {order}"), call).await;
        }
    };
    tokio::join!(biased; write("x"), write("y"));
}

/// By message id, by key, or both.
async fn pay(world: &Arc<World>, order: &str) {
    let body = json!({"name": "paid", "correlationKey": order, "messageId": format!("paid-{order}"),
        "ttlMs": 86_400_000, "variables": {"paid": true}});
    let mut call = keyed(order, "pay", Route::Publish, body);
    call.key = call.key.filter(|_| world.chance(500));
    pursue(world, &format!("pay {order}"), call).await;
}

/// A start that was repeated after its key's time, or in another history, made a second instance: its order was paid under
/// a message id that is known, so it waits for a payment of its own.
pub async fn pay_for_twins(world: &Arc<World>) {
    let waiting: Vec<_> = world.store().rows().into_iter().filter_map(waits_for_payment).collect();
    if waiting.is_empty() {
        return;
    }
    let history = History::of(&world.store()).await;
    for (instance, order) in waiting {
        let starts = history.of_kind("instance.started");
        if starts.filter(|event| event.payload["variables"]["order"] == *order).count() > 1 {
            let body = json!({"name": "paid", "correlationKey": order, "messageId": format!("again-{instance}"),
                "variables": {"paid": true}});
            pursue(
                world,
                &format!("pay {order} again"),
                keyed(&order, &format!("pay-{instance}"), Route::Publish, body),
            )
            .await;
        }
    }
}

fn waits_for_payment(row: Row) -> Option<(Key, String)> {
    match row {
        Row::Subscription(row) if &*row.message == "paid" => Some((row.root, row.correlation_key.to_string())),
        _ => None,
    }
}

async fn begin(world: &Arc<World>, order: &str) {
    let body = json!({"name": "begin", "correlationKey": order, "messageId": format!("begin-{order}"),
        "variables": {"order": order}});
    let mut call = keyed(order, "begin", Route::Publish, body);
    call.key = call.key.filter(|_| world.chance(300));
    for _ in 0..world.between(1, 3) {
        pursue(world, &format!("begin {order}"), call.clone()).await;
        world.sleep(world.below(4_000)).await;
    }
}

/// Repeats only what is promised to have had no effect, and gives up when in doubt.
async fn start_unkeyed(world: &Arc<World>, order: &str) {
    let body = json!({"processDefinitionId": "order", "variables": {"order": format!("{order}-{}", world.history())}});
    let mut call = keyed(order, "unkeyed", Route::Start, body);
    call.key = None;
    let id = world.begin_errand(&format!("start unkeyed {order}"), &call);
    loop {
        let heard = ask(world, &call, world.between(300, 4_000)).await;
        note(world, id, &heard);
        match heard {
            Heard::NoConnection => (),
            Heard::Answer(reply) if reply.denies_effect() => (),
            Heard::Nothing | Heard::Answer(_) => return,
        }
        world.sleep(world.between(50, 500)).await;
    }
}

/// Until there is an answer that means it; `None` where that is a refusal, or the world has ended.
pub async fn pursue(world: &Arc<World>, name: &str, call: Call) -> Option<Reply> {
    let id = world.begin_errand(name, &call);
    let reply = insist(world, id, &call).await?;
    if call.key.is_some() && reply.is_done() {
        come_back(world, id, &call).await;
    }
    reply.is_done().then_some(reply)
}

async fn insist(world: &Arc<World>, id: usize, call: &Call) -> Option<Reply> {
    while !world.is_over() {
        let definite = match world.chance(120) {
            true => twice_at_once(world, id, call).await,
            false => attempt(world, id, call).await,
        };
        if definite.is_some() {
            return definite;
        }
        world.sleep(world.between(20, 1_000)).await;
    }
    None
}

async fn attempt(world: &Arc<World>, id: usize, call: &Call) -> Option<Reply> {
    let heard = ask(world, call, world.between(30, 3_000)).await;
    note(world, id, &heard);
    match heard {
        Heard::Answer(reply) if !reply.is_passing() => Some(reply),
        _ => None,
    }
}

/// An impatient finger.
async fn twice_at_once(world: &Arc<World>, id: usize, call: &Call) -> Option<Reply> {
    world.count("double click");
    let (one, other) = tokio::join!(biased; attempt(world, id, call), attempt(world, id, call));
    one.or(other)
}

/// It has its answer, and asks again all the same.
async fn come_back(world: &Arc<World>, id: usize, call: &Call) {
    if world.chance(300) {
        world.count("repeat");
        world.sleep(world.below(3_000)).await;
        insist(world, id, call).await;
    }
    if world.chance(200) {
        misuse(world, id, call).await;
    }
    if world.plan.ttl_ms <= 60_000 && world.chance(150) {
        world.count("repeat after the TTL");
        world.sleep(world.plan.ttl_ms.unsigned_abs() + world.below(10_000)).await;
        insist(world, id, call).await;
    }
}

/// The same key with another body. Executed, it would be refused: it names a process that does not exist.
async fn misuse(world: &Arc<World>, id: usize, call: &Call) {
    world.count("wrong body");
    let body = json!({"processDefinitionId": "nowhere", "variables": {"order": "misuse"}}).to_string();
    let wrong = Call { route: Route::Start, body, ..call.clone() };
    for _ in 0..10 {
        let heard = ask(world, &wrong, 2_000).await;
        if let Heard::Answer(reply) = heard
            && !reply.is_passing()
        {
            let heard = heard_now(world, reply);
            world.facts().errands[id].misuses.push(heard);
            return;
        }
        world.sleep(100).await;
    }
}

fn heard_now(world: &World, reply: Reply) -> facts::Heard {
    facts::Heard { reply, clock_max: world.clock_max(), history: world.history() }
}

fn note(world: &World, id: usize, heard: &Heard) {
    let passing = |reply: &Reply| reply.is_passing();
    let mut facts = world.facts();
    if matches!(heard, Heard::Answer(reply) if reply.status == 500) {
        facts.internal_errors += 1;
    }
    let errand = &mut facts.errands[id];
    errand.may_have_run += match heard {
        Heard::NoConnection => 0,
        Heard::Answer(reply) if reply.denies_effect() || (400..500).contains(&reply.status) => 0,
        Heard::Nothing | Heard::Answer(_) => 1,
    };
    if let Heard::Answer(reply) = heard
        && !passing(reply)
    {
        let heard = heard_now(world, reply.clone());
        errand.answers.push(heard);
    }
}
