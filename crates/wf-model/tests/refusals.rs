//! Small models, each with one thing wrong, and what the compiler says to it. Rows are `name, XML of the process`.
//! The XML starts on line 2 and is put after a none start event `s`. Next: `never_panics.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

use expect_test::{Expect, expect};
use wf_model::{Kind, Process, Text, compile};

const HEAD: &str = concat!(
    r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL""#,
    r#" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" xmlns:camunda="http://camunda.org/schema/1.0/bpmn">"#,
    r#"<message id="paid" name="paid"><extensionElements><zeebe:subscription correlationKey="=id"/></extensionElements></message>"#,
    r#"<message id="same" name="paid"><extensionElements><zeebe:subscription correlationKey="=id"/></extensionElements></message>"#,
    r#"<message id="keyless" name="paid"/><message id="nameless"/><message id="computed" name="=a"/>"#,
    r#"<error id="e1" errorCode="1"/><error id="e1again" errorCode="1"/><error id="codeless"/><error id="feel" errorCode="=a"/>"#,
);

fn compiled(body: &str) -> Result<Process, String> {
    let model = format!("{HEAD}<process id=\"p\" isExecutable=\"true\">\n{body}</process></definitions>");
    match compile(model.as_bytes()) {
        Ok(mut processes) => Ok(processes.remove(0)),
        Err(problems) => Err(problems.iter().map(|problem| format!("    {}\n", shown(&problem.to_string()))).collect()),
    }
}

/// What FEEL says to a broken expression is its own affair.
fn shown(problem: &str) -> String {
    let of_feel = "is not valid FEEL: ";
    problem.split_once(of_feel).map_or(problem.into(), |(before, _)| format!("{before}{of_feel}…"))
}

/// Each name with the problems found, `executed` where there is none.
fn check_processes<N: AsRef<str>, M: AsRef<str>>(rows: &[(N, M)], expected: Expect) {
    let verdict = |body: &str| compiled(body).map_or_else(|problems| problems, |_| "    executed\n".into());
    let rows = rows.iter().map(|(name, body)| format!("{}\n{}", name.as_ref(), verdict(body.as_ref())));
    expected.assert_eq(&rows.collect::<String>());
}

fn check<N: AsRef<str>, M: AsRef<str>>(rows: &[(N, M)], expected: Expect) {
    let started: Vec<_> =
        rows.iter().map(|(name, body)| (name, format!(r#"<startEvent id="s"/>{}"#, body.as_ref()))).collect();
    check_processes(&started, expected);
}

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
fn not_executed() {
    check(
        &[
            ("call activity", r#"<callActivity id="x"/>"#),
            ("transaction", r#"<transaction id="x"/>"#),
            ("ad-hoc sub-process", r#"<adHocSubProcess id="x"><task id="free"/></adHocSubProcess>"#),
            (
                "event sub-process, however it starts",
                r#"<subProcess id="x" triggeredByEvent="true"><startEvent id="y"><signalEventDefinition/></startEvent></subProcess>"#,
            ),
            ("inclusive gateway", r#"<inclusiveGateway id="x" default="?"/>"#),
            ("complex gateway", r#"<complexGateway id="x"/>"#),
            ("multi-instance", r#"<task id="x"><multiInstanceLoopCharacteristics/></task>"#),
            ("loop", r#"<task id="x"><standardLoopCharacteristics/></task>"#),
            ("compensation handler", r#"<task id="x" isForCompensation="true"/>"#),
            ("quantity", r#"<task id="x" startQuantity="2"/>"#),
            ("instantiating receive task", r#"<receiveTask id="x" messageRef="paid" instantiate="true"/>"#),
            ("signal end", r#"<endEvent id="x"><signalEventDefinition/></endEvent>"#),
            ("cancel end", r#"<endEvent id="x"><cancelEventDefinition/></endEvent>"#),
            ("escalation", r#"<intermediateThrowEvent id="x"><escalationEventDefinition/></intermediateThrowEvent>"#),
            ("compensation", r#"<intermediateThrowEvent id="x"><compensateEventDefinition/></intermediateThrowEvent>"#),
            ("link", r#"<intermediateThrowEvent id="x"><linkEventDefinition/></intermediateThrowEvent>"#),
            ("conditional", r#"<intermediateCatchEvent id="x"><conditionalEventDefinition/></intermediateCatchEvent>"#),
            (
                "timer start",
                r#"<startEvent id="x"><timerEventDefinition><timeCycle>R/P1D</timeCycle></timerEventDefinition></startEvent>"#,
            ),
            ("definition by reference", r#"<endEvent id="x"><eventDefinitionRef>a</eventDefinitionRef></endEvent>"#),
            ("another diagram's element", r#"<choreographyTask id="x"/>"#),
            ("event definition of a task", r#"<task id="x"><timerEventDefinition/></task>"#),
            ("listeners of the process", r#"<extensionElements><zeebe:executionListeners/></extensionElements>"#),
            (
                "linked resources",
                r#"<serviceTask id="x"><extensionElements><zeebe:taskDefinition type="a"/><zeebe:linkedResources/></extensionElements></serviceTask>"#,
            ),
            (
                "task listeners",
                r#"<userTask id="x"><extensionElements><zeebe:taskListeners/></extensionElements></userTask>"#,
            ),
            (
                "decision",
                r#"<businessRuleTask id="x"><extensionElements><zeebe:calledDecision/></extensionElements></businessRuleTask>"#,
            ),
            (
                "job of an undefined task",
                r#"<task id="x"><extensionElements><zeebe:taskDefinition type="a"/></extensionElements></task>"#,
            ),
            (
                "mappings of a gateway",
                r#"<exclusiveGateway id="x"><extensionElements><zeebe:ioMapping/></extensionElements></exclusiveGateway>"#,
            ),
        ],
        expect![[r#"
            call activity
                line 2, x: a call activity is not executed yet
            transaction
                line 2, x: a transaction is not executed
            ad-hoc sub-process
                line 2, x: an ad-hoc sub-process is not executed yet
            event sub-process, however it starts
                line 2, x: an event sub-process is not executed yet
            inclusive gateway
                line 2, x: an inclusive gateway is not executed yet
            complex gateway
                line 2, x: a complex gateway is not executed
            multi-instance
                line 2, x: multi-instance is not executed yet
            loop
                line 2, x: a standard loop is not executed
            compensation handler
                line 2, x: a compensation handler (isForCompensation) is not executed yet
            quantity
                line 2, x: a startQuantity other than 1 is not executed
            instantiating receive task
                line 2, x: instantiate is not executed: a process starts at a start event
            signal end
                line 2, x: signal events are not executed yet
            cancel end
                line 2, x: cancel events are not executed yet
            escalation
                line 2, x: escalation events are not executed yet
            compensation
                line 2, x: compensation events are not executed yet
            link
                line 2, x: link events are not executed yet
            conditional
                line 2, x: conditional events are not executed yet
            timer start
                line 2, x: a timer start event is not executed yet
            definition by reference
                line 2, x: an event definition by reference is not executed: put it into the event
            another diagram's element
                line 2, x: bpmn:choreographyTask is not executed
            event definition of a task
                line 2, x: bpmn:timerEventDefinition is not executed in task
            listeners of the process
                line 2, p: zeebe:executionListeners is not executed yet
            linked resources
                line 2, x: zeebe:linkedResources is not executed yet
            task listeners
                line 2, x: zeebe:taskListeners is not executed yet
            decision
                line 2, x: zeebe:calledDecision is not executed yet
            job of an undefined task
                line 2, x: zeebe:taskDefinition has no meaning on task
            mappings of a gateway
                line 2, x: zeebe:ioMapping has no meaning on exclusiveGateway
        "#]],
    );
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
            parallel
                line 2, x: a parallel event-based gateway is not executed
                line 2, x: an event-based gateway needs at least two outgoing flows
        "#]],
    );
}

#[test]
fn boundary_events() {
    let on = |activity: &str, attributes: &str, definition: &str| {
        format!(r#"{activity}<boundaryEvent id="b" attachedToRef="t" {attributes}>{definition}</boundaryEvent>"#)
    };
    let task = r#"<task id="t"/>"#;
    let error = r#"<errorEventDefinition errorRef="e1"/>"#;
    let message = |id: &str| format!(r#"<messageEventDefinition messageRef="{id}"/>"#);
    let two = |one: &str, other: &str| {
        format!(r#"{}<boundaryEvent id="c" attachedToRef="t">{other}</boundaryEvent>"#, on(task, "", one))
    };
    let inside = r#"<subProcess id="u"><startEvent id="v"/><task id="t"/></subProcess>"#;
    check(
        &[
            ("error", on(task, "", error)),
            ("message beside", on(task, r#"cancelActivity="false""#, &message("paid"))),
            ("on nothing", on("", "", error)),
            ("on a gateway", on(r#"<exclusiveGateway id="t"/>"#, "", error)),
            ("on a task of another scope", on(inside, "", error)),
            ("attached to nothing", r#"<boundaryEvent id="b"><errorEventDefinition/></boundaryEvent>"#.into()),
            ("error beside", on(task, r#"cancelActivity="false""#, error)),
            ("no boolean", on(task, r#"cancelActivity="maybe""#, error)),
            ("none", on(task, "", "")),
            ("terminate", on(task, "", "<terminateEventDefinition/>")),
            ("unknown error", on(task, "", r#"<errorEventDefinition errorRef="unknown"/>"#)),
            ("computed error", on(task, "", r#"<errorEventDefinition errorRef="feel"/>"#)),
            ("message without key", on(task, "", &message("keyless"))),
            ("message without name", on(task, "", &message("nameless"))),
            ("unknown message", on(task, "", &message("unknown"))),
            ("flow into it", on(task, "", error) + r#"<sequenceFlow id="f" sourceRef="s" targetRef="b"/>"#),
            ("the same code twice", two(error, r#"<errorEventDefinition errorRef="e1again"/>"#)),
            ("any code twice", two("<errorEventDefinition/>", r#"<errorEventDefinition errorRef="codeless"/>"#)),
            ("one code and any", two(error, "<errorEventDefinition/>")),
            ("the same message twice", two(&message("paid"), &message("same"))),
        ],
        expect![[r#"
            error
                executed
            message beside
                executed
            on nothing
                line 2, b: attachedToRef t is not an element of this process
            on a gateway
                line 2, b: attachedToRef t is not an activity but of type exclusiveGateway
            on a task of another scope
                line 2, b: attachedToRef t is not in the boundary event's own scope
            attached to nothing
                line 2, b: a boundaryEvent needs an attachedToRef
            error beside
                line 2, b: an error boundary event always interrupts: cancelActivity must not be false
            no boolean
                line 2, b: cancelActivity is maybe, must be true or false
            none
                line 2, b: a boundaryEvent waits for an error, a message or a timer
            terminate
                line 2, b: a boundaryEvent waits for an error, a message or a timer
            unknown error
                line 2, b: errorRef unknown is not an error of this file
            computed error
                line 1, feel: the errorCode of a caught error must not be an expression
            message without key
                line 1, keyless: the message is waited for and needs a zeebe:subscription with a correlationKey
            message without name
                line 1, nameless: the message has no name
            unknown message
                line 2, b: messageRef unknown is not a message of this file
            flow into it
                line 2, b: a boundaryEvent has no incoming flow
            the same code twice
                line 2, c: t has another boundary event for the error code 1
            any code twice
                line 2, c: t has another boundary event for the error code any
            one code and any
                executed
            the same message twice
                line 2, c: the activity has another boundary event with the same message name
        "#]],
    );
}

#[test]
fn parts_that_an_element_needs() {
    let task = |tag: &str, extensions: &str| {
        format!(r#"<{tag} id="x"><extensionElements>{extensions}</extensionElements></{tag}>"#)
    };
    let job = r#"<zeebe:taskDefinition type="a"/>"#;
    let mapping = |mapping: &str| task("serviceTask", &format!("{job}<zeebe:ioMapping>{mapping}</zeebe:ioMapping>"));
    check(
        &[
            ("send task without job", r#"<sendTask id="x"/>"#.into()),
            ("another namespace's type", task("serviceTask", r#"<zeebe:taskDefinition camunda:type="a"/>"#)),
            ("two jobs", task("serviceTask", &format!("{job}{job}"))),
            ("broken type, no number", task("serviceTask", r#"<zeebe:taskDefinition type="=a +" retries="many"/>"#)),
            ("priority", task("serviceTask", &format!(r#"{job}<zeebe:jobPriorityDefinition priority="high"/>"#))),
            ("mapping to no path", mapping(r#"<zeebe:input source="=a" target="a..b"/>"#)),
            ("mapping of broken FEEL", mapping(r#"<zeebe:output source="=1 +" target="a"/>"#)),
            ("mapping of nothing", mapping(r#"<zeebe:output target="a"/>"#)),
            ("script of another language", r#"<scriptTask id="x"><script>a</script></scriptTask>"#.into()),
            ("broken script", task("scriptTask", r#"<zeebe:script expression="=a +" resultVariable="a"/>"#)),
            ("script for nothing", task("scriptTask", r#"<zeebe:script expression="=a"/>"#)),
            (
                "script and job",
                task("scriptTask", &format!(r#"<zeebe:script expression="=a" resultVariable="a"/>{job}"#)),
            ),
            (
                "user task",
                task(
                    "userTask",
                    r#"<zeebe:taskSchedule dueDate="tomorrow"/><zeebe:priorityDefinition priority="101"/>"#,
                ),
            ),
            ("message without key", r#"<receiveTask id="x" messageRef="keyless"/>"#.into()),
            ("nothing to catch", r#"<intermediateCatchEvent id="x"/>"#.into()),
            (
                "unknown message to throw, and no job",
                r#"<intermediateThrowEvent id="x"><messageEventDefinition messageRef="unknown"/></intermediateThrowEvent>"#.into(),
            ),
            (
                "error without code",
                r#"<endEvent id="x"><errorEventDefinition errorRef="codeless"/></endEvent>"#.into(),
            ),
        ],
        expect![[r#"
            send task without job
                line 2, x: a sendTask needs a zeebe:taskDefinition
            another namespace's type
                line 2, x: zeebe:taskDefinition needs a type
            two jobs
                line 2, x: more than one zeebe:taskDefinition
            broken type, no number
                line 2, x: retries must be a whole number, not many
                line 2, x: the job type is not valid FEEL: …
            priority
                line 2, x: the job priority must be a whole number, not high
            mapping to no path
                line 2, x: the mapping's target a..b is not a variable or a path of names
            mapping of broken FEEL
                line 2, x: the mapping's source is not valid FEEL: …
            mapping of nothing
                line 2, x: zeebe:output needs a source
            script of another language
                line 2, x: a scriptTask needs a zeebe:script or a zeebe:taskDefinition
            broken script
                line 2, x: the script is not valid FEEL: …
            script for nothing
                line 2, x: zeebe:script needs a resultVariable
            script and job
                line 2, x: a scriptTask has a zeebe:script or a zeebe:taskDefinition, not both
            user task
                line 2, x: dueDate must be a date and time with offset, not tomorrow
                line 2, x: priority must be at most 100, not 101
            message without key
                line 1, keyless: the message is waited for and needs a zeebe:subscription with a correlationKey
            nothing to catch
                line 2, x: an intermediateCatchEvent waits for a message or a timer
            unknown message to throw, and no job
                line 2, x: a message intermediateThrowEvent needs a zeebe:taskDefinition
                line 2, x: messageRef unknown is not a message of this file
            error without code
                line 1, codeless: the error is thrown and needs an errorCode
        "#]],
    );
}

#[test]
fn timers() {
    let catch = |time: &str| {
        format!(
            r#"<intermediateCatchEvent id="x"><timerEventDefinition>{time}</timerEventDefinition></intermediateCatchEvent>"#
        )
    };
    let beside = |cycle: &str| {
        format!(
            r#"<task id="t"/><boundaryEvent id="x" attachedToRef="t" cancelActivity="false"><timerEventDefinition><timeCycle>{cycle}</timeCycle></timerEventDefinition></boundaryEvent>"#
        )
    };
    let whole = [
        "",
        "<timeDuration/>",
        "<timeCycle>R/P1D</timeCycle>",
        "<timeDuration>P1D</timeDuration><timeDate>=a</timeDate>",
        "<timeDuration>= a +</timeDuration>",
    ];
    let durations = "P1Y2M3W4DT5H6M7.5S PT0S P PT P1 1D P1H PT1M1H PT1.5H -PT1S";
    let dates = "2028-02-29T12:00Z 2030-10-10T12:00:00.5+02:00[Europe/Berlin] 2030-10-10T12:00:00 2030-10-10 \
                 2030-02-29T12:00:00Z 2030-1-10T12:00:00Z 2030-10-10T24:00:00Z 2030-10-10T12:00:00+2";
    let cycles = "R/PT1M R3/PT1M R0/PT1M R/PT0S PT1M @daily R/2030-10-10T12:00:00Z/P1D R/";
    let mut rows: Vec<(&str, String)> =
        whole.iter().map(|time| (if time.is_empty() { "no time" } else { time }, catch(time))).collect();
    rows.extend(durations.split(' ').map(|text| (text, catch(&format!("<timeDuration> {text} </timeDuration>")))));
    rows.extend(dates.split(' ').map(|text| (text, catch(&format!("<timeDate>{text}</timeDate>")))));
    rows.extend(cycles.split(' ').map(|text| (text, beside(text))));
    check(
        &rows,
        expect![[r#"
        no time
            line 2, x: the timer needs a timeDuration, timeDate or timeCycle
        <timeDuration/>
            line 2, x: the timeDuration is empty
        <timeCycle>R/P1D</timeCycle>
            line 2, x: a timeCycle repeats: only a non-interrupting boundary event has one
        <timeDuration>P1D</timeDuration><timeDate>=a</timeDate>
            line 2, x: the timer has more than one time
        <timeDuration>= a +</timeDuration>
            line 2, x: the timer is not valid FEEL: …
        P1Y2M3W4DT5H6M7.5S
            executed
        PT0S
            executed
        P
            line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not P
        PT
            line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not PT
        P1
            line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not P1
        1D
            line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not 1D
        P1H
            line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not P1H
        PT1M1H
            line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not PT1M1H
        PT1.5H
            line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not PT1.5H
        -PT1S
            line 2, x: a duration is written as in ISO 8601, such as PT15M or P1DT12H, not -PT1S
        2028-02-29T12:00Z
            executed
        2030-10-10T12:00:00.5+02:00[Europe/Berlin]
            executed
        2030-10-10T12:00:00
            line 2, x: a date is written with time and offset, such as 2030-01-31T12:00:00Z, not 2030-10-10T12:00:00
        2030-10-10
            line 2, x: a date is written with time and offset, such as 2030-01-31T12:00:00Z, not 2030-10-10
        2030-02-29T12:00:00Z
            line 2, x: a date is written with time and offset, such as 2030-01-31T12:00:00Z, not 2030-02-29T12:00:00Z
        2030-1-10T12:00:00Z
            line 2, x: a date is written with time and offset, such as 2030-01-31T12:00:00Z, not 2030-1-10T12:00:00Z
        2030-10-10T24:00:00Z
            line 2, x: a date is written with time and offset, such as 2030-01-31T12:00:00Z, not 2030-10-10T24:00:00Z
        2030-10-10T12:00:00+2
            line 2, x: a date is written with time and offset, such as 2030-01-31T12:00:00Z, not 2030-10-10T12:00:00+2
        R/PT1M
            executed
        R3/PT1M
            executed
        R0/PT1M
            line 2, x: a cycle is written as R[times]/duration, such as R/P1D or R3/PT1H, not R0/PT1M
        R/PT0S
            line 2, x: a cycle's duration must be longer than zero, not R/PT0S
        PT1M
            line 2, x: a cycle is written as R[times]/duration (cron is not executed yet), not PT1M
        @daily
            line 2, x: a cycle is written as R[times]/duration (cron is not executed yet), not @daily
        R/2030-10-10T12:00:00Z/P1D
            line 2, x: a cycle is written as R[times]/duration (a start or end is not executed yet), not R/2030-10-10T12:00:00Z/P1D
        R/
            line 2, x: a cycle is written as R[times]/duration, such as R/P1D or R3/PT1H, not R/
    "#]],
    );
}

/// A literal where the engine needs an expression stands for itself.
#[test]
fn literals_become_expressions() {
    let body = r#"<startEvent id="s"/>
        <scriptTask id="number"><extensionElements><zeebe:script expression="-1.50" resultVariable="a"/></extensionElements></scriptTask>
        <scriptTask id="text"><extensionElements><zeebe:script expression="say &quot;hi&quot; \ 1" resultVariable="a"/></extensionElements></scriptTask>"#;
    let process = compiled(body).unwrap();
    let script = |id: &str| match &process.elements[process.by_id[id] as usize].kind {
        Kind::Script { expression, .. } => expression.source().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(["-1.50", r#""say \"hi\" \\ 1""#], [script("number").as_str(), script("text").as_str()]);
}

/// A user task is a job whose headers carry its assignment, with and without `zeebe:userTask`.
#[test]
fn user_task_headers() {
    let extensions = r#"<zeebe:assignmentDefinition assignee="=a" candidateGroups="x, y" candidateUsers="=b"/>
        <zeebe:taskSchedule dueDate="2030-01-01T00:00:00Z" followUpDate="=c"/><zeebe:formDefinition formKey="f"/>
        <zeebe:priorityDefinition priority="7"/><zeebe:taskHeaders><zeebe:header key="k" value=""/></zeebe:taskHeaders>"#;
    let shown = |text: &Text| match text {
        Text::Literal(text) => text.to_string(),
        Text::Feel(expression) => format!("={}", expression.source()),
    };
    let headers = |marker: &str| {
        let body = format!(
            r#"<startEvent id="s"/><userTask id="u"><extensionElements>{marker}{extensions}</extensionElements></userTask>"#
        );
        let process = compiled(&body).unwrap();
        let Kind::Job(job) = &process.elements[process.by_id["u"] as usize].kind else { panic!("no job") };
        let mut out = format!("{} {} {:?}\n", shown(&job.job_type), shown(&job.retries), job.headers);
        job.computed_headers.iter().for_each(|(key, value)| out.push_str(&format!("{key} {}\n", shown(value))));
        out
    };
    assert_eq!(headers(""), headers("<zeebe:userTask/>"));
    expect![[r#"
        io.camunda.zeebe:userTask 1 [("k", "")]
        io.camunda.zeebe:assignee =a
        io.camunda.zeebe:candidateGroups =["x","y"]
        io.camunda.zeebe:candidateUsers =b
        io.camunda.zeebe:dueDate 2030-01-01T00:00:00Z
        io.camunda.zeebe:followUpDate =c
        io.camunda.zeebe:formKey f
        io.camunda.zeebe:priority 7
    "#]]
    .assert_eq(&headers(""));
}

/// The process gives its jobs a priority, a task may have its own.
#[test]
fn job_priority() {
    let process = compiled(
        r#"<extensionElements><zeebe:jobPriorityDefinition priority="=a"/></extensionElements><startEvent id="s"/>
        <serviceTask id="x"><extensionElements><zeebe:taskDefinition type="a"/></extensionElements></serviceTask>
        <serviceTask id="y"><extensionElements><zeebe:taskDefinition type="a"/><zeebe:jobPriorityDefinition priority="-5"/></extensionElements></serviceTask>"#,
    )
    .unwrap();
    let priority = |id: &str| match &process.elements[process.by_id[id] as usize].kind {
        Kind::Job(job) => job.priority.as_ref(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(priority("x"), Some(Text::Feel(_))));
    assert!(matches!(priority("y"), Some(Text::Literal(text)) if &**text == "-5"));
}
