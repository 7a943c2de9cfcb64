//! Small models as text, one element a line, compiled through the XML that a modeler would write.
//! It knows no engine. A line is `kind id attribute=value… -> target, target if condition, default target`.
//!
//! Kinds: `start`, `end`, `job`, `user`, `script`, `task`, `receive`, `catch`, `xor`, `and`, `events`, `boundary`,
//! `sub id … {` up to `}`; `in name = expression` and `out path = expression` belong to the element above them.

use std::fmt::Write;

/// BPMN of one process.
pub fn xml(process_id: &str, lines: &str) -> String {
    let mut model = Model::default();
    let mut lines = lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    model.content(&mut lines);
    format!(
        r#"<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0">
<bpmn:process id="{process_id}" isExecutable="true">
{}</bpmn:process>
{}</bpmn:definitions>"#,
        model.body, model.head
    )
}

#[derive(Default)]
struct Model {
    body: String,
    /// Messages and errors.
    head: String,
}

struct Line<'l> {
    kind: &'l str,
    id: &'l str,
    attributes: Vec<(&'l str, &'l str)>,
    targets: Vec<&'l str>,
}

impl Model {
    /// Elements up to the end of the scope.
    fn content<'l>(&mut self, lines: &mut dyn Iterator<Item = &'l str>) {
        let mut pending: Option<(Line<'l>, String)> = None;
        while let Some(text) = lines.next() {
            let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
            match (first, &mut pending) {
                ("}", _) => break,
                ("in", Some((_, mappings))) => mapping("input", rest, mappings),
                ("out", Some((_, mappings))) => mapping("output", rest, mappings),
                _ => {
                    self.finish(pending.take());
                    let line = Line::parse(text);
                    if line.kind == "sub" {
                        self.scope(&line, lines);
                    } else {
                        pending = Some((line, String::new()));
                    }
                }
            }
        }
        self.finish(pending);
    }

    /// Its mappings stand first in its content.
    fn scope<'l>(&mut self, line: &Line<'l>, lines: &mut dyn Iterator<Item = &'l str>) {
        let mut inner: Vec<&str> = Vec::new();
        let mut depth = 1;
        for text in lines {
            depth += i32::from(text.ends_with('{')) - i32::from(text == "}");
            if depth == 0 {
                break;
            }
            inner.push(text);
        }
        let is_mapping = |text: &&&str| text.starts_with("in ") || text.starts_with("out ");
        let count = inner.iter().take_while(is_mapping).count();
        let mut mappings = String::new();
        for text in inner.drain(..count) {
            let (first, rest) = text.split_once(' ').unwrap();
            mapping(if first == "in" { "input" } else { "output" }, rest, &mut mappings);
        }
        let _ = writeln!(self.body, r#"<bpmn:subProcess id="{}">{}"#, line.id, extensions(&mappings, ""));
        self.content(&mut inner.into_iter());
        self.body.push_str("</bpmn:subProcess>\n");
        self.flows(line);
    }

    fn finish(&mut self, pending: Option<(Line<'_>, String)>) {
        let Some((line, mappings)) = pending else { return };
        let (tag, attributes) = tag(&line);
        let inner = format!("{}{}", extensions(&mappings, &line.extension()), self.definition(&line));
        let _ = writeln!(self.body, r#"<bpmn:{tag} id="{}"{attributes}>{inner}</bpmn:{tag}>"#, line.id);
        self.flows(&line);
    }

    /// The event definition, with the message or error that it refers to.
    fn definition(&mut self, line: &Line<'_>) -> String {
        if let Some(name) = line.get("msg") {
            let id = line.id;
            let key = line.get("key").map_or_else(String::new, |key| {
                format!(
                    r#"<bpmn:extensionElements><zeebe:subscription correlationKey="{}"/></bpmn:extensionElements>"#,
                    escape(key)
                )
            });
            let _ = writeln!(self.head, r#"<bpmn:message id="m_{id}" name="{}">{key}</bpmn:message>"#, escape(name));
            let is_task = line.kind == "receive";
            return if is_task {
                String::new()
            } else {
                format!(r#"<bpmn:messageEventDefinition messageRef="m_{id}"/>"#)
            };
        }
        if let Some(code) = line.get("error") {
            let reference = if code == "*" { String::new() } else { format!(r#" errorRef="e_{}""#, line.id) };
            if code != "*" {
                let _ = writeln!(self.head, r#"<bpmn:error id="e_{}" errorCode="{}"/>"#, line.id, escape(code));
            }
            return format!("<bpmn:errorEventDefinition{reference}/>");
        }
        for (name, tag) in [("timer", "timeDuration"), ("date", "timeDate"), ("cycle", "timeCycle")] {
            if let Some(time) = line.get(name) {
                let time = escape(time);
                return format!(
                    "<bpmn:timerEventDefinition><bpmn:{tag}>{time}</bpmn:{tag}></bpmn:timerEventDefinition>"
                );
            }
        }
        match line.kind {
            "end" if line.get("terminate").is_some() => "<bpmn:terminateEventDefinition/>".to_owned(),
            "end" | "throw" if line.get("type").is_some() => "<bpmn:messageEventDefinition/>".to_owned(),
            _ => String::new(),
        }
    }

    fn flows(&mut self, line: &Line<'_>) {
        for target in &line.targets {
            let (target, condition) = target.split_once(" if ").unwrap_or((target, ""));
            let target = target.trim_start_matches("default ");
            let condition = match condition {
                "" => String::new(),
                condition => {
                    format!("<bpmn:conditionExpression>={}</bpmn:conditionExpression>", escape(condition))
                }
            };
            let _ = writeln!(
                self.body,
                r#"<bpmn:sequenceFlow id="{0}_{target}" sourceRef="{0}" targetRef="{target}">{condition}</bpmn:sequenceFlow>"#,
                line.id
            );
        }
    }
}

impl<'l> Line<'l> {
    fn parse(text: &'l str) -> Line<'l> {
        let (left, right) = text.split_once("->").unwrap_or((text, ""));
        let mut words = left.split_whitespace().filter(|word| *word != "{");
        let (kind, id) = (words.next().unwrap(), words.next().unwrap_or_else(|| panic!("no id: {text}")));
        let attributes = words.map(|word| word.split_once('=').unwrap_or((word, "")));
        let targets = right.trim().trim_end_matches('{').split(',').map(str::trim).filter(|target| !target.is_empty());
        Line { kind, id, attributes: attributes.collect(), targets: targets.collect() }
    }

    fn get(&self, name: &str) -> Option<&'l str> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn extension(&self) -> String {
        let mut out = String::new();
        if matches!(self.kind, "job" | "throw" | "end") && (self.kind == "job" || self.get("type").is_some()) {
            let retries =
                self.get("retries").map_or_else(String::new, |text| format!(r#" retries="{}""#, escape(text)));
            let job_type = escape(self.get("type").unwrap_or(self.id));
            let _ = write!(out, r#"<zeebe:taskDefinition type="{job_type}"{retries}/>"#);
        }
        if let Some(priority) = self.get("priority") {
            let _ = write!(out, r#"<zeebe:jobPriorityDefinition priority="{}"/>"#, escape(priority));
        }
        if let Some(result) = self.get("result") {
            let expression = escape(self.get("expression").unwrap());
            let _ = write!(out, r#"<zeebe:script expression="{expression}" resultVariable="{result}"/>"#);
        }
        if let Some(header) = self.get("header") {
            let (key, value) = header.split_once(':').unwrap();
            let _ = write!(
                out,
                r#"<zeebe:taskHeaders><zeebe:header key="{}" value="{}"/></zeebe:taskHeaders>"#,
                escape(key),
                escape(value)
            );
        }
        if let Some(assignee) = self.get("assignee") {
            let groups = self
                .get("groups")
                .map_or_else(String::new, |groups| format!(r#" candidateGroups="{}""#, escape(groups)));
            let _ = write!(out, r#"<zeebe:assignmentDefinition assignee="{}"{groups}/>"#, escape(assignee));
        }
        out
    }
}

fn tag(line: &Line<'_>) -> (&'static str, String) {
    let tag = match line.kind {
        "start" => "startEvent",
        "end" => "endEvent",
        "job" => "serviceTask",
        "throw" => "intermediateThrowEvent",
        "user" => "userTask",
        "script" => "scriptTask",
        "task" => "task",
        "receive" => "receiveTask",
        "catch" => "intermediateCatchEvent",
        "xor" => "exclusiveGateway",
        "and" => "parallelGateway",
        "events" => "eventBasedGateway",
        "boundary" => "boundaryEvent",
        other => panic!("no such kind: {other}"),
    };
    let mut attributes = String::new();
    if let Some(default) = line.targets.iter().find_map(|target| target.strip_prefix("default ")) {
        let _ = write!(attributes, r#" default="{}_{default}""#, line.id);
    }
    if let Some(on) = line.get("on") {
        let interrupting = line.get("nonint").is_none();
        let _ = write!(attributes, r#" attachedToRef="{on}" cancelActivity="{interrupting}""#);
    }
    if line.kind == "receive" {
        let _ = write!(attributes, r#" messageRef="m_{}""#, line.id);
    }
    (tag, attributes)
}

fn mapping(tag: &str, text: &str, out: &mut String) {
    let (target, source) = text.split_once('=').unwrap_or_else(|| panic!("no '=': {text}"));
    let (target, source) = (target.trim(), escape(source.trim()));
    let _ = write!(out, r#"<zeebe:{tag} source="={source}" target="{target}"/>"#);
}

fn extensions(mappings: &str, others: &str) -> String {
    let mappings = match mappings {
        "" => String::new(),
        mappings => format!("<zeebe:ioMapping>{mappings}</zeebe:ioMapping>"),
    };
    if mappings.is_empty() && others.is_empty() {
        return String::new();
    }
    format!("<bpmn:extensionElements>{others}{mappings}</bpmn:extensionElements>")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
