//! Deployment, versions, starts, tenants, epochs. Numbers are those of the acceptance list.

use wf_core::outcome::Noun;
use wf_core::{Command, Rejection, Row, ids};

use crate::common::{World, model};

const ONE: &str = "start s -> e\nend e";
const TWO: &str = "start s -> t\ntask t -> e\nend e";

/// Cases #21 and #22: the same bytes as the latest version are no new one, whatever the file's name; older bytes are.
#[test]
fn versions() {
    let mut world = World::new();
    let (one, two) = (model::xml("p", ONE), model::xml("p", TWO));
    let mut deploy = |name: &str, xml: &str| {
        let deployed = world.deploy_all(&[(name, xml)]).unwrap().remove(0);
        (deployed.version, deployed.duplicate, deployed.key)
    };
    let first = deploy("a.bpmn", &one);
    assert_eq!((first.0, first.1), (1, false));
    assert_eq!(deploy("a.bpmn", &one), (1, true, first.2));
    assert_eq!(deploy("b.bpmn", &one), (1, true, first.2));
    let second = deploy("a.bpmn", &two);
    let third = deploy("a.bpmn", &one);
    assert_eq!([second.0, third.0], [2, 3]);
    assert!(!second.1 && !third.1 && first.2 != third.2);
}

/// Case #23: all or none; twins in one deployment are refused.
#[test]
fn all_or_none() {
    let mut world = World::new();
    let one = model::xml("p", ONE);
    let refused = world.deploy_all(&[("a.bpmn", &model::xml("q", ONE)), ("b.bpmn", &one), ("c.bpmn", &one)]);
    assert!(matches!(refused, Err(Rejection::Invalid { field: "resources", .. })), "{refused:?}");
    assert!(world.rows.is_empty());
    let both = world.deploy_all(&[("a.bpmn", &model::xml("q", ONE)), ("b.bpmn", &one)]).unwrap();
    assert_eq!(both.iter().map(|deployed| &*deployed.process_id).collect::<Vec<_>>(), ["q", "p"]);
}

/// The latest, or the one asked for; of this tenant.
#[test]
fn what_is_started() {
    let mut world = World::with(&[("p", ONE), ("p", TWO), ("m", "start s msg=go -> e\nend e")]);
    let version = |world: &mut World, version| world.start_with("p", version, "", None).map(|started| started.version);
    assert_eq!(version(&mut world, None), Ok(2));
    assert_eq!(version(&mut world, Some(1)), Ok(1));
    assert_eq!(version(&mut world, Some(3)), Err(Rejection::NotFound(Noun::Definition)));
    assert_eq!(version(&mut world, Some(0)), Err(Rejection::NotFound(Noun::Definition)));
    let by_message = world.start_with("m", None, "", None);
    assert!(matches!(by_message, Err(Rejection::Invalid { .. })), "{by_message:?}");
    world.tenant = "other".into();
    assert_eq!(version(&mut world, None), Err(Rejection::NotFound(Noun::Definition)));
    assert_eq!(world.deploy_model("p", TWO).version, 1);
    assert_eq!(version(&mut world, None), Ok(1));
}

/// L1.9: one live instance per value, across versions; free again at its end; other values are no twins.
#[test]
fn uniqueness() {
    let task = "start s -> a\njob a -> e\nend e";
    let mut world = World::with(&[("p", task)]);
    let first = world.start_unique("p", "order=1", "order").unwrap();
    world.deploy_model("p", &format!("{task}\ntask unused"));
    let twin = world.start_unique("p", "order=1; x=2", "order").unwrap();
    assert_eq!((twin.key, twin.version, twin.existing), (first.key, 1, true));
    assert!(!world.start_unique("p", "order=\"1\"", "order").unwrap().existing);
    assert!(!world.start_unique("p", "order=2; other=1", "other").unwrap().existing);
    // The value is frozen at the start.
    world.set(first.key, None, "order=3").unwrap();
    assert!(world.start_unique("p", "order=1", "order").unwrap().existing);
    world.work("a", "");
    let next = world.start_unique("p", "order=1", "order").unwrap();
    assert!(!next.existing && next.key != first.key);
}

/// Messages start the latest version only; its other start messages are closed. Other tenants hear nothing.
#[test]
fn start_subscriptions() {
    let mut world = World::with(&[("p", "start s msg=go -> e\nstart z msg=run -> e\nend e")]);
    assert_eq!([world.publish("go", "", 0, ""), world.publish("run", "", 0, "")], [1, 1]);
    world.deploy_model("p", "start s msg=go -> e\nend e");
    assert_eq!([world.publish("go", "", 0, ""), world.publish("run", "", 0, "")], [1, 0]);
    assert_eq!(world.count(|row| matches!(row, Row::StartSubscription(_))), 1);
    world.tenant = "other".into();
    assert_eq!(world.publish("go", "", 0, ""), 0);
}

/// A store that was restored never gives an id of the lost history to something else.
#[test]
fn a_new_epoch_lifts_the_keys() {
    let mut world = World::with(&[("p", ONE)]);
    let before = world.start("p", "");
    for semantics in 1..=ids::SEMANTICS {
        let (epoch, previous_position) = (2, world.position);
        let command = Command::OpenEpoch { epoch, previous_position, previous_digest: [0; 16], semantics };
        assert!(world.own(command));
        let after = world.start("p", "");
        assert_eq!(after, ids::key(crate::common::PARTITION, ids::epoch_floor(world.now, semantics)));
        assert!(after > before);
    }
    for now in [ids::EPOCH_ZERO_MS, 1_800_000_000_999, 4_102_444_800_000] {
        assert!(ids::epoch_floor(now, 2) >= ids::epoch_floor(now, 1), "a newer program lifts at least as far");
    }
    assert!(ids::epoch_floor(1_800_000_000_001, 2) > ids::epoch_floor(1_800_000_000_000, 2), "within a second too");
}
