//! The file as a whole, ids, flows, starts and gateways.
//! Times and literals are `values.rs`.

use expect_test::expect;
use wf_model::compile;

use crate::support::{HEAD, check, check_processes};

/// #23: one bad part, and nothing of the file is deployed.
#[test]
fn case_23_the_file_as_a_whole() {
    let files: [&[u8]; 9] = [
        b"",
        b"<a/>",
        b"not XML",
        b"<!DOCTYPE x><definitions/>",
        b"\n\n\xff",
        br#"<?xml version="1.0" encoding="ISO-8859-1"?><a/>"#,
        br#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"/>"#,
        br#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="p"/></definitions>"#,
        br#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="good" isExecutable="true"><startEvent id="s"/></process>
<process id="bad" isExecutable="true"/></definitions>"#,
    ];
    let verdicts: String = files.iter().flat_map(|file| compile(file).unwrap_err()).map(|p| format!("{p}\n")).collect();
    expect![[r#"
        line 1: the file is not well-formed XML: the document does not have a root node
        line 1: the file is not a BPMN 2.0 model: its root is not bpmn:definitions
        line 1: the file is not well-formed XML: unknown token at 1:1
        line 1: the file is not well-formed XML: XML with DTD detected
        line 3: the file is not UTF-8
        line 1: the file declares the encoding ISO-8859-1, only UTF-8 is read
        line 1: no executable process
        line 1: no executable process
        line 2, bad: the process has no start event
    "#]]
    .assert_eq(&verdicts);
}

#[test]
fn several_processes_of_one_file_and_a_byte_order_mark() {
    let file = format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>{HEAD}{}{}{}</definitions>",
        r#"<process id="a" isExecutable="true"><startEvent id="sa"/></process>"#,
        r#"<process id="drawn" isExecutable="false"><callActivity id="c"/></process>"#,
        r#"<process id="b" isExecutable="true"><startEvent id="sb"/></process>"#,
    );
    let processes = compile(file.as_bytes()).unwrap();
    assert_eq!(["a", "b"], [&*processes[0].process_id, &*processes[1].process_id]);
}

#[test]
fn ids_and_flows() {
    check(
        &[
            ("no id", r#"<task/>"#),
            ("empty id", r#"<task id=" "/>"#),
            ("id with a space", r#"<task id="a b"/>"#),
            ("id of another element", r#"<task id="s"/>"#),
            ("id of a message", r#"<task id="paid"/>"#),
            ("flow without id", r#"<task id="t"/><sequenceFlow sourceRef="s" targetRef="t"/>"#),
            ("flow to nowhere", r#"<sequenceFlow id="f" sourceRef="s" targetRef="nowhere"/>"#),
            ("flow from nowhere", r#"<task id="t"/><sequenceFlow id="f" targetRef="t"/>"#),
            ("flow from the process", r#"<task id="t"/><sequenceFlow id="f" sourceRef="p" targetRef="t"/>"#),
            (
                "flow into a sub-process",
                r#"<subProcess id="u"><startEvent id="v"/><task id="t"/></subProcess><sequenceFlow id="f" sourceRef="s" targetRef="t"/>"#,
            ),
            ("flow into a start", r#"<task id="t"/><sequenceFlow id="f" sourceRef="t" targetRef="s"/>"#),
            (
                "flow out of an end",
                r#"<task id="t"/><endEvent id="e"/><sequenceFlow id="f" sourceRef="e" targetRef="t"/>"#,
            ),
            (
                "condition without gateway",
                r#"<task id="t"/><sequenceFlow id="f" sourceRef="s" targetRef="t"><conditionExpression>=a</conditionExpression></sequenceFlow>"#,
            ),
        ],
        expect![[r#"
            no id
                line 2, p: task without an id
            empty id
                line 2, p: task without an id
            id with a space
                line 2, a b: an id has no white space
            id of another element
                line 2, s: the id s is used more than once
            id of a message
                line 2, paid: the id paid is used more than once
            flow without id
                line 2, p: sequenceFlow without an id
            flow to nowhere
                line 2, f: targetRef nowhere is not an element of this process
            flow from nowhere
                line 2, f: the flow has no sourceRef
            flow from the process
                line 2, f: sourceRef p is not in the flow's own scope
            flow into a sub-process
                line 2, f: targetRef t is not in the flow's own scope
            flow into a start
                line 2, s: a startEvent has no incoming flow
            flow out of an end
                line 2, e: an endEvent has no outgoing flow
            condition without gateway
                line 2, f: a condition on a flow out of startEvent is not executed
        "#]],
    );
}

#[test]
fn starts() {
    let message = |id: &str, message: &str| {
        format!(r#"<startEvent id="{id}"><messageEventDefinition messageRef="{message}"/></startEvent>"#)
    };
    let s = r#"<startEvent id="s"/>"#;
    check_processes(
        &[
            ("none", r#"<task id="t"/>"#.into()),
            ("two none starts", format!(r#"{s}<startEvent id="again"/>"#)),
            ("none and message", format!("{s}{}", message("m", "keyless"))),
            ("two with one message", message("m", "keyless") + &message("n", "paid")),
            ("computed message name", message("m", "computed")),
            ("unknown message", message("m", "unknown")),
            (
                "two definitions",
                r#"<startEvent id="m"><messageEventDefinition/><messageEventDefinition/></startEvent>"#.into(),
            ),
            ("by error", r#"<startEvent id="s"><errorEventDefinition/></startEvent>"#.into()),
            ("sub-process without", format!(r#"{s}<subProcess id="u"/>"#)),
            (
                "sub-process with two",
                format!(r#"{s}<subProcess id="u"><startEvent id="v"/><startEvent id="w"/></subProcess>"#),
            ),
            ("sub-process by message", format!(r#"{s}<subProcess id="u">{}</subProcess>"#, message("m", "paid"))),
        ],
        expect![[r#"
            none
                line 1, p: the process has no start event
            two none starts
                line 2, again: the process has more than one none start event
            none and message
                executed
            two with one message
                line 2, n: the process has another start event with the same message name
            computed message name
                line 1, computed: the name of a message that starts a process must not be an expression
            unknown message
                line 2, m: messageRef unknown is not a message of this file
            two definitions
                line 2, m: several event definitions on one event are not executed
            by error
                line 2, s: an error starts nothing but an event sub-process
            sub-process without
                line 2, u: the sub-process has no start event
            sub-process with two
                line 2, w: the sub-process has more than one start event
            sub-process by message
                line 2, m: a sub-process starts with a none start event
        "#]],
    );
}

/// #31
#[test]
fn case_31_exclusive_gateway() {
    let gateway = |default: &str, first: &str, second: &str| {
        format!(
            r#"<exclusiveGateway id="x" {default}/><task id="a"/><task id="b"/><sequenceFlow id="f" sourceRef="x" targetRef="a">{first}</sequenceFlow><sequenceFlow id="g" sourceRef="x" targetRef="b">{second}</sequenceFlow>"#
        )
    };
    let yes = "<conditionExpression>=a</conditionExpression>";
    let to_f = r#"default="f""#;
    let flow = |source: &str| format!(r#"<task id="a"/><sequenceFlow id="f" sourceRef="{source}" targetRef="a"/>"#);
    check(
        &[
            ("all conditional", gateway("", yes, yes)),
            ("conditional and default", gateway(to_f, "", yes)),
            ("one way", format!(r#"<exclusiveGateway id="x"/>{}"#, flow("x"))),
            ("neither condition nor default", gateway("", "", yes)),
            ("the same beside a default", gateway(to_f, "", "")),
            ("conditional default", gateway(to_f, yes, yes)),
            ("unknown default", gateway(r#"default="unknown""#, yes, yes)),
            ("default of another element", format!(r#"<exclusiveGateway id="x" default="f"/>{}"#, flow("s"))),
            ("default of a task", format!(r#"<task id="x" default="f"/>{}"#, flow("x"))),
            ("condition without =", gateway("", "<conditionExpression>a</conditionExpression>", yes)),
            ("empty condition", gateway("", "<conditionExpression> </conditionExpression>", yes)),
            ("broken condition", gateway("", "<conditionExpression>=a &gt;</conditionExpression>", yes)),
        ],
        expect![[r#"
            all conditional
                executed
            conditional and default
                executed
            one way
                executed
            neither condition nor default
                line 2, f: a flow out of x needs a condition or has to be the default
            the same beside a default
                line 2, g: a flow out of x needs a condition or has to be the default
            conditional default
                line 2, f: the default flow must not have a condition
            unknown default
                line 2, x: the default flow unknown does not exist
            default of another element
                line 2, x: the default flow f does not start here
            default of a task
                line 2, x: a default flow of task is not executed
            condition without =
                line 2, f: the condition is not a FEEL expression: it has to begin with =
            empty condition
                line 2, f: the condition is empty
            broken condition
                line 2, f: the condition is not valid FEEL: …
        "#]],
    );
}

/// #32
#[test]
fn case_32_event_based_gateway() {
    let gateway = |more: &str| {
        format!(
            r#"<eventBasedGateway id="x"/><intermediateCatchEvent id="m"><messageEventDefinition messageRef="paid"/></intermediateCatchEvent><sequenceFlow id="f" sourceRef="x" targetRef="m"/>{more}"#
        )
    };
    let to = |target: &str| format!(r#"{target}<sequenceFlow id="g" sourceRef="x" targetRef="t"/>"#);
    let catch = |definition: &str| format!(r#"<intermediateCatchEvent id="t">{definition}</intermediateCatchEvent>"#);
    let timer = to(&catch("<timerEventDefinition><timeDuration>PT1S</timeDuration></timerEventDefinition>"));
    check(
        &[
            ("message or timer", gateway(&timer)),
            ("one way", gateway("")),
            ("to a task", gateway(&to(r#"<task id="t"/>"#))),
            (
                "another way to its event",
                gateway(&format!(r#"{timer}<task id="u"/><sequenceFlow id="h" sourceRef="u" targetRef="t"/>"#)),
            ),
            ("the same message twice", gateway(&to(&catch(r#"<messageEventDefinition messageRef="same"/>"#)))),
            (
                "inputs of its event",
                gateway(&timer.replace(
                    "<timerEvent",
                    r#"<extensionElements><zeebe:ioMapping><zeebe:input source="=a" target="b"/></zeebe:ioMapping></extensionElements><timerEvent"#,
                )),
            ),
            ("parallel", r#"<eventBasedGateway id="x" eventGatewayType="Parallel"/>"#.into()),
        ],
        expect![[r#"
            message or timer
                executed
            one way
                line 2, x: an event-based gateway needs at least two outgoing flows
            to a task
                line 2, t: only message and timer catch events may follow an event-based gateway
            another way to its event
                line 2, t: an event after an event-based gateway has no other incoming flow
            the same message twice
                line 2, t: the event-based gateway waits for another message of the same name
            inputs of its event
                line 2, t: input mappings of an event after an event-based gateway are not executed yet
            parallel
                line 2, x: a parallel event-based gateway is not executed
                line 2, x: an event-based gateway needs at least two outgoing flows
        "#]],
    );
}
