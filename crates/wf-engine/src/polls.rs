//! Long polls that found nothing wait here, per queue, in the order of arrival. They wait in real time, also under a test clock.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use wf_core::{Command, RangeId};

use crate::envelope::{Asked, Envelope};
use crate::request::Ask;

#[derive(Default)]
pub struct Polls {
    waiting: BTreeMap<RangeId, VecDeque<Poll>>,
}

struct Poll {
    asked: Box<Asked>,
    until: Instant,
}

impl Polls {
    /// A poll that may not wait (any more) comes back.
    pub fn park(&mut self, asked: Box<Asked>, arrived: Instant) -> Option<Box<Asked>> {
        let until = arrived + asked.request.wait;
        let Some(range) = queue_of(&asked).filter(|_| until > Instant::now()) else { return Some(asked) };
        self.waiting.entry(range).or_default().push_back(Poll { asked, until });
        None
    }

    /// The next poll that waits for this queue and still has a client.
    pub fn next_for(&mut self, range: &RangeId) -> Option<(Box<Asked>, Instant)> {
        let polls = self.waiting.get_mut(range)?;
        while let Some(poll) = polls.pop_front() {
            let is_gone = poll.asked.reply.is_closed() && poll.asked.request.passport.is_none();
            if !is_gone {
                return Some((poll.asked, poll.until));
            }
        }
        self.waiting.remove(range);
        None
    }

    /// It was looked at and found nothing: it keeps its place and its time.
    pub fn put_back(&mut self, range: &RangeId, asked: Box<Asked>, until: Instant) {
        self.waiting.entry(range.clone()).or_default().push_front(Poll { asked, until });
    }

    /// Polls whose time is over, and those whose client is gone.
    pub fn take_over(&mut self, now: Instant) -> Vec<Box<Asked>> {
        let mut over = Vec::new();
        for polls in self.waiting.values_mut() {
            let (gone, stay) = std::mem::take(polls)
                .into_iter()
                .partition::<VecDeque<Poll>, _>(|poll| poll.until <= now || poll.asked.reply.is_closed());
            *polls = stay;
            over.extend(gone.into_iter().map(|poll| poll.asked));
        }
        self.waiting.retain(|_, polls| !polls.is_empty());
        over
    }

    pub fn take_all(&mut self) -> Vec<Box<Asked>> {
        std::mem::take(&mut self.waiting).into_values().flatten().map(|poll| poll.asked).collect()
    }

    pub fn next_end(&self) -> Option<Instant> {
        self.waiting.values().flatten().map(|poll| poll.until).min()
    }
}

/// The queue that a poll reads.
fn queue_of(asked: &Asked) -> Option<RangeId> {
    match &asked.request.ask {
        Ask::Command(Command::ActivateJobs { job_type, .. }) => {
            Some(RangeId::Ready { tenant: asked.request.tenant.clone(), job_type: job_type.clone() })
        }
        _ => None,
    }
}

impl From<Box<Asked>> for Envelope {
    fn from(asked: Box<Asked>) -> Envelope {
        Envelope::Asked(asked)
    }
}
