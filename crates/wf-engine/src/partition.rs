//! Room 4: one envelope against what is loaded. Synchronous: no I/O, no clock. The verdict under a key first,
//! then the decision (`decided.rs`), then everything that must be stored is filed in the turn. Next: the store's commit.

use std::sync::Arc;

use wf_core::draft::Changes;
use wf_core::planted::{self, Bug};
use wf_core::rows::Text;
use wf_core::{Command, Context, Millis, Need, Outcome, Partitions, RangeId, RowId, draft::Base, ids};
use wf_idempotency::decide::{Policy, Verdict};
use wf_idempotency::record::{Answer, Record, State};
use wf_store::{Fence, Head, LogEntry, Needs, Opened, RecordEntry, RecordId, SuppressedKind, TestClock};

use crate::advance::{advance, head_of};
use crate::cache::Cache;
use crate::decided::{self, Actor, Around, Decided, Filing, request_id};
use crate::envelope::{Asked, Own, Reply};
use crate::options::{Chance, Options, SinkRule};
use crate::request::{Answered, Ask, Passport, Refusal, Request};
use crate::suppressed::{Note, note_repeats};
use crate::turn::Turn;

/// What a repeat is told to wait when its record says that the first request still runs.
const RETRY_AFTER_MS: i64 = 1_000;

pub struct Partition {
    pub id: u16,
    /// Those of the store.
    pub partitions: Partitions,
    pub cache: Cache,
    epoch: u64,
    /// Where the last committed turn left things.
    committed: Working,
    /// Where the turn at hand stands.
    working: Working,
    pub(crate) sinks: Vec<SinkRule>,
    source: Text,
    inspect: Option<fn(&Command)>,
    chance: Chance,
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

/// What became of one of the engine's own commands.
pub enum OwnResult {
    Done,
    /// What it was about was gone.
    Nothing,
    /// The log has it already.
    Known,
    Failed(Refusal),
}

impl Partition {
    pub fn new(opened: &Opened, options: &Options, partitions: Partitions) -> Partition {
        let working = Working::of(opened);
        Partition {
            id: opened.fence.partition,
            partitions,
            cache: Cache::new(options.cache),
            epoch: opened.fence.epoch,
            committed: working,
            working,
            sinks: options.sinks.clone(),
            source: options.source.clone(),
            inspect: options.inspect,
            chance: options.chance.clone(),
        }
    }

    /// The turn at hand and all that was built on it never existed.
    pub fn drop_uncommitted(&mut self) {
        match planted::is(Bug::StaleMemory) {
            true => self.cache.settle(),
            false => self.cache.clear(),
        }
        self.working = self.committed;
    }

    /// After the partition was taken anew.
    pub fn reopen(&mut self, opened: &Opened) {
        self.epoch = opened.fence.epoch;
        self.committed = Working::of(opened);
        self.drop_uncommitted();
    }

    /// Where the turn at hand stands.
    pub fn head(&self) -> &Head {
        &self.working.head
    }

    pub fn committed_time(&self) -> Millis {
        self.committed.head.last_time
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Which partition, and where it stands.
    pub fn place(&self) -> (u16, u64) {
        (self.id, self.position())
    }

    pub fn position(&self) -> u64 {
        self.working.position
    }

    /// Command time: never behind the last command's.
    pub fn time(&self, now: Millis) -> Millis {
        if planted::is(Bug::TimeGoesBack) {
            return now;
        }
        now.max(self.working.head.last_time)
    }

    pub fn set_clock(&mut self, clock: TestClock) {
        self.working.head.clock = Some(clock);
    }

    /// The fence and head of the turn at hand, which ends here; the next one goes on from them.
    pub fn close_turn(&mut self, since: u64) -> (Fence, Head) {
        (self.fence(since), self.working.head)
    }

    pub fn fence(&self, since: u64) -> Fence {
        Fence { partition: self.id, epoch: self.epoch, old_position: since, new_position: self.working.position }
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

    /// What the request will ask for first: the record under its key, the job that it is about.
    pub fn foresee(&self, request: &Request, needs: &mut Needs) {
        if let Some(passport) = &request.passport {
            let id = record_id(request, passport);
            if self.cache.record(&id).is_none() {
                needs.records.insert(id);
            }
        }
        if let Ask::Command(Command::CompleteJob { holder, .. }) = &request.ask {
            let id = RowId::Job(holder.job);
            if self.cache.row(&id).is_none() {
                needs.core.insert(Need::Row(id));
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
        let id = record_id(&asked.request, passport);
        let Some(record) = self.cache.record(&id) else {
            return Err(Needs { records: [id].into(), ..Needs::default() });
        };
        let policy = Policy::default();
        let fingerprint = match record.as_deref().filter(|_| planted::is(Bug::NoFingerprint)) {
            Some(record) => record.fingerprint,
            None => passport.fingerprint,
        };
        let verdict = wf_idempotency::decide::decide(record.as_deref(), &fingerprint, &policy, now);
        let reply = match verdict {
            Verdict::Fresh => return Ok(None),
            Verdict::Replay(answer) => {
                let note = Note::new(asked, passport, SuppressedKind::Replay, now);
                *turn.stats.replays.entry(passport.route).or_default() += 1;
                note.log_replay(record.as_deref().map_or(now, |record| record.created_ms));
                turn.suppressed.push(note.into_entry());
                let answered = Answered { answer: answer.clone(), replayed: true };
                turn.replayed.extend(record.map(|record| (id, record)));
                Reply::Answered(answered)
            }
            Verdict::Mismatch => {
                let note = Note::new(asked, passport, SuppressedKind::Conflict, now);
                turn.stats.conflicts += 1;
                note.log_conflict();
                turn.suppressed.push(note.into_entry());
                Reply::Refused(Refusal::Conflict)
            }
            // The engine writes its records done in the turn: these states are never stored by it.
            _ => Reply::Refused(Refusal::InProgress { retry_after_ms: RETRY_AFTER_MS }),
        };
        Ok(Some(reply))
    }

    fn run(&mut self, asked: &Asked, command: &Command, turn: &mut Turn, now: Millis) -> Result<Executed, Needs> {
        if let Some(reply) = self.received_elsewhere(asked, command, turn, now)? {
            return Ok(Executed::Reply(reply));
        }
        let request = &asked.request;
        let key = request.passport.as_ref().map(|passport| passport.key.as_str());
        let origin = request.passport.as_ref().map_or_else(|| Text::from(""), origin);
        let context = self.context(&request.tenant, now, &origin);
        let actor = Actor::Client { name: &request.actor, render: key.map(|_| request.render) };
        let decided = match decided::prepare(&self.around(), command, &context, &actor)? {
            Ok(decided) => decided,
            Err(refusal) => return Ok(Executed::Reply(Reply::Refused(refusal))),
        };
        if matches!(&decided.outcome, Outcome::Activated(jobs) if jobs.is_empty()) {
            return Ok(Executed::Empty);
        }
        self.keep_compiled(command, &decided.outcome);
        note_repeats(&decided.outcome, command, &context, &self.cache, turn);
        let Decided { outcome, changes, answer, filing } = decided;
        if let Some(filing) = filing {
            let id = request_id(now, &request.tenant, key, &asked.nonce);
            self.file(command.verb(), &context, id, filing, changes, turn);
        }
        Ok(Executed::Reply(match (answer, &request.passport) {
            (Some(answer), Some(passport)) => self.file_record(asked, passport, answer, turn, now),
            _ => Reply::Outcome(outcome),
        }))
    }

    fn around(&self) -> Around<'_> {
        Around {
            base: &self.cache,
            partition: self.id,
            next_counter: self.working.head.next_counter,
            chain: self.working.head.chain,
            sinks: &self.sinks,
            source: &self.source,
            inspect: self.inspect,
            chance: &self.chance,
        }
    }

    /// A deployment brings its processes compiled: they need not be compiled again at their first instance.
    fn keep_compiled(&mut self, command: &Command, outcome: &Outcome) {
        let (Command::Deploy { resources }, Outcome::Deployed(deployed)) = (command, outcome) else { return };
        let processes = resources.iter().flat_map(|resource| &resource.processes);
        for (process, deployed) in processes.zip(deployed).filter(|(_, deployed)| !deployed.duplicate) {
            self.cache.add_process(deployed.key, process.clone());
        }
    }

    /// So are definitions that another partition deployed.
    pub fn keep_adopted(&mut self, command: &Command) {
        let Command::AdoptDefinitions { definitions, .. } = command else { return };
        for adopted in definitions {
            adopted.process.iter().for_each(|process| self.cache.add_process(adopted.key, process.clone()));
        }
    }

    pub(crate) fn context(&self, tenant: &Text, now: Millis, origin: &str) -> Context {
        Context {
            tenant: tenant.clone(),
            now,
            partition: self.id,
            partitions: self.partitions,
            position: self.working.position + 1,
            origin: origin.into(),
        }
    }

    /// Nothing in here can fail: what could was done before.
    fn file(
        &mut self,
        verb: &'static str,
        context: &Context,
        id: [u8; 16],
        filing: Filing,
        changes: Changes,
        turn: &mut Turn,
    ) {
        turn.filled.extend(filled(&changes));
        turn.stats.incidents += new_incidents(&changes);
        *turn.stats.verbs.entry(verb).or_default() += 1;
        advance(&mut self.cache, self.id, &mut self.working.head, changes);
        turn.log_bytes += filing.payload.len();
        turn.audit.extend(filing.audit);
        turn.outbox.extend(filing.outbox);
        turn.sent.extend(filing.sent);
        turn.log.push(LogEntry {
            position: context.position,
            id,
            time: context.now,
            tenant: filing.tenant,
            verb,
            payload: filing.payload,
            digest: self.working.head.digest,
        });
        self.working.position = context.position;
        let head = &mut self.working.head;
        (head.chain, head.last_time) = (filing.chain, context.now);
    }

    /// The answer is stored in the same transaction as the effect.
    pub(crate) fn file_record(
        &mut self,
        asked: &Asked,
        passport: &Passport,
        answer: Answer,
        turn: &mut Turn,
        now: Millis,
    ) -> Reply {
        let id = record_id(&asked.request, passport);
        let record = Arc::new(Record {
            fingerprint: passport.fingerprint,
            mac_key_id: passport.mac_key_id,
            created_ms: now,
            expires_ms: now.saturating_add(match planted::is(Bug::ShortTtl) {
                true => passport.ttl_ms / 1_000,
                false => passport.ttl_ms,
            }),
            state: State::Completed(answer.clone()),
        });
        self.cache.file_record(id.clone(), record.clone());
        turn.records.push(RecordEntry { id, key_hash: passport.key_hash, route: passport.route, record });
        Reply::Answered(Answered { answer, replayed: false })
    }

    /// One of the engine's own commands. Known ids are dropped before anything is done.
    pub fn execute_own(&mut self, own: &Own, turn: &mut Turn, now: Millis) -> Result<OwnResult, Needs> {
        if own.may_be_known {
            match self.cache.is_command_known(&own.id) {
                None => return Err(Needs { commands: [own.id].into(), ..Needs::default() }),
                Some(true) => {
                    turn.stats.commands_deduplicated += 1;
                    return Ok(OwnResult::Known);
                }
                Some(false) => (),
            }
        }
        let mut context = self.context(&Text::from(""), now, "");
        if let Command::OpenEpoch { semantics, .. } = own.command {
            context.position = context.position.max(ids::epoch_floor(now, semantics));
        }
        let decided = match decided::prepare(&self.around(), &own.command, &context, &Actor::Engine)? {
            Ok(decided) => decided,
            Err(refusal) => return Ok(OwnResult::Failed(refusal)),
        };
        let Some(filing) = decided.filing else { return Ok(OwnResult::Nothing) };
        if matches!(own.command, Command::ExpireLease { .. }) {
            turn.stats.leases_expired += 1;
        }
        self.file(own.command.verb(), &context, own.id, filing, decided.changes, turn);
        Ok(OwnResult::Done)
    }
}

impl Working {
    fn of(opened: &Opened) -> Working {
        let (fence, position) = (&opened.fence, opened.fence.old_position);
        Working { position, head: head_of(fence.partition, position, opened.head) }
    }
}

/// Where lineage begins: the key with what was asked under it. A key that is used again after its time, for something
/// else, must not lead a provider to take the new for the old.
fn origin(passport: &Passport) -> Text {
    let hash = ids::hash16(&[passport.key.as_str().as_bytes(), &passport.fingerprint.0]);
    ids::hex(&hash)
}

fn record_id(request: &Request, passport: &Passport) -> RecordId {
    RecordId { tenant: request.tenant.clone(), key: passport.key.text() }
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
