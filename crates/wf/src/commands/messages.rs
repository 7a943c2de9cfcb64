//! `wf message`, `wf incidents`, `wf resolve`.

use wf_client::PublishMessage;

use crate::cli::{ListArgs, MessageArgs, ResolveArgs};
use crate::output::{self, Done};

use super::{connect, pages};

pub async fn publish(args: MessageArgs) -> Done {
    let message = PublishMessage {
        name: args.name,
        correlation_key: args.correlate,
        message_id: args.id,
        ttl_ms: args.ttl_ms,
        variables: args.variables.into_iter().collect(),
    };
    let call = connect(&args.remote)?.publish(&message);
    let published = match args.key {
        Some(key) => call.key(key).await?,
        None => call.await?,
    };
    let instances: Vec<String> = published.correlated.iter().map(|to| to.process_instance_key.clone()).collect();
    let row = vec![
        published.key.clone(),
        if published.duplicate { "duplicate, nothing done" } else { "published" }.to_owned(),
        output::or_dash(Some(&instances.join(", "))),
    ];
    output::show(args.remote.output, &published, &["key", "", "handed to"], vec![row])
}

pub async fn incidents(args: ListArgs) -> Done {
    let client = connect(&args.remote)?;
    let incidents = pages(args.limit, |cursor| client.incidents(cursor.as_deref()).into_future()).await?;
    let rows = incidents.iter().map(|incident| {
        vec![
            incident.key.clone(),
            incident.kind.clone(),
            incident.element_id.clone(),
            incident.process_instance_key.clone(),
            incident.created_at.clone(),
            output::short(&incident.message, 80),
        ]
    });
    let rows = rows.collect();
    let headings = ["key", "type", "element", "instance", "since", "message"];
    output::show(args.remote.output, &incidents, &headings, rows)
}

pub async fn resolve(args: ResolveArgs) -> Done {
    let resolved = connect(&args.remote)?.resolve(&args.key, args.retries).await?;
    let row = vec![resolved.key.clone(), resolved.state.clone()];
    output::show(args.remote.output, &resolved, &["key", "state"], vec![row])
}
