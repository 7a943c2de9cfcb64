//! How an envelope gets into the turn at hand: executed until nothing is missing, or parked as a long poll.
//! Next: `partition.rs::execute`.

use wf_core::outcome::Noun;
use wf_core::{Millis, Outcome, Rejection};
use wf_store::Needs;

use crate::actor::{Actor, Standing};
use crate::envelope::{Asked, Envelope, Own, Reply};
use crate::loader;
use crate::partition::{Executed, OwnResult};
use crate::polls::NoWait;
use crate::request::{Ask, Refusal, TAKEN_AGAIN};

/// Loads for one command: each brings up to a thousand entries of a range, and the command runs again from its start.
const LOADS_MAX: usize = 10_000;
/// A command that needs more is going to need many.
const LOADS_FEW: usize = 8;

impl Actor {
    /// What the envelopes ask for first, in one load instead of one each. If it fails, each asks again for itself.
    pub(crate) async fn foresee(&mut self, arrived: &[Envelope]) {
        let mut needs = Needs::default();
        for envelope in arrived {
            if let Envelope::Asked(asked) = envelope {
                self.partition.foresee(&asked.request, &mut needs);
            }
        }
        if !needs.is_empty() && self.standing == Standing::Open {
            let _ = self.load(needs).await;
        }
    }

    /// Executes one envelope into the turn at hand.
    pub(crate) async fn take(&mut self, envelope: Envelope) {
        let asked = match envelope {
            // It comes again by itself if it could not be done.
            Envelope::Own(own) => return drop(self.take_own(own).await),
            Envelope::Asked(asked) if asked.is_withdrawn() => return,
            Envelope::Asked(asked) if self.standing == Standing::Lost => return self.refuse(asked, lost()),
            Envelope::Asked(asked) => asked,
        };
        match asked.request.ask {
            Ask::SetClock(change) => self.set_clock(asked, change).await,
            _ => self.take_asked(asked).await,
        }
        self.serve_polls().await;
    }

    async fn take_asked(&mut self, asked: Box<Asked>) {
        let sent = self.turn.sent.len();
        let mut executed = self.execute(&asked).await;
        if self.may_lack_a_definition(&executed) {
            if !self.has_room() {
                return self.redo.push_back(Envelope::Asked(asked));
            }
            executed = match self.take_all_mail().await {
                Ok(true) => self.execute(&asked).await,
                Ok(false) => executed,
                Err(refusal) => Err(refusal),
            };
        }
        match executed {
            Ok(Executed::Reply(reply)) => {
                if self.turn.sent.len() > sent {
                    self.turn.held.insert(self.turn.items.len(), self.partition.position());
                }
                self.turn.items.push((Envelope::Asked(asked), reply));
            }
            Ok(Executed::Empty) if self.is_closing => self.answer_empty(asked),
            Ok(Executed::Empty) => match self.polls.park(asked) {
                Ok(()) => (),
                Err(NoWait::Over(asked)) => self.answer_empty(asked),
                Err(NoWait::TooMany(asked)) => self.refuse(asked, Refusal::Overloaded),
            },
            Err(refusal) => self.refuse(asked, refusal),
        }
    }

    /// What another partition has deployed may lie in the inbox still, although the client was told that it stands.
    fn may_lack_a_definition(&self, executed: &Result<Executed, Refusal>) -> bool {
        let Ok(Executed::Reply(Reply::Refused(Refusal::Rejected(rejection)))) = executed else { return false };
        !self.partition.partitions.is_one() && *rejection == Rejection::NotFound(Noun::Definition)
    }

    /// Runs it until nothing is missing: it is pure, so running it again is harmless.
    async fn execute(&mut self, asked: &Asked) -> Result<Executed, Refusal> {
        let mut loads = 0;
        let executed = loop {
            let now = self.now();
            match self.partition.execute(asked, &mut self.turn, now) {
                Ok(executed) => break Ok(executed),
                Err(needs) => match self.load_within(needs, &mut loads).await {
                    Ok(()) => (),
                    Err(refusal) => break Err(refusal),
                },
            }
        };
        self.partition.cache.end_command();
        executed
    }

    pub(crate) async fn run_own(&mut self, own: &Own, now: Millis) -> Result<OwnResult, Refusal> {
        let mut loads = 0;
        let result = loop {
            match self.partition.execute_own(own, &mut self.turn, now) {
                Ok(result) => break Ok(result),
                Err(needs) => match self.load_within(needs, &mut loads).await {
                    Ok(()) => (),
                    Err(refusal) => break Err(refusal),
                },
            }
        };
        self.partition.cache.end_command();
        result
    }

    async fn load_within(&mut self, mut needs: Needs, loads: &mut usize) -> Result<(), Refusal> {
        *loads += 1;
        if *loads > LOADS_MAX {
            let error_id = self.shared.chance.error_id();
            tracing::error!(%error_id, ?needs, "a command asks for more than it may");
            return Err(Refusal::Internal { error_id });
        }
        if *loads > LOADS_FEW {
            loader::widen(&self.partition.cache, &mut needs);
        }
        self.load(needs).await
    }

    pub(crate) async fn load(&mut self, mut needs: Needs) -> Result<(), Refusal> {
        needs.partition = self.partition.id;
        loader::load(&*self.shared.store, &mut self.partition.cache, needs, &self.shared.chance).await
    }

    /// Command time.
    pub(crate) fn now(&self) -> Millis {
        self.partition.time(self.shared.clock.now())
    }

    pub(crate) fn answer_empty(&mut self, asked: Box<Asked>) {
        self.turn.items.push((Envelope::Asked(asked), Reply::Outcome(Outcome::Activated(Vec::new()))));
    }

    pub(crate) fn refuse(&mut self, asked: Box<Asked>, refusal: Refusal) {
        self.turn.items.push((Envelope::Asked(asked), Reply::Refused(refusal)));
    }

    /// Long polls whose queue got a job: they are next, before what arrives later.
    pub(crate) async fn serve_polls(&mut self) {
        while let Some(range) = self.turn.filled.pop_first() {
            if self.options.ready.is_some() {
                self.turn.ready.insert(range.clone());
            }
            if self.polls.is_waited_for(&range) {
                self.filled.insert(range);
            }
        }
        while self.has_room()
            && let Some(range) = self.filled.pop_first()
        {
            self.serve_queue(&range).await;
        }
    }

    async fn serve_queue(&mut self, range: &wf_core::RangeId) {
        while let Some(waiting) = self.polls.next_for(range) {
            if !self.has_room() {
                self.polls.put_back(range, waiting);
                self.filled.insert(range.clone());
                break;
            }
            match self.execute(&waiting.asked).await {
                Ok(Executed::Empty) => {
                    self.polls.put_back(range, waiting);
                    break;
                }
                Ok(Executed::Reply(reply)) => self.turn.items.push((Envelope::Asked(waiting.asked), reply)),
                Err(refusal) => self.refuse(waiting.asked, refusal),
            }
        }
    }
}

pub fn lost() -> Refusal {
    Refusal::Unavailable { reason: TAKEN_AGAIN.to_owned() }
}
