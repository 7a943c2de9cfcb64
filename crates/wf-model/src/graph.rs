//! The executable definition: elements and flows in vectors, addressed by index.
//! It knows no XML and no state of an instance. `compile.rs` makes it; `wf-core` walks it.

use std::collections::BTreeMap;
use std::sync::Arc;

use wf_feel::Expression;

/// Position of an element in [`Process::elements`].
pub type ElementIdx = u32;
/// Position of a flow in [`Process::flows`].
pub type FlowIdx = u32;

/// The process itself is the first element: the root scope.
pub const ROOT: ElementIdx = 0;

/// One executable process.
#[derive(Debug)]
pub struct Process {
    pub process_id: Arc<str>,
    pub name: Option<Arc<str>>,
    /// `elements[ROOT]` is the process; a scope stands before its content.
    pub elements: Vec<Element>,
    pub flows: Vec<Flow>,
    pub by_id: BTreeMap<Arc<str>, ElementIdx>,
}

#[derive(Debug)]
pub struct Flow {
    pub id: Arc<str>,
    pub source: ElementIdx,
    pub target: ElementIdx,
    pub condition: Option<Expression>,
}

#[derive(Debug)]
pub struct Element {
    pub id: Arc<str>,
    pub name: Option<Arc<str>>,
    /// The BPMN tag, as users know it: `serviceTask`, `exclusiveGateway`, …
    pub bpmn_type: &'static str,
    /// Line of the opening tag in the source, from 1.
    pub line: u32,
    /// The scope that contains it; the root contains itself.
    pub scope: ElementIdx,
    pub kind: Kind,
    pub incoming: Vec<FlowIdx>,
    /// In the order of the file, which is the order in which conditions are tried.
    pub outgoing: Vec<FlowIdx>,
    /// Boundary events attached to this activity, in the order of the file.
    pub boundaries: Vec<ElementIdx>,
    pub inputs: Vec<Mapping>,
    pub outputs: Vec<Mapping>,
}

/// What an element does when a token arrives.
#[derive(Debug)]
pub enum Kind {
    /// The process (`ROOT`) or an embedded sub-process.
    Scope(Scope),
    Start(Start),
    End(End),
    /// Service, send, business-rule and user task, message throw event: a worker does it.
    Job(Box<JobSpec>),
    /// Manual and undefined task, none throw event: passes on at once.
    Pass,
    Script {
        expression: Expression,
        result: Arc<str>,
    },
    /// Receive task or message intermediate catch event.
    CatchMessage(MessageRef),
    CatchTimer(Timer),
    Exclusive {
        default: Option<FlowIdx>,
    },
    Parallel,
    EventGateway,
    Boundary(Boundary),
}

#[derive(Debug, Default)]
pub struct Scope {
    /// The none start event, where there is one. An embedded sub-process always has it.
    pub none_start: Option<ElementIdx>,
    /// Message start events; only the root may have them.
    pub message_starts: Vec<ElementIdx>,
}

#[derive(Debug)]
pub enum Start {
    None,
    Message(MessageRef),
}

#[derive(Debug)]
pub enum End {
    None,
    Terminate,
    Error {
        code: Text,
    },
    /// A message end event is done by a worker, like a task.
    Job(Box<JobSpec>),
}

#[derive(Debug)]
pub struct JobSpec {
    pub job_type: Text,
    /// 3 where the model says nothing.
    pub retries: Text,
    /// 0 where the model says nothing.
    pub priority: Option<Text>,
    /// Static headers in the order of the file.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// Headers whose value is computed when the job is created (a user task's assignment and form).
    pub computed_headers: Vec<(Arc<str>, Text)>,
}

#[derive(Debug)]
pub struct MessageRef {
    pub name: Text,
    /// Absent on a message start event.
    pub correlation_key: Option<Expression>,
}

#[derive(Debug)]
pub struct Timer {
    pub kind: TimerKind,
    pub text: Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    Duration,
    Date,
    /// `R[n]/duration`; only on a non-interrupting boundary event.
    Cycle,
}

#[derive(Debug)]
pub struct Boundary {
    pub attached_to: ElementIdx,
    pub interrupting: bool,
    pub trigger: Trigger,
}

#[derive(Debug)]
pub enum Trigger {
    /// `None` catches every code.
    Error(Option<Arc<str>>),
    Timer(Timer),
    Message(MessageRef),
}

/// `source` is evaluated and written to the variable path `target` (`a.b` writes member `b` of `a`).
#[derive(Debug)]
pub struct Mapping {
    pub source: Expression,
    pub target: Vec<Arc<str>>,
}

/// A literal, or a FEEL expression where the attribute began with `=`.
#[derive(Debug)]
pub enum Text {
    Literal(Arc<str>),
    Feel(Expression),
}

impl Process {
    pub fn element(&self, index: ElementIdx) -> Option<&Element> {
        self.elements.get(index as usize)
    }

    pub fn flow(&self, index: FlowIdx) -> Option<&Flow> {
        self.flows.get(index as usize)
    }

    /// The message start events of the process with their message names, where those are literals.
    pub fn message_starts(&self) -> impl Iterator<Item = (ElementIdx, &MessageRef)> {
        self.elements.iter().enumerate().filter_map(|(index, element)| match &element.kind {
            Kind::Start(Start::Message(message)) => Some((index as ElementIdx, message)),
            _ => None,
        })
    }
}
