//! Room 4, a message id that another partition has received: with the same correlation key it would have come here. It is a
//! repeat all the same, and a misuse of the id where anything else differs. The store's unique key is the backstop.
//! Next: back to `partition.rs`.

use wf_core::rows::RowId;
use wf_core::{Command, Millis, Outcome, message_content};
use wf_store::Needs;

use crate::envelope::{Asked, Reply};
use crate::partition::Partition;
use crate::suppressed::note_repeats;
use crate::turn::Turn;

impl Partition {
    pub(crate) fn received_elsewhere(
        &mut self,
        asked: &Asked,
        command: &Command,
        turn: &mut Turn,
        now: Millis,
    ) -> Result<Option<Reply>, Needs> {
        let Command::PublishMessage { name, correlation_key, message_id: Some(message_id), variables, .. } = command
        else {
            return Ok(None);
        };
        if self.partitions.is_one() || message_id.is_empty() {
            return Ok(None);
        }
        let tenant = asked.request.tenant.clone();
        let id = RowId::MessageId { tenant, name: name.clone(), message_id: message_id.clone() };
        let Some(first) = self.cache.received_elsewhere(&id) else {
            return Err(Needs { received_elsewhere: [id].into(), ..Needs::default() });
        };
        let Some(first) = first.filter(|first| first.expires_at > now) else { return Ok(None) };
        let misuse = first.content != message_content(correlation_key, variables);
        let outcome = Outcome::Published { key: first.key, duplicate: true, misuse, correlated: Vec::new() };
        note_repeats(&outcome, command, &self.context(&asked.request.tenant, now, ""), &self.cache, turn);
        Ok(Some(match &asked.request.passport {
            Some(passport) => {
                let answer = (asked.request.render)(&outcome);
                self.file_record(asked, passport, answer, turn, now)
            }
            None => Reply::Outcome(outcome),
        }))
    }
}
