//! Process models that several tests start, written out where a file would say less.

/// A file with one executable process.
pub fn model(id: &str, content: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
  xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="file" targetNamespace="urn:test">
  <bpmn:process id="{id}" isExecutable="true">{content}</bpmn:process>
</bpmn:definitions>"#
    )
}

/// Start, one service task, end.
pub fn one_task(id: &str, job_type: &str) -> String {
    let task = format!(
        r#"<bpmn:startEvent id="start"/><bpmn:sequenceFlow id="in" sourceRef="start" targetRef="task"/>
<bpmn:serviceTask id="task"><bpmn:extensionElements><zeebe:taskDefinition type="{job_type}"/></bpmn:extensionElements>
</bpmn:serviceTask><bpmn:sequenceFlow id="out" sourceRef="task" targetRef="end"/><bpmn:endEvent id="end"/>"#
    );
    model(id, &task)
}

/// Start, a FEEL script that sets `result`, end.
pub fn script(id: &str, expression: &str) -> String {
    let script = format!(
        r#"<bpmn:startEvent id="start"/><bpmn:sequenceFlow id="in" sourceRef="start" targetRef="script"/>
<bpmn:scriptTask id="script"><bpmn:extensionElements>
<zeebe:script expression="{expression}" resultVariable="result"/></bpmn:extensionElements></bpmn:scriptTask>
<bpmn:sequenceFlow id="out" sourceRef="script" targetRef="end"/><bpmn:endEvent id="end"/>"#
    );
    model(id, &script)
}

/// A file of the repository, by its path from the root.
pub fn file(path: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The order of the README: `charge-card`, the message `parcel-picked-up`, `send-invoice`.
pub fn order() -> String {
    file("samples/order.bpmn")
}
