//! Every interleaving of a small world: three requests under one key (one of them another request), owners that die or
//! outlive their lease, a store that compares and swaps. The verdicts are the real ones of `decide`; claim, completion and
//! take-over are what a store must do with them. F3 L1.5 L1.6, and that each safeguard is needed.

use std::collections::{BTreeSet, HashSet};

use bytes::Bytes;
use wf_idempotency::decide::{OnUnknown, Previous};
use wf_idempotency::{Answer, Fingerprint, Policy, Record, State, Verdict, decide};

const OURS: Fingerprint = Fingerprint([1; 32]);
const OTHER: Fingerprint = Fingerprint([2; 32]);
const LEASE: i64 = 2;
const END: i64 = 4;
/// The record outlives the model: what comes after its expiry is a new request.
const EXPIRES: i64 = 100;
const ATTEMPTS: u8 = 2;

/// A safeguard that is left out, to see that it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    /// A claim that does not look again whether there is a record.
    ClaimSwap,
    /// A take-over that does not look again who owns it.
    TakeOverSwap,
    /// A completion by whoever thinks that it owns the record.
    CompletionSwap,
    /// An owner that vanished counts as one that did nothing.
    UnknownOutcome,
}

#[derive(Clone, Debug)]
struct World {
    now: i64,
    record: Option<Record>,
    requests: [Request; 3],
    /// Times that the effect was made, and keys under which the provider knows it.
    effects: u8,
    at_provider: BTreeSet<u8>,
    /// What the first completion stored.
    first: Option<Answer>,
}

#[derive(Clone, Debug)]
struct Request {
    fingerprint: Fingerprint,
    attempts: u8,
    step: Step,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Outside,
    /// What it saw, and what it was told to do.
    Claiming {
        seen: Option<State>,
    },
    TakingOver {
        from: Previous,
        resume: bool,
    },
    Running {
        owner: [u8; 16],
    },
    Effected {
        owner: [u8; 16],
    },
    Answered(Answer),
    Refused(&'static str),
}

struct Model {
    policy: Policy,
    without: Without,
}

/// What must hold in every state; the name of the promise that does not.
fn broken(world: &World, policy: &Policy) -> Option<&'static str> {
    match policy.on_unknown {
        // Nobody runs it a second time, whatever happened to the first.
        OnUnknown::Replay | OnUnknown::Release if world.effects > 1 => return Some("two effects"),
        // It is entered again, and the provider tells by its key that it was there before.
        OnUnknown::Resume if world.at_provider.len() > 1 => return Some("two effects at the provider"),
        _ => (),
    }
    let stored = world.record.as_ref().map(|record| &record.state);
    if let Some(first) = &world.first
        && stored != Some(&State::Completed(first.clone()))
    {
        return Some("a completed record changed");
    }
    for request in &world.requests {
        match &request.step {
            Step::Answered(answer) if world.first.as_ref() != Some(answer) => return Some("another answer"),
            Step::Answered(_) if request.fingerprint != fingerprint_of(world) => return Some("another's answer"),
            _ => (),
        }
    }
    None
}

fn fingerprint_of(world: &World) -> Fingerprint {
    world.record.as_ref().map_or(OURS, |record| record.fingerprint)
}

impl Model {
    fn start(&self) -> World {
        let request = |fingerprint| Request { fingerprint, attempts: 0, step: Step::Outside };
        World {
            now: 0,
            record: None,
            requests: [request(OURS), request(OURS), request(OTHER)],
            effects: 0,
            at_provider: BTreeSet::new(),
            first: None,
        }
    }

    /// Everything that may happen next.
    fn next(&self, world: &World) -> Vec<World> {
        let mut next = Vec::new();
        if world.now < END {
            next.push(World { now: world.now + 1, ..world.clone() });
        }
        for who in 0..world.requests.len() {
            next.extend(self.steps(world, who));
        }
        next
    }

    fn steps(&self, world: &World, who: usize) -> Vec<World> {
        let request = &world.requests[who];
        let to = |step| with(world, who, step);
        match &request.step {
            Step::Outside if request.attempts < ATTEMPTS => vec![self.look(world, who)],
            Step::Claiming { seen } => vec![self.claim(world, who, seen.as_ref()), to(Step::Outside)],
            Step::TakingOver { from, resume } => vec![self.take_over(world, who, *from, *resume), to(Step::Outside)],
            Step::Running { owner } => {
                vec![self.effect(world, who, *owner), self.renew(world, *owner), to(Step::Outside)]
            }
            Step::Effected { owner } => vec![self.complete(world, who, *owner), to(Step::Outside)],
            // A client that was told to wait asks again.
            Step::Refused("busy") if request.attempts < ATTEMPTS => vec![to(Step::Outside)],
            Step::Outside | Step::Answered(_) | Step::Refused(_) => Vec::new(),
        }
    }

    fn look(&self, world: &World, who: usize) -> World {
        let verdict = decide(world.record.as_ref(), &world.requests[who].fingerprint, &self.policy, world.now);
        let step = match verdict {
            Verdict::Fresh => Step::Claiming { seen: world.record.as_ref().map(|record| record.state.clone()) },
            Verdict::Replay(answer) => Step::Answered(answer.clone()),
            Verdict::Mismatch => Step::Refused("mismatch"),
            Verdict::Busy { .. } => Step::Refused("busy"),
            Verdict::TakeOver { from, resume } => Step::TakingOver { from, resume },
            Verdict::Unknown if self.without == Without::UnknownOutcome => {
                Step::Claiming { seen: world.record.as_ref().map(|record| record.state.clone()) }
            }
            Verdict::Unknown => Step::Refused("unknown"),
            other => panic!("{other:?}"),
        };
        let mut next = with(world, who, step);
        next.requests[who].attempts += 1;
        next
    }

    /// Insert, unless there is a record by now.
    fn claim(&self, world: &World, who: usize, seen: Option<&State>) -> World {
        let stands = world.record.as_ref().map(|record| &record.state);
        if stands != seen && self.without != Without::ClaimSwap {
            return with(world, who, Step::Outside);
        }
        self.own(world, who)
    }

    /// Only from whom it was seen, and only past that one's lease.
    fn take_over(&self, world: &World, who: usize, from: Previous, _resume: bool) -> World {
        let state = world.record.as_ref().map(|record| &record.state);
        let still = match (state, from) {
            (Some(State::InProgress { owner, lease_until_ms }), Previous::Owner(from)) => {
                *owner == from && world.now >= *lease_until_ms
            }
            (Some(State::Unknown { since_ms }), Previous::UnknownSince(from)) => *since_ms == from,
            _ => false,
        };
        match still || self.without == Without::TakeOverSwap {
            true => self.own(world, who),
            false => with(world, who, Step::Outside),
        }
    }

    fn own(&self, world: &World, who: usize) -> World {
        // Every attempt is an owner of its own.
        let owner = [who as u8 * 16 + world.requests[who].attempts + 1; 16];
        let mut next = with(world, who, Step::Running { owner });
        next.record = Some(Record {
            fingerprint: world.requests[who].fingerprint,
            mac_key_id: 1,
            created_ms: 0,
            expires_ms: EXPIRES,
            state: State::InProgress { owner, lease_until_ms: world.now + LEASE },
        });
        next
    }

    fn renew(&self, world: &World, owner: [u8; 16]) -> World {
        let mut next = world.clone();
        if let Some(Record { state: State::InProgress { owner: of, lease_until_ms }, .. }) = &mut next.record
            && *of == owner
            && world.now < *lease_until_ms
        {
            *lease_until_ms = world.now + LEASE;
        }
        next
    }

    /// At somebody else's; with `Release` it is part of the completion's transaction instead.
    fn effect(&self, world: &World, who: usize, owner: [u8; 16]) -> World {
        let mut next = with(world, who, Step::Effected { owner });
        if self.policy.on_unknown != OnUnknown::Release {
            next.effects += 1;
            // One provider key per request's key, whoever runs it.
            next.at_provider.insert(0);
        }
        next
    }

    fn complete(&self, world: &World, who: usize, owner: [u8; 16]) -> World {
        let owns =
            matches!(&world.record, Some(Record { state: State::InProgress { owner: of, .. }, .. }) if *of == owner);
        if !owns && self.without != Without::CompletionSwap {
            return with(world, who, Step::Refused("lost"));
        }
        let answer = Answer::new(201, [], Bytes::copy_from_slice(&owner));
        let mut next = with(world, who, Step::Answered(answer.clone()));
        if let Some(record) = &mut next.record {
            record.state = State::Completed(answer.clone());
        }
        if self.policy.on_unknown == OnUnknown::Release {
            next.effects += 1;
        }
        next.first.get_or_insert(answer);
        next
    }

    /// Every state that can be reached; the first broken promise with the way to it.
    fn explore(&self) -> Result<usize, String> {
        let mut worlds = vec![(self.start(), 0)];
        let mut seen = HashSet::from([key(&worlds[0].0)]);
        let mut at = 0;
        while at < worlds.len() {
            if let Some(promise) = broken(&worlds[at].0, &self.policy) {
                return Err(format!("{promise}:\n{}", way_to(&worlds, at)));
            }
            for next in self.next(&worlds[at].0) {
                if seen.insert(key(&next)) {
                    worlds.push((next, at));
                }
            }
            at += 1;
        }
        Ok(worlds.len())
    }
}

fn way_to(worlds: &[(World, usize)], mut at: usize) -> String {
    let mut way = Vec::new();
    while at > 0 {
        let (world, before) = &worlds[at];
        let steps: Vec<String> = world.requests.iter().map(|request| format!("{:?}", request.step)).collect();
        way.push(format!("at {}: {}", world.now, steps.join(" | ")));
        at = *before;
    }
    way.reverse();
    way.join("\n")
}

/// What tells two states apart.
fn key(world: &World) -> Vec<u8> {
    let mut key = vec![world.now as u8, world.effects, world.at_provider.len() as u8];
    let state = |state: Option<&State>| match state {
        None => [0; 3],
        Some(State::InProgress { owner, lease_until_ms }) => [1, owner[0], *lease_until_ms as u8],
        Some(State::Completed(answer)) => [2, answer.body[0], 0],
        Some(State::Unknown { since_ms }) => [3, *since_ms as u8, 0],
        Some(State::Started { .. }) => [4, 0, 0],
    };
    key.extend(state(world.record.as_ref().map(|record| &record.state)));
    key.push(fingerprint_of(world).0[0]);
    key.push(world.first.as_ref().map_or(0, |answer| answer.body[0]));
    for request in &world.requests {
        key.push(request.attempts);
        match &request.step {
            Step::Outside => key.push(0),
            Step::Claiming { seen } => key.extend([&[1][..], &state(seen.as_ref())].concat()),
            Step::TakingOver { from: Previous::Owner(owner), .. } => key.extend([2, owner[0]]),
            Step::TakingOver { from: Previous::UnknownSince(since), .. } => key.extend([3, *since as u8]),
            Step::Running { owner } => key.extend([4, owner[0]]),
            Step::Effected { owner } => key.extend([5, owner[0]]),
            Step::Answered(answer) => key.extend([6, answer.body[0]]),
            Step::Refused(why) => key.extend([&[7][..], why.as_bytes()].concat()),
        }
    }
    key
}

fn with(world: &World, who: usize, step: Step) -> World {
    let mut next = world.clone();
    next.requests[who].step = step;
    next
}

fn explore(on_unknown: OnUnknown, without: Without) -> Result<usize, String> {
    Model { policy: Policy { on_unknown, ..Policy::default() }, without }.explore()
}

/// F3: its owner is gone; the next one waits for the lease, then takes over as the policy allows. Never both.
#[test]
fn f3_l1_6_no_interleaving_has_two_effects_or_two_answers() {
    for on_unknown in [OnUnknown::Replay, OnUnknown::Resume, OnUnknown::Release] {
        let states = explore(on_unknown, Without::Nothing).unwrap_or_else(|way| panic!("{on_unknown:?}: {way}"));
        assert!(states > 2_000, "{on_unknown:?}: only {states} states");
    }
}

#[test]
fn f3_each_safeguard_is_needed() {
    for (on_unknown, without, want) in [
        (OnUnknown::Replay, Without::ClaimSwap, "a completed record changed"),
        (OnUnknown::Release, Without::CompletionSwap, "two effects"),
        (OnUnknown::Release, Without::TakeOverSwap, "a completed record changed"),
        (OnUnknown::Replay, Without::UnknownOutcome, "two effects"),
    ] {
        let way = explore(on_unknown, without).expect_err("it is not needed");
        assert!(way.starts_with(want), "{without:?}: {way}");
    }
}
