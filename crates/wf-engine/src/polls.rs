//! Long polls that found nothing wait here, per queue, in the order of arrival. They wait in real time, also under a test clock.

use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;
use wf_core::{Command, RangeId};

use crate::envelope::Asked;
use crate::request::Ask;

pub struct Polls {
    queues: BTreeMap<RangeId, BTreeMap<u64, Box<Asked>>>,
    ends: BTreeMap<(Instant, u64), RangeId>,
    next: u64,
    polls_max: usize,
}

/// A poll that was taken out to be looked at, with its place.
pub struct Waiting {
    pub asked: Box<Asked>,
    place: u64,
}

/// Why a poll does not wait.
pub enum NoWait {
    /// Its time is over, or it never had any.
    Over(Box<Asked>),
    TooMany(Box<Asked>),
}

impl Polls {
    pub fn new(polls_max: usize) -> Polls {
        Polls { queues: BTreeMap::new(), ends: BTreeMap::new(), next: 0, polls_max }
    }

    pub fn park(&mut self, asked: Box<Asked>) -> Result<(), NoWait> {
        if end_of(&asked) <= Instant::now() {
            return Err(NoWait::Over(asked));
        }
        if self.ends.len() >= self.polls_max {
            return Err(NoWait::TooMany(asked));
        }
        let Some(range) = queue_of(&asked) else { return Err(NoWait::Over(asked)) };
        self.next += 1;
        self.put_back(&range, Waiting { asked, place: self.next });
        Ok(())
    }

    /// The next poll that waits for this queue and still has a client.
    pub fn next_for(&mut self, range: &RangeId) -> Option<Waiting> {
        while let Some((place, asked)) = self.queues.get_mut(range)?.pop_first() {
            self.forget(range, place, &asked);
            if !asked.is_withdrawn() {
                return Some(Waiting { asked, place });
            }
        }
        None
    }

    /// It was looked at and found nothing: it keeps its place and its time.
    pub fn put_back(&mut self, range: &RangeId, waiting: Waiting) {
        self.ends.insert((end_of(&waiting.asked), waiting.place), range.clone());
        self.queues.entry(range.clone()).or_default().insert(waiting.place, waiting.asked);
    }

    fn forget(&mut self, range: &RangeId, place: u64, asked: &Asked) {
        self.ends.remove(&(end_of(asked), place));
        if self.queues.get(range).is_some_and(BTreeMap::is_empty) {
            self.queues.remove(range);
        }
    }

    /// Polls whose time is over.
    #[expect(clippy::vec_box, reason = "an envelope holds the same box")]
    pub fn take_over(&mut self, now: Instant) -> Vec<Box<Asked>> {
        let mut over = Vec::new();
        while let Some(first) = self.ends.first_entry().filter(|first| first.key().0 <= now) {
            let ((_, place), range) = first.remove_entry();
            over.extend(self.take(&range, place));
        }
        over
    }

    /// Polls whose client is gone.
    pub fn drop_gone(&mut self) {
        let ends: Vec<((Instant, u64), RangeId)> = self.ends.iter().map(|(end, range)| (*end, range.clone())).collect();
        for (end, range) in ends {
            let asked = self.queues.get(&range).and_then(|polls| polls.get(&end.1));
            if asked.is_none_or(|asked| asked.reply.is_closed()) {
                self.take(&range, end.1);
                self.ends.remove(&end);
            }
        }
    }

    fn take(&mut self, range: &RangeId, place: u64) -> Option<Box<Asked>> {
        let polls = self.queues.get_mut(range)?;
        let asked = polls.remove(&place);
        if polls.is_empty() {
            self.queues.remove(range);
        }
        asked
    }

    #[expect(clippy::vec_box, reason = "an envelope holds the same box")]
    pub fn take_all(&mut self) -> Vec<Box<Asked>> {
        self.ends.clear();
        std::mem::take(&mut self.queues).into_values().flat_map(BTreeMap::into_values).collect()
    }

    pub fn next_end(&self) -> Option<Instant> {
        self.ends.first_key_value().map(|((end, _), _)| *end)
    }

    pub fn is_waited_for(&self, range: &RangeId) -> bool {
        self.queues.contains_key(range)
    }

    /// All queues that are waited for.
    pub fn queues(&self) -> BTreeSet<RangeId> {
        self.queues.keys().cloned().collect()
    }
}

fn end_of(asked: &Asked) -> Instant {
    asked.arrived + asked.request.wait
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
