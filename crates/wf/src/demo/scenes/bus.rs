//! Layer 5: messages come twice, and the engine dies between a webhook's delivery and its mark.

use futures_util::future::join_all;
use wf_client::{CompleteItem, PublishMessage, Published};

use crate::demo::ledger::{Ledger, Line};
use crate::demo::stage::{LEASE_OVER_MS, Stage};
use crate::output::{Done, Failure};

const LAYER: &str = "5 message bus";
const COPIES: usize = 3;

pub async fn play(stage: &mut Stage, ledger: &mut Ledger) -> Done {
    ledger.add(duplicate_messages(stage).await?);
    ledger.add(shipped_again(stage).await?);
    Ok(())
}

/// The courier's system sends each booking three times at once, without a key: the message's id is enough.
async fn duplicate_messages(stage: &Stage) -> Result<Line, Failure> {
    drain(stage, "pack-parcel").await?;
    let orders = stage.instances(None).await?.len();
    let mut bookings = Vec::new();
    for instance in stage.instances(None).await? {
        let variables = stage.client.instance(&instance.key).await?.variables;
        let order = variables.get("orderId").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
        bookings.extend(booked(stage, &order).await?);
    }
    let duplicates = bookings.iter().filter(|published| published.duplicate).count();
    let handed = bookings.iter().map(|published| published.correlated.len()).sum::<usize>();
    Ok(Line::new(LAYER, format!("{orders} bookings, each message {COPIES} times at once"))
        .check("messages handed over", orders, handed)
        .check("duplicates", orders * (COPIES - 1), duplicates)
        .happened(format!("{handed} correlated"))
        .suppressed(format!("{duplicates} duplicates, by message id")))
}

async fn booked(stage: &Stage, order: &str) -> Result<Vec<Published>, Failure> {
    let message = PublishMessage {
        name: "courier-booked".to_owned(),
        correlation_key: order.to_owned(),
        message_id: Some(format!("booking-{order}")),
        ttl_ms: Some(60_000),
        ..PublishMessage::default()
    };
    let copies = (0..COPIES).map(|_| stage.client.publish(&message).unkeyed().send());
    let replies = join_all(copies).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(replies.into_iter().map(|reply| reply.value).collect())
}

/// Completes every job of a type, in batches.
async fn drain(stage: &Stage, job_type: &str) -> Done {
    loop {
        let jobs = stage.activate(job_type, "clerk", 50).await?;
        if jobs.is_empty() {
            return Ok(());
        }
        let item = |job: &wf_client::Job| CompleteItem {
            key: job.key.clone(),
            lease: Some(job.lease.clone()),
            variables: Default::default(),
        };
        let items: Vec<CompleteItem> = jobs.iter().map(item).collect();
        let answer = stage.client.complete_many("clerk", &items).await?;
        if let Some(problem) = answer.results.iter().find_map(|result| result.problem.as_ref()) {
            return Err(Failure::work(format!("a {job_type} job was not completed: {problem}")));
        }
    }
}

/// The receiver has the events, the outbox does not know it: after the restart they are sent again under the same ids.
async fn shipped_again(stage: &mut Stage) -> Result<Line, Failure> {
    drained(stage).await?;
    let before = stage.outside.events();
    stage.kill_engine().await;
    stage.start_engine(&[("WF_FAILPOINT", "after-ship")]).await?;
    // The last task of each order: completions and ends, each an event. The death may cut this short.
    let work = drain(stage, "send-receipt");
    let cut_short = tokio::time::timeout(std::time::Duration::from_secs(1), work).await;
    drop(cut_short);
    stage.engine_dies().await?;
    let at_death = stage.outside.events();
    stage.start_engine(&[]).await?;
    // Whoever held the claims is gone; their leases end, as those of the jobs that were cut off.
    stage.advance(LEASE_OVER_MS).await?;
    drain(stage, "send-receipt").await?;
    drained(stage).await?;
    let after = stage.outside.events();
    let repeats: usize = after.values().map(|count| count - 1).sum();
    let in_between: Vec<&String> = at_death.keys().filter(|id| !before.contains_key(*id)).collect();
    let twice = in_between.iter().filter(|id| after.get(**id).is_some_and(|count| *count > 1)).count();
    Ok(Line::new(LAYER, "the engine dies between sending webhooks and marking them sent")
        .check("some were sent before it died", true, !in_between.is_empty())
        .check("those that were sent again", in_between.len(), twice)
        .check("forged webhooks", 0, stage.outside.forged())
        .happened(format!("{} events, each taken once", after.len()))
        .suppressed(format!("{repeats} deliveries, by webhook-id")))
}

/// Until the outbox has nothing to send.
async fn drained(stage: &Stage) -> Done {
    let is_empty = async || Ok(stage.client.outbox(Some("pending"), None).await?.items.is_empty());
    stage.until("the delivery of all webhooks", is_empty).await
}
