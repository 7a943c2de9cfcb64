//! Every interleaving of two partitions: in one instances start, are triggered by something else and are canceled; in the
//! other messages are published and expire; between them two lines, each in order. The real decisions, from every state
//! that can be reached. L5.7: a message reaches a process at most once, nobody waits beside a message that it could have,
//! and nothing is left when all has arrived.

use std::collections::{BTreeSet, HashSet, VecDeque};

use wf_core::rows::{Message, ScopeState};
use wf_core::{Command, Key, Row};

use crate::common::across::Across;

/// The instances' partition and the messages'.
const HERE: u16 = 1;
const THERE: u16 = 2;
const TTL_MS: i64 = 100;
const TIMER_MS: i64 = 1_000;

const GATEWAY: &str = "
    start s -> g
    events g -> m, t
    catch m msg=pay key==order -> e
    catch t timer=PT1S -> f
    end e
    end f";
const BESIDE: &str = "
    start s -> a
    job a -> e
    boundary b on=a msg=pay key==order nonint -> f
    boundary t on=a timer=PT1S -> g
    end f
    end g
    end e";

#[derive(Clone)]
struct Sight {
    all: Across,
    key: String,
    instances: Vec<Key>,
    left: Left,
    /// Which message reached which process.
    reached: BTreeSet<(Key, String)>,
    way: Vec<&'static str>,
}

/// What may still happen from outside.
#[derive(Clone, Debug)]
struct Left {
    starts: usize,
    fleeting: usize,
    buffered: usize,
    cancels: usize,
    timers: usize,
    expiries: usize,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Start,
    PublishFleeting,
    PublishBuffered,
    CancelOldest,
    FireTimers,
    Expire,
    ArriveThere,
    ArriveHere,
}

const ACTS: [(Act, &str); 8] = [
    (Act::Start, "start"),
    (Act::PublishFleeting, "publish"),
    (Act::PublishBuffered, "buffer"),
    (Act::CancelOldest, "cancel"),
    (Act::FireTimers, "fire"),
    (Act::Expire, "expire"),
    (Act::ArriveThere, "arrive there"),
    (Act::ArriveHere, "arrive here"),
];

#[test]
fn l5_7_every_interleaving_of_an_instance_and_its_messages() {
    let rows = [
        (GATEWAY, Left { starts: 2, fleeting: 1, buffered: 1, cancels: 1, timers: 1, expiries: 1 }),
        (BESIDE, Left { starts: 2, fleeting: 1, buffered: 1, cancels: 1, timers: 1, expiries: 0 }),
        (GATEWAY, Left { starts: 3, fleeting: 0, buffered: 2, cancels: 1, timers: 0, expiries: 0 }),
        (BESIDE, Left { starts: 2, fleeting: 0, buffered: 2, cancels: 1, timers: 0, expiries: 1 }),
    ];
    for (model, left) in rows {
        let (states, acts) = explore(model, left.clone());
        assert!(states > 500 && acts > 1_000, "{states} states, {acts} acts: {left:?}");
    }
}

fn explore(model: &str, left: Left) -> (usize, usize) {
    let start = Sight::new(model, left);
    let mut seen = HashSet::from([start.state()]);
    let mut open = VecDeque::from([start]);
    let mut acts = 0;
    while let Some(sight) = open.pop_front() {
        for (act, name) in ACTS {
            let mut next = sight.clone();
            next.way.push(name);
            if !next.act(act) {
                continue;
            }
            acts += 1;
            if next.all.is_quiet() {
                next.check_rest();
            }
            if seen.insert(next.state()) {
                open.push_back(next);
            }
        }
    }
    (seen.len(), acts)
}

impl Sight {
    fn new(model: &str, left: Left) -> Sight {
        let mut all = Across::with(2, &[("p", model)]);
        let key = all.key_at(THERE);
        for partition in [HERE, THERE] {
            all.at(partition, |world| (world.is_cold_too, world.is_logged) = (false, false));
        }
        Sight { all, key, instances: Vec::new(), left, reached: BTreeSet::new(), way: Vec::new() }
    }

    /// `false`: it cannot happen here.
    fn act(&mut self, act: Act) -> bool {
        match act {
            Act::Start => take(&mut self.left.starts) && self.start(),
            Act::PublishFleeting => take(&mut self.left.fleeting) && self.publish(0),
            Act::PublishBuffered => take(&mut self.left.buffered) && self.publish(TTL_MS),
            Act::CancelOldest => take(&mut self.left.cancels) && self.cancel(),
            Act::FireTimers => take(&mut self.left.timers) && self.pass(HERE, TIMER_MS),
            Act::Expire => take(&mut self.left.expiries) && self.pass(THERE, TTL_MS),
            Act::ArriveThere => self.arrive(HERE, THERE),
            Act::ArriveHere => self.arrive(THERE, HERE),
        }
    }

    fn start(&mut self) -> bool {
        let variables = format!("order=\"{}\"", self.key);
        self.instances.push(self.all.at(HERE, |world| world.start("p", &variables)));
        true
    }

    fn publish(&mut self, ttl_ms: i64) -> bool {
        let waiting = self.copies(None);
        let (_, reached) = self.all.publish("pay", &self.key, ttl_ms, "");
        assert_eq!(reached.len(), usize::from(waiting > 0), "{:?}", self.way);
        true
    }

    fn cancel(&mut self) -> bool {
        let live = |instance: &Key| self.all.world(HERE).state(*instance) == ScopeState::Active;
        let Some(oldest) = self.instances.iter().copied().find(live) else { return false };
        self.all.at(HERE, |world| world.cancel(oldest)).is_ok()
    }

    fn pass(&mut self, partition: u16, ms: i64) -> bool {
        self.all.at(partition, |world| world.advance(ms));
        true
    }

    fn arrive(&mut self, from: u16, to: u16) -> bool {
        let Some(command) = self.all.peek(from, to) else { return false };
        match command {
            Command::Correlate { subscription, message, .. } => self.correlate(subscription, message),
            Command::SettleCorrelation { subscription, message, accepted: false } => {
                self.refuse(subscription, message);
            }
            _ => drop(self.all.deliver(from, to)),
        }
        true
    }

    /// Taken or refused, and never twice by one process.
    fn correlate(&mut self, subscription: Key, message: Key) {
        let process = self.process_of(subscription);
        self.all.at(HERE, |world| world.trace());
        self.all.deliver(THERE, HERE);
        let told = self.all.at(HERE, |world| world.trace());
        match told.contains("message.correlated") {
            true => {
                let is_first = self.reached.insert((message, process.unwrap()));
                assert!(is_first, "{message} reaches its process twice: {:?}", self.way);
            }
            false => assert!(told.starts_with("message.rejected"), "{told} {:?}", self.way),
        }
    }

    fn process_of(&self, subscription: Key) -> Option<String> {
        let own = self.all.subscriptions(HERE);
        own.iter().find(|row| row.key == subscription).map(|row| row.process_id.to_string())
    }

    /// Another that waits gets it at once.
    fn refuse(&mut self, subscription: Key, message: Key) {
        let waiting = self.copies(Some(subscription));
        self.all.deliver(HERE, THERE);
        let again = self.all.handovers(THERE).iter().filter(|row| row.message == message).count();
        assert_eq!(again, usize::from(waiting > 0), "the message is lost: {:?}", self.way);
    }

    fn copies(&self, but: Option<Key>) -> usize {
        self.all.subscriptions(THERE).iter().filter(|copy| Some(copy.key) != but).count()
    }

    /// Nothing is on its way.
    fn check_rest(&self) {
        self.all.check_quiet();
        let now = self.all.world(THERE).now;
        let buffered = self.all.messages(THERE);
        for message in &buffered {
            let is_noted = !message.correlated.is_empty();
            let has_reached = self.reached.iter().any(|(key, _)| *key == message.key);
            assert_eq!(is_noted, has_reached, "{message:?} {:?}", self.way);
        }
        let is_free = |message: &&Message| message.expires_at > now && message.correlated.is_empty();
        let waits = self.all.subscriptions(HERE);
        if let Some(free) = buffered.iter().find(is_free) {
            assert!(waits.is_empty(), "{waits:?} waits beside {free:?}: {:?}", self.way);
        }
    }

    /// Everything that tells two states apart; positions and the order of what is past do not.
    fn state(&self) -> String {
        let rows = |partition| {
            let world = self.all.world(partition);
            format!("{:?} {}", world.rows.values().filter(|row| is_state(row)).collect::<Vec<_>>(), world.now)
        };
        format!("{} {} {} {:?} {:?}", rows(HERE), rows(THERE), self.all.on_the_way(), self.left, self.reached)
    }
}

fn is_state(row: &Row) -> bool {
    !matches!(row, Row::Definition(_) | Row::StartSubscription(_))
}

fn take(left: &mut usize) -> bool {
    let has = *left > 0;
    *left = left.saturating_sub(1);
    has
}
