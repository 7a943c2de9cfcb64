//! The command log executed again, from nothing or from a checkpoint: after each command the digest must be the one that
//! the log says, and at the end the tables must be what the replay has. The rows live in a scratch store behind a bounded
//! cache, as in the engine itself, so that memory does not grow with the log. Next: `tables.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wf_core::draft::Changes;
use wf_core::rows::Text;
use wf_core::{Command, Context, Draft, Event, Millis, Partitions, Stop, decide};
use wf_store::codec::events_to_json;
use wf_store::{Batch, CommitError, Fence, Head, Later, Ledger, LogRow, Needs, Opened, Store, StoreError, Visit};

use super::audit::follows;
use super::feed::{Feed, Step};
use super::tables::{self, Difference, TablesReport};
use super::{Progress, ProofError, Tell, told};
use crate::advance::{advance, head_of};
use crate::cache::{Cache, Limits};
use crate::decided::{panic_text, takes_position};
use crate::loader;
use crate::options::Chance;

/// Most rows change several times or are gone again before they need the scratch store; a short log never needs it.
const ROWS_MAX: usize = 8_000;
const CACHE: Limits = Limits { rows_max: 50_000, heads_max: 20_000, head_entries_max: 4_096 };
/// Loads of one command after which more is loaded at once.
const LOADS_FEW: usize = 8;

/// Which positions are held against the log; those before `from` are executed only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub from: u64,
    pub to: u64,
    /// Changed rows that stay in memory before they go to the scratch store: some hundred bytes each.
    pub rows_max: usize,
}

impl Default for Range {
    fn default() -> Range {
        Range { from: 0, to: u64::MAX, rows_max: ROWS_MAX }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReplayReport {
    /// Where the replay began: 0, or the position of its checkpoint.
    pub base: u64,
    pub commands: u64,
    /// Those of them that were held against the log: not those before the range.
    pub compared: u64,
    /// The last position that was executed.
    pub position: u64,
    pub verdict: Verdict,
    /// Only where the replay went on to the log's end.
    pub tables: Option<TablesReport>,
}

impl ReplayReport {
    pub fn is_identical(&self) -> bool {
        self.verdict == Verdict::Identical && self.tables.as_ref().is_none_or(TablesReport::agrees)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Identical,
    /// The partition's row stands elsewhere than the log ends: behind it, and the last commands were removed; before it, and
    /// the row was set back, or commands were added.
    CutOff {
        stands: u64,
    },
    /// `rows` differ at the end of the log; the first ones are listed.
    Diverged {
        first: Option<Box<Divergence>>,
        differences: Vec<Difference>,
        rows: u64,
    },
}

/// The first command that did not do again what it did.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    pub position: u64,
    pub time: Millis,
    pub tenant: Text,
    pub verb: Text,
    pub payload: String,
    pub mismatch: Mismatch,
    /// What it told then and what it tells now: JSON arrays of events; empty where it tells nothing.
    pub told: String,
    pub tells: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("the digest after it is {replayed:032x}, the log says {logged:032x}")]
    Digest { logged: u128, replayed: u128 },
    #[error("it is refused now: {0}")]
    Refused(String),
    #[error("it changes nothing now, but stands in the log")]
    Nothing,
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    #[error("it panics now: {0}")]
    Panicked(String),
    #[error("it does not follow position {previous}: commands are missing before it")]
    Gap { previous: u64 },
    #[error("its time lies before that of the command before it")]
    TimeBack,
    #[error("it names another epoch's end than the one before it: a digest of {named:032x} instead of {replayed:032x}")]
    Epoch { named: u128, replayed: u128 },
}

/// `scratch`: an empty store, or a checkpoint's; it is written to.
pub async fn replay(
    ledger: Box<dyn Ledger>,
    scratch: &dyn Store,
    range: Range,
    tell: Tell<'_>,
) -> Result<ReplayReport, ProofError> {
    let (report, _) = run(ledger, scratch, range, tell).await?;
    match report.compared {
        0 => Err(ProofError::Nothing { base: report.base, last: report.position }),
        _ => Ok(report),
    }
}

/// As [`replay`] from the beginning up to a position; the scratch store is left with the state there.
pub async fn checkpoint(
    ledger: Box<dyn Ledger>,
    scratch: &dyn Store,
    to: u64,
    tell: Tell<'_>,
) -> Result<ReplayReport, ProofError> {
    let (report, mut replay) = run(ledger, scratch, Range { to, ..Range::default() }, tell).await?;
    replay.flush().await?;
    replay.settle().await?;
    Ok(report)
}

async fn run<'s>(
    mut ledger: Box<dyn Ledger>,
    scratch: &'s dyn Store,
    range: Range,
    tell: Tell<'_>,
) -> Result<(ReplayReport, Replay<'s>), ProofError> {
    let standing = ledger.standing()?;
    let partitions = ledger.partitions()?;
    let opened = scratch.open(standing.fence.partition).await?;
    let base = opened.fence.old_position;
    check_begin(&mut *ledger, base)?;
    if base > 0 {
        check_base(scratch, opened.fence.partition).await?;
    }
    let all = ledger.count_log(base + 1)?;
    let feed = Feed::start(ledger, base + 1, range.to)?;
    let mut replay = Replay::new(scratch, &opened, partitions, range);
    while let Some(steps) = feed.next()? {
        for step in &steps {
            replay.step(step).await?;
        }
        let done = replay.commands;
        told(tell, Progress { done, of: Some(all.max(done)) })?;
    }
    let mut stored = feed.end()?;
    let report = replay.finish(&mut *stored, base, range.to, tell).await?;
    Ok((report, replay))
}

/// A replay on top of rows that are not what they were would prove nothing.
async fn check_base(scratch: &dyn Store, partition: u16) -> Result<(), ProofError> {
    let mut rows = scratch.ledger(partition).await?;
    let report = tables::verify_tables(&mut *rows, &mut |_| Visit::Continue(()))?;
    if report.agrees() { Ok(()) } else { Err(ProofError::BadCheckpoint { position: report.position }) }
}

/// What is archived cannot be executed: the replay must begin behind it.
fn check_begin(ledger: &mut dyn Ledger, base: u64) -> Result<(), ProofError> {
    let Some(first) = ledger.log(base + 1, 1)?.into_iter().next() else { return Ok(()) };
    if first.position == base + 1 || follows(&first, base) {
        return Ok(());
    }
    let have = if base == 0 { "the replay at nothing".to_owned() } else { format!("the checkpoint at {base}") };
    Err(ProofError::NoCheckpoint { first: first.position, have })
}

struct Replay<'s> {
    scratch: &'s dyn Store,
    partition: u16,
    partitions: Partitions,
    epoch: u64,
    cache: Cache,
    head: Head,
    position: u64,
    /// What is compared begins here.
    from: u64,
    commands: u64,
    compared: u64,
    first: Option<Box<Divergence>>,
    /// The scratch store's position, that of the flush under way, and what was done since.
    stored: u64,
    flushing: Option<Later<'s, Result<(), CommitError>>>,
    rows_since: usize,
    rows_max: usize,
}

impl<'s> Replay<'s> {
    fn new(scratch: &'s dyn Store, opened: &Opened, partitions: Partitions, range: Range) -> Replay<'s> {
        let position = opened.fence.old_position;
        Replay {
            scratch,
            partition: opened.fence.partition,
            partitions,
            epoch: opened.fence.epoch,
            cache: Cache::new(CACHE),
            head: head_of(opened.fence.partition, position, opened.head),
            position,
            from: range.from,
            commands: 0,
            compared: 0,
            first: None,
            stored: position,
            flushing: None,
            rows_since: 0,
            rows_max: range.rows_max,
        }
    }

    /// After a divergence it goes on, so that the end can be compared.
    async fn step(&mut self, step: &Step) -> Result<(), ProofError> {
        let row = &step.row;
        let misplaced = self.misplaced(row);
        let done = match &step.command {
            Err(reason) => Err(Mismatch::Unreadable(reason.clone())),
            Ok((command, origin)) => self.execute(row, command, origin).await?,
        };
        let (mismatch, events) = match done {
            Ok(changes) => self.apply(step, changes),
            Err(mismatch) => (Some(mismatch), Vec::new()),
        };
        (self.position, self.head.last_time) = (row.position, row.time);
        self.commands += 1;
        self.compared += u64::from(row.position >= self.from);
        if let Some(mismatch) = misplaced.or(mismatch)
            && self.first.is_none()
            && row.position >= self.from
        {
            self.first = Some(Box::new(divergence(row, mismatch, &events)));
        }
        self.flush_if_full().await
    }

    fn misplaced(&self, row: &LogRow) -> Option<Mismatch> {
        if !follows(row, self.position) {
            return Some(Mismatch::Gap { previous: self.position });
        }
        (row.time < self.head.last_time).then_some(Mismatch::TimeBack)
    }

    /// Its changes, or why it does not do again what it did.
    async fn execute(
        &mut self,
        row: &LogRow,
        command: &Command,
        origin: &Text,
    ) -> Result<Result<Changes, Mismatch>, ProofError> {
        let context = Context {
            tenant: if command.is_own() { Text::from("") } else { row.tenant.clone() },
            now: row.time,
            partition: self.partition,
            partitions: self.partitions,
            position: row.position,
            origin: origin.clone(),
        };
        let mut loads = 0;
        loop {
            match self.decide(command, &context) {
                Ok(changes) => return Ok(Ok(changes)),
                Err(Ok(mismatch)) => return Ok(Err(mismatch)),
                Err(Err(needs)) => {
                    loads += 1;
                    self.load(needs, loads).await?;
                }
            }
        }
    }

    fn decide(&self, command: &Command, context: &Context) -> Result<Changes, Result<Mismatch, Needs>> {
        let decided = catch_unwind(AssertUnwindSafe(|| {
            let mut draft = Draft::new(&self.cache, self.partition, self.head.next_counter);
            decide(&mut draft, command, context).map(|outcome| (outcome, draft.finish()))
        }));
        match decided {
            Ok(Ok((outcome, changes))) if takes_position(&outcome, &changes) => Ok(changes),
            Ok(Ok(_)) => Err(Ok(Mismatch::Nothing)),
            Ok(Err(Stop::Missing(core))) => Err(Err(Needs { core, ..Needs::default() })),
            Ok(Err(Stop::Rejected(rejection))) => Err(Ok(Mismatch::Refused(format!("{rejection:?}")))),
            Err(panic) => Err(Ok(Mismatch::Panicked(panic_text(&*panic).to_owned()))),
        }
    }

    async fn load(&mut self, mut needs: Needs, loads: usize) -> Result<(), ProofError> {
        needs.partition = self.partition;
        if loads > LOADS_FEW {
            loader::widen(&self.cache, &mut needs);
        }
        let loaded = loader::load(self.scratch, &mut self.cache, needs, &Chance::default()).await;
        loaded.map_err(|refusal| ProofError::Scratch(format!("{refusal:?}")))
    }

    fn apply(&mut self, step: &Step, mut changes: Changes) -> (Option<Mismatch>, Vec<Event>) {
        let before = self.head.digest;
        let events = std::mem::take(&mut changes.events);
        self.rows_since += changes.rows.len();
        advance(&mut self.cache, self.partition, &mut self.head, changes);
        self.cache.end_command();
        let (logged, replayed) = (step.row.digest, self.head.digest);
        let mismatch = match &step.command {
            Ok((Command::OpenEpoch { previous_digest, .. }, _)) if u128::from_be_bytes(*previous_digest) != before => {
                Some(Mismatch::Epoch { named: u128::from_be_bytes(*previous_digest), replayed: before })
            }
            _ => (logged != replayed).then_some(Mismatch::Digest { logged, replayed }),
        };
        (mismatch, events)
    }

    async fn flush_if_full(&mut self) -> Result<(), ProofError> {
        if self.rows_since < self.rows_max { Ok(()) } else { self.flush().await }
    }

    /// The scratch store writes while the replay goes on.
    async fn flush(&mut self) -> Result<(), ProofError> {
        self.settle().await?;
        let fence = Fence {
            partition: self.partition,
            epoch: self.epoch,
            old_position: self.stored,
            new_position: self.position,
        };
        let batch = Batch { fence, head: self.head, rows: self.cache.changes(), ..Batch::default() };
        self.cache.next_layer();
        self.stored = self.position;
        self.rows_since = 0;
        self.flushing = Some(self.scratch.commit(Arc::new(batch)));
        Ok(())
    }

    async fn settle(&mut self) -> Result<(), ProofError> {
        if let Some(flushing) = self.flushing.take() {
            flushing.await.map_err(|error| ProofError::Scratch(error.to_string()))?;
            self.cache.settle();
        }
        Ok(())
    }

    async fn finish(
        &mut self,
        stored: &mut dyn Ledger,
        base: u64,
        to: u64,
        tell: Tell<'_>,
    ) -> Result<ReplayReport, ProofError> {
        let standing = stored.standing()?;
        let mut report = ReplayReport {
            base,
            commands: self.commands,
            compared: self.compared,
            position: self.position,
            verdict: Verdict::Identical,
            tables: None,
        };
        if let Some(first) = &mut self.first {
            first.told = told_then(stored, first.position)?.unwrap_or_default();
        }
        let stands = standing.fence.new_position;
        let is_whole = stands == self.position;
        let is_short = self.position < stands.min(to) && is_cut_off(stored, self.position)?;
        if self.first.is_none() && (is_short || self.position > stands) {
            report.verdict = Verdict::CutOff { stands };
            return Ok(report);
        }
        if is_whole {
            let commands = self.commands;
            let mut still = |_| tell(Progress { done: commands, of: None });
            report.tables = Some(TablesReport { digest: self.head.digest, ..tables::sum(stored, &mut still)? });
        }
        if self.first.is_some() || !report.is_identical() {
            self.flush().await?;
            self.settle().await?;
            let mut replayed = self.scratch.ledger(self.partition).await?;
            let (differences, rows) = match is_whole {
                true => tables::differences(stored, &mut *replayed)?,
                false => (Vec::new(), 0),
            };
            report.verdict = Verdict::Diverged { first: self.first.take(), differences, rows };
        }
        Ok(report)
    }
}

/// `to` may lie between two positions: then something stands behind it.
fn is_cut_off(stored: &mut dyn Ledger, position: u64) -> Result<bool, StoreError> {
    Ok(stored.log(position + 1, 1)?.is_empty())
}

fn told_then(stored: &mut dyn Ledger, position: u64) -> Result<Option<String>, StoreError> {
    let entry = stored.audit(position, 1)?.into_iter().next();
    Ok(entry.filter(|entry| entry.position == position).map(|entry| entry.events))
}

fn divergence(row: &LogRow, mismatch: Mismatch, events: &[Event]) -> Divergence {
    Divergence {
        position: row.position,
        time: row.time,
        tenant: row.tenant.clone(),
        verb: row.verb.clone(),
        payload: row.payload.clone(),
        mismatch,
        told: String::new(),
        tells: if events.is_empty() { String::new() } else { events_to_json(events) },
    }
}
