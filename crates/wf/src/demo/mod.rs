//! `wf demo`: the whole story in one run. An engine as a child process, an outside world in this one, real HTTP in
//! between; everything is repeated and broken, and each figure is checked. `wf demo --bpmn FILE` runs any model instead.
//! Read `stage.rs` (what is on it), then `scenes/` in the order of the layers, `ledger.rs` (what is printed).

mod any;
mod ledger;
mod outside;
mod scenes;
mod stage;

use std::time::Instant;

use crate::cli::{DemoArgs, Output};
use crate::output::{self, Done, Failure};

use ledger::Ledger;
use stage::Stage;

pub async fn run(args: DemoArgs) -> Done {
    match &args.bpmn {
        Some(path) => any::run(path, &args).await,
        None => story(&args).await,
    }
}

async fn story(args: &DemoArgs) -> Done {
    let began = Instant::now();
    let mut ledger = Ledger::new(args.output);
    let mut stage = Stage::open(args.keep.as_deref()).await?;
    let played = play(&mut stage, &mut ledger).await;
    ledger.finish();
    let said = stage.said();
    stage.close().await;
    match args.output {
        Output::Json => output::print(&output::json(&ledger.to_json()))?,
        Output::Table => output::print(&ledger.to_text(began.elapsed(), played.is_ok()))?,
    }
    played.map_err(|failure| Failure::work(format!("the story broke off: {}{said}", failure.message())))?;
    match ledger.wrong() {
        0 => Ok(()),
        wrong => Err(Failure::work(format!("{wrong} figure(s) are not as they must be"))),
    }
}

async fn play(stage: &mut Stage, ledger: &mut Ledger) -> Done {
    scenes::ingress::play(stage, ledger).await?;
    scenes::queue::play(stage, ledger).await?;
    scenes::jobs::play(stage, ledger).await?;
    scenes::calls::play(stage, ledger).await?;
    scenes::bus::play(stage, ledger).await?;
    scenes::audit::play(stage, ledger).await
}
