//! One resource → its executable processes, or every reason against it.
//! It knows scopes and flows, but not what an element does: `elements.rs` says that, and `validate.rs` what must hold
//! between elements. Both are handed the [`Draft`] made here.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::elements::{self, Shape};
use crate::extensions::{self, Extensions};
use crate::graph::{Element, ElementIdx, Flow, FlowIdx, Kind, Process, ROOT, Scope, Start};
use crate::problem::{ID_BYTES_MAX, Problem, Report};
use crate::validate;
use crate::xml::{self, BPMN, Lines, Node};

/// All executable processes of one resource (`isExecutable="true"`), or every reason why it cannot be executed, by line.
///
/// `xml` is BPMN 2.0 in UTF-8. Never panics, whatever the bytes; the caller limits their number.
pub fn compile(xml: &[u8]) -> Result<Vec<Process>, Vec<Problem>> {
    let text = xml::decode(xml).map_err(|problem| vec![problem])?;
    let lines = Lines::of(text);
    let document = xml::parse(text, &lines).map_err(|problem| vec![problem])?;
    let mut report = Report::new(&lines);
    let processes = read(document.root_element(), &mut report);
    report.finish(processes)
}

fn read(root: Node, report: &mut Report) -> Vec<Process> {
    if !xml::is_bpmn(root) || xml::tag(root) != "definitions" {
        report.refuse(root, "the file is not a BPMN 2.0 model: its root is not bpmn:definitions");
        return Vec::new();
    }
    check_ids(root, report);
    let definitions = Definitions::of(root);
    let processes: Vec<Node> = xml::children(root, BPMN).filter(|node| xml::tag(*node) == "process").collect();
    let executable: Vec<Node> =
        processes.into_iter().filter(|node| elements::flag(*node, "isExecutable", false, report)).collect();
    if executable.is_empty() {
        report.refuse(root, "no executable process");
    }
    executable.into_iter().map(|node| process(node, &definitions, report)).collect()
}

/// An XML id is unique in its file, whatever carries it.
fn check_ids(root: Node, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for node in root.descendants().filter(|node| xml::is_bpmn(*node)) {
        let Some(id) = xml::filled(node, "id") else { continue };
        if !seen.insert(id) {
            report.refuse(node, format!("the id {id} is used more than once"));
        }
    }
}

/// What processes refer to by id.
#[derive(Debug)]
pub(crate) struct Definitions<'a> {
    messages: BTreeMap<&'a str, Node<'a>>,
    errors: BTreeMap<&'a str, Node<'a>>,
}

impl<'a> Definitions<'a> {
    fn of(root: Node<'a>) -> Self {
        let named = |tag: &str| {
            let found = xml::children(root, BPMN).filter(|node| xml::tag(*node) == tag);
            found.filter_map(|node| Some((xml::filled(node, "id")?, node))).collect()
        };
        Self { messages: named("message"), errors: named("error") }
    }

    pub(crate) fn message(&self, reference: &str) -> Option<Node<'a>> {
        look_up(&self.messages, reference).copied()
    }

    pub(crate) fn error(&self, reference: &str) -> Option<Node<'a>> {
        look_up(&self.errors, reference).copied()
    }
}

/// References are qualified names: some editors write `tns:Message_1` for the id `Message_1`.
fn look_up<'m, K: Borrow<str> + Ord, V>(map: &'m BTreeMap<K, V>, reference: &str) -> Option<&'m V> {
    map.get(reference).or_else(|| map.get(reference.split_once(':')?.1))
}

/// A process under construction, and the XML that each part came from.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) process: Process,
    /// In the order of `process.elements`.
    pub(crate) nodes: Vec<Node<'a>>,
    /// In the order of `process.flows`.
    pub(crate) flow_nodes: Vec<Node<'a>>,
    /// By id; none where the flow is refused, so that nobody complains of it a second time.
    flows: BTreeMap<&'a str, Option<FlowIdx>>,
}

fn process<'a>(node: Node<'a>, definitions: &Definitions<'a>, report: &mut Report) -> Process {
    let mut draft = Draft::of(node, report);
    let mut pending = Vec::new();
    draft.add_content(ROOT, node, &mut pending, report);
    draft.connect(pending, report);
    draft.behave(definitions, report);
    draft.attach();
    validate::check(&draft, report);
    draft.process
}

impl<'a> Draft<'a> {
    fn of(node: Node<'a>, report: &mut Report) -> Self {
        let process_id = id(node, report);
        let name = name(node);
        let mut draft = Self {
            process: Process { process_id, name, elements: Vec::new(), flows: Vec::new(), by_id: BTreeMap::new() },
            nodes: Vec::new(),
            flow_nodes: Vec::new(),
            flows: BTreeMap::new(),
        };
        draft.add(ROOT, "process", node, report);
        draft
    }

    /// Flow nodes of a scope and of the scopes in it; flows are put aside until all their ends are known.
    fn add_content(
        &mut self,
        scope: ElementIdx,
        node: Node<'a>,
        pending: &mut Vec<(ElementIdx, Node<'a>)>,
        report: &mut Report,
    ) {
        for child in xml::children(node, BPMN) {
            match elements::shape(xml::tag(child)) {
                Shape::Flow => pending.push((scope, child)),
                Shape::Node(tag) => drop(self.add(scope, tag, child, report)),
                Shape::Scope(tag) => {
                    let inner = self.add(scope, tag, child, report);
                    self.add_content(inner, child, pending, report);
                }
                Shape::Ignored => (),
                Shape::Unknown => report.refuse(child, format!("bpmn:{} is not executed", xml::tag(child))),
            }
        }
    }

    fn add(&mut self, scope: ElementIdx, bpmn_type: &'static str, node: Node<'a>, report: &mut Report) -> ElementIdx {
        let index = self.process.elements.len() as ElementIdx;
        let id = id(node, report);
        self.process.by_id.entry(Arc::clone(&id)).or_insert(index);
        self.nodes.push(node);
        self.process.elements.push(Element {
            id,
            name: name(node),
            bpmn_type,
            line: report.line(node),
            scope,
            kind: Kind::Pass,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            boundaries: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        });
        index
    }

    fn connect(&mut self, pending: Vec<(ElementIdx, Node<'a>)>, report: &mut Report) {
        for (scope, node) in pending {
            let flow = self.flow(scope, node, report);
            let index = flow.map(|flow| self.add_flow(flow, node));
            if let Some(id) = xml::filled(node, "id") {
                self.flows.insert(id, index);
            }
        }
    }

    fn flow(&self, scope: ElementIdx, node: Node<'a>, report: &mut Report) -> Option<Flow> {
        let id = id(node, report);
        let source = self.end_of_flow(scope, node, "sourceRef", report);
        let target = self.end_of_flow(scope, node, "targetRef", report);
        let condition = extensions::condition(node, report);
        Extensions::read(node, "sequenceFlow", &[], report);
        Some(Flow { id, source: source?, target: target?, condition })
    }

    fn end_of_flow(&self, scope: ElementIdx, node: Node, end: &str, report: &mut Report) -> Option<ElementIdx> {
        let Some(reference) = xml::filled(node, end) else {
            report.refuse(node, format!("the flow has no {end}"));
            return None;
        };
        let Some((index, element)) = self.find(reference) else {
            report.refuse(node, format!("{end} {reference} is not an element of this process"));
            return None;
        };
        if index == ROOT || element.scope != scope {
            report.refuse(node, format!("{end} {reference} is not in the flow's own scope"));
            return None;
        }
        Some(index)
    }

    fn add_flow(&mut self, flow: Flow, node: Node<'a>) -> FlowIdx {
        let index = self.process.flows.len() as FlowIdx;
        if let Some(source) = self.process.elements.get_mut(flow.source as usize) {
            source.outgoing.push(index);
        }
        if let Some(target) = self.process.elements.get_mut(flow.target as usize) {
            target.incoming.push(index);
        }
        self.process.flows.push(flow);
        self.flow_nodes.push(node);
        index
    }

    fn behave(&mut self, definitions: &Definitions<'a>, report: &mut Report) {
        let behaviours = elements::behaviours(self, definitions, report);
        for (element, behaviour) in self.process.elements.iter_mut().zip(behaviours) {
            element.kind = behaviour.kind;
            element.inputs = behaviour.inputs;
            element.outputs = behaviour.outputs;
        }
    }

    /// Tells activities their boundary events, and scopes their start events.
    fn attach(&mut self) {
        for index in 0..self.process.elements.len() as ElementIdx {
            let Some(element) = self.process.element(index) else { continue };
            let scope = element.scope;
            match &element.kind {
                Kind::Boundary(boundary) => {
                    let activity = boundary.attached_to;
                    if let Some(activity) = self.process.elements.get_mut(activity as usize) {
                        activity.boundaries.push(index);
                    }
                }
                Kind::Start(Start::None) => self.with_scope(scope, |scope| scope.none_start = Some(index)),
                Kind::Start(Start::Message(_)) => self.with_scope(scope, |scope| scope.message_starts.push(index)),
                _ => (),
            }
        }
    }

    fn with_scope(&mut self, index: ElementIdx, change: impl FnOnce(&mut Scope)) {
        if let Some(Element { kind: Kind::Scope(scope), .. }) = self.process.elements.get_mut(index as usize) {
            change(scope);
        }
    }

    /// Each element with its XML.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&Element, Node<'a>)> {
        self.process.elements.iter().zip(self.nodes.iter().copied())
    }

    pub(crate) fn node(&self, index: ElementIdx) -> Option<Node<'a>> {
        self.nodes.get(index as usize).copied()
    }

    pub(crate) fn find(&self, id: &str) -> Option<(ElementIdx, &Element)> {
        let index = *look_up(&self.process.by_id, id)?;
        Some((index, self.process.element(index)?))
    }

    /// `None`: there is no such flow. `Some(None)`: it has been refused.
    pub(crate) fn find_flow(&self, id: &str) -> Option<Option<FlowIdx>> {
        self.flows.get(id).copied()
    }
}

fn id(node: Node, report: &mut Report) -> Arc<str> {
    let id = xml::filled(node, "id").unwrap_or_default();
    if id.is_empty() {
        report.refuse(node, format!("{} without an id", xml::tag(node)));
    } else if id.len() > ID_BYTES_MAX {
        report.refuse(node, format!("an id has at most {ID_BYTES_MAX} bytes"));
    } else if id.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        report.refuse(node, "an id has no white space");
    }
    Arc::from(id)
}

fn name(node: Node) -> Option<Arc<str>> {
    xml::filled(node, "name").map(Arc::from)
}
