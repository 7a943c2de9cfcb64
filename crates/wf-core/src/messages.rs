//! Messages: received once per id, correlated once per process, buffered for their time.

use std::sync::Arc;

use crate::command::Context;
use crate::decide::Pending;
use crate::draft::Run;
use crate::event::What;
use crate::ids::{self, Key, Millis};
use crate::instances::{Beginning, begin};
use crate::jobs::content_hash;
use crate::outcome::Outcome;
use crate::planted::{self, Bug};
use crate::ranges::RangeId;
use crate::rows::{
    Definition, Message, MessageId, RowId, StartLock, StartSubscription, Subscription, Text, Variables, Work,
};
use crate::walk::Walk;

/// What a publisher sent.
pub(crate) struct Publication<'p> {
    pub name: &'p Text,
    pub correlation_key: &'p Text,
    pub message_id: Option<&'p Text>,
    pub variables: &'p Variables,
}

pub(crate) fn publish(
    walk: &mut Walk<'_, '_>,
    publication: &Publication<'_>,
    ttl_ms: i64,
    dedup_ms: i64,
) -> Run<Pending> {
    if let Some(first) = received_before(walk, publication)? {
        let misuse = first.content != content_of(publication);
        let repeat = Outcome::Published { key: first.key, duplicate: true, misuse, correlated: Vec::new() };
        return Ok(repeat.into());
    }
    let key = walk.draft.next_key();
    walk.draft.emit(
        0,
        key,
        What::MessagePublished {
            name: publication.name.clone(),
            correlation_key: publication.correlation_key.clone(),
            message_id: publication.message_id.cloned(),
        },
    );
    remember(walk, publication, key, dedup_ms)?;
    let message = Message {
        key,
        tenant: walk.context.tenant.clone(),
        name: publication.name.clone(),
        correlation_key: publication.correlation_key.clone(),
        variables: publication.variables.clone(),
        expires_at: walk.context.now.saturating_add(ttl_ms),
        correlated: Vec::new(),
    };
    let correlated = deliver(walk, &message, origin(walk.context, publication, key))?;
    if ttl_ms > 0 {
        walk.draft.insert_new(Message { correlated, ..message });
    }
    Ok(Pending::Published { key })
}

fn id_of(walk: &Walk<'_, '_>, publication: &Publication<'_>) -> Option<RowId> {
    publication.message_id.map(|id| RowId::MessageId {
        tenant: walk.context.tenant.clone(),
        name: publication.name.clone(),
        message_id: id.clone(),
    })
}

fn received_before(walk: &Walk<'_, '_>, publication: &Publication<'_>) -> Run<Option<Arc<MessageId>>> {
    let Some(id) = id_of(walk, publication) else { return Ok(None) };
    let first = walk.draft.get::<MessageId>(&id)?.filter(|first| first.expires_at > walk.context.now);
    let started = ids::key(walk.context.partition, planted::noted());
    Ok(first.filter(|first| !planted::is(Bug::WindowOnRestart) || first.key >= started))
}

fn content_of(publication: &Publication<'_>) -> [u8; 16] {
    message_content(publication.correlation_key, publication.variables)
}

/// What a repeat of a message id is held against.
pub fn message_content(correlation_key: &str, variables: &Variables) -> [u8; 16] {
    ids::hash16(&[correlation_key.as_bytes(), &content_hash(variables)])
}

fn remember(walk: &mut Walk<'_, '_>, publication: &Publication<'_>, key: Key, dedup_ms: i64) -> Run<()> {
    if let Some(message_id) = publication.message_id {
        walk.draft.put(MessageId {
            tenant: walk.context.tenant.clone(),
            name: publication.name.clone(),
            message_id: message_id.clone(),
            key,
            content: content_of(publication),
            expires_at: walk.context.now.saturating_add(dedup_ms),
        })?;
    }
    Ok(())
}

/// What ties a new instance to the publisher's request: the message id, else the request's key, else the message's own.
fn origin(context: &Context, publication: &Publication<'_>, key: Key) -> [u8; 16] {
    match publication.message_id {
        Some(id) => ids::hash16(&[b"message", publication.name.as_bytes(), id.as_bytes()]),
        None if !context.origin.is_empty() => ids::hash16(&[b"key", context.origin.as_bytes()]),
        None => origin_of_key(key),
    }
}

fn origin_of_key(key: Key) -> [u8; 16] {
    ids::hash16(&[b"message-key", &key.to_le_bytes()])
}

/// Waiting instances first, then message start events; each process once. Returns the processes reached, sorted.
fn deliver(walk: &mut Walk<'_, '_>, message: &Message, origin: [u8; 16]) -> Run<Vec<Text>> {
    let mut reached = Vec::new();
    deliver_to_waiting(walk, message, &mut reached)?;
    deliver_to_starts(walk, message, origin, &mut reached)?;
    Ok(reached)
}

fn deliver_to_waiting(walk: &mut Walk<'_, '_>, message: &Message, reached: &mut Vec<Text>) -> Run<()> {
    let range = RangeId::Subscriptions {
        tenant: message.tenant.clone(),
        message: message.name.clone(),
        correlation_key: message.correlation_key.clone(),
    };
    let mut after = None;
    while let Some(sort) = walk.draft.next_in(&range, after.as_ref())? {
        let subscription = walk.draft.get::<Subscription>(&RowId::Subscription(sort.key))?;
        after = Some(sort);
        let Some(subscription) = subscription else { continue };
        if let Err(place) = reached.binary_search(&subscription.process_id)
            && walk.reach(&subscription, message)?
        {
            reached.insert(place, subscription.process_id.clone());
        }
    }
    Ok(())
}

fn deliver_to_starts(walk: &mut Walk<'_, '_>, message: &Message, origin: [u8; 16], reached: &mut Vec<Text>) -> Run<()> {
    let range = RangeId::MessageStarts { tenant: message.tenant.clone(), message: message.name.clone() };
    let mut after = None;
    while let Some(sort) = walk.draft.next_in(&range, after.as_ref())? {
        let id = RowId::StartSubscription {
            tenant: message.tenant.clone(),
            message: message.name.clone(),
            process_id: sort.name.clone(),
        };
        let start = walk.draft.get::<StartSubscription>(&id)?;
        after = Some(sort);
        let Some(start) = start else { continue };
        if let Err(place) = reached.binary_search(&start.process_id)
            && start_by_message(walk, &start, message, origin)?
        {
            reached.insert(place, start.process_id.clone());
        }
    }
    Ok(())
}

/// For one process, which an instance elsewhere has refused it for: its next subscription, else its start event.
pub(crate) fn deliver_to_process(walk: &mut Walk<'_, '_>, message: &Message, process_id: &Text) -> Run<bool> {
    let range = RangeId::Subscriptions {
        tenant: message.tenant.clone(),
        message: message.name.clone(),
        correlation_key: message.correlation_key.clone(),
    };
    let mut after = None;
    while let Some(sort) = walk.draft.next_in(&range, after.as_ref())? {
        let subscription = walk.draft.get::<Subscription>(&RowId::Subscription(sort.key))?;
        after = Some(sort);
        let Some(subscription) = subscription.filter(|open| open.process_id == *process_id) else { continue };
        if walk.reach(&subscription, message)? {
            return Ok(true);
        }
    }
    let id = RowId::StartSubscription {
        tenant: message.tenant.clone(),
        message: message.name.clone(),
        process_id: process_id.clone(),
    };
    match walk.draft.get::<StartSubscription>(&id)? {
        Some(start) => start_by_message(walk, &start, message, origin_of_key(message.key)),
        None => Ok(false),
    }
}

/// While an instance that this correlation key started is alive, it starts no second one.
fn start_by_message(
    walk: &mut Walk<'_, '_>,
    start: &StartSubscription,
    message: &Message,
    origin: [u8; 16],
) -> Run<bool> {
    let mut lock = StartLock {
        tenant: start.tenant.clone(),
        process_id: start.process_id.clone(),
        correlation_key: message.correlation_key.clone(),
        root: 0,
    };
    let has_key = !message.correlation_key.is_empty();
    if has_key && walk.draft.get::<StartLock>(&lock.id())?.is_some() {
        return Ok(false);
    }
    let Some(definition) = walk.draft.get::<Definition>(&RowId::Definition(start.definition))? else {
        return Ok(false);
    };
    let lineage = ids::hash16(&[b"start", start.tenant.as_bytes(), &origin, start.process_id.as_bytes()]);
    let beginning = Beginning {
        definition: &definition,
        start: start.element,
        variables: &message.variables,
        lineage,
        correlation: has_key.then(|| message.correlation_key.clone()),
    };
    lock.root = begin(walk, &beginning, None)?;
    walk.note_reached(message.key, lock.root);
    if has_key {
        walk.draft.put(lock)?;
    }
    Ok(true)
}

/// After the end of an instance that a message started.
pub(crate) struct StartNext {
    pub tenant: Text,
    pub process_id: Text,
    pub message: Text,
    pub correlation_key: Text,
}

impl StartNext {
    pub fn into_work(self) -> Work {
        Work::StartNext {
            process_id: self.process_id,
            message: self.message,
            correlation_key: self.correlation_key,
            tenant: self.tenant,
        }
    }
}

/// The oldest buffered message that this process has not had starts the next instance.
pub(crate) fn start_next(walk: &mut Walk<'_, '_>, next: &StartNext) -> Run<()> {
    let id = RowId::StartSubscription {
        tenant: next.tenant.clone(),
        message: next.message.clone(),
        process_id: next.process_id.clone(),
    };
    let Some(start) = walk.draft.get::<StartSubscription>(&id)? else { return Ok(()) };
    let range = RangeId::Buffered {
        tenant: next.tenant.clone(),
        message: next.message.clone(),
        correlation_key: next.correlation_key.clone(),
    };
    let Some((_, message)) = walk.next_buffered(&range, &next.process_id, None)? else { return Ok(()) };
    if start_by_message(walk, &start, &message, origin_of_key(message.key))? {
        walk.note_correlated(&message, &next.process_id)?;
    }
    Ok(())
}

/// A buffered message's time is over.
pub(crate) fn expire(walk: &mut Walk<'_, '_>, key: Key) -> Run<bool> {
    let now: Millis = walk.context.now;
    let id = RowId::Message(key);
    let due = walk.draft.get::<Message>(&id)?.is_some_and(|message| message.expires_at <= now);
    if due {
        walk.draft.delete(id)?;
        walk.draft.emit(0, key, What::MessageExpired);
    }
    Ok(due)
}
