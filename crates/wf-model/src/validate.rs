//! What must hold between elements: starts, ends, gateways and their flows, boundary events of one activity.
//! It knows the finished graph and changes nothing. What one element may be by itself is `elements.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::compile::Draft;
use crate::elements;
use crate::graph::{Element, ElementIdx, Flow, Kind, MessageRef, Start, Text, Trigger};
use crate::problem::Report;
use crate::xml::{self, Node};

pub(crate) fn check(draft: &Draft, report: &mut Report) {
    let starts = starts_by_scope(draft);
    for ((element, node), starts) in draft.parts().zip(&starts) {
        check_ends(element, node, report);
        if elements::refusal(node).is_some() {
            continue;
        }
        match element.bpmn_type {
            "process" => check_process(draft, node, starts, report),
            "subProcess" => check_sub_process(draft, node, starts, report),
            "exclusiveGateway" => check_exclusive(draft, element, node, report),
            "eventBasedGateway" => check_event_gateway(draft, element, node, report),
            _ => (),
        }
        check_default(element, node, report);
        check_conditions(draft, element, report);
        check_boundaries(draft, element, report);
    }
}

/// Start events by the index of the scope that they stand in.
fn starts_by_scope(draft: &Draft) -> Vec<Vec<ElementIdx>> {
    let elements = &draft.process.elements;
    let mut starts = vec![Vec::new(); elements.len()];
    for (index, element) in elements.iter().enumerate().filter(|(_, element)| element.bpmn_type == "startEvent") {
        if let Some(starts) = starts.get_mut(element.scope as usize) {
            starts.push(index as ElementIdx);
        }
    }
    starts
}

fn check_ends(element: &Element, node: Node, report: &mut Report) {
    match element.bpmn_type {
        "startEvent" | "boundaryEvent" if !element.incoming.is_empty() => {
            report.refuse(node, format!("a {} has no incoming flow", element.bpmn_type));
        }
        "endEvent" if !element.outgoing.is_empty() => report.refuse(node, "an endEvent has no outgoing flow"),
        _ => (),
    }
}

fn check_process(draft: &Draft, node: Node, starts: &[ElementIdx], report: &mut Report) {
    if starts.is_empty() {
        report.refuse(node, "the process has no start event");
    }
    for (_, second) in none_starts(draft, starts).skip(1) {
        report.refuse(second, "the process has more than one none start event");
    }
    let messages = starts.iter().filter_map(|index| match &draft.process.element(*index)?.kind {
        Kind::Start(Start::Message(message)) => Some((draft.node(*index)?, message)),
        _ => None,
    });
    check_message_names(messages, "the process has another start event with the same message name", report);
}

fn check_sub_process(draft: &Draft, node: Node, starts: &[ElementIdx], report: &mut Report) {
    if starts.is_empty() {
        report.refuse(node, "the sub-process has no start event");
    }
    for (_, second) in none_starts(draft, starts).skip(1) {
        report.refuse(second, "the sub-process has more than one start event");
    }
    for index in starts {
        let Some((element, node)) = draft.process.element(*index).zip(draft.node(*index)) else { continue };
        if let Kind::Start(Start::Message(_)) = element.kind {
            report.refuse(node, "a sub-process starts with a none start event");
        }
    }
}

fn none_starts<'d, 'a>(
    draft: &'d Draft<'a>,
    starts: &'d [ElementIdx],
) -> impl Iterator<Item = (&'d Element, Node<'a>)> {
    let parts = starts.iter().filter_map(|index| Some((draft.process.element(*index)?, draft.node(*index)?)));
    parts.filter(|(element, _)| matches!(element.kind, Kind::Start(Start::None)))
}

/// Case #31: each way out is either conditional or the default; a single way needs no condition.
fn check_exclusive(draft: &Draft, element: &Element, node: Node, report: &mut Report) {
    let Kind::Exclusive { default } = element.kind else { return };
    let is_choice = element.outgoing.len() > 1;
    let has_named_default = xml::filled(node, "default").is_some();
    for index in &element.outgoing {
        let Some((flow, node)) = part_of_flow(draft, *index) else { continue };
        let is_conditional = has_condition(node);
        if Some(*index) == default && is_conditional {
            report.refuse(node, "the default flow must not have a condition");
        } else if Some(*index) != default && !is_conditional && is_choice && (default.is_some() || !has_named_default) {
            report.refuse(
                node,
                format!("a flow out of {} needs a condition or has to be the default", source(draft, flow)),
            );
        }
    }
}

fn source(draft: &Draft, flow: &Flow) -> Arc<str> {
    draft.process.element(flow.source).map(|element| Arc::clone(&element.id)).unwrap_or_default()
}

fn part_of_flow<'d, 'a>(draft: &'d Draft<'a>, index: u32) -> Option<(&'d Flow, Node<'a>)> {
    Some((draft.process.flow(index)?, *draft.flow_nodes.get(index as usize)?))
}

/// Asked of the XML: a condition that is no valid FEEL is one all the same.
fn has_condition(flow: Node) -> bool {
    xml::children(flow, xml::BPMN).any(|child| xml::tag(child) == "conditionExpression")
}

fn check_conditions(draft: &Draft, element: &Element, report: &mut Report) {
    if element.bpmn_type == "exclusiveGateway" {
        return;
    }
    for index in &element.outgoing {
        let Some((_, node)) = part_of_flow(draft, *index) else { continue };
        if has_condition(node) {
            report.refuse(node, format!("a condition on a flow out of {} is not executed", element.bpmn_type));
        }
    }
}

fn check_default(element: &Element, node: Node, report: &mut Report) {
    if element.bpmn_type != "exclusiveGateway" && xml::filled(node, "default").is_some() {
        report.refuse(node, format!("a default flow of {} is not executed", element.bpmn_type));
    }
}

/// Case #32: the first event wins, so nothing else may lead to one, and no two may be the same.
fn check_event_gateway(draft: &Draft, element: &Element, node: Node, report: &mut Report) {
    if element.outgoing.len() < 2 {
        report.refuse(node, "an event-based gateway needs at least two outgoing flows");
    }
    let mut messages = Vec::new();
    for index in &element.outgoing {
        let Some(flow) = draft.process.flow(*index) else { continue };
        let Some((target, node)) = draft.process.element(flow.target).zip(draft.node(flow.target)) else { continue };
        if target.bpmn_type != "intermediateCatchEvent" {
            report.refuse(node, "only message and timer catch events may follow an event-based gateway");
        } else if target.incoming.len() > 1 {
            report.refuse(node, "an event after an event-based gateway has no other incoming flow");
        } else if !target.inputs.is_empty() {
            report.refuse(node, "input mappings of an event after an event-based gateway are not executed yet");
        } else if let Kind::CatchMessage(message) = &target.kind {
            messages.push((node, message));
        }
    }
    check_message_names(messages, "the event-based gateway waits for another message of the same name", report);
}

/// An error or message must say by itself which boundary event it goes to.
fn check_boundaries(draft: &Draft, activity: &Element, report: &mut Report) {
    let mut codes = BTreeSet::new();
    let mut messages = Vec::new();
    for index in &activity.boundaries {
        let Some((event, node)) = draft.process.element(*index).zip(draft.node(*index)) else { continue };
        let Kind::Boundary(boundary) = &event.kind else { continue };
        match &boundary.trigger {
            Trigger::Error(code) if !codes.insert(code.clone()) => {
                let code = code.as_deref().unwrap_or("any");
                report.refuse(node, format!("{} has another boundary event for the error code {code}", activity.id));
            }
            Trigger::Message(message) => messages.push((node, message)),
            Trigger::Error(_) | Trigger::Timer(_) => (),
        }
    }
    check_message_names(messages, "the activity has another boundary event with the same message name", report);
}

fn check_message_names<'m, 'a>(
    messages: impl IntoIterator<Item = (Node<'a>, &'m MessageRef)>,
    rule: &str,
    report: &mut Report,
) {
    let mut names = BTreeSet::new();
    for (node, message) in messages {
        if let Text::Literal(name) = &message.name
            && !names.insert(name)
        {
            report.refuse(node, rule);
        }
    }
}
