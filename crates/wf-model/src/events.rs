//! Start, end, intermediate and boundary events, by their event definition: none, message, timer, error, terminate.
//! It knows no other kind: those are refused here. Literal timers are checked in `timers.rs`.

use std::sync::Arc;

use crate::elements::{self, Behaviour, Reader};
use crate::extensions::{self, Extensions};
use crate::graph::{Boundary, ElementIdx, End, JobSpec, Kind, MessageRef, Start, Text, TimerKind, Trigger};
use crate::timers;
use crate::xml::{self, BPMN, Node};

enum Definition<'a> {
    None,
    Message(Node<'a>),
    Timer(Node<'a>),
    Error(Node<'a>),
    Terminate,
    /// Already reported.
    Refused,
}

impl<'a> Reader<'_, 'a, '_> {
    pub(crate) fn start_event(&mut self) -> Behaviour {
        if self.draft.node(self.element.scope).is_some_and(|scope| elements::refusal(scope).is_some()) {
            return Behaviour::new(None, Extensions::default()); // How an event sub-process starts is not for us to judge.
        }
        let start = match self.definition() {
            Definition::None => Some(Start::None),
            Definition::Message(node) => self.start_message(node).map(Start::Message),
            Definition::Timer(_) => self.refused("a timer start event is not executed yet"),
            Definition::Error(_) => self.refused("an error starts nothing but an event sub-process"),
            Definition::Terminate => self.refused("a terminate definition belongs to an end event"),
            Definition::Refused => None,
        };
        self.mapped_out(start.map(Kind::Start), extensions::OF_START)
    }

    pub(crate) fn end_event(&mut self) -> Behaviour {
        let end = match self.definition() {
            Definition::None => Some(End::None),
            Definition::Terminate => Some(End::Terminate),
            Definition::Error(node) => self.thrown_error(node).map(|code| End::Error { code }),
            Definition::Message(node) => return self.message_thrown(node, |job| Kind::End(End::Job(job))),
            Definition::Timer(_) => self.refused("a timer is something to wait for, not an end"),
            Definition::Refused => None,
        };
        let extensions = self.extensions(extensions::OF_MAPPED);
        if !extensions.inputs.is_empty() || !extensions.outputs.is_empty() {
            self.refuse("mappings of an endEvent are not executed yet, but for a message");
        }
        Behaviour::new(end.map(Kind::End), extensions)
    }

    /// A worker sends it; the name of the message is for the reader of the diagram.
    fn message_thrown(&mut self, node: Node<'a>, kind: impl FnOnce(Box<JobSpec>) -> Kind) -> Behaviour {
        if let Some(reference) = xml::filled(node, "messageRef")
            && self.definitions.message(reference).is_none()
        {
            self.report.refuse(node, format!("messageRef {reference} is not a message of this file"));
        }
        let mut extensions = self.extensions(extensions::OF_JOBS);
        let kind = self.job(&mut extensions).map(kind);
        Behaviour::new(kind, extensions)
    }

    pub(crate) fn catch_event(&mut self) -> Behaviour {
        let kind = match self.definition() {
            Definition::Message(node) => awaited_message(self, node).map(Kind::CatchMessage),
            Definition::Timer(node) => {
                timers::timer(node, &[TimerKind::Duration, TimerKind::Date], self.report).map(Kind::CatchTimer)
            }
            Definition::Refused => None,
            _ => self.refused("an intermediateCatchEvent waits for a message or a timer"),
        };
        self.mapped(kind)
    }

    pub(crate) fn throw_event(&mut self) -> Behaviour {
        match self.definition() {
            Definition::None | Definition::Refused => (),
            Definition::Message(node) => return self.message_thrown(node, Kind::Job),
            _ => self.refuse("an intermediateThrowEvent throws a message or nothing"),
        }
        self.mapped_out(Some(Kind::Pass), extensions::OF_MAPPED)
    }

    pub(crate) fn boundary_event(&mut self) -> Behaviour {
        let interrupting = elements::flag(self.node, "cancelActivity", true, self.report);
        let attached_to = self.attached_to();
        let trigger = self.trigger(interrupting);
        let kind = attached_to
            .zip(trigger)
            .map(|(attached_to, trigger)| Kind::Boundary(Boundary { attached_to, interrupting, trigger }));
        self.mapped_out(kind, extensions::OF_MAPPED)
    }

    fn attached_to(&mut self) -> Option<ElementIdx> {
        let Some(reference) = xml::filled(self.node, "attachedToRef") else {
            return self.refused("a boundaryEvent needs an attachedToRef");
        };
        let Some((index, activity)) = self.draft.find(reference) else {
            return self.refused(format!("attachedToRef {reference} is not an element of this process"));
        };
        if !elements::is_activity(activity.bpmn_type) {
            return self
                .refused(format!("attachedToRef {reference} is not an activity but of type {}", activity.bpmn_type));
        }
        if activity.scope != self.element.scope {
            return self.refused(format!("attachedToRef {reference} is not in the boundary event's own scope"));
        }
        Some(index)
    }

    fn trigger(&mut self, interrupting: bool) -> Option<Trigger> {
        match self.definition() {
            Definition::Message(node) => awaited_message(self, node).map(Trigger::Message),
            Definition::Timer(node) => {
                let kinds = [TimerKind::Duration, TimerKind::Date, TimerKind::Cycle];
                let kinds = if interrupting { kinds.get(..2)? } else { &kinds };
                timers::timer(node, kinds, self.report).map(Trigger::Timer)
            }
            Definition::Error(_) if !interrupting => {
                self.refused("an error boundary event always interrupts: cancelActivity must not be false")
            }
            Definition::Error(node) => self.caught_error(node).map(Trigger::Error),
            Definition::Refused => None,
            _ => self.refused("a boundaryEvent waits for an error, a message or a timer"),
        }
    }

    fn definition(&mut self) -> Definition<'a> {
        let mut found = xml::children(self.node, BPMN).filter(|child| elements::is_definition(xml::tag(*child)));
        let Some(node) = found.next() else { return Definition::None };
        if found.next().is_some() {
            self.refuse("several event definitions on one event are not executed");
            return Definition::Refused;
        }
        Extensions::read(node, "event definition", &[], self.report);
        match xml::tag(node) {
            "messageEventDefinition" => Definition::Message(node),
            "timerEventDefinition" => Definition::Timer(node),
            "errorEventDefinition" => Definition::Error(node),
            "terminateEventDefinition" => Definition::Terminate,
            "eventDefinitionRef" => {
                self.report.refuse(node, "an event definition by reference is not executed: put it into the event");
                Definition::Refused
            }
            tag => {
                let kind = tag.trim_end_matches("EventDefinition");
                self.report.refuse(node, format!("{} events are not executed yet", plain_name(kind)));
                Definition::Refused
            }
        }
    }

    fn refused<T>(&mut self, message: impl Into<String>) -> Option<T> {
        self.refuse(message);
        None
    }

    fn thrown_error(&mut self, node: Node<'a>) -> Option<Text> {
        let Some(reference) = xml::filled(node, "errorRef") else {
            return self.refused("an error end event needs an errorRef");
        };
        let error = self.error(node, reference)?;
        let Some(code) = xml::filled(error, "errorCode") else {
            self.report.refuse(error, "the error is thrown and needs an errorCode");
            return None;
        };
        Some(extensions::name(error, "the errorCode", code, self.report))
    }

    /// Without a reference, or with an error that has no code, every error is caught.
    fn caught_error(&mut self, node: Node<'a>) -> Option<Option<Arc<str>>> {
        let Some(reference) = xml::filled(node, "errorRef") else { return Some(None) };
        let error = self.error(node, reference)?;
        match xml::filled(error, "errorCode") {
            Some(code) if code.starts_with('=') => {
                self.report.refuse(error, "the errorCode of a caught error must not be an expression");
                None
            }
            Some(code) if !extensions::is_name(code) => {
                extensions::name(error, "the errorCode", code, self.report);
                None
            }
            code => Some(code.map(Arc::from)),
        }
    }

    fn error(&mut self, node: Node<'a>, reference: &str) -> Option<Node<'a>> {
        let error = self.definitions.error(reference);
        if error.is_none() {
            self.report.refuse(node, format!("errorRef {reference} is not an error of this file"));
        }
        error
    }

    /// A start has no variables, so its message's name cannot be computed; and it has no correlation key.
    fn start_message(&mut self, node: Node<'a>) -> Option<MessageRef> {
        let (message, name) = message(self, node)?;
        if let Text::Feel(_) = name {
            self.report.refuse(message, "the name of a message that starts a process must not be an expression");
            return None;
        }
        Some(MessageRef { name, correlation_key: None })
    }
}

/// The message that `node` (a receive task or a message definition) waits for.
pub(crate) fn awaited_message<'a>(reader: &mut Reader<'_, 'a, '_>, node: Node<'a>) -> Option<MessageRef> {
    let (message, name) = message(reader, node)?;
    let correlation_key = extensions::correlation_key(message, reader.report)?;
    Some(MessageRef { name, correlation_key: Some(correlation_key) })
}

fn message<'a>(reader: &mut Reader<'_, 'a, '_>, node: Node<'a>) -> Option<(Node<'a>, Text)> {
    let Some(reference) = xml::filled(node, "messageRef") else {
        let bpmn_type = reader.element.bpmn_type;
        let waiting = if bpmn_type.ends_with("Event") { "message " } else { "" };
        return reader.refused(format!("a {waiting}{bpmn_type} needs a messageRef"));
    };
    let Some(message) = reader.definitions.message(reference) else {
        reader.report.refuse(node, format!("messageRef {reference} is not a message of this file"));
        return None;
    };
    Extensions::read(message, "message", extensions::OF_MESSAGE, reader.report);
    let Some(name) = xml::filled(message, "name") else {
        reader.report.refuse(message, "the message has no name");
        return None;
    };
    Some((message, extensions::name(message, "the message name", name, reader.report)))
}

/// `compensateEventDefinition` is called compensation everywhere else.
fn plain_name(kind: &str) -> &str {
    match kind {
        "compensate" => "compensation",
        other => other,
    }
}
