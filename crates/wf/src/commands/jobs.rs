//! `wf jobs`.

use crate::cli::JobsArgs;
use crate::output::{self, Done};

use super::{connect, pages};

pub async fn list(args: JobsArgs) -> Done {
    let client = connect(&args.remote)?;
    let state = args.state.map(|state| state.to_uppercase());
    let filters = [("type", args.job_type), ("state", state), ("processInstanceKey", args.instance)];
    let filter: Vec<(&str, String)> = filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let jobs = pages(args.limit, |cursor| client.jobs(&filter, cursor.as_deref()).into_future()).await?;
    let rows = jobs.iter().map(|job| {
        vec![
            job.key.clone(),
            job.job_type.clone(),
            job.state.clone(),
            output::or_dash(job.worker.as_deref()),
            output::or_dash(job.deadline.as_deref()),
            job.retries.to_string(),
            job.element_id.clone(),
            job.process_instance_key.clone(),
        ]
    });
    let rows = rows.collect();
    let headings = ["key", "type", "state", "worker", "deadline", "retries", "element", "instance"];
    output::show(args.remote.output, &jobs, &headings, rows)
}
