//! Layer 1: clients repeat their starts.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use crate::demo::ledger::{Ledger, Line};
use crate::demo::stage::{Stage, order};
use crate::output::{Done, Failure};

const LAYER: &str = "1 API";
const PARALLEL: usize = 20;

pub async fn play(stage: &mut Stage, ledger: &mut Ledger) -> Done {
    ledger.add(parallel_starts(stage).await?);
    ledger.add(changed_body(stage).await?);
    ledger.add(double_click(stage).await?);
    Ok(())
}

async fn parallel_starts(stage: &Stage) -> Result<Line, Failure> {
    let start = order("o-1", 99);
    let calls = (0..PARALLEL).map(|_| stage.client.start(&start).key("start-o-1").raw());
    let answers = join_all(calls).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let replayed = answers.iter().filter(|answer| answer.replayed).count();
    let bodies: BTreeSet<_> = answers.iter().map(|answer| (answer.status, answer.value.clone())).collect();
    let instances = stage.instances(Some(("orderId", "o-1"))).await?.len();
    Ok(Line::new(LAYER, format!("{PARALLEL} × the same start at once, one key"))
        .check("instances", 1, instances)
        .check("replays", PARALLEL - 1, replayed)
        .check("different answers", 1, bodies.len())
        .happened(format!("{instances} instance"))
        .suppressed(format!("{replayed} repeats, answered byte for byte")))
}

async fn changed_body(stage: &Stage) -> Result<Line, Failure> {
    let refused = stage.client.start(&order("o-1", 9900)).key("start-o-1").await.err();
    let code = refused.as_ref().map(|error| error.code().to_owned()).unwrap_or_default();
    let instances = stage.instances(Some(("orderId", "o-1"))).await?.len();
    Ok(Line::new(LAYER, "another amount under that key")
        .check("refusal", "idempotency-conflict", &code)
        .check("instances", 1, instances)
        .happened(format!("409 {code}"))
        .suppressed("1 conflict, nothing ran"))
}

/// No key: the business value alone tells the second click from a second order.
async fn double_click(stage: &Stage) -> Result<Line, Failure> {
    let mut start = order("o-2", 20);
    start.uniqueness_key = Some("orderId".to_owned());
    let (first, second) =
        tokio::join!(stage.client.start(&start).unkeyed().send(), stage.client.start(&start).unkeyed().send());
    let (first, second) = (first?, second?);
    let existing = [&first, &second].iter().filter(|answer| answer.value.existing).count();
    let instances = stage.instances(Some(("orderId", "o-2"))).await?.len();
    Ok(Line::new(LAYER, "a double click: no key, uniquenessKey orderId")
        .check("instances", 1, instances)
        .check("answers with the existing instance", 1, existing)
        .check("same instance", &first.value.key, &second.value.key)
        .happened(format!("{instances} instance"))
        .suppressed(format!("{existing} click, given the existing instance")))
}
