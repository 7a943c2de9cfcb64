//! What a released turn tells the metrics. Counted in the turn, told once: the hot path looks up no metric.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use crate::clock::lock;
use crate::turn::Turn;

/// Job types that metrics name; a model may compute as many as it likes.
const TYPES_MAX: usize = 1_000;

/// The type as a label: itself, or `other` once too many are known.
pub fn type_label(job_type: &str) -> String {
    static KNOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut known = lock(&KNOWN);
    if known.len() < TYPES_MAX && !known.contains(job_type) {
        known.insert(job_type.to_owned());
    }
    let label = if known.contains(job_type) { job_type } else { "other" };
    label.to_owned()
}

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
        metrics::counter!("wf_worker_idempotency_skipped_total", "type" => type_label(&job_type)).increment(count);
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

#[cfg(test)]
mod tests {
    use super::{TYPES_MAX, type_label};

    #[test]
    fn t2_a_model_cannot_make_labels_without_end() {
        (0..TYPES_MAX).for_each(|n| assert_eq!(type_label(&format!("type-{n}")), format!("type-{n}")));
        assert_eq!(type_label("one-more"), "other");
        assert_eq!(type_label("type-7"), "type-7");
    }
}
