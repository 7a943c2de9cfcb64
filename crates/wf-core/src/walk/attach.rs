//! Timers and message subscriptions of an element: planned (evaluated) first, made afterwards, closed with it.

use wf_model::{Boundary, Element as Node, ElementIdx, Kind, MessageRef, Timer as TimerSpec, TimerKind, Trigger};

use super::{Here, Task, Walk};
use crate::draft::Run;
use crate::event::What;
use crate::expressions::{Halt, Place, Step};
use crate::ids::{Key, Millis};
use crate::rows::{Attached, AttachedKind, IncidentKind, Row, Subscription, Text, Timer};

/// As the door has it for publishers.
const CORRELATION_KEY_BYTES_MAX: usize = 1024;

/// What an element will wait for.
pub(super) struct Plan {
    target: ElementIdx,
    wait: Wait,
}

enum Wait {
    Timer { due: Millis, repeats: i32, interval: Text },
    Message { name: Text, correlation_key: Text },
}

impl Walk<'_, '_> {
    /// Evaluated in the scope, before the activity's input mappings.
    pub(super) fn plan_boundaries(&mut self, here: &Here, node: &Node) -> Step<Vec<Plan>> {
        let place = here.place();
        let mut plans = Vec::with_capacity(node.boundaries.len());
        for index in &node.boundaries {
            let Some(Kind::Boundary(Boundary { trigger, .. })) = here.node(*index).map(|node| &node.kind) else {
                continue;
            };
            match trigger {
                Trigger::Error(_) => (),
                Trigger::Timer(timer) => plans.push(self.plan_timer(timer, *index, place)?),
                Trigger::Message(message) => plans.push(self.plan_message(message, *index, place)?),
            }
        }
        Ok(plans)
    }

    /// The catch events behind an event-based gateway.
    pub(super) fn plan_branches(&mut self, here: &Here, node: &Node) -> Step<Vec<Plan>> {
        let place = here.place();
        let mut plans = Vec::with_capacity(node.outgoing.len());
        for flow in &node.outgoing {
            let Some(target) = here.process.flow(*flow).map(|flow| flow.target) else { continue };
            match here.node(target).map(|node| &node.kind) {
                Some(Kind::CatchTimer(timer)) => plans.push(self.plan_timer(timer, target, place)?),
                Some(Kind::CatchMessage(message)) => plans.push(self.plan_message(message, target, place)?),
                _ => (),
            }
        }
        Ok(plans)
    }

    pub(super) fn plan_message(&mut self, message: &MessageRef, target: ElementIdx, place: Place<'_>) -> Step<Plan> {
        let name = self.evaluate_name(&message.name, "the message name", place).map_err(as_message_key)?;
        let correlation_key = match &message.correlation_key {
            Some(expression) => self.correlation_key(expression, place)?,
            None => Text::from(""),
        };
        Ok(Plan { target, wait: Wait::Message { name, correlation_key } })
    }

    /// A string or a number; anything else cannot be matched by a publisher.
    fn correlation_key(&mut self, expression: &wf_feel::Expression, place: Place<'_>) -> Step<Text> {
        let value = self.evaluate(expression, place).map_err(as_message_key)?;
        match &value {
            wf_feel::Value::String(text) if text.len() > CORRELATION_KEY_BYTES_MAX => Err(message_key(&format!(
                "correlation key '{}' has more than {CORRELATION_KEY_BYTES_MAX} bytes",
                expression.source()
            ))),
            wf_feel::Value::String(text) => Ok(Text::from(&**text)),
            wf_feel::Value::Number(_) => {
                value.to_json().map(Text::from).map_err(|error| message_key(&error.to_string()))
            }
            other => Err(message_key(&format!(
                "correlation key '{}' gives {}, a string or a number is wanted",
                expression.source(),
                other.type_name()
            ))),
        }
    }

    pub(super) fn plan_timer(&mut self, timer: &TimerSpec, target: ElementIdx, place: Place<'_>) -> Step<Plan> {
        let text = match &timer.text {
            wf_model::Text::Literal(literal) => literal.clone(),
            wf_model::Text::Feel(expression) => {
                let json = self.evaluate_json(expression, place).map_err(as_timer)?;
                json.trim_matches('"').into()
            }
        };
        let wait = plan_time(timer.kind, &text, self.context.now)
            .ok_or_else(|| Halt::Incident(IncidentKind::Timer, format!("'{text}' is no {}", kind_name(timer.kind))))?;
        Ok(Plan { target, wait })
    }

    pub(super) fn attach(&mut self, here: &Here, host: Key, plans: Vec<Plan>) -> Run<Vec<Attached>> {
        let (scope, root) = (here.scope.key, here.scope.root);
        let mut attached = Vec::with_capacity(plans.len());
        for Plan { target, wait } in plans {
            let key = self.draft.next_key();
            let kind = match wait {
                Wait::Timer { due, repeats, interval } => {
                    self.start_timer(here, Timer { key, host, scope, root, target, due, repeats, interval });
                    AttachedKind::Timer
                }
                Wait::Message { name: message, correlation_key } => {
                    let tenant = self.tenant_of(root)?;
                    let process_id = here.process.process_id.clone();
                    let open =
                        Subscription { key, host, scope, root, tenant, process_id, message, correlation_key, target };
                    self.open_subscription(here, open);
                    AttachedKind::Subscription
                }
            };
            attached.push(Attached { kind, key, target });
        }
        Ok(attached)
    }

    fn start_timer(&mut self, here: &Here, timer: Timer) {
        self.tell_scheduled(here, &timer);
        self.draft.insert_new(timer);
    }

    pub(super) fn tell_scheduled(&mut self, here: &Here, timer: &Timer) {
        let scheduled = What::TimerScheduled { element_id: here.id_of(timer.target), due: timer.due };
        self.draft.emit(timer.root, timer.key, scheduled);
    }

    fn open_subscription(&mut self, here: &Here, open: Subscription) {
        let opened =
            What::SubscriptionOpened { message: open.message.clone(), correlation_key: open.correlation_key.clone() };
        self.draft.emit(open.root, open.key, opened);
        match self.home_elsewhere(&open) {
            Some(home) => self.announce(here, &open, home),
            None => self.push(Task::MatchBuffered { subscription: open.key, after: None }),
        }
        self.draft.insert_new(open);
    }

    /// Closes timers and subscriptions; those that are gone already are no matter.
    pub(super) fn detach(&mut self, root: Key, attached: &[Attached]) -> Run<()> {
        for attached in attached {
            let id = attached.row_id();
            let Some(row) = self.draft.row(&id)? else { continue };
            if let Row::Subscription(open) = &row {
                self.withdraw(open);
            }
            self.draft.delete(id)?;
            let closed = match attached.kind {
                AttachedKind::Timer => What::TimerCanceled,
                AttachedKind::Subscription => What::SubscriptionClosed,
            };
            self.draft.emit(root, attached.key, closed);
        }
        Ok(())
    }
}

/// Firings left of a cycle without a number.
pub(super) const ENDLESS: i32 = -1;

/// The same rules as for a literal in the model.
fn plan_time(kind: TimerKind, text: &str, now: Millis) -> Option<Wait> {
    let once = |due| Wait::Timer { due, repeats: 0, interval: Text::from("") };
    match kind {
        TimerKind::Duration => wf_feel::add_duration_ms(now, text).map(once),
        TimerKind::Date => wf_feel::parse_instant_ms(text).map(once),
        TimerKind::Cycle => {
            let (count, interval) = text.strip_prefix('R')?.split_once('/')?;
            let repeats = match count {
                "" => ENDLESS,
                count => count.parse::<i32>().ok().filter(|times| *times > 0)? - 1,
            };
            // Else it would fire without end at one instant.
            let due = wf_feel::add_duration_ms(now, interval).filter(|due| *due > now)?;
            Some(Wait::Timer { due, repeats, interval: interval.into() })
        }
    }
}

fn kind_name(kind: TimerKind) -> &'static str {
    match kind {
        TimerKind::Duration => "ISO 8601 duration",
        TimerKind::Date => "ISO 8601 date and time",
        TimerKind::Cycle => "cycle (R[n]/duration)",
    }
}

fn as_timer(halt: Halt) -> Halt {
    match halt {
        Halt::Incident(_, message) => Halt::Incident(IncidentKind::Timer, message),
        stop => stop,
    }
}

fn as_message_key(halt: Halt) -> Halt {
    match halt {
        Halt::Incident(_, message) => message_key(&message),
        stop => stop,
    }
}

fn message_key(message: &str) -> Halt {
    Halt::Incident(IncidentKind::MessageKey, message.to_owned())
}
