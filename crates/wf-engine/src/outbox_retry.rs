//! Room 4, the one request that is no command: an operator has a message shipped again. It changes no state and takes no
//! position, but has its record like any other. Next: back to `partition.rs`.

use wf_core::{Millis, Outcome};
use wf_store::{Needs, OutboxId, OutboxRow, OutboxState};

use crate::envelope::{Asked, Reply};
use crate::partition::{Executed, Partition};
use crate::request::{OutboxRefusal, Refusal};
use crate::turn::Turn;

impl Partition {
    /// The message is pending again, under the same id; refused where a receiver may not know that id any more.
    pub(crate) fn retry_outbox(
        &mut self,
        asked: &Asked,
        id: &OutboxId,
        force: bool,
        turn: &mut Turn,
        now: Millis,
    ) -> Result<Executed, Needs> {
        let Some(row) = self.cache.outbox(id) else {
            return Err(Needs { outbox: [id.clone()].into(), ..Needs::default() });
        };
        let row = row.filter(|row| row.entry.tenant == asked.request.tenant);
        let is_late = |row: &OutboxRow| match row.state {
            OutboxState::Shipped => self.is_past_window(&id.sink, row.shipped_at, now),
            // An attempt may have arrived although its answer was lost; when it was is not kept, so its oldest time counts.
            OutboxState::Dead => row.attempts > 0 && self.is_past_window(&id.sink, row.entry.created_at, now),
            OutboxState::Pending => false,
        };
        let refusal = match row {
            None => Some(OutboxRefusal::NotFound),
            Some(row) if !force && is_late(row) => Some(OutboxRefusal::PastWindow),
            Some(_) => None,
        };
        if let Some(refusal) = refusal {
            return Ok(Executed::Reply(Reply::Refused(Refusal::Outbox(refusal))));
        }
        let outcome = Outcome::Done { applied: true };
        let passport = asked.request.passport.as_ref();
        let answer = passport.map(|_| (asked.request.render)(&outcome));
        turn.outbox_retries.push(id.clone());
        Ok(Executed::Reply(match (answer, passport) {
            (Some(answer), Some(passport)) => self.file_record(asked, passport, answer, turn, now),
            _ => Reply::Outcome(outcome),
        }))
    }

    /// The broker may have forgotten the id: a repeat would be a second message.
    fn is_past_window(&self, sink: &str, shipped_at: Millis, now: Millis) -> bool {
        let rule = self.sinks.iter().find(|rule| &*rule.name == sink);
        rule.is_none_or(|rule| now.saturating_sub(shipped_at) >= rule.window_ms)
    }
}
