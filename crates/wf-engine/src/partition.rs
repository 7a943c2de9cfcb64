//! Room 4: one envelope against what is loaded. Synchronous: no I/O, no clock. The verdict under a key first,
//! then the core's decision, then everything that must be stored is filed in the turn. Next: the store's commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wf_core::draft::{Base, Changes};
use wf_core::rows::Text;
use wf_core::{Command, Context, Draft, Millis, Outcome, RangeId, Row, RowId, Stop, canonical, decide};
use wf_idempotency::decide::{Policy, Verdict};
use wf_idempotency::record::{Answer, Record, State};
use wf_store::codec::logged_to_json;
use wf_store::{Fence, Head, LogEntry, Needs, Opened, OutboxState, RecordEntry, RecordId, SuppressedKind};

use crate::cache::Cache;
use crate::envelope::{Asked, Own, Reply};
use crate::options::SinkRule;
use crate::request::{Answered, Ask, OutboxRefusal, Passport, Refusal};
use crate::suppressed::Note;
use crate::turn::{Stamp, Turn, request_id};

pub struct Partition {
    pub id: u16,
    pub cache: Cache,
    epoch: u64,
    /// Where the last committed turn left things.
    committed: Working,
    /// Where the turn at hand stands.
    working: Working,
    sinks: Vec<SinkRule>,
    source: Text,
    retry_after_ms_max: i64,
}

#[derive(Clone, Copy)]
struct Working {
    position: u64,
    head: Head,
}

/// What became of an envelope.
pub enum Executed {
    Reply(Reply),
    /// A poll that found nothing; it may wait.
    Empty,
}

impl Partition {
    pub fn new(opened: Opened, cache_rows_max: usize, sinks: Vec<SinkRule>, source: Text) -> Partition {
        let working = Working { position: opened.fence.old_position, head: opened.head };
        Partition {
            id: opened.fence.partition,
            cache: Cache::new(cache_rows_max),
            epoch: opened.fence.epoch,
            committed: working,
            working,
            sinks,
            source,
            retry_after_ms_max: 1_000,
        }
    }

    /// The turn at hand and all that was built on it never existed.
    pub fn drop_uncommitted(&mut self) {
        self.cache.clear();
        self.working = self.committed;
    }

    /// After the partition was taken anew.
    pub fn reopen(&mut self, opened: Opened) {
        self.epoch = opened.fence.epoch;
        self.committed = Working { position: opened.fence.old_position, head: opened.head };
        self.drop_uncommitted();
    }

    pub fn head(&self) -> &Head {
        &self.working.head
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn position(&self) -> u64 {
        self.working.position
    }

    /// Command time: never behind the last command's.
    pub fn time(&self, now: Millis) -> Millis {
        now.max(self.working.head.last_time)
    }

    pub fn set_clock(&mut self, clock: wf_store::TestClock) {
        self.working.head.clock = Some(clock);
    }

    /// The fence and head of the turn at hand, which ends here; the next one goes on from them.
    pub fn close_turn(&mut self, since: u64) -> (Fence, Head) {
        let fence =
            Fence { partition: self.id, epoch: self.epoch, old_position: since, new_position: self.working.position };
        (fence, self.working.head)
    }

    pub fn settle(&mut self, fence: &Fence, head: Head) {
        self.committed = Working { position: fence.new_position, head };
        self.cache.settle();
    }

    /// A request. On a miss nothing has changed and it is simply run again.
    pub fn execute(&mut self, asked: &Asked, turn: &mut Turn, now: Millis) -> Result<Executed, Needs> {
        if let Some(passport) = &asked.request.passport
            && let Some(reply) = self.verdict(asked, passport, turn, now)?
        {
            return Ok(Executed::Reply(reply));
        }
        match &asked.request.ask {
            Ask::Command(command) => self.run(asked, command, turn, now),
            Ask::RetryOutbox { id, force } => self.retry_outbox(asked, id, *force, turn, now),
            // The actor owns the clock and turns the change into a command of its own.
            Ask::SetClock(_) => {
                Ok(Executed::Reply(Reply::Refused(Refusal::Unavailable { reason: "clock".to_owned() })))
            }
        }
    }

    /// What the record under the key says; `None`: run it.
    fn verdict(
        &mut self,
        asked: &Asked,
        passport: &Passport,
        turn: &mut Turn,
        now: Millis,
    ) -> Result<Option<Reply>, Needs> {
        let id = record_id(asked, passport);
        let Some(record) = self.cache.record(&id) else {
            return Err(Needs { records: [id].into(), ..Needs::default() });
        };
        let policy = Policy::default();
        let verdict = wf_idempotency::decide::decide(record.as_deref(), &passport.fingerprint, &policy, now);
        let reply = match verdict {
            Verdict::Fresh => return Ok(None),
            Verdict::Replay(answer) => {
                let note = Note::new(asked, passport, SuppressedKind::Replay, now);
                *turn.stats.replays.entry(passport.route).or_default() += 1;
                note.log_replay(record.as_deref().map_or(now, |record| record.created_ms));
                turn.suppressed.push(note.into_entry());
                Reply::Answered(Answered { answer: answer.clone(), replayed: true })
            }
            Verdict::Mismatch => {
                let note = Note::new(asked, passport, SuppressedKind::Conflict, now);
                turn.stats.conflicts += 1;
                note.log_conflict();
                turn.suppressed.push(note.into_entry());
                Reply::Refused(Refusal::Conflict)
            }
            // The engine writes its records done in the turn: these states are never stored by it.
            _ => Reply::Refused(Refusal::InProgress { retry_after_ms: self.retry_after_ms_max }),
        };
        Ok(Some(reply))
    }

    fn run(&mut self, asked: &Asked, command: &Command, turn: &mut Turn, now: Millis) -> Result<Executed, Needs> {
        let request = &asked.request;
        let key = request.passport.as_ref().map(|passport| passport.key.as_str());
        let context = self.context(&request.tenant, now, key.unwrap_or(""));
        let (outcome, changes) = match self.decide(command, &context)? {
            Ok(decided) => decided,
            Err(refusal) => return Ok(Executed::Reply(Reply::Refused(refusal))),
        };
        self.keep_compiled(command, &outcome);
        if matches!(&outcome, Outcome::Activated(jobs) if jobs.is_empty()) {
            return Ok(Executed::Empty);
        }
        note_skipped(&outcome, command, &changes, &self.cache, turn);
        // A message that reached nobody changes no row, but it took a key.
        if !changes.rows.is_empty() || !changes.events.is_empty() {
            let id = request_id(now, &request.tenant, key, &asked.nonce);
            self.file(command, &context, id, &request.actor, changes, turn);
        }
        Ok(Executed::Reply(self.file_answer(asked, outcome, turn, now)))
    }

    /// A deployment brings its processes compiled: they need not be compiled again at their first instance.
    fn keep_compiled(&mut self, command: &Command, outcome: &Outcome) {
        let (Command::Deploy { resources }, Outcome::Deployed(deployed)) = (command, outcome) else { return };
        let processes = resources.iter().flat_map(|resource| &resource.processes);
        for (process, deployed) in processes.zip(deployed).filter(|(_, deployed)| !deployed.duplicate) {
            self.cache.add_process(deployed.key, process.clone());
        }
    }

    fn context(&self, tenant: &Text, now: Millis, origin: &str) -> Context {
        Context {
            tenant: tenant.clone(),
            now,
            partition: self.id,
            position: self.working.position + 1,
            origin: origin.into(),
        }
    }

    /// The core's decision. A panic is this command's alone: its draft is dropped, the engine goes on.
    #[allow(clippy::type_complexity)]
    fn decide(&self, command: &Command, context: &Context) -> Result<Result<(Outcome, Changes), Refusal>, Needs> {
        let base: &dyn Base = &self.cache;
        let decided = catch_unwind(AssertUnwindSafe(|| {
            wf_store::failpoint::panic_at(command.verb());
            let mut draft = Draft::new(base, self.id, self.working.head.next_counter);
            decide(&mut draft, command, context).map(|outcome| (outcome, draft.finish()))
        }));
        match decided {
            Ok(Ok(decided)) => Ok(Ok(decided)),
            Ok(Err(Stop::Rejected(rejection))) => Ok(Err(Refusal::Rejected(rejection))),
            Ok(Err(Stop::Missing(core))) => Err(Needs { core, ..Needs::default() }),
            Err(panic) => Ok(Err(poisoned(command.verb(), &panic))),
        }
    }

    /// The log row, the audit, the messages, the changed rows, the digest.
    fn file(
        &mut self,
        command: &Command,
        context: &Context,
        id: [u8; 16],
        actor: &Text,
        changes: Changes,
        turn: &mut Turn,
    ) {
        let mut digest = self.working.head.digest;
        for (row_id, new) in &changes.rows {
            let old = self.cache.row(row_id).flatten();
            digest = canonical::shift(digest, old.as_ref(), new.as_ref());
        }
        let counter = self.working.head.next_counter;
        digest = digest.wrapping_sub(canonical::digest_of_counters(self.id, counter));
        digest = digest.wrapping_add(canonical::digest_of_counters(self.id, changes.next_counter));
        turn.filled.extend(filled(&changes));
        turn.stats.incidents += new_incidents(&changes);
        *turn.stats.verbs.entry(command.verb()).or_default() += 1;
        let stamp =
            Stamp { partition: self.id, position: context.position, time: context.now, tenant: &context.tenant, actor };
        let chain = turn.tell(&changes.events, &stamp, self.working.head.chain, &self.sinks, &self.source);
        let payload = logged_to_json(command, &context.origin);
        turn.log_bytes += payload.len();
        turn.log.push(LogEntry {
            position: context.position,
            id,
            time: context.now,
            tenant: context.tenant.clone(),
            verb: command.verb(),
            payload,
            digest,
        });
        self.cache.apply(&changes);
        self.working.position = context.position;
        self.working.head.next_counter = changes.next_counter;
        self.working.head.digest = digest;
        self.working.head.chain = chain;
        self.working.head.last_time = context.now;
    }

    /// With a key the answer is rendered now and stored in the same transaction as the effect.
    fn file_answer(&mut self, asked: &Asked, outcome: Outcome, turn: &mut Turn, now: Millis) -> Reply {
        let Some(passport) = &asked.request.passport else { return Reply::Outcome(outcome) };
        let answer = (asked.request.render)(&outcome);
        self.file_record(asked, passport, answer.clone(), turn, now);
        Reply::Answered(Answered { answer, replayed: false })
    }

    fn file_record(&mut self, asked: &Asked, passport: &Passport, answer: Answer, turn: &mut Turn, now: Millis) {
        let id = record_id(asked, passport);
        let record = Arc::new(Record {
            fingerprint: passport.fingerprint,
            mac_key_id: passport.mac_key_id,
            created_ms: now,
            expires_ms: now.saturating_add(passport.ttl_ms),
            state: State::Completed(answer),
        });
        self.cache.file_record(id.clone(), record.clone());
        turn.records.push(RecordEntry { id, key_hash: passport.key_hash, route: passport.route, record });
    }

    fn retry_outbox(
        &mut self,
        asked: &Asked,
        id: &wf_store::OutboxId,
        force: bool,
        turn: &mut Turn,
        now: Millis,
    ) -> Result<Executed, Needs> {
        let Some(row) = self.cache.outbox(id) else {
            return Err(Needs { outbox: [id.clone()].into(), ..Needs::default() });
        };
        let row = row.filter(|row| row.entry.tenant == asked.request.tenant);
        let refusal = match row {
            None => Some(OutboxRefusal::NotFound),
            Some(row)
                if row.state == OutboxState::Shipped
                    && self.is_past_window(&id.sink, row.shipped_at, now)
                    && !force =>
            {
                Some(OutboxRefusal::PastWindow)
            }
            Some(_) => None,
        };
        if let Some(refusal) = refusal {
            return Ok(Executed::Reply(Reply::Refused(Refusal::Outbox(refusal))));
        }
        turn.outbox_retries.push(id.clone());
        Ok(Executed::Reply(self.file_answer(asked, Outcome::Done { applied: true }, turn, now)))
    }

    /// The broker may have forgotten the id: a repeat would be a second message.
    fn is_past_window(&self, sink: &str, shipped_at: Millis, now: Millis) -> bool {
        let rule = self.sinks.iter().find(|rule| &*rule.name == sink);
        rule.is_none_or(|rule| now.saturating_sub(shipped_at) >= rule.window_ms)
    }

    /// One of the engine's own commands. Known ids are dropped before anything is done.
    pub fn execute_own(&mut self, own: &Own, turn: &mut Turn, now: Millis) -> Result<OwnResult, Needs> {
        if own.may_be_known {
            match self.cache.is_command_known(&own.id) {
                None => return Err(Needs { commands: [own.id].into(), ..Needs::default() }),
                Some(true) => {
                    turn.stats.commands_deduplicated += 1;
                    return Ok(OwnResult::Nothing);
                }
                Some(false) => (),
            }
        }
        if matches!(own.command, Command::OpenEpoch { .. }) {
            let floor = wf_core::ids::epoch_floor(now);
            self.working.position = self.working.position.max(floor.saturating_sub(1));
        }
        let nobody = Text::from("");
        let mut context = self.context(&nobody, now, "");
        let (outcome, changes) = match self.decide(&own.command, &context)? {
            Ok(decided) => decided,
            Err(refusal) => return Ok(OwnResult::Failed(refusal)),
        };
        let applied = !matches!(outcome, Outcome::Done { applied: false });
        if !applied && changes.rows.is_empty() {
            return Ok(OwnResult::Nothing);
        }
        if matches!(own.command, Command::ExpireLease { .. }) {
            turn.stats.leases_expired += 1;
        }
        if let Some(tenant) = self.tenant_of(&changes) {
            context.tenant = tenant;
        }
        self.file(&own.command, &context, own.id, &Text::from("engine"), changes, turn);
        Ok(OwnResult::Done)
    }

    /// Whose event it is: the tenant of the first row concerned that has one, else of its instance.
    fn tenant_of(&self, changes: &Changes) -> Option<Text> {
        let rows = changes.rows.iter().filter_map(|(id, new)| new.clone().or_else(|| self.cache.row(id).flatten()));
        let own = rows.filter_map(|row| tenant_in(&row)).next();
        own.or_else(|| {
            let root = changes.events.iter().map(|event| event.root).find(|root| *root != 0)?;
            self.cache.row(&RowId::Scope(root)).flatten().as_ref().and_then(tenant_in)
        })
    }
}

/// What became of one of the engine's own commands.
pub enum OwnResult {
    Done,
    /// What it was about was gone, or it is known already.
    Nothing,
    Failed(Refusal),
}

fn record_id(asked: &Asked, passport: &Passport) -> RecordId {
    RecordId { tenant: asked.request.tenant.clone(), key: passport.key.as_str().into() }
}

fn tenant_in(row: &Row) -> Option<Text> {
    match row {
        Row::Scope(scope) => scope.instance.as_ref().map(|instance| instance.tenant.clone()),
        Row::Job(job) => Some(job.tenant.clone()),
        Row::Message(message) => Some(message.tenant.clone()),
        Row::Subscription(subscription) => Some(subscription.tenant.clone()),
        Row::Incident(incident) => Some(incident.tenant.clone()),
        _ => None,
    }
}

fn filled(changes: &Changes) -> impl Iterator<Item = RangeId> {
    changes.moved.iter().filter_map(|(range, sorts)| {
        let is_ready = matches!(range, RangeId::Ready { .. });
        (is_ready && sorts.values().any(|added| *added)).then(|| range.clone())
    })
}

fn new_incidents(changes: &Changes) -> u64 {
    let created = |event: &&wf_core::Event| matches!(event.what, wf_core::event::What::IncidentCreated { .. });
    changes.events.iter().filter(created).count() as u64
}

/// Work that was asked for again and had been done: counted, so that a spike is seen.
fn note_skipped(outcome: &Outcome, command: &Command, _changes: &Changes, cache: &Cache, turn: &mut Turn) {
    let mut skip = |job: u64| {
        let row = cache.row(&RowId::Job(job)).flatten();
        if let Some(Row::Job(job)) = row {
            *turn.stats.jobs_skipped.entry(job.job_type.clone()).or_default() += 1;
        }
    };
    match (outcome, command) {
        (Outcome::Completed { duplicate: true }, Command::CompleteJob { holder, .. }) => skip(holder.job),
        (Outcome::Step { recorded: false, .. }, Command::RecordStep { holder, .. }) => skip(holder.job),
        (Outcome::CompletedMany(results), _) => {
            results.iter().filter(|(_, result)| *result == Ok(true)).for_each(|(job, _)| skip(*job));
        }
        (Outcome::Published { duplicate: true, misuse: true, .. }, Command::PublishMessage { name, .. }) => {
            tracing::warn!(message = %name, "a message id was used again with other content");
        }
        _ => (),
    }
}

fn poisoned(verb: &str, panic: &Box<dyn std::any::Any + Send>) -> Refusal {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    let error_id = crate::engine::error_id();
    tracing::error!(%error_id, verb, panic = text, "a command panicked; it changed nothing");
    Refusal::Internal { error_id }
}
