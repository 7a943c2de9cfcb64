//! The actor's own commands: what is due, what was put off, what has been kept long enough, the test clock.

use std::time::{Duration, Instant};

use wf_core::ranges::due_at;
use wf_core::rows::Text;
use wf_core::{Command, Millis, Need, Outcome, RangeId, SortKey};
use wf_store::{Needs, TestClock};

use crate::actor::Actor;
use crate::due;
use crate::envelope::{Asked, Envelope, Own, Reply};
use crate::heads::{RETAINED, WATCHED};
use crate::partition::OwnResult;
use crate::request::{ClockChange, ClockRefusal, Refusal};

/// After a failure own work waits this long: a full disk must not be hammered.
pub const PAUSE: Duration = Duration::from_secs(1);

impl Actor {
    /// Until the next own command is due: zero when one is due now, `None` when nothing is in sight.
    pub(crate) fn own_work_due_in(&self) -> Option<Duration> {
        let cache = &self.partition.cache;
        if self.next_of(&RangeId::FollowUps).is_some() || self.must_refill() {
            return Some(Duration::ZERO);
        }
        let next = WATCHED.iter().filter_map(|range| self.next_of(range)).map(|sort| due_at(&sort)).min();
        debug_assert!(next.is_none() || due::next_due(cache).is_some());
        let left = next?.saturating_sub(self.shared.clock.now());
        match left {
            left if left <= 0 => Some(Duration::ZERO),
            left if self.shared.clock.ticks() => Some(Duration::from_millis(left as u64)),
            _ => None,
        }
    }

    /// The first entry that was not skipped since the last commit.
    fn next_of(&self, range: &RangeId) -> Option<SortKey> {
        use wf_core::draft::Base;
        let view = self.partition.cache.range(range)?;
        view.entries.iter().find(|sort| !self.is_skipped(range, sort)).cloned()
    }

    fn is_skipped(&self, range: &RangeId, sort: &SortKey) -> bool {
        !self.skipped.is_empty() && self.skipped.contains(&(range.clone(), sort.clone()))
    }

    fn must_refill(&self) -> bool {
        let queues = WATCHED.iter().chain(&RETAINED).chain(&[RangeId::FollowUps]);
        queues.into_iter().any(|range| due::first(&self.partition.cache, range).is_err())
    }

    pub(crate) async fn do_due_work(&mut self) {
        if Instant::now() < self.own_work_from || self.refill().await.is_err() {
            self.own_work_from = self.own_work_from.max(Instant::now());
            return;
        }
        let now = self.partition.time(self.shared.clock.now());
        for range in WATCHED {
            for sort in due::due_entries(&self.partition.cache, &range, now) {
                if !self.is_skipped(&range, &sort) {
                    self.do_entry(&range, &sort).await;
                }
            }
        }
        for own in due::follow_ups(&self.partition.cache) {
            self.take_own(own).await;
        }
    }

    /// Heads that are not loaded, or that have run empty before their frontier.
    async fn refill(&mut self) -> Result<(), Refusal> {
        for range in WATCHED.iter().chain(&RETAINED).chain(&[RangeId::FollowUps]) {
            while let Err(need) = due::first(&self.partition.cache, range) {
                if let Err(refusal) = self.load(needs(need)).await {
                    self.own_work_from = Instant::now() + PAUSE;
                    return Err(refusal);
                }
            }
        }
        Ok(())
    }

    async fn do_entry(&mut self, range: &RangeId, sort: &SortKey) {
        let own = loop {
            match due::command_for(&self.partition.cache, range, sort) {
                Ok(own) => break own,
                Err(need) => {
                    if self.load(needs(need)).await.is_err() {
                        self.own_work_from = Instant::now() + PAUSE;
                        return;
                    }
                }
            }
        };
        let applied = match own {
            Some(own) => self.take_own(own).await,
            None => false,
        };
        if !applied {
            self.skipped.insert((range.clone(), sort.clone()));
        }
    }

    /// Whether it changed something.
    pub(crate) async fn take_own(&mut self, own: Own) -> bool {
        match self.run_own(&own).await {
            Ok(OwnResult::Done) => {
                self.turn.items.push((Envelope::Own(own), Reply::Outcome(Outcome::Done { applied: true })));
                true
            }
            Ok(OwnResult::Nothing) => false,
            Ok(OwnResult::Failed(refusal)) => self.put_aside(&own, &refusal).await,
            Err(refusal) => {
                tracing::warn!(verb = own.command.verb(), ?refusal, "own work is put off");
                self.own_work_from = Instant::now() + PAUSE;
                false
            }
        }
    }

    /// An own command that panics is not tried for ever: it leaves an incident.
    pub(crate) async fn put_aside(&mut self, own: &Own, refusal: &Refusal) -> bool {
        metrics::counter!("wf_commands_quarantined_total", "type" => own.command.verb()).increment(1);
        let what = match own.command {
            Command::FireTimer { timer, .. } => wf_core::command::Quarantined::Timer(timer),
            Command::Continue { follow_up } => wf_core::command::Quarantined::FollowUp(follow_up),
            _ => return false,
        };
        let reason: Text = match refusal {
            Refusal::Internal { error_id } => format!("{} failed, see the log: {error_id}", own.command.verb()).into(),
            other => format!("{} failed: {other:?}", own.command.verb()).into(),
        };
        let command = Command::Quarantine { what, reason };
        let now = self.partition.time(self.shared.clock.now());
        let aside = due::fresh(now, b"quarantine", self.partition.position(), command);
        let done = matches!(self.run_own(&aside).await, Ok(OwnResult::Done));
        if done {
            self.turn.items.push((Envelope::Own(aside), Reply::Outcome(Outcome::Done { applied: true })));
        }
        done
    }

    pub(crate) async fn purge(&mut self) {
        let now = self.partition.time(self.shared.clock.now());
        let position = self.partition.position();
        if let Some(own) = due::purge(&self.partition.cache, now, self.options.finished_ms, position) {
            self.take_own(own).await;
        }
    }

    /// A logged command; answered when all that fell due has committed.
    pub(crate) async fn set_clock(&mut self, asked: Box<Asked>, change: ClockChange) {
        let target = match self.clock_target(change) {
            Ok(target) => target,
            Err(refusal) => {
                let reply = Reply::Refused(Refusal::Clock(refusal));
                self.turn.items.push((Envelope::Asked(asked), reply));
                return;
            }
        };
        let frozen = change != ClockChange::Thaw;
        self.shared.clock.set(target, frozen);
        self.partition.set_clock(TestClock { now: target, frozen });
        let command = Command::SetClock { now: target, frozen };
        let own = due::fresh(target, b"clock", self.partition.position(), command);
        let reply = match self.take_own(own).await {
            true => Reply::Outcome(Outcome::ClockSet { now: target }),
            false => Reply::Refused(Refusal::Unavailable { reason: "the clock was not stored".to_owned() }),
        };
        self.clock_replies.push((asked.reply, reply));
    }

    fn clock_target(&self, change: ClockChange) -> Result<Millis, ClockRefusal> {
        if !self.shared.clock.is_test() {
            return Err(ClockRefusal::NoTestClock);
        }
        let now = self.shared.clock.now();
        let target = match change {
            ClockChange::Advance { ms } => now.saturating_add(ms),
            ClockChange::To { now } => now,
            ClockChange::Thaw => now,
        };
        if target < now { Err(ClockRefusal::Past) } else { Ok(target) }
    }
}

fn needs(need: Need) -> Needs {
    Needs { core: [need].into(), ..Needs::default() }
}
