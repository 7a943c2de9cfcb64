//! Layer 4: workers call a payment provider and die before they can say so. Then ordinary workers do the rest.

use serde_json::{Value, json};
use wf_client::{FailJob, Outcome, Task, Variables, Worker, WorkerOptions};

use crate::demo::ledger::{Ledger, Line};
use crate::demo::outside::Outside;
use crate::demo::stage::{LEASE_OVER_MS, Stage, holder, order_of};
use crate::output::{Done, Failure};

const LAYER: &str = "4 external call";
const CARD: &str = "charge-card";

pub async fn play(stage: &mut Stage, ledger: &mut Ledger) -> Done {
    ledger.add(dies_after_the_call(stage).await?);
    ledger.add(dies_after_the_step(stage).await?);
    ledger.add(the_rest(stage).await?);
    Ok(())
}

/// The provider is called twice for one job, and sees by the job's key that it is one charge.
async fn dies_after_the_call(stage: &Stage) -> Result<Line, Failure> {
    let doomed = stage.one_job(CARD, "doomed").await?;
    let order = order_of(&doomed);
    stage.outside.charge(&doomed.idempotency_key, &order).await?;
    // Nothing more is heard of it.
    stage.advance(LEASE_OVER_MS).await?;
    let heir = stage.one_job(CARD, "heir").await?;
    let charge = stage.outside.charge(&heir.idempotency_key, &order_of(&heir)).await?;
    complete(stage, "heir", &heir, &charge).await?;
    let charges = stage.outside.charges(|charged| charged == order);
    Ok(Line::new(LAYER, "a worker charges a card and dies; another takes over")
        .check("the same job", &doomed.key, &heir.key)
        .check("the same provider key", &doomed.idempotency_key, &heir.idempotency_key)
        .check("calls", 2, charges.calls)
        .check("cards charged", 1, charges.effects)
        .happened(format!("{} charge", charges.effects))
        .suppressed(format!("{} call, by the job's key", charges.calls - charges.effects)))
}

/// The result was recorded before the death: the heir does not even call.
async fn dies_after_the_step(stage: &Stage) -> Result<Line, Failure> {
    let doomed = stage.one_job(CARD, "doomed").await?;
    let order = order_of(&doomed);
    let charge = stage.outside.charge(&doomed.idempotency_key, &order).await?;
    stage.client.record_step(&doomed.key, "charge", &holder("doomed", &doomed), &json!(charge)).await?;
    stage.advance(LEASE_OVER_MS).await?;
    let heir = stage.one_job(CARD, "heir").await?;
    let found = heir.step("charge").and_then(Value::as_str).unwrap_or_default().to_owned();
    complete(stage, "heir", &heir, &found).await?;
    let charges = stage.outside.charges(|charged| charged == order);
    Ok(Line::new(LAYER, "the same, with the call recorded as a step")
        .check("the same job", &doomed.key, &heir.key)
        .check("the recorded charge", &charge, &found)
        .check("calls", 1, charges.calls)
        .check("cards charged", 1, charges.effects)
        .happened(format!("{} charge", charges.effects))
        .suppressed("the second call, by the journal"))
}

async fn complete(stage: &Stage, worker: &str, job: &wf_client::Job, charge: &str) -> Done {
    let variables = Variables::from_iter([("charge".to_owned(), json!(charge))]);
    stage.client.complete(&job.key, &holder(worker, job), &variables).await?;
    Ok(())
}

/// Everything that is left, by ordinary workers; then the provider's books are compared with the orders.
async fn the_rest(stage: &Stage) -> Result<Line, Failure> {
    let orders = stage.instances(None).await?.len();
    let left = orders.saturating_sub(stage.outside.charges(|_| true).orders);
    let mut options = WorkerOptions::of(CARD);
    (options.jobs_max, options.wait_ms) = (Some(left as u64), 1000);
    let outside = stage.outside.clone();
    let worker = Worker::new(stage.client.clone(), options, move |task: Task| charged(outside.clone(), task));
    let summary = worker.run(tokio::time::sleep(std::time::Duration::from_secs(20))).await?;
    let charges = stage.outside.charges(|_| true);
    Ok(Line::new(LAYER, format!("a worker does the other {left} orders"))
        .check("jobs completed", left, summary.completed)
        .check("orders charged", orders, charges.orders)
        .check("cards charged", orders, charges.effects)
        .happened(format!("{} orders, {} charges", charges.orders, charges.effects))
        .suppressed("-"))
}

async fn charged(outside: Outside, task: Task) -> Outcome {
    match outside.charge(&task.job.idempotency_key, &order_of(&task.job)).await {
        Ok(charge) => Outcome::Complete(Variables::from_iter([("charge".to_owned(), json!(charge))])),
        Err(failure) => Outcome::Fail(FailJob { message: failure.message().to_owned(), ..FailJob::default() }),
    }
}
