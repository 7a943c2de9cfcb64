//! One element at a time: what is not executed, and what an executed one needs.
//! How elements hang together is `structure.rs`.

use expect_test::expect;

use crate::support::check;

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
                "inputs of a manual task",
                r#"<manualTask id="x"><extensionElements><zeebe:ioMapping><zeebe:input source="=a" target="b"/></zeebe:ioMapping></extensionElements></manualTask>"#,
            ),
            (
                "mappings of an end",
                r#"<endEvent id="x"><extensionElements><zeebe:ioMapping><zeebe:output source="=a" target="b"/></zeebe:ioMapping></extensionElements></endEvent>"#,
            ),
            (
                "half an event sub-process",
                r#"<subProcess id="x" triggeredByEvent="yes"><startEvent id="y"/></subProcess>"#,
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
            inputs of a manual task
                line 2, x: input mappings of manualTask are not executed
            mappings of an end
                line 2, x: mappings of an endEvent are not executed yet, but for a message
            half an event sub-process
                line 2, x: triggeredByEvent is yes, must be true or false
            mappings of a gateway
                line 2, x: zeebe:ioMapping has no meaning on exclusiveGateway
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
