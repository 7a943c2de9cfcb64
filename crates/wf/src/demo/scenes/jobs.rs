//! Layer 3: workers ask at the same time, come late, and say things twice. The jobs are those of the first orders.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::json;
use wf_client::Variables;

use crate::demo::ledger::{Ledger, Line};
use crate::demo::stage::{LEASE_OVER_MS, Stage, holder, order_of};
use crate::output::{Done, Failure};

const LAYER: &str = "3 job activation";
const CARD: &str = "charge-card";
const WORKERS: usize = 4;
const EACH: u32 = 10;

pub async fn play(stage: &mut Stage, ledger: &mut Ledger) -> Done {
    ledger.add(at_once(stage).await?);
    ledger.add(late(stage).await?);
    Ok(())
}

/// Their leases end with the clock's move in the next scene, so these jobs come back.
async fn at_once(stage: &Stage) -> Result<Line, Failure> {
    let names: Vec<String> = (0..WORKERS).map(|index| format!("eager-{index}")).collect();
    let polls = names.iter().map(|name| stage.activate(CARD, name, EACH));
    let taken = join_all(polls).await.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    let distinct: BTreeSet<_> = taken.iter().map(|job| &job.key).collect();
    stage.advance(LEASE_OVER_MS).await?;
    let expected = WORKERS * EACH as usize;
    Ok(Line::new(LAYER, format!("{WORKERS} workers ask for {EACH} jobs each, at once"))
        .check("leases", expected, taken.len())
        .check("jobs leased twice", 0, taken.len() - distinct.len())
        .happened(format!("{} leases", taken.len()))
        .suppressed("0 jobs given to two workers"))
}

async fn late(stage: &Stage) -> Result<Line, Failure> {
    let late = stage.one_job(CARD, "late").await?;
    stage.advance(LEASE_OVER_MS).await?;
    let prompt = loop {
        let job = stage.one_job(CARD, "prompt").await?;
        if job.key == late.key {
            break job;
        }
    };
    // The prompt one does the work; the late one then reports as if it were its own.
    let charge = stage.outside.charge(&prompt.idempotency_key, &order_of(&prompt)).await?;
    let variables = Variables::from_iter([("charge".to_owned(), json!(charge))]);
    let done = stage.client.complete(&prompt.key, &holder("prompt", &prompt), &variables).await?;
    let again = stage.client.complete(&prompt.key, &holder("prompt", &prompt), &variables).await?;
    let refused = stage.client.complete(&late.key, &holder("late", &late), &variables).await.err();
    let code = refused.as_ref().map(|error| error.code().to_owned()).unwrap_or_default();
    stage.advance(LEASE_OVER_MS).await?;
    Ok(Line::new(LAYER, "a late worker, and the rightful one twice")
        .check("the late worker is told", "job-lease-lost", &code)
        .check("the first report is a duplicate", false, done.duplicate)
        .check("the second report is a duplicate", true, again.duplicate)
        .happened("1 completion")
        .suppressed("1 late report, 1 repeat"))
}
