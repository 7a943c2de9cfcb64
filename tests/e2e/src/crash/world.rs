//! What clients know of the nodes, and what they were told: the same request until there is a definite answer, sometimes
//! sent twice at once, sometimes given up after sending. Two definite answers under one key must be equal, byte for byte.
//! It does not know what is asked. Next: `clients.rs`.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::api::{Api, Call};
use crate::http::Answer;
use crate::provider::Provider;
use crate::{Random, locked, pause};

use super::counts::Counts;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Load,
    /// Customers end what they began.
    Finish,
    Over,
}

/// One order as its customer knows it.
#[derive(Clone, Debug)]
pub struct Order {
    pub id: String,
    pub instance: String,
    /// What was set last, by name.
    pub variables: BTreeMap<String, Value>,
}

/// Far above what anything takes that a test waits for.
const WAIT_MAX: Duration = Duration::from_secs(60);

pub struct World<'a> {
    pub counts: &'a Counts,
    pub seed: u64,
    pub provider: Provider,
    /// Instance → what the provider calls its charge.
    pub receipts: Mutex<BTreeMap<String, Value>>,
    /// Those that listen, and where each of them is going to die.
    nodes: Mutex<Vec<(Api, usize)>>,
    /// Definite ones, and the others.
    answers: Mutex<(u64, u64)>,
    answered: Condvar,
    phase: Mutex<Phase>,
    faults: Mutex<Vec<String>>,
    /// Key → the first definite answer.
    answers_by_key: Mutex<BTreeMap<String, (u16, Vec<u8>)>>,
    pub orders: Mutex<Vec<Order>>,
    /// Message id → the message's key.
    pub messages: Mutex<BTreeMap<String, String>>,
    /// (job, lease) → the poll that it was given to.
    pub leases: Mutex<BTreeMap<(String, String), String>>,
}

impl<'a> World<'a> {
    pub fn new(counts: &'a Counts, seed: u64) -> World<'a> {
        World {
            counts,
            seed,
            provider: Provider::start(),
            receipts: Mutex::default(),
            nodes: Mutex::default(),
            answers: Mutex::default(),
            answered: Condvar::new(),
            phase: Mutex::new(Phase::Load),
            faults: Mutex::default(),
            answers_by_key: Mutex::default(),
            orders: Mutex::default(),
            messages: Mutex::default(),
            leases: Mutex::default(),
        }
    }

    /// A node listens there; `place` is where it is going to die.
    pub fn meet(&self, api: &Api, place: usize) {
        locked(&self.nodes).push((api.clone(), place));
    }

    pub fn part(&self, api: &Api) {
        locked(&self.nodes).retain(|(known, _)| known.address != api.address);
    }

    /// Any of them.
    fn a_node(&self, random: &mut Random) -> Option<(Api, usize)> {
        let nodes = locked(&self.nodes);
        nodes.get(random.below(nodes.len() as u64) as usize).cloned()
    }

    pub fn enter(&self, phase: Phase) {
        let mut now = locked(&self.phase);
        *now = phase.max(*now);
    }

    pub fn phase(&self) -> Phase {
        *locked(&self.phase)
    }

    pub fn fault(&self, fault: String) {
        locked(&self.faults).push(fault);
        self.enter(Phase::Over);
    }

    pub fn faults(&self) -> Vec<String> {
        locked(&self.faults).clone()
    }

    pub fn has_faults(&self) -> bool {
        !locked(&self.faults).is_empty()
    }

    /// How many of so many answers are still to come; `None` when they are there. Looks up after this time.
    pub fn wait_for_answers(&self, more: u64, time: Duration) -> Option<u64> {
        self.wait_for(|(answers, _)| answers, more, time)
    }

    /// The load comes through: so many definite answers more.
    pub fn goes_on(&self, more: u64) -> Result<(), String> {
        self.wait_for(|(answers, _)| answers, more, WAIT_MAX)
            .map_or(Ok(()), |left| Err(format!("{left} of {more} answers did not come")))
    }

    /// Somebody heard that nothing is known or nothing was done, so many times more.
    pub fn is_refused(&self, more: u64) -> Result<(), String> {
        self.wait_for(|(_, refusals)| refusals, more, WAIT_MAX)
            .map_or(Ok(()), |_| Err("nobody was refused anything".to_owned()))
    }

    fn wait_for(&self, count: impl Fn((u64, u64)) -> u64, more: u64, time: Duration) -> Option<u64> {
        let counted = locked(&self.answers);
        let goal = count(*counted) + more;
        let is_waiting = |counted: &mut (u64, u64)| count(*counted) < goal && !self.has_faults();
        let waited = self.answered.wait_timeout_while(counted, time, is_waiting);
        let (counted, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        Some(goal.saturating_sub(count(*counted))).filter(|left| *left > 0)
    }

    /// As a good client does: the same request until there is a definite answer. `None`: it is over.
    pub fn insist(&self, random: &mut Random, call: impl Fn(&Api) -> Call) -> Option<Answer> {
        let mut cut_off_at = None;
        while self.phase() < Phase::Over {
            let Some((api, place)) = self.a_node(random) else {
                pause();
                continue;
            };
            let call = call(&api);
            match self.try_once(random, &call, place, &mut cut_off_at) {
                Some(answer) => {
                    self.count(&answer, cut_off_at);
                    return Some(answer);
                }
                None => std::thread::yield_now(),
            }
        }
        None
    }

    /// Once, or twice at once, or given up at once.
    fn try_once(&self, random: &mut Random, call: &Call, place: usize, cut: &mut Option<usize>) -> Option<Answer> {
        let way = random.below(8);
        let copies = if way == 0 { 2 } else { 1 };
        let sent: Vec<_> = (0..copies).filter_map(|_| call.begin().ok()).collect();
        sent.iter().for_each(|_| self.counts.sent());
        if sent.is_empty() {
            pause();
        }
        if way == 1 {
            return None;
        }
        let mut definite = None;
        for sent in sent {
            match sent.answer() {
                Ok(answer) if is_definite(&answer) => {
                    self.compare(call, &answer);
                    definite = definite.or(Some(answer));
                }
                Ok(_) => self.refused(),
                Err(_) => {
                    self.counts.cut_off(place);
                    *cut = Some(place);
                    self.refused();
                }
            }
        }
        definite
    }

    fn count(&self, answer: &Answer, cut_off_at: Option<usize>) {
        let is_repeat = answer.is_replay() || answer.text().contains("\"duplicate\":true");
        if is_repeat {
            self.counts.repeated();
            cut_off_at.into_iter().for_each(|place| self.counts.replayed(place));
        }
        locked(&self.answers).0 += 1;
        self.answered.notify_all();
    }

    fn refused(&self) {
        locked(&self.answers).1 += 1;
        self.answered.notify_all();
    }

    /// An empty poll stores nothing, and says nothing about the next one.
    fn compare(&self, call: &Call, answer: &Answer) {
        let key = call.request.headers.iter().find(|(name, _)| name == "idempotency-key").map(|(_, key)| key.clone());
        let Some(key) = key.filter(|_| answer.body != b"{\"jobs\":[]}") else { return };
        // Records of these run out within the run.
        if key.starts_with(PASSING) {
            return;
        }
        let mut known = locked(&self.answers_by_key);
        let now = (answer.status, answer.body.clone());
        let first = known.entry(key.clone()).or_insert_with(|| now.clone());
        if *first != now {
            let [first, now] = [&first.1, &now.1].map(|body| String::from_utf8_lossy(body).into_owned());
            drop(known);
            self.fault(format!("{key} was answered twice: {first} and then {now}"));
        }
    }
}

/// Keys that begin so are sent once.
pub const PASSING: &str = "passing-";

/// The others mean: the same again.
fn is_definite(answer: &Answer) -> bool {
    let text = answer.text();
    // Also of an item of a batch without a key, whose partition was out of reach.
    let says_again = ["\"code\":\"unavailable\"", "\"code\":\"outcome-unknown\"", "idempotency-in-progress"];
    answer.status != 503 && !says_again.iter().any(|code| text.contains(code))
}
