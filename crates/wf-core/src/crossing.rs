//! What partitions do for one another: definitions that one of them decided, subscriptions whose messages arrive elsewhere,
//! messages handed to an instance elsewhere. Each command is executed exactly once and in the order in which its source sent
//! it; what it is about may have ended meanwhile, and then it changes nothing.
//!
//! A subscription stands with its instance. Where its message is at home in another partition a *copy* stands there (the same
//! key, no scope). A message that meets a copy is handed over and kept in a `Handover` until the instance's partition says
//! whether it took it: then it is done, or the next one gets it. A copy that takes one message goes with it, and one whose
//! instance has refused a message goes too: it takes nothing any more.

use std::sync::Arc;

use crate::command::{Adopted, Command};
use crate::deploy::{close_starts, open_starts};
use crate::draft::Run;
use crate::event::What;
use crate::ids::{self, Key, Millis};
use crate::instances::find_definition;
use crate::messages;
use crate::rows::{Definition, Handover, Message, RowId, Subscription, Text, Variables};
use crate::walk::{Here, Task, Walk};
use wf_model::{Boundary, ElementIdx, Kind};

/// `false`: it came too late, or again, and changed nothing.
pub(crate) fn crossing(walk: &mut Walk<'_, '_>, command: &Command) -> Run<bool> {
    match command {
        Command::AdoptDefinitions { tenant, definitions } => adopt_all(walk, tenant, definitions),
        Command::OpenSubscription { copy } => open_copy(walk, copy),
        Command::CloseSubscription { subscription, .. } => close_copy(walk, *subscription),
        Command::Correlate { subscription, message, name, variables, .. } => {
            take_over(walk, *subscription, *message, name, variables)
        }
        Command::SettleCorrelation { subscription, message, accepted } => {
            settle(walk, *subscription, *message, *accepted)
        }
        _ => Ok(false),
    }
}

impl Walk<'_, '_> {
    fn is_elsewhere(&self, key: Key) -> bool {
        ids::partition_of(key) != self.context.partition
    }

    /// Where messages for this subscription arrive, if that is another partition.
    pub(crate) fn home_elsewhere(&self, open: &Subscription) -> Option<u16> {
        let home = ids::home_of_message(&open.tenant, &open.message, &open.correlation_key, self.context.partitions);
        (home != self.context.partition && !self.is_elsewhere(open.key)).then_some(home)
    }

    pub(crate) fn announce(&mut self, here: &Here, open: &Subscription, home: u16) {
        self.send(home, Command::OpenSubscription { copy: open.copy(takes_one(here, open.target)) });
    }

    /// Once more, after an incident; where it stands already nothing happens.
    pub(crate) fn announce_again(&mut self, key: Key) -> Run<()> {
        let Some(open) = self.draft.get::<Subscription>(&RowId::Subscription(key))? else { return Ok(()) };
        if let Some(home) = self.home_elsewhere(&open)
            && let Some(here) = self.here(open.scope)?
        {
            self.announce(&here, &open, home);
        }
        Ok(())
    }

    pub(crate) fn withdraw(&mut self, closed: &Subscription) {
        if let Some(home) = self.home_elsewhere(closed) {
            self.send(home, Command::CloseSubscription { subscription: closed.key, root: closed.root });
        }
    }

    /// A subscription that takes one message has it now: its copy went with it, and need not be withdrawn.
    pub(crate) fn close_taken(&mut self, here: &Here, open: &Subscription) -> Run<()> {
        if self.home_elsewhere(open).is_some() && takes_one(here, open.target) {
            self.draft.delete(open.id())?;
            self.draft.emit(open.root, open.key, What::SubscriptionClosed);
        }
        Ok(())
    }

    /// A message reaches a subscription here, or is on its way to one elsewhere. `false`: it is not taken.
    pub(crate) fn reach(&mut self, subscription: &Subscription, message: &Message) -> Run<bool> {
        match self.is_elsewhere(subscription.key) {
            true => self.hand_over(subscription, message),
            false => self.correlate(subscription, message),
        }
    }

    fn hand_over(&mut self, copy: &Subscription, message: &Message) -> Run<bool> {
        let handover = Handover {
            subscription: copy.key,
            message: message.key,
            root: copy.root,
            tenant: message.tenant.clone(),
            process_id: copy.process_id.clone(),
            name: message.name.clone(),
            correlation_key: message.correlation_key.clone(),
            variables: message.variables.clone(),
            expires_at: message.expires_at,
        };
        if self.draft.get::<Handover>(&handover.id())?.is_some() {
            return Ok(false);
        }
        if copy.takes_one() {
            self.draft.delete(copy.id())?;
        }
        let correlate = Command::Correlate {
            subscription: copy.key,
            message: message.key,
            tenant: message.tenant.clone(),
            name: message.name.clone(),
            variables: message.variables.clone(),
        };
        self.send(ids::partition_of(copy.key), correlate);
        self.draft.emit(copy.root, message.key, What::MessageHandedOver { name: message.name.clone() });
        self.note_reached(message.key, copy.root);
        self.draft.put(handover)?;
        Ok(true)
    }
}

/// All but a boundary event beside its activity.
fn takes_one(here: &Here, target: ElementIdx) -> bool {
    !matches!(here.node(target).map(|node| &node.kind), Some(Kind::Boundary(Boundary { interrupting: false, .. })))
}

fn adopt_all(walk: &mut Walk<'_, '_>, tenant: &Text, definitions: &[Adopted]) -> Run<bool> {
    let mut is_applied = false;
    for adopted in definitions {
        is_applied |= adopt(walk, tenant, adopted)?;
    }
    Ok(is_applied)
}

/// The same key and version as where it was decided. Whatever comes late changes no newer version's start events.
fn adopt(walk: &mut Walk<'_, '_>, tenant: &Text, adopted: &Adopted) -> Run<bool> {
    let id = RowId::Definition(adopted.key);
    if walk.draft.get::<Definition>(&id)?.is_some() {
        return Ok(false);
    }
    let latest = match find_definition(walk, tenant, &adopted.process_id, None) {
        Ok(latest) => Some(latest),
        Err(crate::draft::Stop::Rejected(_)) => None,
        Err(missing) => return Err(missing),
    };
    let definition = walk.draft.put(Definition {
        key: adopted.key,
        tenant: tenant.clone(),
        process_id: adopted.process_id.clone(),
        version: adopted.version,
        resource: adopted.resource.clone(),
        checksum: ids::hash16(&[&adopted.xml]),
        xml: adopted.xml.clone(),
        deployed_at: adopted.deployed_at,
    })?;
    let told = What::DefinitionAdopted { process_id: adopted.process_id.clone(), version: adopted.version };
    walk.draft.emit(0, adopted.key, told);
    if latest.as_ref().is_some_and(|latest| latest.version > adopted.version) {
        return Ok(true);
    }
    if let Some(latest) = latest {
        close_starts(walk, &latest)?;
    }
    if let Some(process) = &adopted.process {
        open_starts(walk, &definition, process)?;
    }
    Ok(true)
}

/// It takes what is buffered, at once.
fn open_copy(walk: &mut Walk<'_, '_>, copy: &Subscription) -> Run<bool> {
    if walk.draft.row(&copy.id())?.is_some() {
        return Ok(false);
    }
    let told =
        What::SubscriptionAnnounced { message: copy.message.clone(), correlation_key: copy.correlation_key.clone() };
    walk.draft.emit(copy.root, copy.key, told);
    walk.draft.put(copy.clone())?;
    walk.push(Task::MatchBuffered { subscription: copy.key, after: None });
    Ok(true)
}

/// One that has taken its message is gone already.
pub(crate) fn close_copy(walk: &mut Walk<'_, '_>, subscription: Key) -> Run<bool> {
    let id = RowId::Subscription(subscription);
    let Some(copy) = walk.draft.get::<Subscription>(&id)? else { return Ok(false) };
    walk.draft.delete(id)?;
    walk.draft.emit(copy.root, subscription, What::SubscriptionWithdrawn);
    Ok(true)
}

/// At the instance: it takes the message, or has ended meanwhile; the message's partition hears which.
fn take_over(
    walk: &mut Walk<'_, '_>,
    subscription: Key,
    message: Key,
    name: &Text,
    variables: &Variables,
) -> Run<bool> {
    let open = walk.draft.get::<Subscription>(&RowId::Subscription(subscription))?;
    let accepted = match &open {
        Some(open) => {
            let message = Message {
                key: message,
                tenant: open.tenant.clone(),
                name: name.clone(),
                correlation_key: open.correlation_key.clone(),
                variables: variables.clone(),
                expires_at: Millis::MAX,
                correlated: Vec::new(),
            };
            walk.correlate(open, &message)?
        }
        None => false,
    };
    if !accepted {
        walk.draft.emit(open.map_or(0, |open| open.root), message, What::MessageRejected { name: name.clone() });
    }
    settle_at_home(walk, subscription, message, accepted);
    Ok(true)
}

pub(crate) fn settle_at_home(walk: &mut Walk<'_, '_>, subscription: Key, message: Key, accepted: bool) {
    walk.send(ids::partition_of(message), Command::SettleCorrelation { subscription, message, accepted });
}

/// Where the message is at home: it is done, or somebody else of that process gets it.
fn settle(walk: &mut Walk<'_, '_>, subscription: Key, message: Key, accepted: bool) -> Run<bool> {
    let id = RowId::Handover { subscription, message };
    let Some(handover) = walk.draft.get::<Handover>(&id)? else { return Ok(false) };
    walk.draft.delete(id)?;
    walk.draft.emit(handover.root, message, What::MessageSettled { accepted });
    let copy = walk.draft.get::<Subscription>(&RowId::Subscription(subscription))?;
    // Who refuses once takes nothing any more, and what withdraws it may be long in coming: a big scope ends in slices. One
    // that takes a single message and was announced again meanwhile, for an incident's sake, has had it.
    if copy.is_some_and(|copy| !accepted || copy.takes_one()) {
        close_copy(walk, subscription)?;
    }
    if !accepted {
        give_on(walk, &handover)?;
    }
    Ok(true)
}

/// Nobody could be given it. Where it is buffered, whoever comes next of that process looks for it again.
pub(crate) fn put_back(walk: &mut Walk<'_, '_>, handover: &Handover) -> Run<()> {
    if let Some(buffered) = walk.draft.get::<Message>(&RowId::Message(handover.message))? {
        walk.draft.put(without(&buffered, &handover.process_id))?;
    }
    Ok(())
}

/// The process has not had it after all: its next subscription or its start event may.
fn give_on(walk: &mut Walk<'_, '_>, handover: &Handover) -> Run<()> {
    let buffered = walk.draft.get::<Message>(&RowId::Message(handover.message))?;
    let message = match &buffered {
        Some(buffered) => Arc::new(without(buffered, &handover.process_id)),
        None => Arc::new(Message {
            key: handover.message,
            tenant: handover.tenant.clone(),
            name: handover.name.clone(),
            correlation_key: handover.correlation_key.clone(),
            variables: handover.variables.clone(),
            expires_at: handover.expires_at,
            correlated: Vec::new(),
        }),
    };
    let is_taken = messages::deliver_to_process(walk, &message, &handover.process_id)?;
    match (buffered, is_taken) {
        (Some(_), false) => walk.draft.put((*message).clone()).map(drop),
        _ => Ok(()),
    }
}

fn without(message: &Message, process_id: &Text) -> Message {
    let mut message = message.clone();
    message.correlated.retain(|process| process != process_id);
    message
}
