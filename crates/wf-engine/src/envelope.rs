//! What lies in the mailbox: a request with the way back, or a command that the engine makes itself.

use tokio::sync::oneshot;
use tokio::time::Instant;
use wf_core::{Command, Outcome};
use wf_store::InboxId;

use crate::inflight::Visit;
use crate::request::{Answered, Ask, Refusal, Request};

pub enum Envelope {
    Asked(Box<Asked>),
    Own(Own),
}

pub struct Asked {
    pub request: Request,
    /// Made at the door: the command id of a request without a key, the same when the turn is run again.
    pub nonce: [u8; 16],
    /// From then on a poll waits, however often it is looked at.
    pub arrived: Instant,
    /// Its key is under way until it is answered, also when its client has gone.
    pub visit: Option<Visit>,
    pub reply: oneshot::Sender<Reply>,
}

#[derive(Clone, Debug)]
pub struct Own {
    pub command: Command,
    /// Derived from what it is about, so that a repeat is known.
    pub id: [u8; 16],
    /// Whether the log may already hold it.
    pub may_be_known: bool,
    /// The row of the inbox that it came in: the turn that deals with it deletes it.
    pub from: Option<InboxId>,
}

/// What the actor sends back, after the commit.
#[derive(Debug)]
pub enum Reply {
    Answered(Answered),
    /// Not stored under a key: the door renders it.
    Outcome(Outcome),
    Refused(Refusal),
}

impl Asked {
    /// A client that is gone hears nothing; its effect stands.
    pub fn answer(self, reply: Reply) {
        drop(self.visit);
        let _ = self.reply.send(reply);
    }

    fn is_poll(&self) -> bool {
        matches!(self.request.ask, Ask::Command(Command::ActivateJobs { .. }))
    }

    /// Nobody waits for it any more and nothing would be lost: an un-keyed poll whose client is gone, or a repeat whose client
    /// was told that the first request still runs. Otherwise a mailbox could stay full of repeats that come again because
    /// they wait in it.
    pub fn is_withdrawn(&self) -> bool {
        let is_repeat = self.visit.as_ref().is_some_and(|visit| visit.is_repeat);
        let is_mere_poll = self.is_poll() && self.request.passport.is_none();
        (is_repeat || is_mere_poll) && self.reply.is_closed()
    }
}

impl Reply {
    /// The envelope that got it changed nothing: when its turn fails it may be executed again.
    pub fn changed_nothing(&self) -> bool {
        match self {
            Reply::Refused(_) => true,
            Reply::Answered(answered) => answered.replayed,
            Reply::Outcome(Outcome::Activated(jobs)) => jobs.is_empty(),
            Reply::Outcome(_) => false,
        }
    }

    /// A change of the clock that was executed: answered when all that fell due is durable too.
    pub fn sets_clock(&self) -> bool {
        matches!(self, Reply::Outcome(Outcome::ClockSet { .. }))
    }
}
