//! `wf outbox` and `wf outbox retry`: messages to the outside.

use serde_json::json;

use crate::cli::{ListArgs, OutboxRetryArgs, Output};
use crate::output::{self, Done, Failure};

use super::{connect, pages};

pub async fn list(state: Option<String>, args: ListArgs) -> Done {
    let client = connect(&args.remote)?;
    let state = state.map(|state| state.to_lowercase());
    let page = |cursor: Option<String>| client.outbox(state.as_deref(), cursor.as_deref()).into_future();
    let messages = pages(args.limit, page).await?;
    let rows = messages.iter().map(|message| {
        vec![
            message.id.clone(),
            message.topic.clone(),
            message.sink.clone(),
            message.state.clone(),
            message.attempts.to_string(),
            message.created_at.clone(),
            output::or_dash(message.shipped_at.as_deref()),
            output::short(message.last_error.as_deref().unwrap_or("-"), 60),
        ]
    });
    let rows = rows.collect();
    let headings = ["id", "topic", "sink", "state", "attempts", "created", "shipped", "last error"];
    output::show(args.remote.output, &messages, &headings, rows)
}

/// All ids are tried; one that fails does not stop the others.
pub async fn retry(args: OutboxRetryArgs) -> Done {
    let client = connect(&args.remote)?;
    let (mut answers, mut refused) = (Vec::new(), Vec::new());
    for id in &args.ids {
        match client.outbox_retry(id, args.force).await {
            Ok(answer) => answers.push(json!({ "id": id, "state": answer["state"] })),
            Err(error) => refused.push(format!("{id}: {error}")),
        }
    }
    match args.remote.output {
        Output::Json => output::print(&output::json(&answers))?,
        Output::Table => output::print(&format!("{} message(s) will be shipped again", answers.len()))?,
    }
    if refused.is_empty() { Ok(()) } else { Err(Failure::work(refused.join("\n"))) }
}
