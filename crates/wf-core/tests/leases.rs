//! Every interleaving of one job and two workers: activate, complete, complete again, fail, extend, die, come back late,
//! sweep, let time pass. The real decisions, from every state that can be reached. L3.1 L3.2 L3.3 L3.4 L3.5.
//! `World` itself refuses a second live lease and a second completion; here each answer is held against what it must be.

use std::collections::{HashSet, VecDeque};

use wf_core::command::Holder;
use wf_core::outcome::LeaseLost;
use wf_core::rows::{Job, JobState};
use wf_core::{Command, Outcome, Rejection};

use crate::common::{LEASE_MS, World, vars};

const TASK: &str = "
    start s -> a
    job a -> e
    end e";
const WORKERS: [&str; 2] = ["v", "w"];
/// Leases that a worker still knows of: the present one and the one before.
const KNOWN_MAX: usize = 2;
const FAILURES_MAX: u32 = 1;

#[derive(Clone)]
struct Sight {
    world: World,
    job: u64,
    /// The job as each worker got it, the latest last. A dead worker's replacement knows nothing, and is the same to us.
    held: [Vec<Job>; 2],
    failures: u32,
    way: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Activate(usize),
    /// With the latest lease that the worker knows, or the one before.
    Complete(usize, usize),
    /// By name alone, as workers do that share no name.
    CompleteByName(usize),
    Extend(usize, usize),
    Fail(usize, usize),
    Forget(usize),
    Sweep,
    Pass,
}

#[test]
fn l3_1_l3_3_every_interleaving_of_two_workers_and_a_job() {
    let mut world = World::with(&[("p", TASK)]);
    (world.is_cold_too, world.is_checked) = (false, false);
    world.start("p", "");
    let job = world.jobs(JobState::Ready)[0].key;
    let start = Sight { world, job, held: [Vec::new(), Vec::new()], failures: 0, way: Vec::new() };
    let mut seen = HashSet::from([start.key()]);
    let mut open = VecDeque::from([start]);
    let mut acts = 0;
    while let Some(sight) = open.pop_front() {
        sight.can_still_end();
        for act in sight.acts() {
            acts += 1;
            let mut next = sight.clone();
            next.way.push(format!("{act:?}"));
            next.act(act);
            if seen.insert(next.key()) {
                open.push_back(next);
            }
        }
    }
    assert!(seen.len() > 250 && acts > 2_500, "{} states, {acts} acts", seen.len());
}

impl Sight {
    fn row(&self) -> Job {
        (*self.world.job_row(self.job)).clone()
    }

    fn acts(&self) -> Vec<Act> {
        let mut acts = vec![Act::Pass, Act::Sweep];
        for (who, held) in self.held.iter().enumerate() {
            acts.extend([Act::Activate(who), Act::CompleteByName(who)]);
            if !held.is_empty() {
                acts.push(Act::Forget(who));
            }
            for lease in 0..held.len() {
                acts.extend([Act::Complete(who, lease), Act::Extend(who, lease)]);
                if self.failures < FAILURES_MAX {
                    acts.push(Act::Fail(who, lease));
                }
            }
        }
        acts
    }

    /// What the answer must be is worked out from the row before the act.
    fn act(&mut self, act: Act) {
        match act {
            Act::Pass => self.world.now += LEASE_MS / 2,
            Act::Sweep => self.world.advance(0),
            Act::Forget(who) => drop(self.held[who].remove(0)),
            Act::Activate(who) => self.activate(who),
            Act::Complete(who, lease) => self.answer(who, lease, |world, job| world.complete(job, "x=1")),
            Act::CompleteByName(who) => self.complete_by_name(who),
            Act::Extend(who, lease) => self.answer(who, lease, |world, job| world.extend(job, LEASE_MS)),
            Act::Fail(who, lease) => {
                self.answer(who, lease, |world, job| world.fail(job, Some(1), 0));
                self.failures += u32::from(self.row().state != JobState::Activated);
            }
        }
    }

    fn activate(&mut self, who: usize) {
        let before = self.row();
        let got = self.world.activate("a", WORKERS[who], 1);
        let is_free = before.state == JobState::Ready;
        assert_eq!(got.len(), usize::from(is_free), "{:?}: {before:?}", self.way);
        let held = &mut self.held[who];
        held.extend(got.into_iter().map(|job| (*job.job).clone()));
        let known = held.len().saturating_sub(KNOWN_MAX);
        held.drain(..known);
    }

    fn answer(&mut self, who: usize, lease: usize, ask: impl Fn(&mut World, &Job) -> Result<Outcome, Rejection>) {
        let (before, mine) = (self.row(), self.held[who][lease].clone());
        let holds = before.worker == mine.worker && before.lease == mine.lease;
        let digest = self.world.digest;
        let answer = ask(&mut self.world, &mine);
        self.judge(&before, holds, digest, &answer);
    }

    fn complete_by_name(&mut self, who: usize) {
        let before = self.row();
        let holds = *before.worker == *WORKERS[who];
        let digest = self.world.digest;
        let holder = Holder { job: self.job, worker: WORKERS[who].into(), lease: None };
        let answer = self.world.run(Command::CompleteJob { holder, variables: vars("x=1") });
        self.judge(&before, holds, digest, &answer);
    }

    fn judge(&self, before: &Job, holds: bool, digest: u128, answer: &Result<Outcome, Rejection>) {
        let is_live = before.state == JobState::Activated && self.world.now < before.due;
        match (answer, holds && is_live) {
            (Ok(Outcome::Completed { duplicate }), false) => {
                assert!(*duplicate && holds && before.state == JobState::Completed, "{:?}: {before:?}", self.way);
                assert_eq!(self.world.digest, digest, "a repeat changes nothing: {:?}", self.way);
            }
            (Ok(Outcome::Completed { duplicate }), true) => assert!(!duplicate, "{:?}", self.way),
            (Ok(_), true) => (),
            (Err(Rejection::LeaseLost(reason)), false) => {
                assert_eq!(*reason, reason_of(before, holds), "{:?}: {before:?}", self.way);
                assert_eq!(self.world.digest, digest, "who is refused changes nothing: {:?}", self.way);
            }
            other => panic!("{other:?} after {:?}: {before:?}", self.way),
        }
    }

    /// No job is lost: from here, a worker who comes after the leases gets it and ends it.
    fn can_still_end(&self) {
        let mut later = self.clone();
        later.world.advance(3 * LEASE_MS);
        match later.row().state {
            JobState::Completed => (),
            JobState::Ready => {
                let job = later.world.activate("a", "late", 1).remove(0);
                let done = later.world.complete(&job.job, "");
                assert_eq!(done, Ok(Outcome::Completed { duplicate: false }), "{:?}", self.way);
            }
            other => panic!("{other:?} for ever after {:?}", self.way),
        }
    }

    /// What tells two states apart: not when it is or which number a lease has, but how they stand to one another.
    fn key(&self) -> String {
        let row = self.row();
        let left = (row.due - self.world.now).clamp(0, 2 * LEASE_MS);
        let stands = |job: &Job| (job.lease == row.lease, job.worker == row.worker);
        let held: Vec<Vec<(bool, bool)>> = self.held.iter().map(|held| held.iter().map(stands).collect()).collect();
        let newest = self.held.iter().flatten().map(|job| job.lease).max() == Some(row.lease);
        let worker = &row.worker;
        format!("{:?} {left} {worker} {} {held:?} {newest} {}", row.state, row.retries, self.failures)
    }
}

/// In the words of the contract.
fn reason_of(job: &Job, holds: bool) -> LeaseLost {
    match job.state {
        JobState::Completed => LeaseLost::Finished,
        JobState::Activated | JobState::Ready if holds => LeaseLost::Expired,
        _ => LeaseLost::Taken,
    }
}
