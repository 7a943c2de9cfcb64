//! `zeebe:` extension elements → mappings, job parts and expressions.
//! It knows which of them an element may carry only as far as it is told; the lists below are what `elements.rs` tells.
//! FEEL itself is `wf-feel`; a value is FEEL where it begins with `=`.

use std::collections::BTreeSet;
use std::sync::Arc;

use wf_feel::Expression;

use crate::graph::{Mapping, Text};
use crate::problem::Report;
use crate::user_task;
use crate::xml::{self, BPMN, Node, ZEEBE};

/// As the door has it.
const NAME_BYTES_MAX: usize = 255;

pub(crate) const OF_MAPPED: &[&str] = &["ioMapping"];
pub(crate) const OF_JOBS: &[&str] = &["ioMapping", "taskDefinition", "jobPriorityDefinition"];
pub(crate) const OF_SCRIPT_TASK: &[&str] = &["ioMapping", "taskDefinition", "jobPriorityDefinition", "script"];
pub(crate) const OF_USER_TASK: &[&str] =
    &["ioMapping", "userTask", "assignmentDefinition", "formDefinition", "taskSchedule", "priorityDefinition"];
/// A start form is shown by an application before there is an instance.
pub(crate) const OF_START: &[&str] = &["ioMapping", "formDefinition"];
pub(crate) const OF_MESSAGE: &[&str] = &["subscription"];
pub(crate) const OF_PROCESS: &[&str] = &["jobPriorityDefinition", "versionTag", "userTaskForm"];

/// No effect on the execution of any element: a worker or an application reads them, or nobody.
const ALWAYS: &[&str] = &["properties", "taskHeaders"];
/// Executed on some element: on another one it is misplaced, not missing from this engine.
const KNOWN: &[&[&str]] = &[OF_JOBS, OF_SCRIPT_TASK, OF_USER_TASK, OF_MESSAGE, OF_PROCESS];

/// A variable path is written into nested contexts.
const PATH_DEPTH_MAX: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Extensions {
    pub(crate) inputs: Vec<Mapping>,
    pub(crate) outputs: Vec<Mapping>,
    pub(crate) task: Option<TaskDefinition>,
    pub(crate) job_priority: Option<Text>,
    pub(crate) headers: Vec<(Arc<str>, Arc<str>)>,
    pub(crate) computed_headers: Vec<(Arc<str>, Text)>,
    pub(crate) script: Option<Script>,
    /// The element says what does its work, in a way that is refused: nothing else is missing then.
    pub(crate) refused_implementation: bool,
}

#[derive(Debug)]
pub(crate) struct TaskDefinition {
    pub(crate) job_type: Text,
    pub(crate) retries: Text,
}

#[derive(Debug)]
pub(crate) struct Script {
    /// None where it is no valid FEEL, which has been reported.
    pub(crate) expression: Option<Expression>,
    pub(crate) result: Arc<str>,
}

impl Extensions {
    /// Reads those in `allowed` and refuses the others: an extension is never skipped in silence.
    pub(crate) fn read(node: Node, of: &str, allowed: &[&str], report: &mut Report) -> Self {
        let mut extensions = Self::default();
        let mut seen = BTreeSet::new();
        let containers = xml::children(node, BPMN).filter(|child| xml::tag(*child) == "extensionElements");
        for child in containers.flat_map(|container| xml::children(container, ZEEBE)) {
            let tag = xml::tag(child);
            if allowed.contains(&tag) || ALWAYS.contains(&tag) {
                if !seen.insert(tag) && tag != "userTaskForm" {
                    report.refuse(child, format!("more than one zeebe:{tag}"));
                }
                extensions.take(child, report);
            } else if KNOWN.iter().any(|tags| tags.contains(&tag)) {
                report.refuse(child, format!("zeebe:{tag} has no meaning on {of}"));
            } else {
                extensions.refused_implementation |= tag == "calledDecision";
                report.refuse(child, format!("zeebe:{tag} is not executed yet"));
            }
        }
        extensions
    }

    fn take(&mut self, node: Node, report: &mut Report) {
        match xml::tag(node) {
            "ioMapping" => self.take_mappings(node, report),
            "taskDefinition" => self.task = Some(task_definition(node, report)),
            "taskHeaders" => {
                self.headers.extend(xml::children(node, ZEEBE).filter_map(|header| take_header(header, report)))
            }
            "jobPriorityDefinition" => self.job_priority = job_priority(node, report),
            "script" => self.script = Some(script(node, report)),
            _ => self.computed_headers.extend(user_task::headers(node, report)),
        }
    }

    fn take_mappings(&mut self, node: Node, report: &mut Report) {
        for child in xml::children(node, ZEEBE) {
            let Some(mapping) = mapping(child, report) else { continue };
            match xml::tag(child) {
                "input" => self.inputs.push(mapping),
                "output" => self.outputs.push(mapping),
                tag => report.refuse(child, format!("zeebe:{tag} is not an input or output")),
            }
        }
    }
}

fn mapping(node: Node, report: &mut Report) -> Option<Mapping> {
    let source = required(node, "source", report);
    let target = required(node, "target", report).and_then(|target| path(node, target, report));
    let source = constant_or_feel(node, "the mapping's source", source?, report);
    Some(Mapping { source: source?, target: target? })
}

fn path(node: Node, target: &str, report: &mut Report) -> Option<Vec<Arc<str>>> {
    let names: Vec<Arc<str>> = target.trim().split('.').map(Arc::from).collect();
    if names.len() > PATH_DEPTH_MAX || !names.iter().all(|name| is_variable(name)) {
        report.refuse(node, format!("the mapping's target {target} is not a variable or a path of names"));
        return None;
    }
    Some(names)
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(|letter: char| letter.is_whitespace() || letter.is_control() || letter == '=')
}

fn task_definition(node: Node, report: &mut Report) -> TaskDefinition {
    let job_type = required(node, "type", report).unwrap_or_default();
    let retries = xml::filled(node, "retries").unwrap_or("3");
    TaskDefinition {
        job_type: name(node, "the job type", job_type, report),
        retries: whole_number(node, "retries", retries, 0, report),
    }
}

fn take_header(node: Node, report: &mut Report) -> Option<(Arc<str>, Arc<str>)> {
    let key = required(node, "key", report)?;
    Some((Arc::from(key), Arc::from(xml::attribute(node, "value").unwrap_or_default())))
}

fn script(node: Node, report: &mut Report) -> Script {
    let source = required(node, "expression", report);
    let result = required(node, "resultVariable", report).unwrap_or_default();
    if !result.is_empty() && !is_variable(result) {
        report.refuse(node, format!("resultVariable {result} is not a name"));
    }
    let expression = source.and_then(|source| constant_or_feel(node, "the script", source, report));
    Script { expression, result: Arc::from(result) }
}

/// The element by which a process gives all its jobs a priority.
pub(crate) fn process_job_priority<'a>(process: Node<'a>) -> Option<Node<'a>> {
    xml::children(process, BPMN)
        .filter(|child| xml::tag(*child) == "extensionElements")
        .flat_map(|container| xml::children(container, ZEEBE))
        .find(|child| xml::tag(*child) == "jobPriorityDefinition")
}

pub(crate) fn job_priority(node: Node, report: &mut Report) -> Option<Text> {
    let priority = required(node, "priority", report)?;
    Some(whole_number(node, "the job priority", priority, i32::MIN, report))
}

/// A literal has to be a whole number of at least `min`; an expression is checked when it is evaluated.
pub(crate) fn whole_number(node: Node, what: &str, literal: &str, min: i32, report: &mut Report) -> Text {
    let text = value(node, what, literal.trim(), report);
    if let Text::Literal(literal) = &text
        && !literal.is_empty()
        && !literal.parse::<i32>().is_ok_and(|number| number >= min)
    {
        report.refuse(node, format!("{what} must be a whole number, not {literal}"));
    }
    text
}

/// What a waiting element is found by, a FEEL expression in any case.
pub(crate) fn correlation_key(message: Node, report: &mut Report) -> Option<Expression> {
    let key = xml::children(message, BPMN)
        .filter(|child| xml::tag(*child) == "extensionElements")
        .flat_map(|container| xml::children(container, ZEEBE))
        .find(|child| xml::tag(*child) == "subscription")
        .and_then(|subscription| xml::filled(subscription, "correlationKey"));
    let Some(key) = key else {
        report.refuse(message, "the message is waited for and needs a zeebe:subscription with a correlationKey");
        return None;
    };
    match key.strip_prefix('=') {
        Some(source) => feel(message, "the correlationKey", source, report),
        None => feel(message, "the correlationKey", &string_literal(key), report),
    }
}

/// The condition of a flow. Where it leaves from is checked in `validate.rs`.
pub(crate) fn condition(flow: Node, report: &mut Report) -> Option<Expression> {
    let node = xml::children(flow, BPMN).find(|child| xml::tag(*child) == "conditionExpression")?;
    let text = xml::text(node);
    match text.strip_prefix('=') {
        Some(source) => feel(flow, "the condition", source, report),
        None if text.is_empty() => refuse_condition(flow, "the condition is empty", report),
        None => refuse_condition(flow, "the condition is not a FEEL expression: it has to begin with =", report),
    }
}

fn refuse_condition(flow: Node, message: &str, report: &mut Report) -> Option<Expression> {
    report.refuse(flow, message);
    None
}

/// A literal, or FEEL where `value` begins with `=`.
pub(crate) fn value(node: Node, what: &str, value: &str, report: &mut Report) -> Text {
    match value.strip_prefix('=') {
        Some(source) => feel(node, what, source, report).map_or_else(|| Text::Literal("".into()), Text::Feel),
        None if report.afford(node, value) => Text::Literal(value.into()),
        None => Text::Literal("".into()),
    }
}

/// As [`value`] for what others must be able to ask for by name: a literal that no request may hold would wait for ever.
pub(crate) fn name(node: Node, what: &str, text: &str, report: &mut Report) -> Text {
    if !text.is_empty() && !text.starts_with('=') && !is_name(text) {
        report.refuse(node, format!("{what} has more than {NAME_BYTES_MAX} bytes or holds control characters"));
        return Text::Literal("".into());
    }
    value(node, what, text, report)
}

/// Whether a request may hold it as a job type, a message name or an error code.
pub fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control)
}

/// As [`value`] where the engine wants an expression: a literal stands for itself, as a number where it reads as one.
fn constant_or_feel(node: Node, what: &str, value: &str, report: &mut Report) -> Option<Expression> {
    match value.strip_prefix('=') {
        Some(source) => feel(node, what, source, report),
        None if is_number(value) => feel(node, what, value, report),
        None => feel(node, what, &string_literal(value), report),
    }
}

fn is_number(value: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = value.strip_prefix('-').unwrap_or(value);
    match unsigned.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(unsigned),
    }
}

pub(crate) fn feel(node: Node, what: &str, source: &str, report: &mut Report) -> Option<Expression> {
    if !report.afford(node, source) {
        return None;
    }
    match Expression::parse(source.trim()) {
        Ok(expression) => Some(expression),
        Err(error) => {
            report.refuse(node, format!("{what} is not valid FEEL: {} (at offset {})", error.message, error.offset));
            None
        }
    }
}

pub(crate) fn string_literal(value: &str) -> String {
    let mut literal = String::with_capacity(value.len() + 2);
    literal.push('"');
    for letter in value.chars() {
        match letter {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            other => literal.push(other),
        }
    }
    literal.push('"');
    literal
}

fn required<'a>(node: Node<'a>, attribute: &str, report: &mut Report) -> Option<&'a str> {
    let value = xml::filled(node, attribute);
    if value.is_none() {
        report.refuse(node, format!("zeebe:{} needs a {attribute}", xml::tag(node)));
    }
    value
}
