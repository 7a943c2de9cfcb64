//! What lies in the mailbox: a request with the way back, or a command that the engine makes itself.

use tokio::sync::oneshot;
use wf_core::{Command, Outcome};

use crate::request::{Answered, Refusal, Request};

pub enum Envelope {
    Asked(Box<Asked>),
    Own(Own),
}

pub struct Asked {
    pub request: Request,
    /// Made at the door: the command id of a request without a key, the same when the turn is run again.
    pub nonce: [u8; 16],
    pub reply: oneshot::Sender<Reply>,
}

#[derive(Clone, Debug)]
pub struct Own {
    pub command: Command,
    /// Derived from what it is about, so that a repeat is known.
    pub id: [u8; 16],
    /// Whether the log may already hold it.
    pub may_be_known: bool,
}

/// What the actor sends back, after the commit.
#[derive(Debug)]
pub enum Reply {
    Answered(Answered),
    /// Not stored under a key: the door renders it.
    Outcome(Outcome),
    Refused(Refusal),
}

impl Envelope {
    /// Nobody waits for it any more and nothing would be lost: an un-keyed poll whose client is gone.
    pub fn is_withdrawn(&self) -> bool {
        match self {
            Envelope::Own(_) => false,
            Envelope::Asked(asked) => {
                let is_poll = matches!(asked.request.ask, crate::request::Ask::Command(Command::ActivateJobs { .. }));
                is_poll && asked.request.passport.is_none() && asked.reply.is_closed()
            }
        }
    }
}
