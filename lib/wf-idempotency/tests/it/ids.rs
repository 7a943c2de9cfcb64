//! Ids that must never change: their algorithms are part of what users store. L4.1 L4.2.

use wf_idempotency::ids::{deterministic_id, provider_key};

#[test]
fn l4_2_deterministic_ids_are_frozen() {
    let golden =
        [((1, "order"), "golden"), ((1, "invoice"), "golden"), ((2, "order"), "golden"), ((u64::MAX, ""), "golden")];
    for ((scope, purpose), id) in golden {
        assert_eq!(deterministic_id(scope, purpose), id);
    }
}

#[test]
fn l4_1_provider_keys_follow_the_job_and_the_purpose() {
    assert_eq!(provider_key(4711, None), "wf-job-4711");
    assert_eq!(provider_key(4711, Some("refund")), "wf-job-4711-refund");
}
