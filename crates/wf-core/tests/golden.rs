//! What must never change by accident: the digest of one row of each kind, and ids. A change here is a change of every
//! stored digest, and needs a new semantics version.

use std::fmt::Write;
use std::sync::Arc;

use expect_test::expect;
use wf_core::rows::*;
use wf_core::{Row, canonical, ids};

fn rows() -> Vec<Row> {
    fn row<T: Stored>(row: T) -> Row {
        T::wrap(Arc::new(row))
    }
    let (tenant, process_id): (Text, Text) = ("acme".into(), "order".into());
    let (message, key): (Text, Text) = ("paid".into(), "7".into());
    let instance = Instance {
        tenant: tenant.clone(),
        process_id: process_id.clone(),
        version: 3,
        started_at: 10,
        ended_at: 20,
        started_position: 30,
        ended_position: 40,
        unique: Some(("orderId".into(), [9; 16])),
        start_correlation: Some(key.clone()),
        steps: 50,
    };
    let root = Scope {
        key: 11,
        root: 11,
        parent: 0,
        definition: 1,
        element: 0,
        state: ScopeState::Completed,
        active: 2,
        joins: vec![(4, 1), (5, 2)],
        visits: vec![(6, 3)],
        lineage: [7; 16],
        after: After::Continue(8),
        instance: Some(Arc::new(instance)),
    };
    let inner =
        Scope { key: 12, parent: 11, state: ScopeState::Active, after: After::Nothing, instance: None, ..root.clone() };
    let job = Job {
        key: 14,
        element_key: 13,
        scope: 11,
        root: 11,
        tenant: tenant.clone(),
        definition: 1,
        element: 2,
        job_type: "charge".into(),
        state: JobState::Backoff,
        retries: -1,
        priority: -5,
        worker: "w".into(),
        lease: 60,
        due: -70,
        headers: "{}".into(),
        lineage: [8; 16],
        steps: 1,
        completion: None,
    };
    let attached = vec![
        Attached { kind: AttachedKind::Timer, key: 15, target: 3 },
        Attached { kind: AttachedKind::Subscription, key: 16, target: 4 },
    ];
    let element = Element {
        key: 13,
        scope: 11,
        root: 11,
        element: 2,
        phase: Phase::Leaving,
        job: 14,
        incident: 17,
        has_locals: true,
        attached,
    };
    let handover = row(Handover {
        subscription: 16,
        message: 18,
        root: 11,
        tenant: tenant.clone(),
        process_id: process_id.clone(),
        name: message.clone(),
        correlation_key: key.clone(),
        variables: vec![("x".into(), "1".into())],
        expires_at: 90,
    });
    let follow_up = |work| row(FollowUp { key: 19, root: 11, scope: 12, work });
    vec![
        row(Definition {
            key: 1,
            tenant: tenant.clone(),
            process_id: process_id.clone(),
            version: 3,
            resource: "order.bpmn".into(),
            checksum: [1; 16],
            xml: Arc::from(&b"<a/>"[..]),
            deployed_at: 5,
        }),
        row(StartSubscription {
            tenant: tenant.clone(),
            message: message.clone(),
            process_id: process_id.clone(),
            definition: 1,
            element: 2,
        }),
        row(root),
        row(inner),
        row(element),
        row(Variable { scope: 11, name: "x".into(), value: "1.0".into() }),
        row(job.clone()),
        row(Job { state: JobState::Completed, completion: Some([2; 16]), ..job }),
        row(Step { job: 14, name: "pay".into(), result: "null".into() }),
        row(Timer { key: 15, host: 13, scope: 11, root: 11, target: 3, due: 80, repeats: -1, interval: "PT1S".into() }),
        row(Subscription {
            key: 16,
            host: 13,
            scope: 11,
            root: 11,
            tenant: tenant.clone(),
            process_id: process_id.clone(),
            message: message.clone(),
            correlation_key: key.clone(),
            target: 4,
        }),
        row(Message {
            key: 18,
            tenant: tenant.clone(),
            name: message.clone(),
            correlation_key: key.clone(),
            variables: vec![("x".into(), "1".into())],
            expires_at: 90,
            correlated: vec![process_id.clone()],
        }),
        row(MessageId {
            tenant: tenant.clone(),
            name: message.clone(),
            message_id: "m-1".into(),
            key: 18,
            content: [3; 16],
            expires_at: 90,
        }),
        row(StartLock {
            tenant: tenant.clone(),
            process_id: process_id.clone(),
            correlation_key: key.clone(),
            root: 11,
        }),
        row(Unique {
            tenant: tenant.clone(),
            process_id: process_id.clone(),
            variable: "orderId".into(),
            value: [9; 16],
            root: 11,
        }),
        row(Incident {
            key: 17,
            tenant: tenant.clone(),
            root: 11,
            scope: 11,
            element_key: 13,
            element_id: "a".into(),
            job: 14,
            kind: IncidentKind::Condition,
            message: "no".into(),
            created_at: 6,
        }),
        follow_up(Work::Arrive { element: 2, flow: None }),
        follow_up(Work::Arrive { element: 2, flow: Some(0) }),
        follow_up(Work::Terminate),
        follow_up(Work::StartNext { process_id, message, correlation_key: key, tenant }),
        follow_up(Work::MatchBuffered { subscription: 16 }),
        handover,
    ]
}

#[test]
fn digests() {
    let mut lines = String::new();
    for row in rows() {
        let name = format!("{row:?}");
        let name = name.split('(').next().unwrap_or_default();
        let _ = writeln!(lines, "{name} {:032x}", canonical::digest_of(&row));
    }
    let _ = writeln!(lines, "counters {:032x}", canonical::digest_of_counters(1, 2));
    expect![[r#"
        Definition c5bcd02ef8851514b2e7c6bc58704e07
        StartSubscription cdc4f5f0d54feecf9401d7c2dce762c8
        Scope 8980daa88d26b04412639eb8789e06c0
        Scope 9350637fa55cc3db32d2c77af6f610d6
        Element c7277b9e030d760cc5e6b0ecab52b5ce
        Variable 7245ba8cf4c75bce01c4995027dd0e0f
        Job deb05ba3269ba7f0046deed928b98a2e
        Job 50a63731e20cb2dad377ef36c66fcbb8
        Step 466912e98b876198b72e36e5691fb566
        Timer 6aa273aada180e2078810d34e256026c
        Subscription a335e94821e5d2024dad37d8ca25399d
        Message 1c859dedfd980e6978e389bc021f3120
        MessageId c95efccc4ad71a7e9c3d2476c682dfeb
        StartLock 7c998bffbc5bbbe77333000d2c075ce4
        Unique e5d678513f4826f3e730ac3624cf1bff
        Incident 8e9eb36cb40d7dd0e3c927ae744a551d
        FollowUp 6f3456c54925f5cdfdc0d1c5e77efa30
        FollowUp ddf852db677c6a043aeeb8b1f6dac95e
        FollowUp a87800a99726d5fd99baf59603f2f91a
        FollowUp 9c82403802ad7202e56969870f33cf99
        FollowUp 3879a3579194c73c3a382565ca2dd93b
        Handover f4adf1495c98f493482853453a629fe6
        counters 9a33151b89443eb67f197b286d1b84f7
    "#]]
    .assert_eq(&lines);
}

/// States stand in digests and stores by number.
#[test]
fn numbers_of_states() {
    use JobState::*;
    let jobs = [Ready, Activated, Backoff, Failed, ErrorThrown, Completed, Canceled];
    assert_eq!(jobs.map(|state| state as u8), [0, 1, 2, 3, 4, 5, 6]);
    let scopes = [ScopeState::Active, ScopeState::Terminating, ScopeState::Completed, ScopeState::Canceled];
    assert_eq!(scopes.map(|state| state as u8), [0, 1, 2, 3]);
    assert_eq!([Phase::Entering, Phase::Active, Phase::Leaving].map(|phase| phase as u8), [0, 1, 2]);
    assert_eq!([AttachedKind::Timer, AttachedKind::Subscription].map(|kind| kind as u8), [0, 1]);
}

/// Each field counts: a row that differs in one value has another digest (what a row's kinds share is told apart).
#[test]
fn no_two_rows_have_one_digest() {
    let mut digests: Vec<u128> = rows().iter().map(canonical::digest_of).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), rows().len());
}

#[test]
fn deterministic_ids() {
    let mut lines = String::new();
    let mut show = |name: &str, bytes: &[u8]| lines.push_str(&format!("{name} {}\n", ids::hex(bytes)));
    show("hash", &ids::hash16(&[b"ab", b"c"]));
    show("other parts", &ids::hash16(&[b"a", b"bc"]));
    show("command", &ids::command_id(1_800_000_000_000, &[b"engine", b"timer", &[0; 8]]));
    show("lineage", &ids::lineage(&[7; 16], "charge", 1));
    show("next lineage", &ids::lineage(&[7; 16], "charge", 2));
    show("key", &ids::key(3, 9).to_be_bytes());
    show("epoch", &ids::epoch_floor(1_800_000_000_000, 1).to_be_bytes());
    show("epoch 2", &ids::epoch_floor(1_800_000_000_000, 2).to_be_bytes());
    assert_eq!(ids::partition_of(ids::key(3, 9)), 3);
    assert!(
        ids::key(4_095, ids::epoch_floor(4_102_444_800_000, ids::SEMANTICS)) <= i64::MAX as u64,
        "keys fit until 2100"
    );
    expect![[r#"
        hash a0968c014f3fc7bd1a7d9a8d1ad1177e
        other parts 405e183e2494cdbe2df89349cc0ffa5b
        command 01a3185c5000346a179cd8544f1a3777
        lineage 4c0259d5bd46e312a2e1aa127d4685c7
        next lineage 12b44707a4dc58dad09e8dd7b631443b
        key 0018000000000009
        epoch 00001f4190000000
        epoch 2 00001f44cc496800
    "#]]
    .assert_eq(&lines);
}

/// A job's lineage and a provider's view of it, from the first request on.
#[test]
fn lineage_of_a_job() {
    let mut world = crate::common::World::with(&[("p", "start s -> c\nsub c {\nstart s1 -> a\njob a\n}")]);
    world.origin = "k-1".into();
    world.start("p", "");
    expect!["7a610b47cfbb750eaf3732ad910cd9b4"].assert_eq(&ids::hex(&world.job("a").job.lineage));
}
