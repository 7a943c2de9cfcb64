//! All that can be worked out about a command before anything is changed: the core's decision, the answer's bytes,
//! the log row, the audit, the messages. A panic in here is that command's alone. Next: `partition.rs` files it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use wf_core::draft::{Base, Changes};
use wf_core::planted::{self, Bug};
use wf_core::rows::Text;
use wf_core::{Command, Context, Draft, Event, Millis, Outcome, Row, RowId, Stop, decide, ids};
use wf_idempotency::record::Answer;
use wf_store::codec::{command_to_json, events_to_json_each, logged_to_json};
use wf_store::{AuditEntry, InboxId, Needs, OutboxEntry, OutboxId, Sent, event_id};

use crate::chain::{begin_row, link};
use crate::options::{Chance, SinkRule};
use crate::publish;
use crate::request::{Refusal, Render};

/// What a command comes to, if it is filed.
pub struct Decided {
    pub outcome: Outcome,
    pub changes: Changes,
    /// Only where it is to be stored under a key.
    pub answer: Option<Answer>,
    /// `None`: it changed nothing and takes no position.
    pub filing: Option<Filing>,
}

/// Its log row's payload, its audit row and messages.
pub struct Filing {
    pub tenant: Text,
    pub payload: String,
    pub audit: Option<AuditEntry>,
    pub outbox: Vec<OutboxEntry>,
    /// For other partitions.
    pub sent: Vec<Sent>,
    /// The head of the audit's chain after it.
    pub chain: [u8; 32],
}

/// What surrounds the decision.
pub struct Around<'a> {
    pub base: &'a dyn Base,
    pub partition: u16,
    pub next_counter: u64,
    pub chain: [u8; 32],
    pub sinks: &'a [SinkRule],
    pub source: &'a str,
    pub inspect: Option<fn(&Command)>,
    pub chance: &'a Chance,
}

/// Who asked, for the audit; the engine's own commands concern the tenant of what they change.
pub enum Actor<'a> {
    Client { name: &'a Text, render: Option<Render> },
    Engine,
}

/// `Err`: something is missing, nothing has changed, it is simply run again. A refusal is a value.
pub fn prepare(
    around: &Around<'_>,
    command: &Command,
    context: &Context,
    actor: &Actor<'_>,
) -> Result<Result<Decided, Refusal>, Needs> {
    let decided = catch_unwind(AssertUnwindSafe(|| {
        around.inspect.iter().for_each(|inspect| inspect(command));
        wf_store::failpoint::panic_at(command.verb());
        let mut draft = Draft::new(around.base, around.partition, around.next_counter);
        let outcome = decide(&mut draft, command, context)?;
        Ok(finish(around, command, context, actor, outcome, draft.finish()))
    }));
    match decided {
        Ok(Ok(decided)) => Ok(Ok(decided)),
        Ok(Err(Stop::Rejected(rejection))) => Ok(Err(Refusal::Rejected(rejection))),
        Ok(Err(Stop::Missing(core))) => Err(Needs { core, ..Needs::default() }),
        Err(panic) => Ok(Err(poisoned(command.verb(), &*panic, around.chance))),
    }
}

fn finish(
    around: &Around<'_>,
    command: &Command,
    context: &Context,
    actor: &Actor<'_>,
    outcome: Outcome,
    changes: Changes,
) -> Decided {
    let answer = match actor {
        Actor::Client { render, .. } => render.map(|render| render(&outcome)),
        Actor::Engine => None,
    };
    let filing = takes_position(&outcome, &changes).then(|| file(around, command, context, actor, &changes));
    Decided { outcome, changes, answer, filing }
}

/// A message that reached nobody changes no row, but it took a key and has its event.
pub fn takes_position(outcome: &Outcome, changes: &Changes) -> bool {
    let is_applied = matches!(outcome, Outcome::Done { applied: true } | Outcome::ClockSet { .. });
    is_applied || !changes.rows.is_empty() || !changes.events.is_empty()
}

fn file(around: &Around<'_>, command: &Command, context: &Context, actor: &Actor<'_>, changes: &Changes) -> Filing {
    let (name, tenant) = match actor {
        Actor::Client { name, .. } => ((*name).clone(), context.tenant.clone()),
        Actor::Engine => (Text::from("engine"), tenant_of(around.base, command, changes)),
    };
    let mut filing = Filing {
        payload: logged_to_json(command, &context.origin),
        tenant,
        audit: None,
        outbox: Vec::new(),
        sent: sent(around, context, changes),
        chain: around.chain,
    };
    let is_hidden = planted::is(Bug::UnauditedExpiry) && matches!(command, Command::ExpireLease { .. });
    if !changes.events.is_empty() && !is_hidden {
        tell(&mut filing, around, context, name, &changes.events);
    }
    filing
}

fn sent(around: &Around<'_>, context: &Context, changes: &Changes) -> Vec<Sent> {
    let sent = (1..).zip(&changes.sent).map(|(n, (target, command))| Sent {
        target: *target,
        id: InboxId { source: around.partition, position: context.position, n },
        time: context.now,
        payload: command_to_json(command),
    });
    sent.collect()
}

/// Where and when a command stands, for its messages.
pub struct Stamp<'s> {
    pub partition: u16,
    pub position: u64,
    pub time: Millis,
    pub tenant: &'s Text,
}

fn tell(filing: &mut Filing, around: &Around<'_>, context: &Context, name: Text, events: &[Event]) {
    let id = |n| event_id(around.partition, context.position, n);
    filing.chain = begin_row(&filing.chain, &id(1), context.now, &filing.tenant, &name);
    let mut n = 0;
    let json = events_to_json_each(events, |event| {
        n += 1;
        filing.chain = link(&filing.chain, &id(n), event);
    });
    let tenant = filing.tenant.clone();
    let stamp = Stamp { partition: around.partition, position: context.position, time: context.now, tenant: &tenant };
    for (n, event) in (1..).zip(events).filter(|(_, event)| event.what.is_published()) {
        publish_to_sinks(&mut filing.outbox, around, event, n, &stamp);
    }
    filing.audit = Some(AuditEntry {
        position: context.position,
        time: context.now,
        tenant: tenant.clone(),
        actor: name,
        events: json,
        count: events.len() as u32,
        chain: filing.chain,
    });
}

/// One envelope, frozen, for all sinks that want it.
fn publish_to_sinks(outbox: &mut Vec<OutboxEntry>, around: &Around<'_>, event: &Event, n: u32, stamp: &Stamp<'_>) {
    let wants = |sink: &&SinkRule| sink.events.iter().any(|name| name == "*" || name == event.what.name());
    let mut envelope: Option<Bytes> = None;
    for sink in around.sinks.iter().filter(wants) {
        let envelope = envelope.get_or_insert_with(|| publish::cloud_event(event, n, stamp, around.source).into());
        outbox.push(OutboxEntry {
            id: OutboxId { partition: stamp.partition, position: stamp.position, n, sink: sink.name.clone() },
            tenant: stamp.tenant.clone(),
            order_key: event.root,
            topic: publish::topic(event),
            event_id: event_id(stamp.partition, stamp.position, n).into(),
            envelope: envelope.clone(),
            created_at: stamp.time,
        });
    }
}

/// Whose event it is: the tenant of the first row concerned that has one, else of its instance.
/// Retention drops rows of many tenants in one command: it is nobody's.
fn tenant_of(base: &dyn Base, command: &Command, changes: &Changes) -> Text {
    match command {
        Command::Purge { .. } => return Text::from(""),
        Command::AdoptDefinitions { tenant, .. } | Command::Correlate { tenant, .. } => return tenant.clone(),
        Command::OpenSubscription { copy } => return copy.tenant.clone(),
        _ => (),
    }
    let rows = changes.rows.iter().filter_map(|(id, new)| new.clone().or_else(|| base.row(id).flatten()));
    let own = rows.filter_map(|row| tenant_in(&row)).next();
    let root = || {
        let root = changes.events.iter().map(|event| event.root).find(|root| *root != 0)?;
        base.row(&RowId::Scope(root)).flatten().as_ref().and_then(tenant_in)
    };
    own.or_else(root).unwrap_or_else(|| Text::from(""))
}

fn tenant_in(row: &Row) -> Option<Text> {
    match row {
        Row::Scope(scope) => scope.instance.as_ref().map(|instance| instance.tenant.clone()),
        Row::Job(job) => Some(job.tenant.clone()),
        Row::Message(message) => Some(message.tenant.clone()),
        Row::Subscription(subscription) => Some(subscription.tenant.clone()),
        Row::Incident(incident) => Some(incident.tenant.clone()),
        Row::Handover(handover) => Some(handover.tenant.clone()),
        _ => None,
    }
}

/// The id of a command from outside: its key and the time of its record, or what the door made.
pub fn request_id(time: Millis, tenant: &str, key: Option<&str>, nonce: &[u8; 16]) -> [u8; 16] {
    match key {
        Some(key) => keyed_id(time, tenant, key),
        None => ids::command_id(time, &[b"request", nonce]),
    }
}

/// The same for a key whose record was made at this time: so the log knows the command that the key stands for.
pub fn keyed_id(time: Millis, tenant: &str, key: &str) -> [u8; 16] {
    ids::command_id(time, &[b"request", tenant.as_bytes(), key.as_bytes(), &time.to_be_bytes()])
}

fn poisoned(verb: &str, panic: &(dyn std::any::Any + Send), chance: &Chance) -> Refusal {
    let text = panic_text(panic);
    let error_id = chance.error_id();
    tracing::error!(%error_id, verb, panic = text, "a command panicked; it changed nothing");
    Refusal::Internal { error_id }
}

pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
