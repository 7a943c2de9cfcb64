//! `wf start`, `wf instances`, `wf cancel`. One instance as a picture: `picture.rs`.

use std::time::{Duration, Instant};

use wf_client::{Client, Instance, InstanceFilter, StartInstance, Started};

use crate::cli::{InstancesArgs, KeyArgs, Output, StartArgs};
use crate::output::{self, Done, Failure};

use super::{connect, pages, picture};

/// How long `--await` looks for the end, and how often.
const AWAIT_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub async fn start(args: StartArgs) -> Done {
    let start = StartInstance {
        process_definition_id: args.id,
        version: args.version,
        variables: args.variables.into_iter().collect(),
        uniqueness_key: args.unique,
        await_ms: None,
    };
    let client = connect(&args.remote)?;
    let call = client.start(&start);
    let call = match args.key {
        Some(key) => call.key(key),
        None => call,
    };
    let reply = call.send().await?;
    if args.wait {
        return ended(&client, &reply.value, args.remote.output).await;
    }
    match args.remote.output {
        Output::Json => output::print(&output::json(&reply.value)),
        Output::Table => output::print(&said(&reply.value, reply.replayed)),
    }
}

/// Looks until the instance has ended: the same whether this start made it or an earlier one.
async fn ended(client: &Client, started: &Started, output: Output) -> Done {
    let began = Instant::now();
    loop {
        let instance = client.instance(&started.key).await?;
        if instance.ended_at.is_some() {
            return output::print(&match output {
                Output::Json => output::json(&instance),
                Output::Table => picture::picture(&instance, None),
            });
        }
        if began.elapsed() > AWAIT_MAX {
            let (key, seconds) = (&started.key, AWAIT_MAX.as_secs());
            return Err(Failure::work(format!(
                "instance {key} has not ended within {seconds} s; see `wf instance {key}`"
            )));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn said(started: &Started, replayed: bool) -> String {
    let what = match (started.existing, replayed) {
        (true, _) => "existing instance",
        (_, true) => "instance (started before under this key)",
        _ => "instance",
    };
    let version = started.version;
    format!("{what} {} of {} v{version}, {}", started.key, started.process_definition_id, started.state)
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
