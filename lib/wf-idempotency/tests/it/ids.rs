//! Ids that must never change: their algorithms are part of what users store. L4.1 L4.2.

use wf_idempotency::ids::{deterministic_id, provider_key};

#[test]
fn l4_2_deterministic_ids_are_frozen() {
    let golden = [
        ((1, "order"), "54dc2f61-6351-88f5-abf9-b004ca10ea20"),
        ((1, "invoice"), "06410c12-7c2f-880c-b3c3-534fbdbecf5e"),
        ((2, "order"), "3f167031-d97f-861d-b224-0705aec19665"),
        ((u64::MAX, ""), "efe3bf5f-78b3-8fd1-b493-9a4b6e8cd55b"),
    ];
    for ((scope, purpose), id) in golden {
        assert_eq!(deterministic_id(scope, purpose), id);
    }
}

#[test]
fn l4_1_provider_keys_follow_the_job_and_the_purpose() {
    assert_eq!(provider_key(4711, None), "wf-job-4711");
    assert_eq!(provider_key(4711, Some("refund")), "wf-job-4711-refund");
}
