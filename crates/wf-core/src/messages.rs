//! Messages: received once per id, correlated once per process, buffered for their time.

use std::sync::Arc;

use crate::decide::Pending;
use crate::draft::Run;
use crate::event::What;
use crate::ids::{self, Key, Millis};
use crate::instances::{Beginning, begin};
use crate::jobs::content_hash;
use crate::outcome::Outcome;
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
    let reached = deliver(walk, publication, key)?;
    if ttl_ms > 0 {
        walk.draft.insert_new(Message {
            key,
            tenant: walk.context.tenant.clone(),
            name: publication.name.clone(),
            correlation_key: publication.correlation_key.clone(),
            variables: publication.variables.clone(),
            expires_at: walk.context.now.saturating_add(ttl_ms),
            correlated: reached,
        });
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
    Ok(walk.draft.get::<MessageId>(&id)?.filter(|first| first.expires_at > walk.context.now))
}

fn content_of(publication: &Publication<'_>) -> [u8; 16] {
    ids::hash16(&[publication.correlation_key.as_bytes(), &content_hash(publication.variables)])
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

/// Waiting instances first, then message start events; each process once. Returns the processes reached, sorted.
fn deliver(walk: &mut Walk<'_, '_>, publication: &Publication<'_>, key: Key) -> Run<Vec<Text>> {
    let mut reached = Vec::new();
    deliver_to_waiting(walk, publication, &mut reached)?;
    deliver_to_starts(walk, publication, key, &mut reached)?;
    Ok(reached)
}

fn deliver_to_waiting(walk: &mut Walk<'_, '_>, publication: &Publication<'_>, reached: &mut Vec<Text>) -> Run<()> {
    let range = RangeId::Subscriptions {
        tenant: walk.context.tenant.clone(),
        message: publication.name.clone(),
        correlation_key: publication.correlation_key.clone(),
    };
    let mut after = None;
    while let Some(sort) = walk.draft.next_in(&range, after.as_ref())? {
        let subscription = walk.draft.get::<Subscription>(&RowId::Subscription(sort.key))?;
        after = Some(sort);
        let Some(subscription) = subscription else { continue };
        if let Err(place) = reached.binary_search(&subscription.process_id)
            && walk.correlate(&subscription, publication.variables)?
        {
            reached.insert(place, subscription.process_id.clone());
        }
    }
    Ok(())
}

fn deliver_to_starts(
    walk: &mut Walk<'_, '_>,
    publication: &Publication<'_>,
    key: Key,
    reached: &mut Vec<Text>,
) -> Run<()> {
    let range = RangeId::MessageStarts { tenant: walk.context.tenant.clone(), message: publication.name.clone() };
    let mut after = None;
    while let Some(sort) = walk.draft.next_in(&range, after.as_ref())? {
        let id = RowId::StartSubscription {
            tenant: walk.context.tenant.clone(),
            message: publication.name.clone(),
            process_id: sort.name.clone(),
        };
        let start = walk.draft.get::<StartSubscription>(&id)?;
        after = Some(sort);
        let Some(start) = start else { continue };
        if let Err(place) = reached.binary_search(&start.process_id)
            && start_by_message(
                walk,
                &start,
                publication.correlation_key,
                publication.variables,
                origin(publication, key),
            )?
        {
            reached.insert(place, start.process_id.clone());
        }
    }
    Ok(())
}

/// What ties the new instance to the publisher's request: the message id, else the message's key.
fn origin(publication: &Publication<'_>, key: Key) -> [u8; 16] {
    match publication.message_id {
        Some(id) => ids::hash16(&[b"message", publication.name.as_bytes(), id.as_bytes()]),
        None => ids::hash16(&[b"message-key", &key.to_le_bytes()]),
    }
}

/// While an instance that this correlation key started is alive, it starts no second one.
fn start_by_message(
    walk: &mut Walk<'_, '_>,
    start: &StartSubscription,
    correlation_key: &Text,
    variables: &Variables,
    origin: [u8; 16],
) -> Run<bool> {
    let lock = RowId::StartLock {
        tenant: start.tenant.clone(),
        process_id: start.process_id.clone(),
        correlation_key: correlation_key.clone(),
    };
    let has_key = !correlation_key.is_empty();
    if has_key && walk.draft.get::<StartLock>(&lock)?.is_some() {
        return Ok(false);
    }
    let Some(definition) = walk.draft.get::<Definition>(&RowId::Definition(start.definition))? else {
        return Ok(false);
    };
    let lineage = ids::hash16(&[b"start", start.tenant.as_bytes(), &origin, start.process_id.as_bytes()]);
    let beginning = Beginning {
        definition: &definition,
        start: start.element,
        variables,
        lineage,
        correlation: has_key.then(|| correlation_key.clone()),
    };
    let root = begin(walk, &beginning, None)?;
    if has_key {
        walk.draft.put(StartLock {
            tenant: start.tenant.clone(),
            process_id: start.process_id.clone(),
            correlation_key: correlation_key.clone(),
            root,
        })?;
    }
    walk.correlated.push(root);
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
    let Some(message) = walk.next_buffered(&range, &next.process_id)? else { return Ok(()) };
    let origin = ids::hash16(&[b"message-key", &message.key.to_le_bytes()]);
    if start_by_message(walk, &start, &next.correlation_key, &message.variables, origin)? {
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
