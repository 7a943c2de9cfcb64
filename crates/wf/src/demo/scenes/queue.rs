//! Layer 2: the engine is killed, once in the middle of a burst and once exactly between commit and answer. What was answered stands; what was not is repeated by the
//! clients under the same keys; nothing is applied twice.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use wf_client::Client;

use crate::demo::ledger::{Ledger, Line};
use crate::demo::scenes::CRASH;
use crate::demo::stage::{Stage, order};
use crate::output::{Done, Failure};

const LAYER: &str = "2 command queue";
const BURST: usize = 60;
const SILENT: &str = "silent";
/// Answers after which the engine is killed.
const BEFORE_THE_KILL: usize = 15;

pub async fn play(stage: &mut Stage, ledger: &mut Ledger) -> Done {
    ledger.add(answer_lost(stage).await?);
    let (answered, replayed) = burst_with_a_kill(stage).await?;
    ledger.add(
        Line::new(LAYER, format!("{BURST} starts, kill -9 after {BEFORE_THE_KILL} answers, restart"))
            .check("orders answered", BURST, answered.len())
            .check("orders with one instance", BURST, orders_with_one_instance(stage).await?)
            .happened(format!("{} instances", answered.len()))
            .suppressed(format!("{replayed} answers lost in the crash, replayed")),
    );
    let (same, replays) = all_again(stage, &answered).await?;
    ledger.add(
        Line::new(LAYER, format!("all {BURST} once more, after the restart"))
            .check("same instance as before the crash", BURST, same)
            .check("replays", BURST, replays)
            .check("orders with one instance", BURST, orders_with_one_instance(stage).await?)
            .happened("nothing")
            .suppressed(format!("{replays} repeats")),
    );
    Ok(())
}

/// The effect is durable, its answer is lost: the client cannot know, and repeats.
async fn answer_lost(stage: &mut Stage) -> Result<Line, Failure> {
    stage.kill_engine().await;
    // The first commit of a start is the engine's own: it opens the epoch.
    stage.start_engine(&[("WF_FAILPOINT", "before-answer:2")]).await?;
    let client = stage.client.clone();
    let repeats = tokio::spawn(async move { client.start(&order(SILENT, 10)).key("start-silent").send().await });
    stage.engine_dies().await?;
    stage.start_engine(&[]).await?;
    let reply = repeats.await.map_err(Failure::work)??;
    let instances = stage.instances(Some(("orderId", SILENT))).await?.len();
    Ok(Line::new(LAYER, "a start; the engine dies after its commit, before its answer")
        .check("instances", 1, instances)
        .check("the repeat is a replay", true, reply.replayed)
        .happened(format!("{instances} instance"))
        .suppressed("1 repeat by the client, replayed from the store"))
}

/// Order → instance, and how many answers were replays: commands whose answer died with the engine.
async fn burst_with_a_kill(stage: &mut Stage) -> Result<(BTreeMap<String, String>, usize), Failure> {
    let (heard, mut hears) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    for index in 0..BURST {
        tasks.spawn(start(stage.client.clone(), index, heard.clone()));
    }
    for _ in 0..BEFORE_THE_KILL {
        hears.recv().await;
    }
    stage.kill_engine().await;
    stage.start_engine(&[]).await?;
    let (mut answered, mut replayed) = (BTreeMap::new(), 0);
    while let Some(ended) = tasks.join_next().await {
        let (order, instance, was_replayed) = ended.map_err(Failure::work)??;
        answered.insert(order, instance);
        replayed += usize::from(was_replayed);
    }
    Ok((answered, replayed))
}

/// The client repeats by itself until somebody answers.
async fn start(
    client: Client,
    index: usize,
    heard: mpsc::UnboundedSender<()>,
) -> Result<(String, String, bool), Failure> {
    let id = format!("{CRASH}{index}");
    let reply = client.start(&order(&id, 10)).key(format!("start-{id}")).send().await?;
    // Nobody listens any more after the kill.
    let _ = heard.send(());
    Ok((id, reply.value.key, reply.replayed))
}

async fn all_again(stage: &Stage, answered: &BTreeMap<String, String>) -> Result<(usize, usize), Failure> {
    let (mut same, mut replays) = (0, 0);
    for (id, instance) in answered {
        let reply = stage.client.start(&order(id, 10)).key(format!("start-{id}")).send().await?;
        same += usize::from(reply.value.key == *instance);
        replays += usize::from(reply.replayed);
    }
    Ok((same, replays))
}

async fn orders_with_one_instance(stage: &Stage) -> Result<usize, Failure> {
    let mut right = 0;
    for index in 0..BURST {
        let id = format!("{CRASH}{index}");
        right += usize::from(stage.instances(Some(("orderId", &id))).await?.len() == 1);
    }
    Ok(right)
}
