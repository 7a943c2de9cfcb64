//! Engines of several partitions over one store: what one sends another executes, once, whatever fails on the way.
//! Three partitions; instances wait for `paid`, whose message is received where its id is at home. L1.6 L2.3 L5.7 L6.1.

use std::collections::{BTreeMap, BTreeSet};

use wf_core::rows::ScopeState;
use wf_core::{Command, Key, Row, ids};
use wf_engine::{Answered, Hub, Options, Refusal, Request};
use wf_store::{Batch, InboxId, Sent};

use crate::common::across::*;
use crate::common::whole::Left;
use crate::common::*;

fn all_events(left: &[Left], event: &str) -> usize {
    left.iter().map(|left| left.count(event)).sum()
}

fn state(left: &[Left], instance: Key) -> ScopeState {
    let rows = &left[usize::from(ids::partition_of(instance)) - 1].rows;
    let root = rows.iter().find_map(|row| match row {
        Row::Scope(root) if root.key == instance => Some(root.state),
        _ => None,
    });
    root.unwrap()
}

/// A client reads its own writes: an answer leaves when what its command sent is there.
#[tokio::test]
async fn answers_wait_for_what_their_commands_sent() {
    let worlds = Worlds::with(Options { hub: Hub::default(), delivered_wait_ms: 60_000, ..system_options() }).await;
    assert_eq!(worlds.store.inboxes(), [], "the deployment was adopted before it was answered");
    let (here, there) = (1, 2);
    let id = worlds.id_at(there);
    worlds.wait_for_paid(here, &id).await;
    assert_eq!(worlds.store.inboxes(), [], "the subscription stands where its message comes");
    worlds.publish(&id, None, 0).await;
    assert_eq!(worlds.at(here).activate("c").await.len(), 1, "published, then found");
    worlds.until_quiet().await;
    let left = worlds.end().await;
    assert_eq!((all_events(&left, "message.correlated"), all_events(&left, "message.settled")), (1, 1));
}

/// Engines of different nodes share no signals: they look for themselves, and ask the store.
#[tokio::test]
async fn without_signals_it_takes_a_little_longer() {
    let worlds = Worlds::apart().await;
    let id = worlds.id_at(3);
    worlds.wait_for_paid(2, &id).await;
    worlds.publish(&id, None, 0).await;
    assert_eq!(worlds.at(2).activate("c").await.len(), 1);
    worlds.end().await;
}

fn deploy_as(id: &str) -> Request {
    deploy_xml(&format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="{id}" isExecutable="true">
        <startEvent id="s"/><sequenceFlow id="f" sourceRef="s" targetRef="e"/><endEvent id="e"/></process></definitions>"#
    ))
}

/// Also where the deployment's answer did not wait, and no signal tells: who starts finds what was deployed before.
#[tokio::test]
async fn a_start_finds_what_another_partition_has_just_deployed() {
    let worlds = Worlds::hasty().await;
    for n in 0..10 {
        let id = format!("new-{n}");
        worlds.at(1).ok(deploy_as(&id)).await;
        worlds.at(3).ok(start_with(&id, vec![])).await;
    }
    let unknown = worlds.at(3).ask(start_with("never", vec![])).await;
    assert!(matches!(unknown, Err(Refusal::Rejected(_))), "{unknown:?}");
    worlds.until_quiet().await;
    worlds.end().await;
}

/// An owner of the other partition that does not come keeps nobody waiting for ever.
#[tokio::test]
async fn an_answer_waits_only_so_long() {
    let worlds = Worlds::with(Options { delivered_wait_ms: 5, ..system_options() }).await;
    worlds.at(2).stage.hold();
    let id = worlds.id_at(2);
    let instance = worlds.wait_for_paid(1, &id).await;
    worlds.at(2).stage.release();
    worlds.until_quiet().await;
    assert!(worlds.publish(&id, None, 0).await.contains(&instance.to_string()));
    worlds.end().await;
}

/// L5.7: an id that another partition has received is a repeat here, and a misuse with another content; after its window
/// it is new.
#[tokio::test]
async fn l5_7_a_message_id_is_unique_over_all_partitions() {
    let worlds = Worlds::new().await;
    let (one, other) = (worlds.id_at(1), worlds.id_at(2));
    let first = worlds.publish(&one, Some("m-1"), 0).await;
    assert!(first.contains("duplicate: false"), "{first}");
    let second = worlds.publish(&other, Some("m-1"), 0).await;
    assert!(second.contains("duplicate: true, misuse: true"), "{second}");
    let key = |text: &str| text.split("key: ").nth(1).map(|rest| rest.split(',').next().unwrap().to_owned());
    assert_eq!(key(&first), key(&second), "the first message's key");
    let again = keyed("k", publish("paid", &other, Some("m-1"), 0));
    let answers = [worlds.at(2).ask(again.clone()).await.unwrap(), worlds.at(2).ask(again).await.unwrap()];
    assert_eq!((answers[0].replayed, answers[1].replayed), (false, true));
    let left = worlds.end().await;
    assert_eq!(all_events(&left, "message.published"), 1);
}

/// Commands that are poison wherever they are executed.
fn poison(command: &Command) {
    let is_poison = match command {
        Command::Correlate { name, variables, .. } => &**name == "paid" && !variables.is_empty(),
        Command::OpenSubscription { copy } => &*copy.tenant == "other",
        _ => false,
    };
    assert!(!is_poison, "poison");
}

fn poisoned_publish(id: &str) -> Request {
    ask(Command::PublishMessage {
        name: "paid".into(),
        correlation_key: id.into(),
        message_id: None,
        ttl_ms: 0,
        dedup_ms: 1,
        variables: vec![("poison".into(), "1".into())],
    })
}

/// It does not stop the partition: it leaves an incident where the instance is, and what comes behind it is executed.
#[tokio::test]
async fn a_poisoned_command_of_another_partition_is_put_aside() {
    let worlds = Worlds::with(Options { inspect: Some(poison), ..system_options() }).await;
    let id = worlds.id_at(2);
    for _ in 0..2 {
        worlds.wait_for_paid(1, &id).await;
    }
    worlds.at(2).ok(poisoned_publish(&id)).await;
    worlds.until_quiet().await;
    worlds.wait_for_paid(1, &id).await;
    worlds.publish(&id, None, 0).await;
    worlds.until_quiet().await;
    let left = worlds.end().await;
    // The message was given on to the second, which could not take it either.
    assert_eq!((left[0].count("command.quarantined"), left[0].count("incident.created")), (2, 2));
    assert_eq!((left[0].count("message.correlated"), left[0].count("job.created")), (1, 1));
}

/// The store refuses a turn that deletes a row of the inbox: it is found out alone, and put aside.
#[tokio::test]
async fn what_cannot_be_stored_is_put_aside_once() {
    for fault in [Fault::Rejected, Fault::Conflict] {
        let worlds = Worlds::new().await;
        let id = worlds.id_at(2);
        worlds.at(1).stage.rule(move |batch| batch.log.iter().any(|entry| entry.verb == "correlate").then_some(fault));
        let instance = worlds.wait_for_paid(1, &id).await;
        worlds.publish(&id, None, 600_000).await;
        let others = (0..6).map(|_| worlds.at(1).later(start("order")));
        for other in others.collect::<Vec<_>>() {
            other.await.unwrap().unwrap();
        }
        worlds.until_quiet().await;
        worlds.at(1).stage.no_rule();
        let left = worlds.end().await;
        assert_eq!((left[0].count("command.quarantined"), left[0].count("message.correlated")), (1, 0), "{fault:?}");
        assert_eq!((left[0].count("incident.created"), left[0].count("instance.started")), (1, 7), "{fault:?}");
        assert_eq!(state(&left, instance), ScopeState::Active);
    }
}

/// What one store refuses among many, while others of the same turn are from the inbox too: each of those once.
#[tokio::test]
async fn the_others_of_a_refused_turn_are_executed_once() {
    for fault in [Fault::Rejected, Fault::Conflict] {
        let worlds = Worlds::new().await;
        let id = worlds.id_at(2);
        let waiting = [(); 4].map(|()| ());
        for () in waiting {
            worlds.wait_for_paid(1, &id).await;
        }
        worlds
            .at(1)
            .stage
            .rule(move |batch| batch.log.iter().any(|entry| entry.payload.contains("bad")).then_some(fault));
        let begun = worlds.at(1).stage.begun();
        worlds.at(1).stage.hold();
        let first = worlds.at(1).later(start("order"));
        worlds.at(1).stage.until_begun(begun + 1).await;
        let published: Vec<_> = (0..4).map(|_| worlds.at(2).later(publish("paid", &id, None, 0))).collect();
        while worlds.store.inboxes().iter().filter(|sent| sent.target == 1).count() < 4 {
            tokio::task::yield_now().await;
        }
        let bad = worlds.at(1).later(start_with("order", vec![("bad".into(), "1".into())]));
        worlds.at(1).stage.release();
        first.await.unwrap().unwrap();
        assert!(matches!(bad.await.unwrap(), Err(Refusal::Internal { .. })), "{fault:?}");
        for one in published {
            one.await.unwrap().unwrap();
        }
        worlds.until_quiet().await;
        let left = worlds.end().await;
        assert_eq!((left[0].count("message.correlated"), left[0].count("command.quarantined")), (4, 0), "{fault:?}");
    }
}

/// Nobody wrote it, or an older program did: it is told and gone.
#[tokio::test]
async fn what_cannot_be_read_is_put_aside() {
    let worlds = Worlds::new().await;
    let id = InboxId { source: 2, position: 1, n: 1 };
    let sent = Sent { target: 1, id, time: 0, payload: "{\"v\":9}".to_owned() };
    worlds.plant(2, sent).await;
    worlds.until_quiet().await;
    let left = worlds.end().await;
    assert_eq!(left[0].count("command.quarantined"), 1);
}

const FAULTS: [Fault; 6] =
    [Fault::Unavailable, Fault::UnknownApplied, Fault::UnknownLost, Fault::Fenced, Fault::Conflict, Fault::Rejected];
const SEEDS: std::ops::Range<u64> = 0..16;
const ROUNDS: u64 = 8;

/// Messages are published, instances wait and are canceled, engines stop; every store call may fail. At the end each
/// message has reached the process at most once, nobody waits beside a message that it could have, and nothing is on its way.
#[tokio::test]
async fn whatever_fails_each_message_reaches_a_process_once() {
    for seed in SEEDS {
        run(seed).await;
    }
}

async fn run(seed: u64) {
    let mut worlds = Worlds::new().await;
    let mut rng = Rng(seed);
    let mut known = Known::default();
    for round in 0..ROUNDS {
        for partition in 1..=PARTITIONS {
            let mut storm = Rng(rng.number());
            worlds.at(partition).stage.rule(move |batch| storm_over(&mut storm, batch));
        }
        known.round(&worlds, &mut rng, round).await;
        if rng.below(4) == 0 {
            worlds.restart(1 + rng.below(u64::from(PARTITIONS)) as u16).await;
        }
    }
    (1..=PARTITIONS).for_each(|partition| worlds.at(partition).stage.no_rule());
    known.settle(&worlds).await;
    worlds.until_quiet().await;
    let left = worlds.end().await;
    known.check(&left, seed);
}

/// Mostly nothing; opening a partition again must come through now and then.
fn storm_over(storm: &mut Rng, batch: &Batch) -> Option<Fault> {
    let opens = batch.log.iter().any(|entry| entry.verb == "open-epoch");
    (storm.below(if opens { 12 } else { 4 }) == 0).then(|| *storm.one_of(&FAULTS))
}

/// What the clients know. A request has its own key: it is repeated until its answer is definite.
#[derive(Default)]
struct Known {
    requests: BTreeMap<String, (u16, Request)>,
    answers: BTreeMap<String, Answered>,
}

impl Known {
    async fn round(&mut self, worlds: &Worlds, rng: &mut Rng, round: u64) {
        let mut asked = Vec::new();
        for number in 0..4 + rng.below(10) {
            let name = format!("k{round}-{number}");
            let (partition, request) = self.any_request(rng, &name);
            let request = keyed(&name, request);
            self.requests.insert(name.clone(), (partition, request.clone()));
            asked.push((worlds.at(partition).later(request), name));
            if rng.below(3) == 0 {
                tokio::task::yield_now().await;
            }
        }
        for (answer, name) in asked {
            self.hear(&name, answer.await.unwrap());
        }
    }

    fn any_request(&self, rng: &mut Rng, name: &str) -> (u16, Request) {
        let id = rng.below(3).to_string();
        let partition = 1 + rng.below(u64::from(PARTITIONS)) as u16;
        let started: Vec<Key> = self.answers.values().filter_map(started).collect();
        match rng.below(8) {
            0..=3 => (partition, paid(&id)),
            4 if !started.is_empty() => {
                let instance = *rng.one_of(&started);
                (ids::partition_of(instance), cancel(instance))
            }
            _ => (home(&id), publish("paid", &id, Some(name), rng.below(2) as i64 * 600_000)),
        }
    }

    fn hear(&mut self, name: &str, answer: Result<Answered, Refusal>) {
        match answer {
            Ok(answered) => {
                let first = self.answers.entry(name.to_owned()).or_insert_with(|| answered.clone());
                assert_eq!(first.answer, answered.answer, "{name}");
            }
            Err(Refusal::Rejected(_)) => drop(self.requests.remove(name)),
            Err(_) => (),
        }
    }

    async fn settle(&mut self, worlds: &Worlds) {
        for (name, (partition, request)) in self.requests.clone() {
            while self.requests.contains_key(&name) {
                let answer = worlds.at(partition).ask(request.clone()).await;
                let is_definite = matches!(answer, Ok(_) | Err(Refusal::Rejected(_)));
                self.hear(&name, answer);
                if is_definite {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
    }

    fn check(&self, left: &[Left], seed: u64) {
        let published = self.answers.values().filter(|answered| text(answered).starts_with("Published")).count();
        assert_eq!(all_events(left, "message.published"), published, "seed {seed}: published as often as answered");
        let begun = self.answers.values().filter_map(started).count();
        assert_eq!(all_events(left, "instance.started"), begun, "seed {seed}: started as often as answered");
        let (handed, settled) = (all_events(left, "message.handed-over"), all_events(left, "message.settled"));
        assert!(handed >= settled, "seed {seed}: settled at most once");
        assert!(all_events(left, "message.correlated") <= published, "seed {seed}: once per process");
        left.iter().for_each(|left| nothing_is_left(left, seed));
        let rows = || left.iter().flat_map(|left| &left.rows);
        rows_agree(rows, seed);
    }
}

fn nothing_is_left(left: &Left, seed: u64) {
    let handovers = left.rows.iter().filter(|row| matches!(row, Row::Handover(_))).count();
    assert_eq!(handovers, 0, "seed {seed}: handed over to nobody");
}

/// Copies stand beside their originals, one for one, and no live message beside one who waits for it. What the store refused
/// to take alone is an incident of its element: that one waits for an operator.
fn rows_agree<'r, I: Iterator<Item = &'r Row>>(rows: impl Fn() -> I, seed: u64) {
    let stuck: BTreeSet<Key> = rows()
        .filter_map(|row| match row {
            Row::Incident(incident) => Some(incident.element_key),
            _ => None,
        })
        .collect();
    let subscriptions = || {
        rows().filter_map(|row| match row {
            Row::Subscription(row) => Some(row),
            _ => None,
        })
    };
    let originals: BTreeSet<Key> = subscriptions().filter(|row| row.scope != 0).map(|row| row.key).collect();
    let copies: BTreeSet<Key> = subscriptions().filter(|row| row.scope == 0).map(|row| row.key).collect();
    assert!(copies.is_subset(&originals), "seed {seed}: a copy of nothing");
    let waiting = subscriptions().filter(|row| row.scope != 0 && !stuck.contains(&row.host));
    let waiting: Vec<_> = waiting.collect();
    for row in &waiting {
        let is_far = home(&row.correlation_key) != ids::partition_of(row.key);
        assert_eq!(is_far, copies.contains(&row.key), "seed {seed}: {row:?}");
    }
    for row in rows() {
        if let Row::Message(message) = row {
            let waits = waiting.iter().find(|row| row.correlation_key == message.correlation_key);
            assert!(!message.correlated.is_empty() || waits.is_none(), "seed {seed}: {waits:?} beside {message:?}");
        }
    }
}

fn started(answered: &Answered) -> Option<Key> {
    text(answered).strip_prefix("started ").and_then(|key| key.parse().ok())
}
