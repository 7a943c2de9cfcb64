//! `wf start`, `wf instances`, `wf cancel`. One instance as a picture: `picture.rs`.

use wf_client::{Instance, InstanceFilter, StartInstance, Started};

use crate::cli::{InstancesArgs, KeyArgs, Output, StartArgs};
use crate::output::{self, Done};

use super::{connect, pages};

/// The server holds a start no longer than this.
const AWAIT_MS: u64 = 60_000;

pub async fn start(args: StartArgs) -> Done {
    let start = StartInstance {
        process_definition_id: args.id,
        version: args.version,
        variables: args.variables.into_iter().collect(),
        uniqueness_key: args.unique,
        await_ms: args.wait.then_some(AWAIT_MS),
    };
    let call = connect(&args.remote)?.start(&start);
    let call = match args.key {
        Some(key) => call.key(key),
        None => call,
    };
    let reply = call.send().await?;
    match args.remote.output {
        Output::Json => output::print(&output::json(&reply.value)),
        Output::Table => output::print(&said(&reply.value, reply.replayed)),
    }
}

fn said(started: &Started, replayed: bool) -> String {
    let what = match (started.existing, replayed) {
        (true, _) => "existing instance",
        (_, true) => "instance (started before under this key)",
        _ => "instance",
    };
    let version = started.version;
    let head = format!("{what} {} of {} v{version}, {}", started.key, started.process_definition_id, started.state);
    match &started.variables {
        Some(variables) => format!("{head}\n{}", output::json(variables)),
        None => head,
    }
}

pub async fn list(args: InstancesArgs) -> Done {
    let client = connect(&args.remote)?;
    let filter = InstanceFilter {
        state: args.state.map(|state| state.to_uppercase()),
        process_definition_id: args.process,
        started_after: None,
        variables: args.variables,
    };
    let instances = pages(args.limit, |cursor| client.instances(&filter, cursor.as_deref()).into_future()).await?;
    let rows = instances.iter().map(row).collect();
    let headings = ["key", "process", "version", "state", "started", "ended"];
    output::show(args.remote.output, &instances, &headings, rows)
}

fn row(instance: &Instance) -> Vec<String> {
    vec![
        instance.key.clone(),
        instance.process_definition_id.clone(),
        instance.version.to_string(),
        instance.state.clone(),
        instance.started_at.clone(),
        output::or_dash(instance.ended_at.as_deref()),
    ]
}

pub async fn cancel(args: KeyArgs) -> Done {
    let ended = connect(&args.remote)?.cancel(&args.key).await?;
    let row = vec![ended.key.clone(), ended.state.clone()];
    output::show(args.remote.output, &ended, &["key", "state"], vec![row])
}
