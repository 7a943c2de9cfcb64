//! `wf instance KEY`: the process as an indented outline, with a mark where its tokens stand and what they wait for.
//! The outline comes from the definition's own file, compiled here as the server does it; without it only the active
//! elements are shown.

use wf_client::{ActiveElement, Client, Instance};
use wf_model::{ElementIdx, Kind, Process, ROOT};

use crate::cli::{InstanceArgs, Output};
use crate::output::{self, Done};

use super::connect;

pub async fn show_instance(args: InstanceArgs) -> Done {
    let client = connect(&args.remote)?;
    let instance = client.instance(&args.key).await?;
    if args.remote.output == Output::Json {
        return output::print(&output::json(&instance));
    }
    let process = process(&client, &instance).await;
    output::print(&picture(&instance, process.as_ref()))
}

async fn process(client: &Client, instance: &Instance) -> Option<Process> {
    let id = &instance.process_definition_id;
    let latest = client.definition(id, None).await.ok()?;
    if latest.version != instance.version {
        // The file's route gives the latest version only: its outline could be another one's.
        return None;
    }
    let xml = client.definition_xml(id).await.ok()?;
    let processes = wf_model::compile(&xml).ok()?;
    processes.into_iter().find(|process| *process.process_id == **id)
}

pub fn picture(instance: &Instance, process: Option<&Process>) -> String {
    let ended = instance.ended_at.as_ref().map(|at| format!(", ended {at}")).unwrap_or_default();
    let mut text = format!(
        "{} v{}  {}  {}\nstarted {}{ended}\n",
        instance.process_definition_id, instance.version, instance.key, instance.state, instance.started_at
    );
    let rows = match process {
        Some(process) => outline(process, ROOT, 0, instance),
        None => instance.active_elements.iter().map(|element| row("", &element.element_id, Some(element))).collect(),
    };
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&output::table(&["", "element", "type", "waits for", "then"], rows));
    }
    if !instance.variables.is_empty() {
        let shown =
            instance.variables.iter().map(|(name, value)| vec![name.clone(), output::short(&value.to_string(), 80)]);
        text.push_str(&format!("\n{}", output::table(&["variable", "value"], shown.collect())));
    }
    for incident in &instance.incidents {
        text.push_str(&format!(
            "\n\n! incident {} at {}: {}: {}\n  wf resolve {}",
            incident.key, incident.element_id, incident.kind, incident.message, incident.key
        ));
    }
    text
}

/// The content of a scope in the order of the file; boundary events stand below their activity.
fn outline(process: &Process, scope: ElementIdx, depth: usize, instance: &Instance) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (index, element) in process.elements.iter().enumerate() {
        let index = index as ElementIdx;
        if index == ROOT || element.scope != scope || matches!(element.kind, Kind::Boundary(_)) {
            continue;
        }
        rows.extend(lines(process, index, depth, instance));
        if matches!(element.kind, Kind::Scope(_)) {
            rows.extend(outline(process, index, depth + 1, instance));
        }
        for boundary in &element.boundaries {
            rows.extend(lines(process, *boundary, depth + 1, instance));
        }
    }
    rows
}

/// One line per token that stands in the element, or one without a mark.
fn lines(process: &Process, index: ElementIdx, depth: usize, instance: &Instance) -> Vec<Vec<String>> {
    let Some(element) = process.element(index) else { return Vec::new() };
    let targets = element.outgoing.iter().filter_map(|flow| process.element(process.flow(*flow)?.target));
    let then: Vec<&str> = targets.map(|target| &*target.id).collect();
    let then = if then.is_empty() { String::new() } else { format!("→ {}", then.join(", ")) };
    let name = element.name.as_ref().map(|name| format!("  “{}”", output::short(name, 30))).unwrap_or_default();
    let label = format!("{}{}{name}", "  ".repeat(depth), element.id);
    let here: Vec<&ActiveElement> =
        instance.active_elements.iter().filter(|active| *active.element_id == *element.id).collect();
    let mut rows: Vec<Vec<String>> = match here.as_slice() {
        [] => vec![row(element.bpmn_type, &label, None)],
        tokens => tokens.iter().map(|token| row(element.bpmn_type, &label, Some(token))).collect(),
    };
    rows.iter_mut().for_each(|row| row.push(then.clone()));
    rows
}

fn row(bpmn_type: &str, label: &str, active: Option<&ActiveElement>) -> Vec<String> {
    let Some(active) = active else {
        return vec!["·".to_owned(), label.to_owned(), bpmn_type.to_owned(), String::new()];
    };
    let incident = active.waiting_for.as_ref().is_some_and(|waiting| waiting.kind == "incident");
    let mark = if incident { "!" } else { "●" };
    vec![mark.to_owned(), label.to_owned(), active.kind.clone(), waiting(active)]
}

/// `message picked for o-1`, `timer until …`, `job charge-card (123)`.
fn waiting(active: &ActiveElement) -> String {
    let Some(waiting) = &active.waiting_for else { return String::new() };
    let since = active.since.as_ref().map(|since| format!(", since {since}")).unwrap_or_default();
    let mut text = waiting.kind.clone();
    if let Some(name) = &waiting.name {
        text.push_str(&format!(" {name}"));
    }
    if let Some(key) = &waiting.correlation_key {
        text.push_str(&format!(" for {key}"));
    }
    match (&waiting.due_at, &waiting.key) {
        (Some(due), _) => text.push_str(&format!(" until {due}")),
        (None, Some(key)) if waiting.kind != "message" => text.push_str(&format!(" ({key})")),
        _ => (),
    }
    text + &since
}
