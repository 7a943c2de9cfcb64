//! The recorder, its buckets, and what is measured beside the requests: gauges read from the store now and then.
//! Names are those of the contract. Next: `GET /metrics` in `routes/health.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::gauge;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::app::Doors;
use crate::seam;

const SECONDS: [f64; 14] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 60.0];
const SIZES: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 200.0, 400.0, 1000.0];
/// Recorded values are folded into their buckets this often; between two they take memory.
const FOLD_EVERY: Duration = Duration::from_secs(2);
/// Counting rows costs the store more than it is worth every second.
const FOLDS_PER_GAUGE: u32 = 10;

/// Installs the recorder of this process. Before the node opens: what is measured earlier is lost.
pub fn recorder() -> Result<PrometheusHandle, BuildError> {
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full(seam::DURATION.to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_duration_seconds".to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_batch_size".to_owned()), &SIZES)?;
    let handle = builder.install_recorder()?;
    describe();
    // From zero on: a rate over a counter that appears with its first event does not see that event.
    UNLABELLED.into_iter().for_each(|name| metrics::counter!(name).increment(0));
    Ok(handle)
}

const UNLABELLED: [&str; 4] = [
    "wf_api_idempotency_conflicts_total",
    "wf_db_command_dedup_total",
    "wf_lease_expiries_total",
    "wf_incidents_total",
];

fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    describe_histogram!(seam::DURATION, "Duration of requests, by route, method and status");
    describe_histogram!("wf_commit_duration_seconds", "Duration of a turn's commit");
    describe_histogram!("wf_commit_batch_size", "Envelopes of a committed turn");
    describe_counter!("wf_api_idempotency_hits_total", "Repeats answered with the stored answer, by path");
    describe_counter!("wf_api_idempotency_conflicts_total", "Keys that came back with another request");
    describe_counter!("wf_api_idempotency_clock_keys_total", "Keys that look as if made from the clock, by path");
    describe_counter!("wf_worker_idempotency_skipped_total", "Completions repeated by their holder, by job type");
    describe_counter!("wf_db_command_dedup_total", "Commands dropped because their id was known");
    describe_counter!("wf_commands_total", "Commands executed, by type and partition");
    describe_counter!("wf_lease_expiries_total", "Leases that ran out");
    describe_counter!("wf_incidents_total", "Incidents created");
    describe_gauge!("wf_actor_queue_depth", "Envelopes that wait for a turn, by partition");
    describe_gauge!("wf_partition_leader", "1 where this node owns the partition");
    describe_counter!("wf_forwards_total", "Requests passed on to other nodes, by what came of it");
    describe_gauge!("wf_jobs", "Jobs in the store by type and state, finished ones until retention drops them");
    describe_gauge!("wf_incidents", "Open incidents");
    describe_gauge!("wf_key_store_records", "Idempotency records kept");
    describe_gauge!("wf_build_info", "1, with the version as label");
}

/// Jobs by type and state.
type Queues = BTreeMap<(String, &'static str), u64>;

/// Runs until the server ends.
pub(crate) async fn keep_up(doors: Doors) {
    gauge!("wf_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    let mut known = Queues::new();
    for fold in 0_u32.. {
        if let Some(handle) = &doors.metrics {
            handle.run_upkeep();
        }
        for (partition, engine) in doors.all().iter().flat_map(|app| app.node.engines()) {
            let (waiting, _) = engine.queue();
            gauge!("wf_actor_queue_depth", "partition" => partition.to_string()).set(waiting as f64);
        }
        if fold.is_multiple_of(FOLDS_PER_GAUGE) {
            read_gauges(&doors, &mut known).await;
        }
        tokio::time::sleep(FOLD_EVERY).await;
    }
}

/// A queue that became empty is no longer counted by the store: its gauge goes to zero here.
async fn read_gauges(doors: &Doors, known: &mut Queues) {
    let (mut counted, mut incidents, mut records) = (Queues::new(), 0, 0);
    for app in doors.all() {
        // What cannot be read now is not told.
        let Ok(gauges) = app.node.store().gauges().await else { continue };
        for (job_type, state, count) in &gauges.jobs {
            let queue = (wf_engine::type_label(job_type), wf_api::jobs::state_name(*state));
            *counted.entry(queue).or_default() += count;
        }
        incidents += gauges.incidents;
        records += gauges.records;
    }
    known.values_mut().for_each(|count| *count = 0);
    known.extend(counted);
    for ((job_type, state), count) in known.iter() {
        gauge!("wf_jobs", "type" => job_type.clone(), "state" => *state).set(*count as f64);
    }
    gauge!("wf_incidents").set(incidents as f64);
    gauge!("wf_key_store_records").set(records as f64);
}
