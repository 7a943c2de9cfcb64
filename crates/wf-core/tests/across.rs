//! An instance and its message in two partitions: the same cases as in one, with what is sent between told apart.
//! Partition 1 deploys and has the instances, unless a case says otherwise. L5.7, L6.1, L2.3.

use expect_test::expect;
use wf_core::command::Quarantined;
use wf_core::rows::ScopeState;
use wf_core::{Command, Outcome, Row};

use crate::common::across::Across;
use crate::common::model;

const WAITING: &str = "
    start s -> r
    receive r msg=pay key==order -> e
    end e";

/// Beside a task, as often as it comes.
const BESIDE: &str = "
    start s -> a
    job a -> e
    boundary b on=a msg=pay key==order nonint -> side
    job side -> f
    end f
    end e";

const INTERRUPTED: &str = "
    start s -> a
    job a -> e
    boundary b on=a msg=pay key==order -> f
    end f
    end e";

const GATEWAY: &str = "
    start s -> g
    events g -> m, t
    catch m msg=pay key==order -> e
    catch t timer=PT1S -> f
    end e
    end f";

const STARTED: &str = "
    start s msg=pay -> a
    job a -> e
    end e";

fn start(all: &mut Across, process_id: &str, key: &str) -> u64 {
    all.at(1, |world| world.start(process_id, &format!("order=\"{key}\"")))
}

/// The instances of partition 1 wait for what partition 2 receives.
fn far(models: &[(&str, &str)]) -> (Across, String) {
    let all = Across::with(3, models);
    let key = all.key_at(2);
    (all, key)
}

/// The whole story, once: what the message's partition tells and what the instance's does.
#[test]
fn a_message_reaches_an_instance_elsewhere() {
    let (mut all, key) = far(&[("p", WAITING)]);
    let instance = start(&mut all, "p", &key);
    all.deliver_all();
    let (_, reached) = all.publish("pay", &key, 0, "n=1");
    assert_eq!(reached, [instance]);
    assert_eq!(all.world(1).state(instance), ScopeState::Active);
    all.deliver_all();
    all.check_quiet();
    assert_eq!(all.world(1).state(instance), ScopeState::Completed);
    assert_eq!(all.world(1).variables(instance), format!("{{n:1,order:\"{key}\"}}"));
    let story = all.at(1, |world| world.trace()) + "--\n" + &all.at(2, |world| world.trace());
    let story = story.replace(&key, "KEY");
    expect![[r#"
        instance.started p v1 {order:"KEY"}
        element.completed s
        subscription.opened pay 'KEY'
        element.activated r
        message.correlated pay to r
        subscription.closed pay
        variables.set {n:1}
        element.completed r
        element.completed e
        instance.completed p
        --
        subscription.announced pay 'KEY'
        message.published pay 'KEY'
        message.handed-over pay
        message.settled true
    "#]]
    .assert_eq(&story);
}

/// With one partition nothing is sent, and nothing told that was not told before.
#[test]
fn alone_nothing_is_sent() {
    let mut all = Across::with(1, &[("p", WAITING), ("q", STARTED)]);
    let instance = start(&mut all, "p", "7");
    assert_eq!(all.publish("pay", "7", 0, "").1.len(), 2);
    assert!(all.is_quiet());
    assert_eq!(all.world(1).state(instance), ScopeState::Completed);
}

/// (model, how many of three buffered messages it takes, from whichever side comes first).
#[test]
fn buffered_messages_meet_what_opens_later() {
    for (model, taken) in [(WAITING, 1), (BESIDE, 3), (INTERRUPTED, 1), (GATEWAY, 1)] {
        let (mut all, key) = far(&[("p", model)]);
        for number in 1..=3 {
            assert_eq!(all.publish("pay", &key, 1_000, &format!("n={number}")).1, []);
        }
        let instance = start(&mut all, "p", &key);
        all.deliver_all();
        all.check_quiet();
        let had = all.messages(2).iter().filter(|message| !message.correlated.is_empty()).count();
        assert_eq!(had, taken, "{model}");
        let last = if taken == 3 { 3 } else { 1 };
        assert_eq!(all.world(1).variables(instance), format!("{{n:{last},order:\"{key}\"}}"), "{model}");
    }
}

/// Case #4: one of two waiting instances; but every process, and a start event where the message is.
#[test]
fn once_per_process() {
    let (mut all, key) = far(&[("p", WAITING), ("q", BESIDE), ("started", STARTED)]);
    let waiting = [start(&mut all, "p", &key), start(&mut all, "p", &key), start(&mut all, "q", &key)];
    all.deliver_all();
    let (_, reached) = all.publish("pay", &key, 1_000, "");
    all.deliver_all();
    all.check_quiet();
    assert_eq!(reached[..2], [waiting[0], waiting[2]]);
    assert_eq!(wf_core::ids::partition_of(reached[2]), 2, "started where the message is");
    assert_eq!(all.world(1).state(waiting[1]), ScopeState::Active);
    assert_eq!(all.messages(2)[0].correlated.len(), 3);
}

/// Case #8: who is being terminated refuses; the next subscription gets it, also one beside the message, else its start.
#[test]
fn what_one_refuses_the_next_one_gets() {
    for ttl_ms in [0, 1_000] {
        let (mut all, key) = far(&[("p", WAITING)]);
        let first = start(&mut all, "p", &key);
        let second = all.at(2, |world| world.start("p", &format!("order=\"{key}\"")));
        all.deliver_all();
        assert_eq!(all.publish("pay", &key, ttl_ms, "").1, [first]);
        all.at(1, |world| world.cancel(first).unwrap());
        all.deliver_all();
        all.check_quiet();
        assert_eq!(all.world(2).state(second), ScopeState::Completed, "{ttl_ms}");
        let noted: Vec<usize> = all.messages(2).iter().map(|message| message.correlated.len()).collect();
        assert_eq!(noted, if ttl_ms == 0 { vec![] } else { vec![1] });
    }
}

#[test]
fn what_all_refuse_starts_an_instance_or_stays() {
    let started = format!("{WAITING}\n start t msg=pay -> e");
    let (mut all, key) = far(&[("p", &started), ("q", WAITING)]);
    let gone = ["p", "q"].map(|process_id| start(&mut all, process_id, &key));
    all.deliver_all();
    assert_eq!(all.publish("pay", &key, 1_000, "n=1").1, gone);
    gone.iter().for_each(|instance| drop(all.at(1, |world| world.cancel(*instance).unwrap())));
    all.deliver_all();
    all.check_quiet();
    assert!(all.at(2, |world| world.trace()).contains("instance.started p v1 {n:1}"));
    assert_eq!(all.messages(2)[0].correlated, ["p".into()], "q may have it still");
    let next = start(&mut all, "q", &key);
    all.deliver_all();
    assert_eq!(all.world(1).state(next), ScopeState::Completed);
}

/// Six hundred tasks, and one that was entered after them: it is not reached in the first slice.
const LATE: &str = "
    start s -> fork
    and fork -> a, x
    job a -> e
    boundary note on=a msg=note key==near nonint -> many
    job many -> e1
    job x -> y
    job y -> e2
    boundary pay on=y msg=pay key==order nonint -> side
    job side -> e3
    end e
    end e1
    end e2
    end e3";

/// A scope in its slices refuses at once, although its subscription still stands.
#[test]
fn a_scope_that_is_being_terminated_refuses() {
    let (mut all, key) = far(&[("p", LATE)]);
    for partition in 1..=2 {
        all.at(partition, |world| (world.is_cold_too, world.is_checked) = (false, false));
    }
    let near = all.key_at(1);
    let variables = format!("order=\"{key}\";near=\"{near}\"");
    let first = all.at(1, |world| world.start("p", &variables));
    (0..600).for_each(|_| assert_eq!(all.publish("note", &near, 0, "").1, [first]));
    all.at(1, |world| world.work("x", ""));
    let second = all.at(1, |world| world.start("p", &variables));
    all.at(1, |world| world.work("x", ""));
    all.deliver_all();
    all.at(1, |world| world.cancel(first).unwrap());
    assert_eq!(all.world(1).state(first), ScopeState::Terminating);
    assert_eq!(all.subscriptions(1).iter().filter(|open| &*open.message == "pay").count(), 2);
    assert_eq!(all.publish("pay", &key, 0, "").1, [first]);
    all.deliver_all();
    all.at(1, |world| world.follow_ups());
    all.deliver_all();
    all.check_quiet();
    let side = all.at(1, |world| world.activate("side", "w", 10));
    assert_eq!(side.iter().map(|job| job.job.root).collect::<Vec<_>>(), [second]);
}

/// Only partition 1 deploys; an older version that comes late, or again, starts nothing by messages.
#[test]
fn definitions_are_adopted_once_and_in_any_order() {
    let mut all = Across::with(2, &[("p", STARTED)]);
    let adopt = |all: &mut Across, lines: &str| {
        all.at(1, |world| world.deploy(&model::xml("p", lines)).unwrap());
        let sent = all.take(1, 2).unwrap();
        assert!(all.is_quiet());
        sent
    };
    let second = adopt(&mut all, &STARTED.replace("msg=pay", "msg=bill"));
    let third = adopt(&mut all, &STARTED.replace("msg=pay", "msg=due"));
    assert!(adopt_is_applied(&mut all, &third) && adopt_is_applied(&mut all, &second));
    assert!(!adopt_is_applied(&mut all, &third) && !adopt_is_applied(&mut all, &second));
    let starts = |all: &Across, partition| -> Vec<String> {
        let rows = all.world(partition).rows.values();
        rows.filter_map(|row| match row {
            Row::StartSubscription(row) => Some(format!("{} {}", row.message, row.definition)),
            _ => None,
        })
        .collect()
    };
    assert_eq!(starts(&all, 2), starts(&all, 1));
    let definitions = |all: &Across, partition| {
        all.world(partition).rows.values().filter(|row| matches!(row, Row::Definition(_))).cloned().collect::<Vec<_>>()
    };
    assert_eq!(definitions(&all, 2), definitions(&all, 1));
    assert!(all.at(2, |world| world.start_with("p", Some(1), "", None).is_err()), "it has no none start");
}

fn adopt_is_applied(all: &mut Across, command: &Command) -> bool {
    all.at(2, |world| world.own(command.clone()))
}

/// Deploying the same again sends nothing.
#[test]
fn a_duplicate_is_not_sent() {
    let mut all = Across::with(2, &[("p", WAITING)]);
    all.at(1, |world| world.deploy(&model::xml("p", WAITING)).unwrap());
    assert!(all.is_quiet());
}

/// L2.3: each partition's log alone gives its state again.
#[test]
fn each_log_replays_alone() {
    let (mut all, key) = far(&[("p", WAITING), ("q", BESIDE), ("started", STARTED)]);
    for round in 0..4 {
        start(&mut all, "p", &key);
        let beside = start(&mut all, "q", &key);
        all.publish("pay", &key, 1_000, "n=1");
        if round % 2 == 0 {
            all.at(1, |world| world.cancel(beside).unwrap());
        }
        all.deliver_all();
    }
    all.check_quiet();
    for partition in 1..=3 {
        assert_eq!(all.world(partition).replayed(), all.world(partition).digest, "{partition}");
    }
}

/// What could not be taken is an incident of the element; resolved, it waits again and meets what is buffered.
#[test]
fn a_poisoned_hand_over_is_put_aside() {
    let (mut all, key) = far(&[("p", WAITING)]);
    let instance = start(&mut all, "p", &key);
    all.deliver_all();
    all.publish("pay", &key, 1_000, "n=1");
    let Some(Command::Correlate { subscription, message, .. }) = all.take(2, 1) else { panic!() };
    let what = Quarantined::Handover { subscription, message };
    all.at(1, |world| assert!(world.own(Command::Quarantine { what, reason: "boom".into() })));
    all.deliver_all();
    assert_eq!(all.messages(2)[0].correlated, []);
    assert_eq!(all.world(1).incidents().len(), 1);
    all.at(1, |world| world.resolve(None).unwrap());
    all.deliver_all();
    all.check_quiet();
    assert_eq!(all.world(1).state(instance), ScopeState::Completed);
}

/// A copy that could not be opened is an incident where the instance is.
#[test]
fn a_poisoned_copy_is_told_to_its_instance() {
    let (mut all, key) = far(&[("p", WAITING)]);
    let instance = start(&mut all, "p", &key);
    let Some(Command::OpenSubscription { copy }) = all.take(1, 2) else { panic!() };
    let what = Quarantined::Copy(copy.key);
    all.at(2, |world| assert!(world.own(Command::Quarantine { what, reason: "boom".into() })));
    all.deliver_all();
    all.at(1, |world| world.resolve(None).unwrap());
    all.deliver_all();
    all.check_quiet();
    assert_eq!(all.publish("pay", &key, 0, "").1, [instance]);
}

/// A settlement that could not be done leaves the message to whoever comes next.
#[test]
fn a_poisoned_settlement_is_put_aside() {
    let (mut all, key) = far(&[("p", BESIDE)]);
    let instance = start(&mut all, "p", &key);
    all.deliver_all();
    all.publish("pay", &key, 1_000, "n=1");
    all.at(1, |world| world.cancel(instance).unwrap());
    all.deliver(2, 1);
    all.deliver(1, 2);
    let Some(Command::SettleCorrelation { subscription, message, .. }) = all.take(1, 2) else { panic!() };
    let what = Quarantined::Handover { subscription, message };
    all.at(2, |world| assert!(world.own(Command::Quarantine { what, reason: "boom".into() })));
    all.deliver_all();
    all.check_quiet();
    let next = start(&mut all, "p", &key);
    all.deliver_all();
    assert_eq!(all.world(1).variables(next), format!("{{n:1,order:\"{key}\"}}"));
}

/// An incident on the way out keeps the instance from waiting twice, and its copy from standing for ever.
#[test]
fn an_incident_beside_a_hand_over_leaves_no_copy() {
    let (mut all, key) = far(&[("p", WAITING)]);
    let instance = start(&mut all, "p", &key);
    all.deliver_all();
    all.publish("pay", &key, 0, "");
    let subscription = all.subscriptions(1)[0].key;
    let what = Quarantined::Subscription(subscription);
    all.at(1, |world| assert!(world.own(Command::Quarantine { what, reason: "boom".into() })));
    all.at(1, |world| world.resolve(None).unwrap());
    all.deliver_all();
    all.check_quiet();
    assert_eq!(all.world(1).state(instance), ScopeState::Completed);
    assert_eq!(all.subscriptions(2), []);
}

/// A late or repeated settlement, withdrawal or opening changes nothing.
#[test]
fn repeats_are_inert() {
    let (mut all, key) = far(&[("p", BESIDE)]);
    start(&mut all, "p", &key);
    all.deliver_all();
    let copy = all.subscriptions(2)[0].clone();
    let (subscription, message) = (copy.key, 1);
    let inert = [
        Command::OpenSubscription { copy },
        Command::CloseSubscription { subscription: 7, root: 0 },
        Command::SettleCorrelation { subscription, message, accepted: false },
    ];
    for command in inert {
        assert!(!all.at(2, |world| world.own(command.clone())), "{command:?}");
    }
    let late = Command::Correlate {
        subscription: 7,
        message: wf_core::ids::key(2, 9),
        tenant: "default".into(),
        name: "pay".into(),
        variables: Vec::new(),
    };
    let refused = all.at(1, |world| world.run(late));
    assert_eq!(refused, Ok(Outcome::Done { applied: true }));
    assert!(matches!(all.take(1, 2), Some(Command::SettleCorrelation { accepted: false, .. })));
}
