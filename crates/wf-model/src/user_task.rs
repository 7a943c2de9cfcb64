//! Assignment, form, schedule and priority of a user task → headers of its job, under the names that Camunda uses.
//! It knows nothing of who works on it. `extensions.rs` calls it for what it does not take itself.

use std::sync::Arc;

use crate::extensions;
use crate::graph::Text;
use crate::problem::Report;
use crate::timers;
use crate::xml::{self, Node};

/// Element, attribute, header, and how its value is read.
const HEADERS: &[(&str, &str, &str, Value)] = &[
    ("assignmentDefinition", "assignee", "assignee", Value::Text),
    ("assignmentDefinition", "candidateGroups", "candidateGroups", Value::List),
    ("assignmentDefinition", "candidateUsers", "candidateUsers", Value::List),
    ("taskSchedule", "dueDate", "dueDate", Value::Date),
    ("taskSchedule", "followUpDate", "followUpDate", Value::Date),
    ("formDefinition", "formKey", "formKey", Value::Text),
    ("formDefinition", "externalReference", "formKey", Value::Text),
    ("formDefinition", "formId", "formId", Value::Text),
    ("priorityDefinition", "priority", "priority", Value::Priority),
];

#[derive(Clone, Copy)]
enum Value {
    Text,
    /// A literal is a list with commas; the header is a JSON array in both cases.
    List,
    Date,
    Priority,
}

pub(crate) fn headers(node: Node, report: &mut Report) -> Vec<(Arc<str>, Text)> {
    let mut headers = Vec::new();
    for (_, attribute, header, kind) in HEADERS.iter().filter(|(tag, ..)| *tag == xml::tag(node)) {
        let Some(value) = xml::filled(node, attribute) else { continue };
        headers.push((format!("io.camunda.zeebe:{header}").into(), read(node, attribute, value, *kind, report)));
    }
    headers
}

fn read(node: Node, attribute: &str, value: &str, kind: Value, report: &mut Report) -> Text {
    let text = match kind {
        Value::List if !value.starts_with('=') => return list(node, attribute, value, report),
        Value::Priority => extensions::whole_number(node, attribute, value, 0, report),
        Value::Text | Value::List | Value::Date => extensions::value(node, attribute, value, report),
    };
    match (kind, &text) {
        (Value::Date, Text::Literal(date)) if !date.is_empty() && !timers::is_date(date) => {
            report.refuse(node, format!("{attribute} must be a date and time with offset, not {date}"));
        }
        (Value::Priority, Text::Literal(number)) if number.parse::<i32>().is_ok_and(|number| number > 100) => {
            report.refuse(node, format!("{attribute} must be at most 100, not {number}"));
        }
        _ => (),
    }
    text
}

fn list(node: Node, attribute: &str, value: &str, report: &mut Report) -> Text {
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(extensions::string_literal).collect();
    let source = format!("[{}]", names.join(","));
    extensions::feel(node, attribute, &source, report).map_or_else(|| Text::Literal("".into()), Text::Feel)
}
