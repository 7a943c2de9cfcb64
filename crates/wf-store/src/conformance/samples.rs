//! Rows to begin with, and rows with values at the edge of what their types hold.
//! They mean nothing to the engine. Next: `rows.rs`, `ranges.rs`.

use std::sync::Arc;

use wf_core::rows::*;
use wf_core::{Key, Row};

use crate::conformance::world::TENANT;

/// The greatest key, position and count that a store must hold.
pub const KEY_MAX: u64 = i64::MAX as u64;
/// Text with everything that quoting, patterns, encodings and collations may stumble over.
pub const ODD: &str = " é🦀\u{10ffff}\u{fffd}'\"\\%_;--\n\t\u{1}\u{7f} ";

pub fn row<T: Stored>(row: T) -> Row {
    T::wrap(Arc::new(row))
}

pub fn definition(key: Key, process_id: &str, version: u32) -> Definition {
    Definition {
        key,
        tenant: TENANT.into(),
        process_id: process_id.into(),
        version,
        resource: "order.bpmn".into(),
        checksum: [7; 16],
        xml: Arc::from(&b"<definitions/>"[..]),
        deployed_at: 5,
    }
}

pub fn root(key: Key) -> Scope {
    Scope {
        key,
        root: key,
        parent: 0,
        definition: 1,
        element: 0,
        state: ScopeState::Active,
        active: 1,
        joins: Vec::new(),
        visits: Vec::new(),
        lineage: [3; 16],
        after: After::Nothing,
        instance: Some(Arc::new(instance())),
    }
}

pub fn instance() -> Instance {
    Instance {
        tenant: TENANT.into(),
        process_id: "order".into(),
        version: 1,
        started_at: 10,
        ended_at: 0,
        started_position: 0,
        ended_position: 0,
        unique: None,
        start_correlation: None,
        steps: 0,
    }
}

pub fn sub_scope(key: Key, root: Key) -> Scope {
    Scope { key, parent: root, element: 4, instance: None, ..self::root(root) }
}

pub fn element(scope: Key, key: Key) -> Element {
    Element {
        key,
        scope,
        root: scope,
        element: 2,
        phase: Phase::Active,
        job: 0,
        incident: 0,
        has_locals: false,
        attached: Vec::new(),
    }
}

pub fn variable(scope: Key, name: &str, value: &str) -> Variable {
    Variable { scope, name: name.into(), value: value.into() }
}

pub fn job(key: Key) -> Job {
    Job {
        key,
        element_key: 3,
        scope: 2,
        root: 2,
        tenant: TENANT.into(),
        definition: 1,
        element: 2,
        job_type: "pay".into(),
        state: JobState::Ready,
        retries: 3,
        priority: 0,
        worker: "".into(),
        lease: 0,
        due: 0,
        headers: "".into(),
        lineage: [4; 16],
        steps: 0,
        completion: None,
    }
}

pub fn step(job: Key, name: &str) -> Step {
    Step { job, name: name.into(), result: "1".into() }
}

pub fn timer(key: Key, due: i64) -> Timer {
    Timer { key, host: 3, scope: 2, root: 2, target: 5, due, repeats: 0, interval: "".into() }
}

pub fn subscription(key: Key, message: &str, correlation_key: &str) -> Subscription {
    Subscription {
        key,
        host: 3,
        scope: 2,
        root: 2,
        tenant: TENANT.into(),
        process_id: "order".into(),
        message: message.into(),
        correlation_key: correlation_key.into(),
        target: 5,
    }
}

pub fn message(key: Key, name: &str, correlation_key: &str) -> Message {
    Message {
        key,
        tenant: TENANT.into(),
        name: name.into(),
        correlation_key: correlation_key.into(),
        variables: Vec::new(),
        expires_at: 100,
        correlated: Vec::new(),
    }
}

pub fn message_id(key: Key, name: &str, message_id: &str) -> MessageId {
    MessageId {
        tenant: TENANT.into(),
        name: name.into(),
        message_id: message_id.into(),
        key,
        content: [5; 16],
        expires_at: 100,
    }
}

pub fn incident(key: Key, root: Key) -> Incident {
    Incident {
        key,
        tenant: TENANT.into(),
        root,
        scope: root,
        element_key: 3,
        element_id: "charge".into(),
        job: 0,
        kind: IncidentKind::Mapping,
        message: "no such variable".into(),
        created_at: 20,
    }
}

pub fn follow_up(key: Key, work: Work) -> FollowUp {
    FollowUp { key, root: 2, scope: 2, work }
}

/// At least two values for one id of every table: an insert and an update.
pub fn odd_rows() -> Vec<Vec<Row>> {
    let long: Text = ODD.repeat(4000).into();
    let mut all = vec![definitions(&long), start_subscriptions(), small_tables(), unique_tables()];
    all.extend(scopes());
    all.extend([elements(), variables(&long), jobs(), steps(&long), timers(), subscriptions(), messages()]);
    all.extend([message_ids(), incidents(&long), follow_ups()]);
    all
}

fn definitions(long: &Text) -> Vec<Row> {
    let greatest = Definition {
        tenant: "".into(),
        process_id: "".into(),
        version: u32::MAX,
        resource: long.clone(),
        checksum: [255; 16],
        xml: Arc::from((0..=255).collect::<Vec<u8>>()),
        deployed_at: i64::MIN,
        ..definition(KEY_MAX, "", 0)
    };
    let emptied =
        Definition { xml: Arc::from(&b""[..]), deployed_at: i64::MAX, process_id: ODD.into(), ..greatest.clone() };
    vec![row(greatest), row(emptied)]
}

fn start_subscriptions() -> Vec<Row> {
    let least =
        StartSubscription { tenant: ODD.into(), message: "".into(), process_id: ODD.into(), definition: 0, element: 0 };
    let greatest = StartSubscription { definition: KEY_MAX, element: u32::MAX, ..least.clone() };
    vec![row(least), row(greatest)]
}

fn scopes() -> [Vec<Row>; 2] {
    let full = Instance {
        tenant: "".into(),
        process_id: ODD.into(),
        version: u32::MAX,
        started_at: i64::MIN,
        ended_at: i64::MAX,
        started_position: KEY_MAX,
        ended_position: KEY_MAX,
        unique: Some((ODD.into(), [0; 16])),
        start_correlation: Some("".into()),
        steps: KEY_MAX,
    };
    let ended = Scope {
        definition: KEY_MAX,
        element: u32::MAX,
        state: ScopeState::Completed,
        active: u32::MAX,
        joins: vec![(0, 1), (u32::MAX, u32::MAX)],
        visits: vec![(1, 1), (u32::MAX, u32::MAX)],
        lineage: [255; 16],
        instance: Some(Arc::new(full.clone())),
        ..root(KEY_MAX)
    };
    let canceled = Scope { state: ScopeState::Canceled, after: After::Cancel, ..ended.clone() };
    let correlated = Instance { unique: None, start_correlation: Some(ODD.into()), ..full };
    let terminating = Scope {
        state: ScopeState::Terminating,
        after: After::Complete,
        instance: Some(Arc::new(correlated)),
        ..root(KEY_MAX)
    };
    let sub = sub_scope(KEY_MAX - 1, KEY_MAX);
    let leaving = Scope { after: After::Continue(u32::MAX), state: ScopeState::Terminating, ..sub.clone() };
    let first = Scope { after: After::Continue(0), state: ScopeState::Completed, ..sub.clone() };
    [vec![row(root(KEY_MAX)), row(ended), row(canceled), row(terminating)], vec![row(sub), row(leaving), row(first)]]
}

fn elements() -> Vec<Row> {
    let attached = |kind, key, target| Attached { kind, key, target };
    let entering = Element { phase: Phase::Entering, root: 0, element: 0, ..element(KEY_MAX, KEY_MAX) };
    let full = Element {
        root: KEY_MAX,
        element: u32::MAX,
        phase: Phase::Leaving,
        job: KEY_MAX,
        incident: KEY_MAX,
        has_locals: true,
        attached: vec![
            attached(AttachedKind::Subscription, KEY_MAX, u32::MAX),
            attached(AttachedKind::Timer, 1, 0),
            attached(AttachedKind::Timer, 1, 2),
        ],
        ..entering.clone()
    };
    vec![row(entering), row(full), row(element(KEY_MAX, KEY_MAX))]
}

fn variables(long: &Text) -> Vec<Row> {
    let text = serde_json::Value::from(&**long).to_string();
    let values =
        ["null", "1.10", "-0", "1e400", "123456789012345678901234567890", "\"\"", "{\"b\": [ ],\"a\":1}", &text];
    values.iter().map(|value| row(variable(KEY_MAX, ODD, value))).collect()
}

fn jobs() -> Vec<Row> {
    let greatest = Job {
        element_key: KEY_MAX,
        scope: KEY_MAX,
        root: KEY_MAX,
        tenant: "".into(),
        definition: KEY_MAX,
        element: u32::MAX,
        job_type: ODD.into(),
        retries: i32::MAX,
        priority: i32::MAX,
        worker: ODD.into(),
        lease: KEY_MAX,
        due: i64::MAX,
        headers: "{\"a\":\"é\"}".into(),
        lineage: [255; 16],
        steps: u32::MAX,
        completion: Some([0; 16]),
        ..job(KEY_MAX)
    };
    let least = Job { retries: i32::MIN, priority: i32::MIN, due: i64::MIN, job_type: "".into(), ..job(KEY_MAX) };
    let in_state = |state| row(Job { state, ..least.clone() });
    let mut rows = vec![row(greatest)];
    rows.extend(JobState::ALL.map(in_state));
    rows
}

fn steps(long: &Text) -> Vec<Row> {
    let text = serde_json::Value::from(&**long).to_string();
    vec![row(step(KEY_MAX, ODD)), row(Step { result: text.into(), ..step(KEY_MAX, ODD) })]
}

fn timers() -> Vec<Row> {
    let greatest = Timer {
        host: KEY_MAX,
        scope: KEY_MAX,
        root: KEY_MAX,
        target: u32::MAX,
        repeats: i32::MAX,
        interval: "P1DT0.001S".into(),
        ..timer(KEY_MAX, i64::MAX)
    };
    vec![row(greatest), row(Timer { repeats: -1, ..timer(KEY_MAX, i64::MIN) })]
}

fn subscriptions() -> Vec<Row> {
    let greatest = Subscription {
        host: KEY_MAX,
        scope: KEY_MAX,
        root: KEY_MAX,
        tenant: "".into(),
        process_id: ODD.into(),
        target: u32::MAX,
        ..subscription(KEY_MAX, ODD, ODD)
    };
    vec![row(greatest), row(subscription(KEY_MAX, "", ""))]
}

fn messages() -> Vec<Row> {
    let full = Message {
        tenant: ODD.into(),
        variables: vec![("".into(), "1.10".into()), (ODD.into(), "{\"a\": 1e400}".into())],
        expires_at: i64::MAX,
        correlated: vec!["".into(), ODD.into()],
        ..message(KEY_MAX, ODD, "")
    };
    vec![row(full), row(Message { expires_at: i64::MIN, ..message(KEY_MAX, "", ODD) })]
}

/// Names here hold no control character: the range joins them with one.
fn message_ids() -> Vec<Row> {
    let least = MessageId { expires_at: i64::MIN, tenant: "".into(), ..message_id(0, "é'", "") };
    let greatest = MessageId { key: KEY_MAX, expires_at: i64::MAX, content: [255; 16], ..least.clone() };
    vec![row(least), row(greatest)]
}

fn incidents(long: &Text) -> Vec<Row> {
    let of_kind = |kind| row(Incident { kind, ..incident(KEY_MAX, 0) });
    let mut rows: Vec<Row> = IncidentKind::ALL.map(of_kind).into();
    rows.push(row(Incident {
        tenant: "".into(),
        scope: KEY_MAX,
        element_key: KEY_MAX,
        element_id: ODD.into(),
        job: KEY_MAX,
        message: long.clone(),
        created_at: i64::MIN,
        ..incident(KEY_MAX, KEY_MAX)
    }));
    rows
}

fn follow_ups() -> Vec<Row> {
    let works = [
        Work::Arrive { element: 0, flow: None },
        Work::Arrive { element: u32::MAX, flow: Some(0) },
        Work::Arrive { element: 1, flow: Some(u32::MAX) },
        Work::Terminate,
        Work::MatchBuffered { subscription: KEY_MAX },
        Work::StartNext { process_id: ODD.into(), message: "".into(), correlation_key: ODD.into(), tenant: "".into() },
    ];
    let full = FollowUp { root: KEY_MAX, scope: KEY_MAX, ..follow_up(KEY_MAX, Work::Terminate) };
    works.into_iter().map(|work| row(follow_up(KEY_MAX, work))).chain([row(full)]).collect()
}

fn small_tables() -> Vec<Row> {
    let lock = StartLock { tenant: "".into(), process_id: ODD.into(), correlation_key: "".into(), root: 0 };
    let handover = Handover {
        subscription: KEY_MAX,
        message: 0,
        root: KEY_MAX,
        tenant: ODD.into(),
        process_id: "".into(),
        name: ODD.into(),
        correlation_key: "".into(),
        variables: vec![(ODD.into(), "1.10".into())],
        expires_at: i64::MAX,
    };
    let other = Handover { root: 0, variables: vec![], expires_at: 0, ..handover.clone() };
    vec![row(lock.clone()), row(StartLock { root: KEY_MAX, ..lock }), row(handover), row(other)]
}

fn unique_tables() -> Vec<Row> {
    let unique = Unique { tenant: ODD.into(), process_id: "".into(), variable: ODD.into(), value: [255; 16], root: 0 };
    vec![row(unique.clone()), row(Unique { root: KEY_MAX, ..unique })]
}
