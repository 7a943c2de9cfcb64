//! `wf demo --bpmn FILE`: any executable model to an end, with everything that it needs made up.
//! Read `guess.rs` (values that its expressions can live with), `source.rs` (what an expression's text tells),
//! `walk.rs` (jobs, messages and time for one instance).

mod guess;
mod source;
mod walk;

use std::path::Path;

use serde_json::{Value, json};
use wf_client::Client;
use wf_model::Process;

use crate::cli::{DemoArgs, Output};
use crate::output::{self, Done, Failure};
use crate::process::Node;

use guess::Guess;
use walk::Walk;

/// Each attempt makes up other values, so that other branches are taken.
const ATTEMPTS: usize = 8;

pub async fn run(path: &Path, args: &DemoArgs) -> Done {
    let xml = std::fs::read(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let processes = wf_model::compile(&xml).map_err(|problems| refused(path, &problems))?;
    let (folder, _temporary) = super::stage::folder(args.keep.as_deref())?;
    let place = |name: &str| folder.join(name).to_string_lossy().into_owned();
    std::fs::write(place("wf.toml"), "")?;
    let (data, config) = (place("store"), place("wf.toml"));
    let engine = ["server", "--listen", "127.0.0.1:0", "--data", &data, "--config", &config, "--test-clock"];
    let node = Node::start(&engine.map(str::to_owned), &[], Some(Path::new(&place("engine.log")))).await?;
    let played = play(&node, xml, &processes, args.output).await;
    let stopped = node.stop().await;
    played.and(stopped)
}

fn refused(path: &Path, problems: &[wf_model::Problem]) -> Failure {
    let lines: Vec<String> = problems.iter().map(|problem| format!("  {problem}")).collect();
    Failure::work(format!("{} cannot be executed:\n{}", path.display(), lines.join("\n")))
}

async fn play(node: &Node, xml: Vec<u8>, processes: &[Process], output: Output) -> Done {
    let client = Client::new(&node.url)?;
    client.deploy(xml).await?;
    let mut outcomes = Vec::new();
    for process in processes {
        outcomes.push((process, to_an_end(&client, process).await?));
    }
    match output {
        Output::Json => output::print(&output::json(&outcomes.iter().map(as_json).collect::<Vec<_>>()))?,
        Output::Table => {
            outcomes.iter().try_for_each(|(process, outcome)| output::print(&as_text(process, outcome)))?
        }
    }
    let stuck: Vec<&str> = outcomes
        .iter()
        .filter(|(_, outcome)| !outcome.walk.has_ended())
        .map(|(process, _)| &*process.process_id)
        .collect();
    if processes.is_empty() {
        return Err(Failure::work("the file has no executable process"));
    }
    if stuck.is_empty() { Ok(()) } else { Err(Failure::work(format!("no instance ended of {}", stuck.join(", ")))) }
}

/// The attempt that came to an end, or the last one.
struct Outcome {
    attempts: usize,
    variables: Value,
    walk: Walk,
}

async fn to_an_end(client: &Client, process: &Process) -> Result<Outcome, Failure> {
    let mut attempt = 0;
    loop {
        let guess = Guess::of(process, attempt);
        let walk = walk::walk(client, process, &guess, attempt).await?;
        attempt += 1;
        if walk.has_ended() || attempt == ATTEMPTS {
            let variables = Value::Object(guess.variables().clone());
            return Ok(Outcome { attempts: attempt, variables, walk });
        }
    }
}

fn as_text(process: &Process, outcome: &Outcome) -> String {
    let walk = &outcome.walk;
    let state = walk.instance.as_ref().map_or("NOT STARTED", |instance| instance.state.as_str());
    let head = format!("{}: {state} (attempt {}, {} steps)", process.process_id, outcome.attempts, walk.steps.len());
    let steps: Vec<String> = walk.steps.iter().map(|step| format!("  {step}")).collect();
    let made_up = format!("  made up: {}", output::short(&outcome.variables.to_string(), 300));
    let mut text = [vec![head, made_up], steps].concat().join("\n");
    if let Some(instance) = walk.instance.as_ref().filter(|_| !walk.has_ended()) {
        let stands = crate::commands::picture::picture(instance, Some(process));
        text.push_str(&format!("\nit stands here ({}):\n{stands}", walk.stuck));
    }
    text
}

fn as_json((process, outcome): &(&Process, Outcome)) -> Value {
    let walk = &outcome.walk;
    json!({
        "processDefinitionId": &*process.process_id,
        "ended": walk.has_ended(),
        "attempts": outcome.attempts,
        "variables": outcome.variables,
        "steps": walk.steps,
        "stuck": walk.stuck,
        "instance": walk.instance,
    })
}
