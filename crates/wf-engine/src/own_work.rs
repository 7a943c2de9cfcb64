//! The actor's own commands: what is due, what was put off, what has been kept long enough, the test clock.

use std::time::Duration;

use tokio::time::Instant;
use wf_core::command::Quarantined;
use wf_core::rows::Text;
use wf_core::{Command, Millis, Need, Outcome, RangeId, SortKey};
use wf_store::{InboxId, Needs, TestClock};

use crate::actor::{Actor, Standing};
use crate::due;
use crate::envelope::{Asked, Envelope, Own, Reply};
use crate::heads::{RETAINED, WATCHED};
use crate::partition::OwnResult;
use crate::request::{ClockChange, ClockRefusal, Refusal};

/// Own commands that are remembered as hopeless.
const GIVEN_UP_MAX: usize = 10_000;

impl Actor {
    /// Until the next own command is due: zero when one is due now, `None` when nothing is in sight.
    pub(crate) fn own_work_due_in(&self) -> Option<Duration> {
        if self.is_closing || self.standing != Standing::Open {
            return None;
        }
        let cache = &self.partition.cache;
        if self.must_refill() || self.purge_command().is_some() {
            return Some(Duration::ZERO);
        }
        let next = WATCHED.iter().filter_map(|range| due::next_due(cache, range, &self.skipped)).min();
        let left = next?.saturating_sub(self.now());
        match left {
            left if left <= 0 => Some(Duration::ZERO),
            left if self.shared.clock.ticks() => Some(Duration::from_millis(left as u64)),
            _ => None,
        }
    }

    fn must_refill(&self) -> bool {
        WATCHED.iter().chain(&RETAINED).any(|range| due::first(&self.partition.cache, range).is_err())
    }

    /// A slice of each queue. What fails on the store waits a little; what is left comes with the next turn.
    pub(crate) async fn do_due_work(&mut self) {
        if self.is_closing || Instant::now() < self.retry_from || self.refill().await.is_err() {
            return;
        }
        for range in &WATCHED {
            let done = self.do_slice(range).await;
            self.partition.cache.end_slice();
            if done.is_err() {
                return;
            }
        }
        self.purge().await;
    }

    /// Heads that are not loaded, or that have run empty before their frontier.
    async fn refill(&mut self) -> Result<(), Refusal> {
        for range in WATCHED.iter().chain(&RETAINED) {
            while let Err(need) = due::first(&self.partition.cache, range) {
                self.load_own(Needs { core: [need].into(), ..Needs::default() }).await?;
            }
        }
        Ok(())
    }

    async fn load_own(&mut self, needs: Needs) -> Result<(), Refusal> {
        let loaded = self.load(needs).await;
        if loaded.is_err() {
            self.retry_from = Instant::now() + self.pause();
        }
        loaded
    }

    pub(crate) fn pause(&self) -> Duration {
        Duration::from_millis(self.options.pause_ms)
    }

    async fn do_slice(&mut self, range: &RangeId) -> Result<(), Refusal> {
        let begun = Instant::now();
        for (sort, own) in self.slice(range).await? {
            if !self.has_room() {
                break;
            }
            let applied = match own {
                Some(own) => self.take_own(own).await?,
                None => false,
            };
            if !applied {
                self.skipped.insert((range.clone(), sort));
            }
            if begun.elapsed() > due::SLICE_TIME {
                break;
            }
        }
        Ok(())
    }

    /// The due entries with their commands. What they need first is loaded for all of them at once.
    async fn slice(&mut self, range: &RangeId) -> Result<Vec<(SortKey, Option<Own>)>, Refusal> {
        let entries = due::due_entries(&self.partition.cache, range, self.now(), &self.skipped);
        let mut slice = Vec::with_capacity(entries.len());
        let missing: std::collections::BTreeSet<Need> =
            entries.iter().filter_map(|sort| due::command_for(&self.partition.cache, range, sort).err()).collect();
        if !missing.is_empty() {
            self.load_own(Needs { core: missing, ..Needs::default() }).await?;
        }
        for sort in entries {
            // Missing again: somebody else's table.
            let own = due::command_for(&self.partition.cache, range, &sort).unwrap_or(None);
            slice.push((sort, own.filter(|own| !self.given_up.contains(&own.id))));
        }
        let ids = slice.iter().filter_map(|(_, own)| own.as_ref().map(|own| own.id)).collect();
        let needs = Needs { commands: ids, ..Needs::default() };
        if !needs.is_empty() {
            self.load_own(needs).await?;
        }
        Ok(slice)
    }

    /// Whether it changed something. `Err`: the store does not answer.
    pub(crate) async fn take_own(&mut self, own: Own) -> Result<bool, Refusal> {
        if self.given_up.contains(&own.id) {
            return Ok(false);
        }
        match self.run_own(&own, self.now()).await {
            Ok(OwnResult::Done) => {
                self.partition.keep_adopted(&own.command);
                self.take_out(own.from);
                self.turn.items.push((Envelope::Own(own), Reply::Outcome(Outcome::Done { applied: true })));
                Ok(true)
            }
            Ok(OwnResult::Nothing) => {
                self.take_out(own.from);
                Ok(false)
            }
            Ok(OwnResult::Known) => {
                tracing::warn!(verb = own.command.verb(), "an own command stands in the log already; dropped");
                self.give_up(own.id);
                Ok(false)
            }
            Err(unavailable @ Refusal::Unavailable { .. }) => {
                tracing::warn!(verb = own.command.verb(), refusal = ?unavailable, "own work is put off");
                self.retry_from = Instant::now() + self.pause();
                Err(unavailable)
            }
            Ok(OwnResult::Failed(refusal)) | Err(refusal) => self.put_aside(&own, &refusal).await,
        }
    }

    pub(crate) fn give_up(&mut self, id: [u8; 16]) {
        if self.given_up.len() >= GIVEN_UP_MAX {
            self.given_up.clear();
        }
        self.given_up.insert(id);
    }

    /// An own command that cannot be executed is not tried for ever: it leaves an incident where it can.
    pub(crate) async fn put_aside(&mut self, own: &Own, refusal: &Refusal) -> Result<bool, Refusal> {
        metrics::counter!("wf_commands_quarantined_total", "type" => own.command.verb()).increment(1);
        if let Some(from) = own.from {
            return self.put_sent_aside(own, from, &reason_of(own.command.verb(), refusal)).await;
        }
        self.give_up(own.id);
        let what = match own.command {
            Command::FireTimer { timer, .. } => Quarantined::Timer(timer),
            Command::Continue { follow_up } => Quarantined::FollowUp(follow_up),
            _ => return Ok(false),
        };
        self.quarantine(what, &reason_of(own.command.verb(), refusal), None).await
    }

    /// Whether what cannot be executed has left its trace; the row of the inbox that it came in goes then.
    pub(crate) async fn quarantine(
        &mut self,
        what: Quarantined,
        reason: &Text,
        from: Option<InboxId>,
    ) -> Result<bool, Refusal> {
        let command = Command::Quarantine { what, reason: reason.clone() };
        let aside = Own { from, ..due::fresh(self.now(), b"quarantine", self.partition.place(), command) };
        let is_done = matches!(self.run_own(&aside, self.now()).await?, OwnResult::Done);
        if is_done {
            self.take_out(from);
            self.turn.items.push((Envelope::Own(aside), Reply::Outcome(Outcome::Done { applied: true })));
        }
        Ok(is_done)
    }

    fn purge_command(&self) -> Option<Own> {
        let (now, position) = (self.now(), self.partition.place());
        let cache = &self.partition.cache;
        self.is_purging.then(|| due::purge(cache, now, self.options.finished_ms, position)).flatten()
    }

    /// One slice per turn until nothing is over its time.
    async fn purge(&mut self) {
        if !self.is_purging || !self.has_room() {
            return;
        }
        let own = self.purge_command();
        self.is_purging = match own {
            Some(own) => matches!(self.take_own(own).await, Ok(true)),
            None => false,
        };
    }

    /// A logged command; answered when all that fell due has committed. A failed turn sets the clock back.
    pub(crate) async fn set_clock(&mut self, asked: Box<Asked>, change: ClockChange) {
        let now = match self.clock_target(change) {
            Ok(now) => now,
            Err(refusal) => return self.refuse(asked, Refusal::Clock(refusal)),
        };
        let frozen = change != ClockChange::Thaw;
        let own = due::fresh(now, b"clock", self.partition.place(), Command::SetClock { now, frozen });
        match self.run_own(&own, now).await {
            Ok(OwnResult::Done) => {
                let before = self.shared.clock.set(now, frozen);
                self.turn.clock_before = self.turn.clock_before.or(before);
                self.partition.set_clock(TestClock { now, frozen });
                self.is_purging = true;
                self.turn.items.push((Envelope::Asked(asked), Reply::Outcome(Outcome::ClockSet { now })));
            }
            Ok(OwnResult::Failed(refusal)) | Err(refusal) => self.refuse(asked, refusal),
            Ok(OwnResult::Nothing | OwnResult::Known) => {
                let reason = "the clock was not set".to_owned();
                self.refuse(asked, Refusal::Unavailable { reason });
            }
        }
    }

    fn clock_target(&self, change: ClockChange) -> Result<Millis, ClockRefusal> {
        if !self.shared.clock.is_test() {
            return Err(ClockRefusal::NoTestClock);
        }
        let now = self.now();
        let target = match change {
            ClockChange::Advance { ms } => now.saturating_add(ms),
            ClockChange::To { now } => now,
            ClockChange::Thaw => now,
        };
        if target < now { Err(ClockRefusal::Past) } else { Ok(target) }
    }
}

fn reason_of(verb: &str, refusal: &Refusal) -> Text {
    match refusal {
        Refusal::Internal { error_id } => format!("{verb} failed, see the log: {error_id}").into(),
        other => format!("{verb} failed: {other:?}").into(),
    }
}
