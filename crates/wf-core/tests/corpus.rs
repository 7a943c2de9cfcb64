//! Real models of the corpus, run to their end along every branch that they can take.
//! The files stand in `tests/corpus` of the workspace, with their origins.

use expect_test::{Expect, expect};

use crate::common::World;

fn read(file: &str) -> String {
    let path = format!("{}/../../tests/corpus/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Deploys the file, does what `script` does, and compares the trace.
fn check(xml: &str, script: impl Fn(&mut World), expected: &Expect) {
    let mut world = World::new();
    world.deploy(xml).unwrap();
    world.trace();
    script(&mut world);
    expected.assert_eq(&world.trace());
}

const SPEC_GATEWAY: &str = "12-spec-exclusive-gateway.bpmn";
const SPEC_BOUNDARY: &str = "11-spec-message-boundary.bpmn";
const PAYMENT: &str = "02-payment-error-timer-receive.bpmn";
const ORDER: &str = "08-order-eventgateway-parallel.bpmn";

/// `condition-flow` and `default-flow` of its case list.
#[test]
fn spec_exclusive_gateway() {
    let run = |value: &'static str, job_type: &'static str, expected: Expect| {
        let script = |world: &mut World| {
            world.start("exclusive-gateway", "");
            world.work("a", value);
            world.work(job_type, "");
        };
        check(&read(SPEC_GATEWAY), script, &expected);
    };
    run(
        "x=8",
        "b",
        expect![[r#"
        instance.started exclusive-gateway v1 {}
        element.completed StartEvent_1
        job.created Activity_1jz6ks2 a
        job.activated Activity_1jz6ks2 w
        job.completed Activity_1jz6ks2
        variables.set {x:8}
        element.completed Gateway_0piucw5
        job.created Activity_0dceglv b
        job.activated Activity_0dceglv w
        job.completed Activity_0dceglv
        instance.completed exclusive-gateway
    "#]],
    );
    run(
        "x=3",
        "c",
        expect![[r#"
        instance.started exclusive-gateway v1 {}
        element.completed StartEvent_1
        job.created Activity_1jz6ks2 a
        job.activated Activity_1jz6ks2 w
        job.completed Activity_1jz6ks2
        variables.set {x:3}
        element.completed Gateway_0piucw5
        job.created Activity_1iq4mqw c
        job.activated Activity_1iq4mqw w
        job.completed Activity_1iq4mqw
        instance.completed exclusive-gateway
    "#]],
    );
}

/// `interrupt-task` of its case list, and the way without the message.
#[test]
fn spec_message_boundary() {
    let interrupted = |world: &mut World| {
        let instance = world.start("message-boundary-event", "key=\"key-1\"");
        assert_eq!(world.publish("cancel", "key-1", 0, "x=1"), 1);
        assert_eq!(world.variables(instance), "{key:\"key-1\",x:1}");
        world.work("c", "");
    };
    check(
        &read(SPEC_BOUNDARY),
        interrupted,
        &expect![[r#"
        instance.started message-boundary-event v1 {key:"key-1"}
        element.completed StartEvent_1
        job.created Activity_0ug4vtk a
        subscription.opened cancel 'key-1'
        message.published cancel 'key-1'
        message.correlated cancel to Event_06uiuvx
        job.canceled Activity_0ug4vtk
        subscription.closed cancel
        element.terminated Activity_0ug4vtk
        variables.set {x:1}
        element.completed Event_06uiuvx
        job.created Activity_1q4n0ea c
        job.activated Activity_1q4n0ea w
        job.completed Activity_1q4n0ea
        element.completed Event_1vcw5fe
        instance.completed message-boundary-event
    "#]],
    );
    let undisturbed = |world: &mut World| {
        world.start("message-boundary-event", "key=\"key-1\"");
        world.work("a", "");
        assert_eq!(world.publish("cancel", "key-1", 0, "x=1"), 0);
        world.work("b", "");
    };
    check(
        &read(SPEC_BOUNDARY),
        undisturbed,
        &expect![[r#"
        instance.started message-boundary-event v1 {key:"key-1"}
        element.completed StartEvent_1
        job.created Activity_0ug4vtk a
        subscription.opened cancel 'key-1'
        job.activated Activity_0ug4vtk w
        job.completed Activity_0ug4vtk
        subscription.closed cancel
        job.created Activity_0zzml7t b
        message.published cancel 'key-1'
        job.activated Activity_0zzml7t w
        job.completed Activity_0zzml7t
        element.completed Event_1rtdw1z
        instance.completed message-boundary-event
    "#]],
    );
}

#[test]
fn payment_with_enough_credit() {
    let script = |world: &mut World| {
        assert_eq!(world.publish("RetrievePaymentCommand", "", 0, "traceId=\"t-1\""), 1);
        world.work("noop", "");
        let thrown = world.job("emitEvent");
        assert_eq!(&*thrown.headers, r#"{"eventName":"CustomerCreditUsed"}"#);
        world.complete(&thrown.job, "").unwrap();
        world.work("paymentReceived", "");
    };
    check(
        &read(PAYMENT),
        script,
        &expect![[r#"
        message.published RetrievePaymentCommand ''
        instance.started payment v1 {traceId:"t-1"}
        element.completed StartEvent_1
        job.created Task_0e2306u noop
        job.activated Task_0e2306u w
        job.completed Task_0e2306u
        job.created CustomerCreditUsedEvent emitEvent
        job.activated CustomerCreditUsedEvent w
        job.completed CustomerCreditUsedEvent
        element.completed ExclusiveGateway_0esmlay
        job.created EndEvent_0769is9 paymentReceived
        job.activated EndEvent_0769is9 w
        job.completed EndEvent_0769is9
        instance.completed payment
    "#]],
    );
}

/// The same file with its two constant conditions the other way round.
#[test]
fn payment_by_credit_card() {
    let xml = read(PAYMENT).replace("=false<", "=maybe<").replace("=true<", "=false<").replace("=maybe<", "=true<");
    let begin = |world: &mut World| {
        assert_eq!(world.publish("RetrievePaymentCommand", "", 0, "traceId=\"t-1\""), 1);
        world.work("noop", "");
        world.work("emitEvent", "");
        world.trace();
    };
    let charged = |world: &mut World| {
        begin(world);
        world.work("chargeCreditCard", "");
        world.work("emitEvent", "");
        world.work("paymentReceived", "");
    };
    check(
        &xml,
        charged,
        &expect![[r#"
        job.activated ServiceTask_10hm6pn w
        job.completed ServiceTask_10hm6pn
        job.created CreditCardChargedEvent emitEvent
        job.activated CreditCardChargedEvent w
        job.completed CreditCardChargedEvent
        job.created EndEvent_0769is9 paymentReceived
        job.activated EndEvent_0769is9 w
        job.completed EndEvent_0769is9
        instance.completed payment
    "#]],
    );
    let updated = |world: &mut World| {
        begin(world);
        let charge = world.job("chargeCreditCard");
        world.throw(&charge.job, "Error_PaymentError", "reason=\"expired\"").unwrap();
        world.work("noop", "");
        assert_eq!(world.publish("Msg_CreditCardUpdated", "t-2", 0, ""), 0);
        assert_eq!(world.publish("Msg_CreditCardUpdated", "t-1", 0, ""), 1);
        world.work("chargeCreditCard", "");
        world.work("emitEvent", "");
        world.work("paymentReceived", "");
    };
    check(
        &xml,
        updated,
        &expect![[r#"
        job.activated ServiceTask_10hm6pn w
        job.error-thrown ServiceTask_10hm6pn Error_PaymentError caught by BoundaryEvent_0s43v6m
        element.terminated ServiceTask_10hm6pn
        variables.set {reason:"expired"}
        element.completed BoundaryEvent_0s43v6m
        job.created Task_0sdkq4x noop
        job.activated Task_0sdkq4x w
        job.completed Task_0sdkq4x
        subscription.opened Msg_CreditCardUpdated 't-1'
        timer.scheduled BoundaryEvent_025mscv +604800000
        element.activated Task_1yuae6d
        message.published Msg_CreditCardUpdated 't-2'
        message.published Msg_CreditCardUpdated 't-1'
        message.correlated Msg_CreditCardUpdated to Task_1yuae6d
        subscription.closed Msg_CreditCardUpdated
        timer.canceled BoundaryEvent_025mscv
        element.completed Task_1yuae6d
        job.created ServiceTask_10hm6pn chargeCreditCard
        job.activated ServiceTask_10hm6pn w
        job.completed ServiceTask_10hm6pn
        job.created CreditCardChargedEvent emitEvent
        job.activated CreditCardChargedEvent w
        job.completed CreditCardChargedEvent
        job.created EndEvent_0769is9 paymentReceived
        job.activated EndEvent_0769is9 w
        job.completed EndEvent_0769is9
        instance.completed payment
    "#]],
    );
    let given_up = |world: &mut World| {
        begin(world);
        let charge = world.job("chargeCreditCard");
        world.throw(&charge.job, "Error_PaymentError", "").unwrap();
        world.work("noop", "");
        world.advance(7 * 86_400_000 - 1);
        world.advance(1);
    };
    check(
        &xml,
        given_up,
        &expect![[r#"
        job.activated ServiceTask_10hm6pn w
        job.error-thrown ServiceTask_10hm6pn Error_PaymentError caught by BoundaryEvent_0s43v6m
        element.terminated ServiceTask_10hm6pn
        element.completed BoundaryEvent_0s43v6m
        job.created Task_0sdkq4x noop
        job.activated Task_0sdkq4x w
        job.completed Task_0sdkq4x
        subscription.opened Msg_CreditCardUpdated 't-1'
        timer.scheduled BoundaryEvent_025mscv +604800000
        element.activated Task_1yuae6d
        timer.fired BoundaryEvent_025mscv
        subscription.closed Msg_CreditCardUpdated
        element.terminated Task_1yuae6d
        element.completed BoundaryEvent_025mscv
        element.completed EndEvent_1no2aoc
        instance.completed payment
    "#]],
    );
}

#[test]
fn order() {
    let begin = |world: &mut World| {
        world.start("ordering-items-workflow", "orderId=4711");
        world.work("validate-order", "");
        world.work("send-payment-notification", "");
    };
    let paid = |world: &mut World| {
        begin(world);
        assert_eq!(world.publish("payment-received", "4711", 0, "amount=5"), 1);
        world.work("package-and-deliver", "");
        world.work("send-bill", "");
    };
    check(
        &read(ORDER),
        paid,
        &expect![[r#"
        instance.started ordering-items-workflow v1 {orderId:4711}
        element.completed StartEvent_1
        job.created validate-order validate-order
        job.activated validate-order w
        job.completed validate-order
        job.created send-bill send-payment-notification
        job.activated send-bill w
        job.completed send-bill
        timer.scheduled wait-5min-timer +300000
        subscription.opened payment-received '4711'
        element.activated Gateway_1p6s0kg
        message.published payment-received '4711'
        message.correlated payment-received to payment-received
        timer.canceled wait-5min-timer
        subscription.closed payment-received
        element.completed Gateway_1p6s0kg
        variables.set {amount:5}
        element.completed payment-received
        element.completed Gateway_09cx3x2
        element.completed Gateway_0rwjci4
        job.created update-accounting send-bill
        job.created package-and-deliver package-and-deliver
        job.activated package-and-deliver w
        job.completed package-and-deliver
        job.activated update-accounting w
        job.completed update-accounting
        element.completed Gateway_11r4dfm
        element.completed Event_End
        instance.completed ordering-items-workflow
    "#]],
    );
    let reminded = |world: &mut World| {
        begin(world);
        world.advance(300_000);
        world.trace();
        world.work("send-friendly-reminder", "");
        world.publish("payment-received", "4711", 0, "");
        world.work("send-bill", "");
        world.work("package-and-deliver", "");
    };
    check(
        &read(ORDER),
        reminded,
        &expect![[r#"
        job.activated send-friendly-reminder w
        job.completed send-friendly-reminder
        subscription.opened payment-received '4711'
        timer.scheduled wait-10min-timer +900000
        element.activated Gateway_12peq2t
        message.published payment-received '4711'
        message.correlated payment-received to payment-received-after-reminder
        subscription.closed payment-received
        timer.canceled wait-10min-timer
        element.completed Gateway_12peq2t
        element.completed payment-received-after-reminder
        element.completed Gateway_09cx3x2
        element.completed Gateway_0rwjci4
        job.created update-accounting send-bill
        job.created package-and-deliver package-and-deliver
        job.activated update-accounting w
        job.completed update-accounting
        job.activated package-and-deliver w
        job.completed package-and-deliver
        element.completed Gateway_11r4dfm
        element.completed Event_End
        instance.completed ordering-items-workflow
    "#]],
    );
    let canceled = |world: &mut World| {
        begin(world);
        world.advance(300_000);
        world.work("send-friendly-reminder", "");
        world.trace();
        world.advance(600_000);
        assert_eq!(world.publish("payment-received", "4711", 0, ""), 0);
        world.work("send-cancellation", "");
    };
    check(
        &read(ORDER),
        canceled,
        &expect![[r#"
        timer.fired wait-10min-timer
        subscription.closed payment-received
        element.completed Gateway_12peq2t
        element.completed wait-10min-timer
        job.created send-cancellation send-cancellation
        message.published payment-received '4711'
        job.activated send-cancellation w
        job.completed send-cancellation
        element.completed Event_End
        instance.completed ordering-items-workflow
    "#]],
    );
}
