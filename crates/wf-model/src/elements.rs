//! Each BPMN tag → what it does when a token arrives. Whatever is not executed is refused here, by name.
//! It knows one element at a time; rules between elements are `validate.rs`. Events have definitions: `events.rs`.

use crate::compile::{Definitions, Draft};
use crate::events;
use crate::extensions::{self, Extensions};
use crate::graph::{Element, FlowIdx, JobSpec, Kind, Mapping, Scope, Text};
use crate::problem::Report;
use crate::xml::{self, BPMN, Node};

/// Tags that become elements. The second column is the reason against those that do not run yet.
const NODES: &[(&str, Option<&str>)] = &[
    ("startEvent", None),
    ("endEvent", None),
    ("intermediateCatchEvent", None),
    ("intermediateThrowEvent", None),
    ("boundaryEvent", None),
    ("task", None),
    ("manualTask", None),
    ("serviceTask", None),
    ("sendTask", None),
    ("businessRuleTask", None),
    ("userTask", None),
    ("scriptTask", None),
    ("receiveTask", None),
    ("callActivity", Some("a call activity is not executed yet")),
    ("exclusiveGateway", None),
    ("parallelGateway", None),
    ("eventBasedGateway", None),
    ("inclusiveGateway", Some("an inclusive gateway is not executed yet")),
    ("complexGateway", Some("a complex gateway is not executed")),
];

const SCOPES: &[(&str, Option<&str>)] = &[
    ("subProcess", None),
    ("transaction", Some("a transaction is not executed")),
    ("adHocSubProcess", Some("an ad-hoc sub-process is not executed yet")),
];

/// Drawing, prose and data that BPMN does not execute, and the references that a flow node repeats.
const IGNORED: &[&str] = &[
    "association",
    "auditing",
    "category",
    "dataInput",
    "dataInputAssociation",
    "dataObject",
    "dataObjectReference",
    "dataOutput",
    "dataOutputAssociation",
    "dataStoreReference",
    "documentation",
    "extensionElements",
    "group",
    "humanPerformer",
    "incoming",
    "inputSet",
    "ioSpecification",
    "laneSet",
    "monitoring",
    "outgoing",
    "outputSet",
    "performer",
    "potentialOwner",
    "property",
    "rendering",
    "resourceRole",
    "supportedInterfaceRef",
    "supports",
    "textAnnotation",
];

pub(crate) enum Shape {
    Flow,
    Node(&'static str),
    Scope(&'static str),
    Ignored,
    Unknown,
}

pub(crate) fn shape(tag: &str) -> Shape {
    let known = |table: &'static [(&str, _)]| table.iter().map(|(name, _)| *name).find(|name| *name == tag);
    if tag == "sequenceFlow" {
        Shape::Flow
    } else if let Some(name) = known(NODES) {
        Shape::Node(name)
    } else if let Some(name) = known(SCOPES) {
        Shape::Scope(name)
    } else if IGNORED.contains(&tag) || tag.ends_with("LoopCharacteristics") {
        Shape::Ignored // Loops are refused with the activity that they are in.
    } else {
        Shape::Unknown
    }
}

/// Why the element as a whole is not executed. Rules about its inside are then beside the point.
pub(crate) fn refusal(node: Node) -> Option<&'static str> {
    let tag = xml::tag(node);
    if matches!(xml::attribute(node, "triggeredByEvent").map(str::trim), Some("true" | "1")) {
        return Some("an event sub-process is not executed yet");
    }
    NODES.iter().chain(SCOPES).find(|(name, _)| *name == tag).and_then(|(_, reason)| *reason)
}

pub(crate) fn is_activity(bpmn_type: &str) -> bool {
    bpmn_type == "task" || bpmn_type.ends_with("Task") || bpmn_type == "callActivity" || is_scope(bpmn_type)
}

fn is_scope(bpmn_type: &str) -> bool {
    SCOPES.iter().any(|(name, _)| *name == bpmn_type)
}

#[derive(Debug)]
pub(crate) struct Behaviour {
    pub(crate) kind: Kind,
    pub(crate) inputs: Vec<Mapping>,
    pub(crate) outputs: Vec<Mapping>,
}

impl Behaviour {
    /// Where the kind has been refused, a placeholder until the whole process is thrown away.
    pub(crate) fn new(kind: Option<Kind>, extensions: Extensions) -> Self {
        Self { kind: kind.unwrap_or(Kind::Pass), inputs: extensions.inputs, outputs: extensions.outputs }
    }
}

/// Of all elements, in their order.
pub(crate) fn behaviours(draft: &Draft, definitions: &Definitions, report: &mut Report) -> Vec<Behaviour> {
    let process = draft.parts().next().map(|(_, node)| node);
    let job_priority = process.and_then(extensions::process_job_priority);
    let mut found = Vec::with_capacity(draft.nodes.len());
    for (element, node) in draft.parts() {
        let mut reader = Reader { draft, definitions, job_priority, element, node, report };
        found.push(reader.behaviour());
    }
    found
}

/// One element, and all that its meaning may depend on.
pub(crate) struct Reader<'r, 'a, 'l> {
    pub(crate) draft: &'r Draft<'a>,
    pub(crate) definitions: &'r Definitions<'a>,
    /// Where the process gives its jobs a priority.
    job_priority: Option<Node<'a>>,
    pub(crate) element: &'r Element,
    pub(crate) node: Node<'a>,
    pub(crate) report: &'r mut Report<'l>,
}

impl Reader<'_, '_, '_> {
    fn behaviour(&mut self) -> Behaviour {
        self.check_parts();
        if let Some(reason) = refusal(self.node) {
            self.refuse(reason);
            let kind = if is_scope(self.element.bpmn_type) { Kind::Scope(Scope::default()) } else { Kind::Pass };
            return Behaviour::new(Some(kind), Extensions::default());
        }
        match self.element.bpmn_type {
            "startEvent" => self.start_event(),
            "endEvent" => self.end_event(),
            "intermediateCatchEvent" => self.catch_event(),
            "intermediateThrowEvent" => self.throw_event(),
            "boundaryEvent" => self.boundary_event(),
            "process" => self.unmapped(Kind::Scope(Scope::default()), extensions::OF_PROCESS),
            "subProcess" => self.mapped(Some(Kind::Scope(Scope::default()))),
            "serviceTask" | "sendTask" | "businessRuleTask" => self.job_task(),
            "userTask" => self.user_task(),
            "scriptTask" => self.script_task(),
            "receiveTask" => self.receive_task(),
            "exclusiveGateway" => self.gateway(|default| Kind::Exclusive { default }),
            "parallelGateway" => self.gateway(|_| Kind::Parallel),
            "eventBasedGateway" => self.event_gateway(),
            _ => self.mapped_out(Some(Kind::Pass), extensions::OF_MAPPED),
        }
    }

    pub(crate) fn mapped(&mut self, kind: Option<Kind>) -> Behaviour {
        let extensions = self.extensions(extensions::OF_MAPPED);
        Behaviour::new(kind, extensions)
    }

    /// It is over as soon as it begins, so there is no place in which inputs could be local.
    pub(crate) fn mapped_out(&mut self, kind: Option<Kind>, allowed: &[&str]) -> Behaviour {
        let extensions = self.extensions(allowed);
        if !extensions.inputs.is_empty() {
            self.refuse(format!("input mappings of {} are not executed", self.element.bpmn_type));
        }
        Behaviour::new(kind, extensions)
    }

    fn unmapped(&mut self, kind: Kind, allowed: &[&str]) -> Behaviour {
        let extensions = self.extensions(allowed);
        Behaviour::new(Some(kind), extensions)
    }

    pub(crate) fn extensions(&mut self, allowed: &[&str]) -> Extensions {
        Extensions::read(self.node, self.element.bpmn_type, allowed, self.report)
    }

    /// Attributes and children that change the meaning of any element, and are not executed.
    fn check_parts(&mut self) {
        if flag(self.node, "isForCompensation", false, self.report) {
            self.refuse("a compensation handler (isForCompensation) is not executed yet");
        }
        if flag(self.node, "instantiate", false, self.report) {
            self.refuse("instantiate is not executed: a process starts at a start event");
        }
        flag(self.node, "triggeredByEvent", false, self.report); // No boolean: neither this nor a sub-process.
        for quantity in ["startQuantity", "completionQuantity"] {
            if xml::filled(self.node, quantity).is_some_and(|quantity| quantity != "1") {
                self.refuse(format!("a {quantity} other than 1 is not executed"));
            }
        }
        let is_event = self.element.bpmn_type.ends_with("Event");
        let is_scope = self.element.bpmn_type == "process" || is_scope(self.element.bpmn_type);
        for child in xml::children(self.node, BPMN) {
            match xml::tag(child) {
                "multiInstanceLoopCharacteristics" => self.report.refuse(child, "multi-instance is not executed yet"),
                "standardLoopCharacteristics" => self.report.refuse(child, "a standard loop is not executed"),
                tag if is_scope || IGNORED.contains(&tag) => (),
                tag if is_event && is_definition(tag) => (),
                "script" if self.element.bpmn_type == "scriptTask" => (),
                tag => self.report.refuse(child, format!("bpmn:{tag} is not executed in {}", self.element.bpmn_type)),
            }
        }
    }

    pub(crate) fn refuse(&mut self, message: impl Into<String>) {
        self.report.refuse(self.node, message);
    }

    fn job_task(&mut self) -> Behaviour {
        let mut extensions = self.extensions(extensions::OF_JOBS);
        let kind = self.job(&mut extensions).map(Kind::Job);
        Behaviour::new(kind, extensions)
    }

    /// The work order of a task or message event; without `zeebe:taskDefinition` nobody could do it.
    pub(crate) fn job(&mut self, extensions: &mut Extensions) -> Option<Box<JobSpec>> {
        let Some(task) = extensions.task.take() else {
            if !extensions.refused_implementation {
                let event = if self.element.bpmn_type.ends_with("Event") { "message " } else { "" };
                self.refuse(format!("a {event}{} needs a zeebe:taskDefinition", self.element.bpmn_type));
            }
            return None;
        };
        Some(Box::new(self.job_spec(task.job_type, task.retries, extensions)))
    }

    fn job_spec(&mut self, job_type: Text, retries: Text, extensions: &mut Extensions) -> JobSpec {
        let of_process = self.job_priority;
        let priority = extensions.job_priority.take();
        JobSpec {
            job_type,
            retries,
            priority: priority.or_else(|| extensions::job_priority(of_process?, self.report)),
            headers: std::mem::take(&mut extensions.headers),
            computed_headers: std::mem::take(&mut extensions.computed_headers),
        }
    }

    /// The same with and without `zeebe:userTask`: a worker of its own reserved type does it.
    fn user_task(&mut self) -> Behaviour {
        let mut extensions = self.extensions(extensions::OF_USER_TASK);
        let job_type = Text::Literal("io.camunda.zeebe:userTask".into());
        let job = self.job_spec(job_type, Text::Literal("1".into()), &mut extensions);
        Behaviour::new(Some(Kind::Job(Box::new(job))), extensions)
    }

    fn script_task(&mut self) -> Behaviour {
        let mut extensions = self.extensions(extensions::OF_SCRIPT_TASK);
        let script = extensions.script.take();
        let kind = match (script, &extensions.task) {
            (Some(_), Some(_)) => {
                self.refuse("a scriptTask has a zeebe:script or a zeebe:taskDefinition, not both");
                None
            }
            (Some(script), None) => {
                script.expression.map(|expression| Kind::Script { expression, result: script.result })
            }
            (None, Some(_)) => self.job(&mut extensions).map(Kind::Job),
            (None, None) => {
                self.refuse("a scriptTask needs a zeebe:script or a zeebe:taskDefinition");
                None
            }
        };
        Behaviour::new(kind, extensions)
    }

    fn receive_task(&mut self) -> Behaviour {
        let message = events::awaited_message(self, self.node);
        self.mapped(message.map(Kind::CatchMessage))
    }

    fn gateway(&mut self, kind: impl FnOnce(Option<FlowIdx>) -> Kind) -> Behaviour {
        let default = self.default_flow();
        self.unmapped(kind(default), &[])
    }

    /// `validate.rs` refuses it on anything but an exclusive gateway.
    fn default_flow(&mut self) -> Option<FlowIdx> {
        let id = xml::filled(self.node, "default")?;
        match self.draft.find_flow(id) {
            Some(Some(flow)) if self.element.outgoing.contains(&flow) => Some(flow),
            Some(None) => None,
            Some(Some(_)) => {
                self.refuse(format!("the default flow {id} does not start here"));
                None
            }
            None => {
                self.refuse(format!("the default flow {id} does not exist"));
                None
            }
        }
    }

    fn event_gateway(&mut self) -> Behaviour {
        if xml::attribute(self.node, "eventGatewayType") == Some("Parallel") {
            self.refuse("a parallel event-based gateway is not executed");
        }
        self.gateway(|_| Kind::EventGateway)
    }
}

pub(crate) fn is_definition(tag: &str) -> bool {
    tag.ends_with("EventDefinition") || tag == "eventDefinitionRef"
}

/// An XML boolean.
pub(crate) fn flag(node: Node, name: &str, default: bool, report: &mut Report) -> bool {
    match xml::attribute(node, name).map(str::trim) {
        None => default,
        Some("true" | "1") => true,
        Some("false" | "0") => false,
        Some(other) => {
            report.refuse(node, format!("{name} is {other}, must be true or false"));
            default
        }
    }
}
