//! The processes of the simulated world: one task, two at once, messages, timers, a long loop, a job that often fails.
//! They know nothing of troubles. Next: `door.rs`.

use std::sync::{Arc, LazyLock};

use wf_core::Command;
use wf_core::command::Resource;
use wf_model::Process;

/// Iterations of `loop`: three steps each, so that one command does not reach the end.
pub const LOOP_ROUNDS: u64 = 350;

static COMPILED: LazyLock<Vec<Arc<Process>>> = LazyLock::new(|| match wf_model::compile(XML.as_bytes()) {
    Ok(processes) => processes.into_iter().map(Arc::new).collect(),
    Err(problems) => panic!("the simulator's own model: {problems:?}"),
});

/// As the door would make it. Compiled once: a graph holds no state.
pub fn deployment() -> Command {
    let resource = Resource { name: "world.bpmn".into(), xml: XML.as_bytes().into(), processes: COMPILED.clone() };
    Command::Deploy { resources: vec![resource] }
}

/// `order`: pay. `both`: left and right at once, then sum. `wait`: message `paid`, then ship. `late`: slow, for at most 8 s,
/// else remind. `loop`: many rounds, then tell. `risky`: a job with two tries. `begun`: started by message `begin`, then pay.
const XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
             xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" id="d" targetNamespace="t">
  <message id="m1" name="paid"><extensionElements><zeebe:subscription correlationKey="=order"/></extensionElements></message>
  <message id="m2" name="begin"/>
  <process id="order" isExecutable="true">
    <startEvent id="o1"/><sequenceFlow id="of1" sourceRef="o1" targetRef="pay"/>
    <serviceTask id="pay"><extensionElements><zeebe:taskDefinition type="pay" retries="3"/></extensionElements></serviceTask>
    <sequenceFlow id="of2" sourceRef="pay" targetRef="o2"/><endEvent id="o2"/>
  </process>
  <process id="both" isExecutable="true">
    <startEvent id="b1"/><sequenceFlow id="bf1" sourceRef="b1" targetRef="fork"/>
    <parallelGateway id="fork"/>
    <sequenceFlow id="bf2" sourceRef="fork" targetRef="left"/><sequenceFlow id="bf3" sourceRef="fork" targetRef="right"/>
    <serviceTask id="left"><extensionElements><zeebe:taskDefinition type="left" retries="3"/></extensionElements></serviceTask>
    <serviceTask id="right"><extensionElements><zeebe:taskDefinition type="right" retries="3"/></extensionElements></serviceTask>
    <sequenceFlow id="bf4" sourceRef="left" targetRef="join"/><sequenceFlow id="bf5" sourceRef="right" targetRef="join"/>
    <parallelGateway id="join"/>
    <sequenceFlow id="bf6" sourceRef="join" targetRef="sum"/>
    <serviceTask id="sum"><extensionElements><zeebe:taskDefinition type="sum" retries="3"/></extensionElements></serviceTask>
    <sequenceFlow id="bf7" sourceRef="sum" targetRef="b2"/><endEvent id="b2"/>
  </process>
  <process id="wait" isExecutable="true">
    <startEvent id="w1"/><sequenceFlow id="wf1" sourceRef="w1" targetRef="catch"/>
    <intermediateCatchEvent id="catch"><messageEventDefinition messageRef="m1"/></intermediateCatchEvent>
    <sequenceFlow id="wf2" sourceRef="catch" targetRef="ship"/>
    <serviceTask id="ship"><extensionElements><zeebe:taskDefinition type="ship" retries="3"/></extensionElements></serviceTask>
    <sequenceFlow id="wf3" sourceRef="ship" targetRef="w2"/><endEvent id="w2"/>
  </process>
  <process id="late" isExecutable="true">
    <startEvent id="l1"/><sequenceFlow id="lf1" sourceRef="l1" targetRef="slow"/>
    <serviceTask id="slow"><extensionElements><zeebe:taskDefinition type="slow" retries="3"/></extensionElements></serviceTask>
    <boundaryEvent id="over" attachedToRef="slow"><timerEventDefinition><timeDuration xsi:type="tFormalExpression">PT8S</timeDuration></timerEventDefinition></boundaryEvent>
    <sequenceFlow id="lf2" sourceRef="slow" targetRef="l2"/><endEvent id="l2"/>
    <sequenceFlow id="lf3" sourceRef="over" targetRef="remind"/>
    <serviceTask id="remind"><extensionElements><zeebe:taskDefinition type="remind" retries="3"/></extensionElements></serviceTask>
    <sequenceFlow id="lf4" sourceRef="remind" targetRef="l3"/><endEvent id="l3"/>
  </process>
  <process id="loop" isExecutable="true">
    <startEvent id="p1"/><sequenceFlow id="pf1" sourceRef="p1" targetRef="count"/>
    <scriptTask id="count"><extensionElements><zeebe:script expression="=n + 1" resultVariable="n"/></extensionElements></scriptTask>
    <sequenceFlow id="pf2" sourceRef="count" targetRef="pass"/>
    <task id="pass"/><sequenceFlow id="pf3" sourceRef="pass" targetRef="more"/>
    <exclusiveGateway id="more" default="pf5"/>
    <sequenceFlow id="pf4" sourceRef="more" targetRef="count"><conditionExpression xsi:type="tFormalExpression">=n &lt; rounds</conditionExpression></sequenceFlow>
    <sequenceFlow id="pf5" sourceRef="more" targetRef="tell"/>
    <serviceTask id="tell"><extensionElements><zeebe:taskDefinition type="tell" retries="3"/></extensionElements></serviceTask>
    <sequenceFlow id="pf6" sourceRef="tell" targetRef="p2"/><endEvent id="p2"/>
  </process>
  <process id="risky" isExecutable="true">
    <startEvent id="r1"/><sequenceFlow id="rf1" sourceRef="r1" targetRef="try"/>
    <serviceTask id="try"><extensionElements><zeebe:taskDefinition type="try" retries="2"/></extensionElements></serviceTask>
    <sequenceFlow id="rf2" sourceRef="try" targetRef="r2"/><endEvent id="r2"/>
  </process>
  <process id="begun" isExecutable="true">
    <startEvent id="g1"><messageEventDefinition messageRef="m2"/></startEvent>
    <sequenceFlow id="gf1" sourceRef="g1" targetRef="pay2"/>
    <serviceTask id="pay2"><extensionElements><zeebe:taskDefinition type="pay" retries="3"/></extensionElements></serviceTask>
    <sequenceFlow id="gf2" sourceRef="pay2" targetRef="g2"/><endEvent id="g2"/>
  </process>
</definitions>"#;

pub const JOB_TYPES: [&str; 9] = ["pay", "left", "right", "sum", "ship", "slow", "remind", "tell", "try"];
