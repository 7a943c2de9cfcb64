//! Follows one request through all layers, from whichever end it is asked: key, instance, job or message id. Every step
//! is one read of committed data that finds its rows by an index; what cannot be found so is named, not searched for.
//! It tells nothing itself. Next: `wf_api::explain`.

use std::collections::{BTreeMap, BTreeSet};

use wf_api::explain::{ExplainOut, Found, MessageStory, ROWS_MAX, Story, Subject, tell};
use wf_api::problem::not_found;
use wf_api::{Code, Problem};
use wf_core::outcome::Noun;
use wf_core::rows::{Job, MessageId, Stored, Text};
use wf_core::{Key, Millis, Need, RowId, ids};
use wf_engine::{job_subject, keyed_id, message_subject};
use wf_idempotency::key::{self, Key as RequestKey};
use wf_idempotency::record::State;
use wf_store::*;

use crate::app::Shared;
use crate::door::{self, Refused};

/// Rows of the audit that are passed on the way to those of one instance.
const PASSED_MAX: usize = 200_000;
/// Records and commands of one millisecond: more only where a test clock stands still.
const SAME_TIME_MAX: usize = 4096;
/// Places at which `NAME:ID` may be cut.
const COLONS_MAX: usize = 8;
/// How long repeats are counted.
const KEPT_MS: Millis = 30 * 24 * 60 * 60 * 1000;
const PUBLISH: &str = "publish-message";

/// One end of the story.
pub(crate) enum Asked {
    Key(RequestKey),
    Instance(Key),
    Job(Key),
    /// `NAME:ID`
    Message(String),
}

pub(crate) async fn explain(app: &Shared, tenant: Text, asked: Asked) -> Result<ExplainOut, Refused> {
    let mut search = Search { app, tenant, found: Found::default(), command_rows: Vec::new() };
    match asked {
        Asked::Key(key) => search.by_key(&key).await?,
        Asked::Instance(key) => search.by_instance(key, Noun::Instance).await?,
        Asked::Job(key) => search.by_job(key).await?,
        Asked::Message(text) => search.by_message(&text).await?,
    }
    search.follow_command().await?;
    search.follow_instance().await?;
    search.follow_messages().await?;
    search.count_repeats().await?;
    let found = search.found;
    if found.key.is_some() && found.filed.is_none() && found.repeats.is_empty() {
        return Err(Refused(door::not_found(UNSEEN)));
    }
    Ok(tell(found, app.node.now()))
}

const UNSEEN: &str = "this tenant remembers no such key: it was never used, was only refused, or its time is over; \
    what it started is still explained by the instance, a job or a message id";
const SWEPT: &str = "key: its record was swept after its time, and with it fingerprint, answer and command";
const NO_KEY: &str = "key: the request came without an Idempotency-Key";
const KEY_GONE: &str = "key: its record was swept after its time, or it was filed under a time to live that is no longer \
    configured; asked for by the key itself it may still be found";
const NO_COMMAND: &str =
    "command: the request changed nothing, so it took no place in the log; or it was archived since";
const ARCHIVED: &str = "command and key: no longer in the log, from which the oldest commands were archived";
const TOLD_NO_MORE: &str = "audit: what the instance began with is no longer there; the oldest events were archived";
const PUBLICATION_GONE: &str = "command: the publication is not found under the messages.dedup_ms of now";

struct Search<'a> {
    app: &'a Shared,
    tenant: Text,
    found: Found,
    /// The command's place in the audit.
    command_rows: Vec<AuditRow>,
}

impl Search<'_> {
    fn store(&self) -> &dyn Store {
        &**self.app.node.store()
    }

    fn say_unknown(&mut self, what: &str) {
        self.found.unknown.push(what.to_owned());
    }

    /// Where all of the story stands: an instance lives in one partition.
    fn partition(&self) -> u16 {
        let instance = self.found.instance.as_ref().map(|detail| ids::partition_of(detail.root.key));
        instance
            .or(self.found.command.as_ref().map(|command| command.partition))
            .unwrap_or_else(|| self.app.node.partitions().first())
    }

    fn at(&self, position: u64) -> Which {
        Which::Position { partition: self.partition(), position }
    }

    async fn by_key(&mut self, key: &RequestKey) -> Result<(), Refused> {
        self.found.key = Some(key.text());
        self.found.key_hash = Some(key::hash_for_logs(&self.app.mac_secret, &self.tenant, key));
        let id = RecordId { tenant: self.tenant.clone(), key: key.text() };
        let Some(filed) = self.store().filed(id).await? else {
            self.say_unknown(SWEPT);
            return Ok(());
        };
        let id = keyed_id(filed.record.created_ms, &self.tenant, key.as_str());
        self.found.command = self.logged(Which::Id(id)).await?.pop();
        if self.found.command.is_none() {
            self.say_unknown(NO_COMMAND);
            self.found.instances.extend(instance_of(&filed));
        }
        self.found.filed = Some(filed);
        Ok(())
    }

    async fn by_instance(&mut self, key: Key, asked: Noun) -> Result<(), Refused> {
        let detail = self.instance(key).await?.ok_or_else(|| not_found(asked))?;
        let started = detail.root.instance.as_ref().map_or(0, |instance| instance.started_position);
        self.found.instance = Some(detail);
        self.found.instances = vec![key];
        self.found.command = self.logged(self.at(started)).await?.pop();
        if self.found.command.is_none() {
            self.say_unknown(ARCHIVED);
        }
        self.find_key().await
    }

    async fn by_job(&mut self, key: Key) -> Result<(), Refused> {
        let rows = self.rows([RowId::Job(key)]).await?;
        let job = rows.iter().find_map(Job::unwrap).filter(|job| job.tenant == self.tenant);
        let root = job.map(|job| job.root).ok_or_else(|| not_found(Noun::Job))?;
        self.by_instance(root, Noun::Job).await
    }

    async fn by_message(&mut self, text: &str) -> Result<(), Refused> {
        let cuts = text.match_indices(':').take(COLONS_MAX);
        let ids = cuts.map(|(at, _)| RowId::MessageId {
            tenant: self.tenant.clone(),
            name: text[..at].into(),
            message_id: text[at + 1..].into(),
        });
        let rows = self.rows(ids).await?;
        let Some(received) = rows.iter().find_map(MessageId::unwrap) else {
            return Err(Refused(door::not_found("this tenant remembers no message with this name and id")));
        };
        self.find_publication(received).await?;
        self.find_key().await
    }

    /// The id is remembered for a configured time: so its end tells when it was received.
    async fn find_publication(&mut self, received: &MessageId) -> Result<(), Refused> {
        let time = received.expires_at.saturating_sub(self.app.messages_dedup_ms);
        let resource = received.key.to_string();
        for command in self.logged(Which::At { time, verb: PUBLISH, limit: SAME_TIME_MAX }).await? {
            let rows = self.audit_at(command.position).await?;
            let is_it = |story: &Story| story.messages.iter().any(|message| message.key == Some(received.key));
            if rows.iter().any(|row| row.events.contains(&resource)) && is_it(&read(&rows, None)?) {
                (self.found.command, self.command_rows) = (Some(command), rows);
                return Ok(());
            }
        }
        self.say_unknown(PUBLICATION_GONE);
        self.found.story.messages.push(MessageStory::received(received));
        Ok(())
    }

    /// The key of the command, if it came under one.
    async fn find_key(&mut self) -> Result<(), Refused> {
        let Some(command) = &self.found.command else { return Ok(()) };
        if codec::logged_origin(&command.payload).is_none() {
            self.say_unknown(NO_KEY);
            return Ok(());
        }
        self.found.filed = self.filed_for(command).await?;
        if self.found.filed.is_none() {
            self.say_unknown(KEY_GONE);
        }
        Ok(())
    }

    /// The record of a command's key: found by the times at which it was filed and will expire.
    async fn filed_for(&self, command: &Logged) -> Result<Option<Filed>, Refused> {
        for ttl_ms in self.app.keys.ttls_ms() {
            let query = FiledQuery {
                tenant: self.tenant.clone(),
                created_at: command.time,
                expires_at: command.time.saturating_add(ttl_ms),
                limit: SAME_TIME_MAX,
            };
            let filed = self.store().filed_at(query).await?;
            let is_its = |filed: &Filed| keyed_id(command.time, &self.tenant, &filed.key) == command.id;
            if let Some(filed) = filed.into_iter().find(is_its) {
                return Ok(Some(filed));
            }
        }
        Ok(None)
    }

    /// Which instances it touched; where it was one, that one.
    async fn follow_command(&mut self) -> Result<(), Refused> {
        if let Some(command) = &self.found.command {
            if self.command_rows.is_empty() {
                self.command_rows = self.audit_at(command.position).await?;
            }
            if self.found.instance.is_none() {
                self.found.instances = read(&self.command_rows, None)?.roots();
            }
        }
        if let (None, [only]) = (&self.found.instance, &self.found.instances[..]) {
            let only = *only;
            self.found.instance = self.instance(only).await?;
            if self.found.instance.is_none() {
                let gone = format!(
                    "instance: retention has taken {only} away; what the audit has of it: \
                     GET /api/v1/audit?instance={only}"
                );
                self.say_unknown(&gone);
            }
        }
        self.follow_start().await
    }

    /// Another request may have started the instance that this one is about.
    async fn follow_start(&mut self) -> Result<(), Refused> {
        let root = self.found.instance.as_ref().and_then(|detail| detail.root.instance.as_ref());
        let Some(started) = root.map(|root| root.started_position) else { return Ok(()) };
        if self.found.command.as_ref().is_some_and(|command| command.position == started) {
            return Ok(());
        }
        if let Some(start) = self.logged(self.at(started)).await?.pop() {
            let filed = self.filed_for(&start).await?;
            self.found.start = Some((start, filed));
        }
        Ok(())
    }

    /// Its part of the audit, from its first command to its last.
    async fn follow_instance(&mut self) -> Result<(), Refused> {
        let mut rows: BTreeMap<u64, AuditRow> =
            std::mem::take(&mut self.command_rows).into_iter().map(|row| (row.position, row)).collect();
        let instance = self.found.instance.as_ref().map(|detail| detail.root.key);
        if let Some(instance) = instance {
            rows.extend(self.trail(instance).await?.into_iter().map(|row| (row.position, row)));
        }
        let root = self.found.instance.as_ref().and_then(|detail| detail.root.instance.as_ref());
        if root.is_some_and(|root| !rows.contains_key(&root.started_position)) {
            self.say_unknown(TOLD_NO_MORE);
        }
        let rows: Vec<AuditRow> = rows.into_values().collect();
        if !rows.is_empty() {
            self.found.story = read(&rows, instance)?;
        }
        Ok(())
    }

    async fn trail(&mut self, instance: Key) -> Result<Vec<AuditRow>, Refused> {
        let bounds = self.found.instance.as_ref().and_then(|detail| detail.root.instance.as_ref());
        let (from, ended) = bounds.map_or((0, 0), |root| (root.started_position, root.ended_position));
        let until = if ended == 0 { u64::MAX } else { ended };
        let tenant = self.tenant.clone();
        let query = TrailQuery {
            tenant,
            partition: self.partition(),
            instance,
            from,
            until,
            limit: ROWS_MAX,
            passed_max: PASSED_MAX,
        };
        let Trail { mut rows, next } = self.store().trail(query).await?;
        if let Some(next) = next {
            self.found.is_truncated = true;
            let known = self.known_positions(next, ended);
            for position in known {
                rows.extend(self.audit_at(position).await?);
            }
            self.say_unknown(&format!(
                "audit: from position {next} on only the end and the leases that stand were looked at; \
                 the rest: GET /api/v1/audit?instance={instance}"
            ));
        }
        Ok(rows)
    }

    /// Places beyond the one at which the search was given up that rows themselves name.
    fn known_positions(&self, next: u64, ended: u64) -> BTreeSet<u64> {
        let jobs = self.found.instance.iter().flat_map(|detail| &detail.jobs);
        let leases = jobs.take(ROWS_MAX).map(|job| job.lease);
        leases.chain([ended]).filter(|position| *position >= next).collect()
    }

    async fn follow_messages(&mut self) -> Result<(), Refused> {
        let positions = self.found.story.positions();
        let mut rows = self.store().outbox_of(self.tenant.clone(), self.partition(), positions).await?;
        if let Some(detail) = &self.found.instance {
            rows.retain(|row| row.entry.order_key == detail.root.key);
        }
        self.found.outbox = rows;
        Ok(())
    }

    /// Under the key, and what the state itself recognised: jobs and message ids.
    async fn count_repeats(&mut self) -> Result<(), Refused> {
        let oldest = self.app.node.now().saturating_sub(KEPT_MS);
        let start = self.found.start.iter();
        let start_hash = start.clone().filter_map(|(_, filed)| filed.as_ref()).map(|filed| filed.key_hash);
        let hashes = self.found.key_hash().into_iter().chain(start_hash);
        let requests = hashes.map(|hash| (hash, Subject::Request)).collect();
        let commands = start.map(|(command, _)| command).chain(&self.found.command);
        let begun = commands.map(|command| command.time).min().unwrap_or(oldest);
        self.repeats_since(oldest, requests).await?;
        let subjects = self.subjects();
        self.repeats_since(begun, subjects).await?;
        self.found.repeats.sort_by_key(|(_, row)| (row.first, row.kind));
        Ok(())
    }

    fn subjects(&self) -> BTreeMap<[u8; 16], Subject> {
        let rows = self.found.instance.iter().flat_map(|detail| &detail.jobs).map(|job| job.key);
        let jobs = rows.chain(self.found.story.jobs.keys().copied());
        let jobs = jobs.map(|job| (job_subject(job), Subject::Job(job)));
        let messages = self.found.story.messages.iter().filter_map(|message| {
            let (name, id) = (message.name.clone(), message.message_id.clone()?);
            Some((message_subject(&self.tenant, &name, &id), Subject::Message { name, id }))
        });
        jobs.take(ROWS_MAX).chain(messages.take(ROWS_MAX)).collect()
    }

    async fn repeats_since(&mut self, since: Millis, subjects: BTreeMap<[u8; 16], Subject>) -> Result<(), Refused> {
        if subjects.is_empty() {
            return Ok(());
        }
        let hashes = subjects.keys().copied().collect();
        let query = RepeatsQuery { tenant: self.tenant.clone(), subjects: hashes, since, limit: ROWS_MAX };
        let repeats = self.store().repeats(query).await?;
        if repeats.is_cut {
            self.found.is_truncated = true;
            self.say_unknown("duplicates: there are more than were looked at");
        }
        let named = repeats.rows.into_iter().filter_map(|row| Some((subjects.get(&row.key_hash)?.clone(), row)));
        self.found.repeats.extend(named);
        Ok(())
    }

    /// Of this tenant only: another's is as if it were not there.
    async fn instance(&self, key: Key) -> Result<Option<InstanceDetail>, Refused> {
        let detail = self.store().instance(key).await?;
        let is_own = |detail: &InstanceDetail| {
            detail.root.instance.as_ref().is_some_and(|instance| instance.tenant == self.tenant)
        };
        Ok(detail.filter(is_own))
    }

    async fn logged(&self, which: Which) -> Result<Vec<Logged>, Refused> {
        Ok(self.store().logged(LoggedQuery { tenant: self.tenant.clone(), which }).await?)
    }

    async fn audit_at(&self, position: u64) -> Result<Vec<AuditRow>, Refused> {
        let slice = Slice { after: None, limit: 1 };
        let query = AuditQuery {
            tenant: self.tenant.clone(),
            partition: self.partition(),
            is_alone: true,
            from: Some(position),
            until: Some(position),
            slice,
        };
        Ok(self.store().audit(query).await?.items)
    }

    async fn rows(&self, ids: impl IntoIterator<Item = RowId>) -> Result<Vec<wf_core::Row>, Refused> {
        let core = ids.into_iter().map(Need::Row).collect();
        let loaded = self.store().load(Needs { core, ..Needs::of(self.partition()) }).await?;
        Ok(loaded.rows.into_iter().filter_map(|(_, row)| row).collect())
    }
}

fn read(rows: &[AuditRow], instance: Option<Key>) -> Result<Story, Refused> {
    let unreadable = || Problem::new(Code::Internal, "a row of the audit cannot be read");
    Ok(Story::read(rows, instance).ok_or_else(unreadable)?)
}

/// The twin that a start found: only its answer names it.
fn instance_of(filed: &Filed) -> Option<Key> {
    let State::Completed(answer) = &filed.record.state else { return None };
    let is_start = *filed.route == *crate::route::START.path;
    let body: serde_json::Value = serde_json::from_slice(&answer.body).ok().filter(|_| is_start)?;
    body["key"].as_str()?.parse().ok()
}
