//! Real files of other projects, and one of ours: what they compile to, or why they are refused.
//! Knows the graph only as text. Next: `support.rs`.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use wf_model::{Boundary, Element, End, JobSpec, Kind, MessageRef, Process, Start, Text, Timer, Trigger, compile};

fn check(file: &str, expected: Expect) {
    let path = format!("{}/../../tests/corpus/{file}.bpmn", env!("CARGO_MANIFEST_DIR"));
    check_xml(&std::fs::read(path).unwrap(), expected);
}

fn check_xml(xml: &[u8], expected: Expect) {
    expected.assert_eq(&match compile(xml) {
        Ok(processes) => processes.iter().map(summary).collect(),
        Err(problems) => problems.iter().map(|problem| format!("{problem}\n")).collect::<String>(),
    });
}

fn summary(process: &Process) -> String {
    let mut out = format!("process {}\n", process.process_id);
    for element in process.elements.iter().skip(1) {
        let id = |index| process.element(index).map_or("?", |element: &Element| &element.id);
        writeln!(out, "  {}:{} in {}: {}", element.line, element.id, id(element.scope), kind(element, &id)).unwrap();
        for (way, mappings) in [("in", &element.inputs), ("out", &element.outputs)] {
            for mapping in mappings {
                writeln!(out, "    {way} {} = {}", mapping.target.join("."), mapping.source.source()).unwrap();
            }
        }
        for flow in element.outgoing.iter().filter_map(|flow| process.flow(*flow)) {
            let condition = flow.condition.as_ref().map(|condition| format!(" if {}", condition.source()));
            writeln!(out, "    → {}{}", id(flow.target), condition.unwrap_or_default()).unwrap();
        }
        if !element.boundaries.is_empty() {
            let events: Vec<_> = element.boundaries.iter().map(|event| id(*event)).collect();
            writeln!(out, "    boundary events {}", events.join(", ")).unwrap();
        }
    }
    out
}

fn kind<'p>(element: &'p Element, id: &impl Fn(u32) -> &'p str) -> String {
    match &element.kind {
        Kind::Scope(scope) => format!("scope, starts at {}", scope.none_start.map_or("?", id)),
        Kind::Start(Start::None) => "start".into(),
        Kind::Start(Start::Message(message)) => format!("start by {}", awaited(message)),
        Kind::End(End::None) => "end".into(),
        Kind::End(End::Terminate) => "terminate".into(),
        Kind::End(End::Error { code }) => format!("error {}", text(code)),
        Kind::End(End::Job(spec)) => format!("end with {}", job(spec)),
        Kind::Job(spec) => job(spec),
        Kind::Pass => "pass".into(),
        Kind::Script { expression, result } => format!("{result} = {}", expression.source()),
        Kind::CatchMessage(message) => awaited(message),
        Kind::CatchTimer(found) => timer(found),
        Kind::Exclusive { default } => format!("exclusive, default {default:?}"),
        Kind::Parallel => "parallel".into(),
        Kind::EventGateway => "event gateway".into(),
        Kind::Boundary(Boundary { attached_to, interrupting, trigger }) => {
            let how = if *interrupting { "interrupts" } else { "beside" };
            format!("{how} {} on {}", id(*attached_to), caught(trigger))
        }
    }
}

fn caught(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Error(code) => format!("error {}", code.as_deref().unwrap_or("*")),
        Trigger::Timer(found) => timer(found),
        Trigger::Message(message) => awaited(message),
    }
}

fn job(spec: &JobSpec) -> String {
    let mut out = format!("job {}, {} retries", text(&spec.job_type), text(&spec.retries));
    for (key, value) in &spec.headers {
        write!(out, ", {key}={value}").unwrap();
    }
    for (key, value) in &spec.computed_headers {
        write!(out, ", {key}={}", text(value)).unwrap();
    }
    out
}

fn awaited(message: &MessageRef) -> String {
    let key = message.correlation_key.as_ref().map(|key| format!(" for {}", key.source()));
    format!("message {}{}", text(&message.name), key.unwrap_or_default())
}

fn timer(timer: &Timer) -> String {
    format!("{:?} {}", timer.kind, text(&timer.text))
}

fn text(text: &Text) -> String {
    match text {
        Text::Literal(literal) => literal.to_string(),
        Text::Feel(expression) => format!("={}", expression.source()),
    }
}

#[test]
fn file_01_is_refused() {
    check(
        "01-newsletter-compensation-timers",
        expect![[r#"
        line 75, endEvent_MembershipActivated: signal events are not executed yet
        line 127, endEvent_MembershipDeclined: compensation events are not executed yet
        line 129, serviceTask_RevokeClaim: a compensation handler (isForCompensation) is not executed yet
        line 135, event_ClaimCompensation: compensation events are not executed yet
    "#]],
    );
}

#[test]
fn file_02_payment() {
    check(
        "02-payment-error-timer-receive",
        expect![[r#"
        process payment
          4:ServiceTask_10hm6pn in payment: job chargeCreditCard, 3 retries, delegateExpression=#{chargeCreditCardAdapter}
            → CreditCardChargedEvent
            boundary events BoundaryEvent_0s43v6m
          15:BoundaryEvent_0s43v6m in payment: interrupts ServiceTask_10hm6pn on error Error_PaymentError
            → Task_0sdkq4x
          23:Task_0sdkq4x in payment: job noop, 3 retries
            → Task_1yuae6d
          30:Task_1yuae6d in payment: message Msg_CreditCardUpdated for traceId
            → ServiceTask_10hm6pn
            boundary events BoundaryEvent_025mscv
          34:BoundaryEvent_025mscv in payment: interrupts Task_1yuae6d on Duration P7D
            → EndEvent_1no2aoc
          43:ExclusiveGateway_0esmlay in payment: exclusive, default None
            → ServiceTask_10hm6pn if false
            → EndEvent_0769is9 if true
          54:Task_0e2306u in payment: job noop, 3 retries
            → CustomerCreditUsedEvent
          62:StartEvent_1 in payment: start by message RetrievePaymentCommand
            → Task_0e2306u
          67:EndEvent_0769is9 in payment: end with job paymentReceived, 3 retries
          75:CustomerCreditUsedEvent in payment: job emitEvent, 3 retries, eventName=CustomerCreditUsed
            → ExclusiveGateway_0esmlay
          86:CreditCardChargedEvent in payment: job emitEvent, 3 retries, eventName=CreditCardCharged
            → EndEvent_0769is9
          97:EndEvent_1no2aoc in payment: end
    "#]],
    );
}

#[test]
fn file_03_is_refused() {
    check(
        "03-mixed-boundaries-timerstart",
        expect![[r#"
        line 14, Event_1ov01i3: a timer start event is not executed yet
    "#]],
    );
}

#[test]
fn file_04_is_refused() {
    check(
        "04-escalation-subprocess",
        expect![[r#"
        line 21, Event_1idwx9s: escalation events are not executed yet
        line 31, Event_1a5cyhv: escalation events are not executed yet
    "#]],
    );
}

#[test]
fn file_05_is_refused() {
    check(
        "05-signal-throw",
        expect![[r#"
        line 15, Event_1wkoo3z: signal events are not executed yet
    "#]],
    );
}

#[test]
fn file_06_is_refused() {
    check(
        "06-mi-sequential-callactivity-error",
        expect![[r#"
        line 31, Activity_1neh8m1: multi-instance is not executed yet
        line 36, Activity_1a7lifm: a call activity is not executed yet
    "#]],
    );
}

#[test]
fn file_07_retry_loop() {
    check(
        "07-timer-boundary-retry-loop",
        expect![[r#"
        process actionRunner
          4:Event_1hncl4g in actionRunner: start
            out successfulRun = true
            out timeout = if (is defined(action.provider.timeout)) then "PT" + string(action.provider.timeout) + "S" else "PT1H"
            → Activity_1xzr6io
          13:Activity_1xzr6io in actionRunner: job =action.provider.path, 3 retries
            in provider = action.provider
            → Gateway_1d8stud
            boundary events Event_0owkcly
          23:Gateway_1d8stud in actionRunner: exclusive, default Some(3)
            → Event_0zo9lot if is defined(action.pauses)
            → Gateway_0gybtdt
          28:Gateway_0gybtdt in actionRunner: exclusive, default None
            → Event_13pyqn2
          33:Event_13pyqn2 in actionRunner: end
          36:Event_0zo9lot in actionRunner: Duration =duration("PT" + string(action.pauses.after) + "S")
            → Gateway_0gybtdt
          51:Event_0owkcly in actionRunner: interrupts Activity_1xzr6io on Duration =duration(timeout)
            out testReport.failureMessages = append(testReport.failureMessages, (" Action with name: '" + action.name + "' timed out after " + timeout + "."))
            out successfulRun = false
            → Event_1quq7fu
          64:Event_1quq7fu in actionRunner: end
    "#]],
    );
}

#[test]
fn file_08_order() {
    check(
        "08-order-eventgateway-parallel",
        expect![[r#"
        process ordering-items-workflow
          5:StartEvent_1 in ordering-items-workflow: start
            → validate-order
          11:Gateway_1p6s0kg in ordering-items-workflow: event gateway
            → wait-5min-timer
            → payment-received
          16:payment-received in ordering-items-workflow: message payment-received for orderId
            → Gateway_09cx3x2
          21:wait-10min-timer in ordering-items-workflow: Duration PT10M
            → send-cancellation
          29:Event_End in ordering-items-workflow: end
          38:wait-5min-timer in ordering-items-workflow: Duration PT5M
            → send-friendly-reminder
          47:Gateway_12peq2t in ordering-items-workflow: event gateway
            → payment-received-after-reminder
            → wait-10min-timer
          52:send-bill in ordering-items-workflow: job send-payment-notification, 3 retries
            → Gateway_1p6s0kg
          59:validate-order in ordering-items-workflow: job validate-order, 3 retries
            → send-bill
          66:update-accounting in ordering-items-workflow: job send-bill, 3 retries
            → Gateway_11r4dfm
          73:package-and-deliver in ordering-items-workflow: job package-and-deliver, 3 retries
            → Gateway_11r4dfm
          81:payment-received-after-reminder in ordering-items-workflow: message payment-received for orderId
            → Gateway_09cx3x2
          88:send-cancellation in ordering-items-workflow: job send-cancellation, 3 retries
            → Event_End
          95:send-friendly-reminder in ordering-items-workflow: job send-friendly-reminder, 3 retries
            → Gateway_12peq2t
          102:Gateway_0rwjci4 in ordering-items-workflow: parallel
            → update-accounting
            → package-and-deliver
          109:Gateway_09cx3x2 in ordering-items-workflow: exclusive, default None
            → Gateway_0rwjci4
          117:Gateway_11r4dfm in ordering-items-workflow: parallel
            → Event_End
    "#]],
    );
}

#[test]
fn file_09_is_refused() {
    check(
        "09-inclusive-gateway",
        expect![[r#"
        line 36, Gateway_01wr5g0: an inclusive gateway is not executed yet
    "#]],
    );
}

#[test]
fn file_10_is_refused() {
    check(
        "10-link-events-subprocess",
        expect![[r#"
        line 11, Link-A-Throw: link events are not executed yet
        line 17, Link-B-Throw: link events are not executed yet
        line 21, Link-A-Catch: link events are not executed yet
        line 25, Link-B-Catch: link events are not executed yet
        line 46, Sub-Link-A-Throw: link events are not executed yet
        line 51, Sub-Link-B-Throw: link events are not executed yet
        line 56, Sub-Link-A-Catch: link events are not executed yet
        line 60, Sub-Link-B-Catch: link events are not executed yet
    "#]],
    );
}

#[test]
fn file_11_message_boundary() {
    check(
        "11-spec-message-boundary",
        expect![[r#"
        process message-boundary-event
          4:StartEvent_1 in message-boundary-event: start
            → Activity_0ug4vtk
          9:Event_1rtdw1z in message-boundary-event: end
          13:Activity_0ug4vtk in message-boundary-event: job a, 3 retries
            → Activity_0zzml7t
            boundary events Event_06uiuvx
          20:Activity_0zzml7t in message-boundary-event: job b, 3 retries
            → Event_1rtdw1z
          28:Event_1vcw5fe in message-boundary-event: end
          32:Activity_1q4n0ea in message-boundary-event: job c, 3 retries
            → Event_1vcw5fe
          39:Event_06uiuvx in message-boundary-event: interrupts Activity_0ug4vtk on message cancel for key
            → Activity_1q4n0ea
    "#]],
    );
}

#[test]
fn file_12_exclusive_gateway() {
    check(
        "12-spec-exclusive-gateway",
        expect![[r#"
        process exclusive-gateway
          4:StartEvent_1 in exclusive-gateway: start
            → Activity_1jz6ks2
          8:Gateway_0piucw5 in exclusive-gateway: exclusive, default Some(3)
            → Activity_0dceglv if x > 5
            → Activity_1iq4mqw
          17:Activity_1jz6ks2 in exclusive-gateway: job a, 3 retries
            → Gateway_0piucw5
          25:Activity_0dceglv in exclusive-gateway: job b, 3 retries
          31:Activity_1iq4mqw in exclusive-gateway: job c, 3 retries
    "#]],
    );
}

/// Every element there is, most of them without what they need.
#[test]
fn file_13_is_refused() {
    check(
        "13-all-elements-8.5-deploy-check",
        expect![[r#"
        line 15, Activity_0hifi7a: a sendTask needs a zeebe:taskDefinition
        line 19, Activity_1vno0ey: a receiveTask needs a messageRef
        line 31, Activity_1pvu3g5: a businessRuleTask needs a zeebe:taskDefinition
        line 35, Activity_0zp5887: a serviceTask needs a zeebe:taskDefinition
        line 39, Activity_1j3irvn: a scriptTask needs a zeebe:script or a zeebe:taskDefinition
        line 43, Activity_0f2pmcw: a call activity is not executed yet
        line 50, Event_1sik4ir: a message startEvent needs a messageRef
        line 53, Event_0sug9c8: a timer start event is not executed yet
        line 57, Event_1yebdzz: a message intermediateCatchEvent needs a messageRef
        line 60, Event_1tl88e7: a message intermediateThrowEvent needs a zeebe:taskDefinition
        line 64, Event_1qhglqg: the timer needs a timeDuration, timeDate or timeCycle
        line 66, Event_00km32j: a message endEvent needs a zeebe:taskDefinition
        line 69, Event_1nig1bg: an error end event needs an errorRef
        line 77, Gateway_0m8jsue: an inclusive gateway is not executed yet
        line 78, Gateway_0ucgat5: an event-based gateway needs at least two outgoing flows
        line 90, Activity_05jt1pz: the sub-process has no start event
        line 94, Activity_10ml8f5: an event sub-process is not executed yet
        line 108, Event_0v6xk6w: a message boundaryEvent needs a messageRef
        line 112, Event_15ztmj6: the timer needs a timeDuration, timeDate or timeCycle
        line 117, Event_02q3kpk: a message boundaryEvent needs a messageRef
        line 121, Event_02iufst: the timer needs a timeDuration, timeDate or timeCycle
        line 124, Flow_1q7z4jd: a condition on a flow out of sendTask is not executed
        line 124, Flow_1q7z4jd: the condition is empty
        line 137, Event_0s96ilr: link events are not executed yet
        line 140, Event_058pikp: link events are not executed yet
        line 143, Event_0yz69is: escalation events are not executed yet
        line 146, Event_1v0g6mh: escalation events are not executed yet
        line 149, Event_0ulfy29: escalation events are not executed yet
        line 152, Event_1px08dy: signal events are not executed yet
        line 155, Event_0mdb56m: signal events are not executed yet
        line 158, Event_0kd0oqx: signal events are not executed yet
        line 161, Event_05rrtxf: compensation events are not executed yet
        line 163, Activity_0u1srzb: a compensation handler (isForCompensation) is not executed yet
        line 165, Event_0x0fgq9: compensation events are not executed yet
        line 168, Event_19w1p3t: compensation events are not executed yet
    "#]],
    );
}

#[test]
fn file_14_document_request() {
    check(
        "14-miwg-C.9.1-zeebe",
        expect![[r#"
        process requestDocument_en
          12:SendTask_RequestDocument in requestDocument_en: job email, 3 retries
            → ReceiveTask_WaitForDocument
          19:EndEvent_TalkedToCustomer in requestDocument_en: end
          22:SendTask_SendReminderEmail in requestDocument_en: job email, 3 retries
            → EndEvent_ReminderSent
          29:UserTask_CallCustomer in requestDocument_en: job io.camunda.zeebe:userTask, 1 retries
            → EndEvent_TalkedToCustomer
          33:ReceiveTask_WaitForDocument in requestDocument_en: message MESSAGE_documentReceived for documentReferenceId
            → EndEvent_GotDocument
            boundary events BoundaryEvent_1, BoundaryEvent_2
          37:EndEvent_GotDocument in requestDocument_en: end
          40:StartEvent_DocumentRequested in requestDocument_en: start
            → SendTask_RequestDocument
          43:BoundaryEvent_1 in requestDocument_en: beside ReceiveTask_WaitForDocument on Cycle R6/P1D
            → SendTask_SendReminderEmail
          49:BoundaryEvent_2 in requestDocument_en: interrupts ReceiveTask_WaitForDocument on Duration P7D
            → UserTask_CallCustomer
          62:EndEvent_ReminderSent in requestDocument_en: end
    "#]],
    );
}

#[test]
fn file_15_is_refused() {
    check(
        "15-miwg-C.9.2-zeebe-mi-callactivity",
        expect![[r#"
        line 100, Activity_0uvp3cb: an event sub-process is not executed yet
        line 110, CallActivity_RequestDocument: a call activity is not executed yet
        line 116, CallActivity_RequestDocument: multi-instance is not executed yet
        line 123, Activity_1esx1s7: an event sub-process is not executed yet
        line 151, Activity_02a6b2h: an event sub-process is not executed yet
    "#]],
    );
}

/// What the files above do not have.
#[test]
fn every_other_executed_element() {
    check_xml(
        include_bytes!("../models/others.bpmn"),
        expect![[r#"
            process others
              11:start in others: start
                → manual
                → outer
              14:manual in others: pass
                → rule
              16:rule in others: job rule, =tries retries, table=discount
                in total = order.total
                in money.currency = "EUR"
                out order.discount = result
                → script
              24:script in others: a = a + 1
              27:ticking in others: beside outer on Cycle ="R3/" + every
              30:outer in others: scope, starts at outer_start
                boundary events ticking
              31:outer_start in outer: start
                → inner
              33:inner in outer: scope, starts at inner_start
                boundary events on_broken, on_any, on_approval
              34:inner_start in inner: start
                → until
              36:until in inner: Date 2030-01-01T00:00:00Z
                → gone
              40:gone in inner: error ="lost-" + region
              42:on_broken in outer: interrupts inner on error broken
                → stop
              44:on_any in outer: interrupts inner on error *
                → passed
              45:on_approval in outer: beside inner on message ="approval-" + region for "all"
              47:passed in outer: pass
              48:stop in outer: terminate
        "#]],
    );
}
