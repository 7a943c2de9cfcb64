//! What a released turn tells the metrics. Counted in the turn, told once: the hot path looks up no metric.

use std::time::Duration;

use crate::turn::Turn;

/// A commit took so long. How many envelopes wait is told beside the commits, so that it is known while none succeeds.
pub fn tell_commit(turn: &Turn, took: Duration) {
    metrics::histogram!("wf_commit_duration_seconds").record(took.as_secs_f64());
    metrics::histogram!("wf_commit_batch_size").record(turn.items.len() as f64);
}

/// A turn that wrote nothing counts as well: a repeated completion is one.
pub fn tell(turn: &mut Turn, partition: u16) {
    let stats = std::mem::take(&mut turn.stats);
    let partition = partition.to_string();
    for (verb, count) in stats.verbs {
        metrics::counter!("wf_commands_total", "type" => verb, "partition" => partition.clone()).increment(count);
    }
    for (path, count) in stats.replays {
        metrics::counter!("wf_api_idempotency_hits_total", "path" => path).increment(count);
    }
    for (job_type, count) in stats.jobs_skipped {
        metrics::counter!("wf_worker_idempotency_skipped_total", "type" => job_type.to_string()).increment(count);
    }
    count("wf_api_idempotency_conflicts_total", stats.conflicts);
    count("wf_db_command_dedup_total", stats.commands_deduplicated);
    count("wf_lease_expiries_total", stats.leases_expired);
    count("wf_incidents_total", stats.incidents);
}

fn count(name: &'static str, count: u64) {
    if count > 0 {
        metrics::counter!(name).increment(count);
    }
}
