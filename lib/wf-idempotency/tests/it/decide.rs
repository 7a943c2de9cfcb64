//! Every state × time × fingerprint × policy, written out. L1.3 L1.4 L1.5 F1 F3 F4 F6 K3 K6.

use bytes::Bytes;
use wf_idempotency::decide::{OnUnknown, Previous};
use wf_idempotency::record::allowed_header;
use wf_idempotency::{Answer, Fingerprint, Policy, Record, State, Verdict, decide};

const OURS: Fingerprint = Fingerprint([1; 32]);
const OTHER: Fingerprint = Fingerprint([2; 32]);
const OWNER: [u8; 16] = [7; 16];
/// The record lives until 1,000; leases end at 500 and at 1,500.
const EXPIRES: i64 = 1_000;

fn answer() -> Answer {
    Answer::new(201, [("Location", "/1")], Bytes::from_static(b"{}"))
}

/// One letter or two per verdict, so that the table fits on a screen.
fn short(verdict: &Verdict<'_>) -> &'static str {
    match verdict {
        Verdict::Fresh => "fresh",
        Verdict::Replay(stored) if **stored == answer() => "replay",
        Verdict::Replay(_) => "another answer",
        Verdict::Attach { subject: 42 } => "attach",
        Verdict::Attach { .. } => "another subject",
        Verdict::Mismatch => "mismatch",
        Verdict::Busy { .. } => "busy",
        Verdict::TakeOver { from: Previous::Owner(OWNER) | Previous::UnknownSince(3), resume: true } => "resume",
        Verdict::TakeOver { from: Previous::Owner(OWNER) | Previous::UnknownSince(3), resume: false } => "again",
        Verdict::TakeOver { .. } => "from another",
        Verdict::Unknown => "unknown",
        Verdict::Expired => "gone",
    }
}

#[test]
fn l1_4_f1_f3_f4_the_table_of_verdicts() {
    let states = [
        ("running, lease to 500", State::InProgress { owner: OWNER, lease_until_ms: 500 }),
        ("running, lease to 1500", State::InProgress { owner: OWNER, lease_until_ms: 1_500 }),
        ("completed", State::Completed(answer())),
        ("started", State::Started { subject: 42 }),
        ("unknown", State::Unknown { since_ms: 3 }),
    ];
    let policies = [OnUnknown::Replay, OnUnknown::Resume, OnUnknown::Release];
    // Columns: on_unknown = replay, resume, release. Every row for the same fingerprint; another one is checked below.
    #[rustfmt::skip]
    let table: &[(&str, i64, [&str; 3])] = &[
        ("running, lease to 500",    499, ["busy", "busy", "busy"]),
        ("running, lease to 500",    500, ["unknown", "resume", "again"]),
        ("running, lease to 500",    999, ["unknown", "resume", "again"]),
        ("running, lease to 500",  1_000, ["fresh", "fresh", "fresh"]),
        ("running, lease to 1500",   499, ["busy", "busy", "busy"]),
        ("running, lease to 1500", 1_000, ["busy", "busy", "busy"]), // The owner lives on, past the record's time.
        ("running, lease to 1500", 1_499, ["busy", "busy", "busy"]),
        ("running, lease to 1500", 1_500, ["fresh", "fresh", "fresh"]),
        ("completed",                  0, ["replay", "replay", "replay"]),
        ("completed",                999, ["replay", "replay", "replay"]),
        ("completed",              1_000, ["fresh", "fresh", "fresh"]),
        ("started",                  999, ["attach", "attach", "attach"]),
        ("started",                1_000, ["fresh", "fresh", "fresh"]),
        ("unknown",                  999, ["unknown", "resume", "again"]),
        ("unknown",                1_000, ["fresh", "fresh", "fresh"]),
    ];
    for (name, now_ms, expected) in table {
        let (_, state) = states.iter().find(|(known, _)| known == name).unwrap();
        let record = record(state.clone());
        for (on_unknown, expected) in policies.iter().zip(expected) {
            let policy = Policy { on_unknown: *on_unknown, ..Policy::default() };
            let verdict = |fingerprint, policy| short(&decide(Some(&record), &fingerprint, &policy, *now_ms));
            assert_eq!(verdict(OURS, policy), *expected, "{name} at {now_ms}, {on_unknown:?}");
            // A conflict outranks everything but expiry, also while the first is in flight.
            let other = if *expected == "fresh" { "fresh" } else { "mismatch" };
            assert_eq!(verdict(OTHER, policy), other, "{name} at {now_ms}, other request");
            // A tombstone turns exactly the fresh ones into gone, whatever the request.
            let tombstone = Policy { tombstone: true, ..policy };
            let or_gone = |verdict| if verdict == "fresh" { "gone" } else { verdict };
            assert_eq!(verdict(OURS, tombstone), or_gone(*expected), "{name} at {now_ms}, tombstone");
            assert_eq!(verdict(OTHER, tombstone), or_gone(other), "{name} at {now_ms}, tombstone, other request");
        }
    }
    let tombstone = Policy { tombstone: true, ..Policy::default() };
    assert_eq!(decide(None, &OURS, &tombstone, 0), Verdict::Fresh);
}

fn record(state: State) -> Record {
    Record { fingerprint: OURS, mac_key_id: 1, created_ms: 0, expires_ms: EXPIRES, state }
}

#[test]
fn l1_5_retry_after_is_the_lease_or_the_policys_bound_and_never_zero() {
    let record = record(State::InProgress { owner: OWNER, lease_until_ms: 10_000 });
    let policy = Policy { retry_after_ms_max: 2_000, ..Policy::default() };
    for (now_ms, retry_after_ms) in [(0, 2_000), (9_000, 1_000), (9_999, 1), (i64::MIN, 2_000)] {
        assert_eq!(decide(Some(&record), &OURS, &policy, now_ms), Verdict::Busy { retry_after_ms });
    }
    let impatient = Policy { retry_after_ms_max: 0, ..policy };
    assert_eq!(decide(Some(&record), &OURS, &impatient, 0), Verdict::Busy { retry_after_ms: 1 });
}

#[test]
fn l1_3_only_headers_that_describe_the_answer_are_kept() {
    let kept = "Content-Type content-encoding CONTENT-LANGUAGE Location ETag Last-Modified Link Retry-After";
    let dropped = "Set-Cookie Connection Keep-Alive Transfer-Encoding Content-Length TE Trailer Upgrade Date Age Server \
                   Proxy-Authenticate Access-Control-Allow-Origin Idempotent-Replayed X-Token";
    assert!(kept.split(' ').all(allowed_header));
    assert!(!dropped.split_whitespace().any(allowed_header));

    let headers = [("Link", "a"), ("Set-Cookie", "s"), ("Link", "b"), ("ETag", "\"1\"")];
    let answer = Answer::new(204, headers, Bytes::new());
    let text = |(name, value): &(std::sync::Arc<str>, std::sync::Arc<str>)| format!("{name}: {value}");
    assert_eq!(answer.headers.iter().map(text).collect::<Vec<_>>(), ["link: a", "link: b", "etag: \"1\""]);
}
