//! What stands on disks: one line per command and per event. A changed line is a changed format.
//! Next: `src/codec/command.rs`.

use std::sync::Arc;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use wf_core::command::{Adopted, CompleteItem, Holder, Quarantined, Resource, UniqueOn};
use wf_core::event::What;
use wf_core::rows::Subscription;
use wf_core::rows::{IncidentKind, Variables};
use wf_core::{Command, Event};
use wf_store::codec::*;

const MAX: u64 = i64::MAX as u64;

fn variables(pairs: &[(&str, &str)]) -> Variables {
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

fn holder() -> Holder {
    Holder { job: MAX, worker: "w \"1\"".into(), lease: Some(9) }
}

fn worker_commands() -> Vec<Command> {
    let vars = || variables(&[("amount", "1.10"), ("big", "123456789012345678901234567890"), ("é\n", r#"{"a": [1]}"#)]);
    vec![
        Command::ActivateJobs {
            job_type: "pay".into(),
            worker: "".into(),
            jobs_max: u32::MAX,
            lease_ms: 30_000,
            fetch: Some(vec!["a".into(), "b".into()]),
        },
        Command::ActivateJobs { job_type: "pay".into(), worker: "w".into(), jobs_max: 1, lease_ms: 1, fetch: None },
        Command::CompleteJob { holder: holder(), variables: vars() },
        Command::CompleteJob { holder: Holder { lease: None, ..holder() }, variables: vec![] },
        Command::CompleteJobs {
            worker: "w".into(),
            items: vec![
                CompleteItem { job: 1, lease: None, variables: vec![] },
                CompleteItem { job: 2, lease: Some(3), variables: variables(&[("x", "null")]) },
            ],
        },
        Command::FailJob {
            holder: holder(),
            message: "tab\there".into(),
            retries: Some(i32::MIN),
            backoff_ms: 5,
            variables: vec![],
        },
        Command::FailJob { holder: holder(), message: "".into(), retries: None, backoff_ms: 0, variables: vec![] },
        Command::ThrowError { holder: holder(), code: "E\\1".into(), message: "m".into(), variables: vec![] },
        Command::ExtendLease { holder: holder(), lease_ms: 1 },
        Command::RecordStep { holder: holder(), name: "charge".into(), result: r#"{"id":1e400}"#.into() },
    ]
}

fn client_commands() -> Vec<Command> {
    let resource = |name: &str, xml: &[u8]| Resource { name: name.into(), xml: xml.into(), processes: vec![] };
    vec![
        Command::Deploy {
            resources: vec![resource("a.bpmn", b"<a b=\"c\"/>\n"), resource("utf16.bpmn", &[0xff, 0xfe, 0x3c, 0])],
        },
        Command::StartInstance { process_id: "p".into(), version: None, variables: vec![], unique: None },
        Command::StartInstance {
            process_id: "p".into(),
            version: Some(3),
            variables: variables(&[("order", "\"A1\"")]),
            unique: Some(UniqueOn { variable: "order".into(), value: [0xab; 16] }),
        },
        Command::CancelInstance { instance: 4_503_599_627_370_497 },
        Command::SetVariables { instance: 1, scope: Some(2), variables: variables(&[("x", "1")]) },
        Command::SetVariables { instance: 1, scope: None, variables: vec![] },
        Command::PublishMessage {
            name: "paid".into(),
            correlation_key: "A1".into(),
            message_id: Some("m1".into()),
            ttl_ms: 0,
            dedup_ms: 86_400_000,
            variables: vec![],
        },
        Command::PublishMessage {
            name: "paid".into(),
            correlation_key: "".into(),
            message_id: None,
            ttl_ms: i64::MAX,
            dedup_ms: 0,
            variables: vec![],
        },
        Command::ResolveIncident { incident: 5, retries: Some(1) },
        Command::ResolveIncident { incident: 5, retries: None },
    ]
}

fn engine_commands() -> Vec<Command> {
    vec![
        Command::FireTimer { timer: 1, due: i64::MIN },
        Command::ExpireLease { job: 1, lease: MAX },
        Command::EndBackoff { job: 1, due: 7 },
        Command::ExpireMessage { message: 1 },
        Command::Continue { follow_up: 1 },
        Command::Quarantine { what: Quarantined::Timer(1), reason: "panicked: \u{1}".into() },
        Command::Quarantine { what: Quarantined::FollowUp(2), reason: "too big".into() },
        Command::Purge { before: 1, rows_max: 2 },
        Command::OpenEpoch { epoch: 2, previous_position: 40, previous_digest: [1; 16], semantics: 1 },
        Command::SetClock { now: -1, frozen: true },
        Command::Quarantine { what: Quarantined::Sent(3, MAX, 2), reason: "not to be read".into() },
        Command::AdoptDefinitions {
            tenant: "t".into(),
            definitions: vec![Adopted {
                key: 7,
                process_id: "p".into(),
                version: 2,
                resource: "a.bpmn".into(),
                xml: b"<a/>"[..].into(),
                deployed_at: 5,
                process: None,
            }],
        },
        Command::OpenSubscription {
            copy: Subscription {
                key: 9,
                host: 0,
                scope: 0,
                root: 8,
                tenant: "t".into(),
                process_id: "p".into(),
                message: "paid".into(),
                correlation_key: "A1".into(),
                target: 0,
            },
        },
        Command::CloseSubscription { subscription: 9, root: 8 },
        Command::Correlate {
            subscription: 9,
            message: 4,
            tenant: "acme".into(),
            name: "paid".into(),
            variables: variables(&[("x", "1.0")]),
        },
        Command::SettleCorrelation { subscription: 9, message: 4, accepted: false },
        put_aside(Quarantined::Handover { subscription: 9, message: 4 }),
        put_aside(Quarantined::Subscription(9)),
        put_aside(Quarantined::Copy(9)),
    ]
}

fn put_aside(what: Quarantined) -> Command {
    Command::Quarantine { what, reason: "boom".into() }
}

fn check_commands(commands: &[Command], expected: Expect) {
    let lines: Vec<String> = commands.iter().map(command_to_json).collect();
    expected.assert_eq(&lines.join("\n"));
    for (command, line) in commands.iter().zip(&lines) {
        let back = command_from_json(line).expect(line);
        assert_eq!(format!("{back:?}"), format!("{command:?}"));
    }
}

#[test]
fn commands_of_clients_are_stored_so() {
    check_commands(
        &client_commands(),
        expect![[r#"
        {"v":1,"verb":"deploy","resources":[{"name":"a.bpmn","xml":"<a b=\"c\"/>\n"},{"name":"utf16.bpmn","xmlHex":"fffe3c00"}]}
        {"v":1,"verb":"start-instance","processId":"p","variables":{}}
        {"v":1,"verb":"start-instance","processId":"p","version":3,"variables":{"order":"A1"},"unique":{"variable":"order","value":"abababababababababababababababab"}}
        {"v":1,"verb":"cancel-instance","instance":"4503599627370497"}
        {"v":1,"verb":"set-variables","instance":"1","scope":"2","variables":{"x":1}}
        {"v":1,"verb":"set-variables","instance":"1","variables":{}}
        {"v":1,"verb":"publish-message","name":"paid","correlationKey":"A1","messageId":"m1","ttlMs":0,"dedupMs":86400000,"variables":{}}
        {"v":1,"verb":"publish-message","name":"paid","correlationKey":"","ttlMs":9223372036854775807,"dedupMs":0,"variables":{}}
        {"v":1,"verb":"resolve-incident","incident":"5","retries":1}
        {"v":1,"verb":"resolve-incident","incident":"5"}"#]],
    );
}

#[test]
fn commands_of_workers_are_stored_so() {
    check_commands(
        &worker_commands(),
        expect![[r#"
        {"v":1,"verb":"activate-jobs","jobType":"pay","worker":"","jobsMax":4294967295,"leaseMs":30000,"fetch":["a","b"]}
        {"v":1,"verb":"activate-jobs","jobType":"pay","worker":"w","jobsMax":1,"leaseMs":1}
        {"v":1,"verb":"complete-job","job":"9223372036854775807","worker":"w \"1\"","lease":"9","variables":{"amount":1.10,"big":123456789012345678901234567890,"é\n":{"a": [1]}}}
        {"v":1,"verb":"complete-job","job":"9223372036854775807","worker":"w \"1\"","variables":{}}
        {"v":1,"verb":"complete-jobs","worker":"w","items":[{"job":"1","variables":{}},{"job":"2","lease":"3","variables":{"x":null}}]}
        {"v":1,"verb":"fail-job","job":"9223372036854775807","worker":"w \"1\"","lease":"9","message":"tab\there","retries":-2147483648,"backoffMs":5,"variables":{}}
        {"v":1,"verb":"fail-job","job":"9223372036854775807","worker":"w \"1\"","lease":"9","message":"","backoffMs":0,"variables":{}}
        {"v":1,"verb":"throw-error","job":"9223372036854775807","worker":"w \"1\"","lease":"9","code":"E\\1","message":"m","variables":{}}
        {"v":1,"verb":"extend-lease","job":"9223372036854775807","worker":"w \"1\"","lease":"9","leaseMs":1}
        {"v":1,"verb":"record-step","job":"9223372036854775807","worker":"w \"1\"","lease":"9","name":"charge","result":{"id":1e400}}"#]],
    );
}

#[test]
fn commands_of_the_engine_are_stored_so() {
    check_commands(
        &engine_commands(),
        expect![[r#"
            {"v":1,"verb":"fire-timer","timer":"1","due":-9223372036854775808}
            {"v":1,"verb":"expire-lease","job":"1","lease":"9223372036854775807"}
            {"v":1,"verb":"end-backoff","job":"1","due":7}
            {"v":1,"verb":"expire-message","message":"1"}
            {"v":1,"verb":"continue","followUp":"1"}
            {"v":1,"verb":"quarantine","timer":"1","reason":"panicked: \u0001"}
            {"v":1,"verb":"quarantine","followUp":"2","reason":"too big"}
            {"v":1,"verb":"purge","before":1,"rowsMax":2}
            {"v":1,"verb":"open-epoch","epoch":"2","previousPosition":"40","previousDigest":"01010101010101010101010101010101","semantics":1}
            {"v":1,"verb":"set-clock","now":-1,"frozen":true}
            {"v":1,"verb":"quarantine","source":3,"position":"9223372036854775807","n":2,"reason":"not to be read"}
            {"v":1,"verb":"adopt-definitions","tenant":"t","definitions":[{"key":"7","processId":"p","version":2,"resource":"a.bpmn","deployedAt":5,"xml":"<a/>"}]}
            {"v":1,"verb":"open-subscription","subscription":"9","root":"8","host":"0","tenant":"t","processId":"p","message":"paid","correlationKey":"A1"}
            {"v":1,"verb":"close-subscription","subscription":"9","root":"8"}
            {"v":1,"verb":"correlate","subscription":"9","message":"4","tenant":"acme","name":"paid","variables":{"x":1.0}}
            {"v":1,"verb":"settle-correlation","subscription":"9","message":"4","accepted":false}
            {"v":1,"verb":"quarantine","subscription":"9","message":"4","reason":"boom"}
            {"v":1,"verb":"quarantine","subscription":"9","reason":"boom"}
            {"v":1,"verb":"quarantine","copy":"9","reason":"boom"}"#]],
    );
}

#[test]
fn origin_stands_beside_the_command() {
    let text = logged_to_json(&Command::CancelInstance { instance: 1 }, "key \"7\"");
    expect![[r#"{"v":1,"verb":"cancel-instance","origin":"key \"7\"","instance":"1"}"#]].assert_eq(&text);
    let (command, origin) = logged_from_json(&text).expect("readable");
    assert_eq!((command.verb(), &*origin), ("cancel-instance", "key \"7\""));
}

#[test]
fn what_is_not_understood_is_refused() {
    let refusals: Vec<String> = [
        "",
        "[]",
        r#"{"verb":"continue","followUp":"1"}"#,
        r#"{"v":2,"verb":"continue","followUp":"1"}"#,
        r#"{"v":1,"verb":"dance"}"#,
        r#"{"v":1,"verb":"continue"}"#,
        r#"{"v":1,"verb":"continue","followUp":1}"#,
        r#"{"v":1,"verb":"continue","followUp":"18446744073709551616"}"#,
        r#"{"v":1,"verb":"continue","followUp":"1","why":1}"#,
        r#"{"v":1,"verb":"start-instance","processId":"p","variables":[]}"#,
        r#"{"v":1,"verb":"open-epoch","epoch":"1","previousPosition":"0","previousDigest":"0é","semantics":1}"#,
    ]
    .iter()
    .map(|text| format!("{text} -> {}", command_from_json(text).expect_err(text)))
    .collect();
    expect![[r#"
         -> malformed JSON: EOF while parsing a value at line 1 column 0
        [] -> malformed JSON: invalid type: sequence, expected a map at line 1 column 0
        {"verb":"continue","followUp":"1"} -> member "v" is missing
        {"v":2,"verb":"continue","followUp":"1"} -> written in version 2, which this program does not read
        {"v":1,"verb":"dance"} -> unknown verb "dance"
        {"v":1,"verb":"continue"} -> member "followUp" is missing
        {"v":1,"verb":"continue","followUp":1} -> member "followUp": invalid type: integer `1`, expected a borrowed string at line 1 column 1
        {"v":1,"verb":"continue","followUp":"18446744073709551616"} -> member "followUp": not a decimal string of 64 bits
        {"v":1,"verb":"continue","followUp":"1","why":1} -> member "why" is unknown
        {"v":1,"verb":"start-instance","processId":"p","variables":[]} -> malformed JSON: invalid type: sequence, expected an object at line 1 column 0
        {"v":1,"verb":"open-epoch","epoch":"1","previousPosition":"0","previousDigest":"0é","semantics":1} -> member "previousDigest": not 32 hexadecimal digits"#]].assert_eq(&refusals.join("\n"));
}

#[test]
fn events_are_stored_so() {
    let lines: Vec<String> = every_event()
        .into_iter()
        .map(|what| {
            let event = Event { resource: MAX, root: 0, what };
            format!("{} {}", event.what.name(), event_payload_json(&event))
        })
        .collect();
    expect![[r#"
        definition.deployed {"processDefinitionId":"pay","version":7,"resource":"pay.bpmn"}
        instance.started {"processDefinitionId":"pay","version":7,"variables":{"x":1.0}}
        instance.completed {"processDefinitionId":"pay","version":7}
        instance.canceled {"processDefinitionId":"pay","version":7}
        element.activated {"elementId":"pay"}
        element.completed {"elementId":"pay"}
        element.terminated {"elementId":"pay"}
        variables.set {"variables":{}}
        job.created {"jobType":"t","elementId":"pay"}
        job.activated {"worker":"w","lease":"12","deadline":34}
        job.completed {"jobType":"t","worker":"w"}
        job.failed {"retries":-1,"message":"no"}
        job.error-thrown {"code":"E","caughtBy":"pay"}
        job.error-thrown {"code":"E"}
        job.canceled {}
        job.lease-expired {"worker":"w"}
        job.lease-extended {"deadline":34}
        job.ready {}
        job.step-recorded {"name":"s"}
        timer.scheduled {"elementId":"pay","due":5}
        timer.fired {"elementId":"pay"}
        timer.canceled {}
        subscription.opened {"message":"m","correlationKey":"c"}
        subscription.closed {}
        message.published {"name":"m","correlationKey":"c","messageId":"i"}
        message.published {"name":"m","correlationKey":"c"}
        message.correlated {"name":"m","elementId":"pay"}
        message.expired {}
        incident.created {"kind":"IO_MAPPING_ERROR","elementId":"pay","message":"m"}
        incident.created {"kind":"JOB_NO_RETRIES","elementId":"pay","message":"m","job":"8"}
        incident.resolved {}
        follow-up.scheduled {}
        follow-up.done {}
        command.quarantined {"reason":"r"}
        retention.purged {"rows":3}
        epoch.opened {"epoch":"2","previousPosition":"1"}
        clock.set {"now":0}"#]]
    .assert_eq(&lines.join("\n"));
    let two = [
        Event { resource: 2, root: 1, what: What::JobReady },
        Event { resource: 3, root: 0, what: What::TimerFired { element_id: "\u{7f}late\u{2028}".into() } },
    ];
    expect![[r#"[{"type":"job.ready","resource":"2","root":"1","payload":{}},{"type":"timer.fired","resource":"3","payload":{"elementId":"late "}}]"#]].assert_eq(&events_to_json(&two));
    assert_eq!(events_to_json(&[]), "[]");
}

fn every_event() -> Vec<What> {
    let (id, version) = (|| "pay".into(), 7);
    vec![
        What::DefinitionDeployed { process_id: id(), version, resource: "pay.bpmn".into() },
        What::InstanceStarted { process_id: id(), version, variables: variables(&[("x", "1.0")]) },
        What::InstanceCompleted { process_id: id(), version },
        What::InstanceCanceled { process_id: id(), version },
        What::ElementActivated { element_id: id() },
        What::ElementCompleted { element_id: id() },
        What::ElementTerminated { element_id: id() },
        What::VariablesSet { variables: vec![] },
        What::JobCreated { job_type: "t".into(), element_id: id() },
        What::JobActivated { worker: "w".into(), lease: 12, deadline: 34 },
        What::JobCompleted { job_type: "t".into(), worker: "w".into() },
        What::JobFailed { retries: -1, message: "no".into() },
        What::JobErrorThrown { code: "E".into(), caught_by: Some(id()) },
        What::JobErrorThrown { code: "E".into(), caught_by: None },
        What::JobCanceled,
        What::JobLeaseExpired { worker: "w".into() },
        What::JobLeaseExtended { deadline: 34 },
        What::JobReady,
        What::JobStepRecorded { name: "s".into() },
        What::TimerScheduled { element_id: id(), due: 5 },
        What::TimerFired { element_id: id() },
        What::TimerCanceled,
        What::SubscriptionOpened { message: "m".into(), correlation_key: "c".into() },
        What::SubscriptionClosed,
        What::MessagePublished { name: "m".into(), correlation_key: "c".into(), message_id: Some("i".into()) },
        What::MessagePublished { name: "m".into(), correlation_key: "c".into(), message_id: None },
        What::MessageCorrelated { name: "m".into(), element_id: id() },
        What::MessageExpired,
        What::IncidentCreated { kind: IncidentKind::Mapping, element_id: id(), message: "m".into(), job: 0 },
        What::IncidentCreated { kind: IncidentKind::JobNoRetries, element_id: id(), message: "m".into(), job: 8 },
        What::IncidentResolved,
        What::FollowUpScheduled,
        What::FollowUpDone,
        What::Quarantined { reason: "r".into() },
        What::Purged { rows: 3 },
        What::EpochOpened { epoch: 2, previous_position: 1 },
        What::ClockSet { now: 0 },
    ]
}

#[test]
fn headers_keep_their_order_and_repeats() {
    let headers: Vec<(Arc<str>, Arc<str>)> =
        vec![("link".into(), "<a>; rel=\"b\"".into()), ("etag".into(), "".into()), ("link".into(), "é".into())];
    let text = headers_to_json(&headers);
    expect![[r#"[["link","<a>; rel=\"b\""],["etag",""],["link","é"]]"#]].assert_eq(&text);
    assert_eq!(headers_from_json(&text), Ok(headers));
    assert_eq!(headers_from_json(&headers_to_json(&[])), Ok(vec![]));
}

#[test]
fn scalars_are_found_by_their_text() {
    let table = [
        (r#""a\"b\u00e9""#, Some("a\"bé")),
        (r#""""#, Some("")),
        ("1.10", Some("1.10")),
        ("-0", Some("-0")),
        ("true", Some("true")),
        ("null", Some("null")),
        ("{}", None),
        ("[1]", None),
        ("nonsense", None),
        ("", None),
    ];
    for (json, text) in table {
        assert_eq!(scalar_text(json).as_deref(), text, "{json}");
    }
}

/// The door bounds depth, the log must not: what was committed is readable.
#[test]
fn depth_is_no_obstacle() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let command = Command::SetVariables { instance: 1, scope: None, variables: variables(&[("deep", &deep)]) };
    let back = command_from_json(&command_to_json(&command)).expect("readable");
    assert_eq!(command_to_json(&back), command_to_json(&command));
}

proptest! {
    /// L4.1: what a command said is what a replay reads, to the last digit.
    #[test]
    fn commands_come_back_as_they_went(command in any_command()) {
        let text = command_to_json(&command);
        let back = command_from_json(&text).expect("readable");
        prop_assert_eq!(format!("{back:?}"), format!("{command:?}"));
        prop_assert_eq!(command_to_json(&back), text);
    }
}

fn any_command() -> impl Strategy<Value = Command> {
    let lease = || prop::option::of(any::<u64>());
    let holder =
        || (any::<u64>(), ".*", lease()).prop_map(|(job, worker, lease)| Holder { job, worker: worker.into(), lease });
    let item = (any::<u64>(), lease(), any_variables()).prop_map(|(job, lease, variables)| CompleteItem {
        job,
        lease,
        variables,
    });
    let unique = (".*", any::<[u8; 16]>()).prop_map(|(variable, value)| UniqueOn { variable: variable.into(), value });
    prop_oneof![
        (".*", prop::option::of(any::<u32>()), any_variables(), prop::option::of(unique)).prop_map(
            |(process_id, version, variables, unique)| Command::StartInstance {
                process_id: process_id.into(),
                version,
                variables,
                unique
            }
        ),
        (".*", prop::collection::vec(item, 0..3))
            .prop_map(|(worker, items)| Command::CompleteJobs { worker: worker.into(), items }),
        (holder(), ".*", prop::option::of(any::<i32>()), any::<i64>(), any_variables()).prop_map(
            |(holder, message, retries, backoff_ms, variables)| Command::FailJob {
                holder,
                message: message.into(),
                retries,
                backoff_ms,
                variables
            }
        ),
        (holder(), ".*", any_json()).prop_map(|(holder, name, result)| Command::RecordStep {
            holder,
            name: name.into(),
            result: result.into()
        }),
        prop::collection::vec((".*", any::<Vec<u8>>()), 0..3).prop_map(|resources| Command::Deploy {
            resources: resources
                .into_iter()
                .map(|(name, xml)| Resource { name: name.into(), xml: xml.into(), processes: vec![] })
                .collect()
        }),
    ]
}

fn any_variables() -> impl Strategy<Value = Variables> {
    prop::collection::btree_map(".*", any_json(), 0..4)
        .prop_map(|map| map.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
}

/// JSON with numbers that no double holds, and white space that nobody takes away.
fn any_json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        ".*".prop_map(|text| serde_json::to_string(&text).expect("text")),
    ];
    scalar.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(" , "))),
            (".*", inner)
                .prop_map(|(name, value)| format!("{{ {}: {value} }}", serde_json::to_string(&name).expect("text"))),
        ]
    })
}
