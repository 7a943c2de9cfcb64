//! Nodes: killed and not replaced, stopped in their tracks beyond their lease, sent home. Killed and replaced: `cases/matrix.rs`.

use std::time::Instant;

use e2e::crash::started;
use e2e::until;

use super::{SOME, Server, two_nodes, withstands};

/// The other node takes over all that the dead one had.
#[test]
fn l1_6_a_node_is_killed_and_the_other_one_takes_over() {
    let server = Server::start();
    withstands(&server.setup(), 0x0E, |setup, world| {
        let (one, two) = two_nodes(setup, world)?;
        shared(&server);
        world.goes_on(SOME)?;
        let dead = one.api.clone();
        let begun = Instant::now();
        one.kill();
        world.part(&dead);
        until("a take-over", || (server.owned_by("one") == 0 && server.free() == 0).then_some(()));
        println!("take-over after a kill: {} ms", begun.elapsed().as_millis());
        world.goes_on(SOME)?;
        let back = started(setup, world)?;
        shared(&server);
        world.goes_on(SOME)?;
        Ok(vec![back, two])
    });
}

/// L2.4: an owner that slept through its lease wakes up with requests in its hands, and everything that it owned is somebody
/// else's. Nothing that it says is false, and nothing is done twice.
#[test]
fn l2_4_an_owner_that_slept_through_its_lease_is_fenced() {
    let server = Server::start();
    withstands(&server.setup(), 0x51EE, |setup, world| {
        let (one, two) = two_nodes(setup, world)?;
        for _ in 0..2 {
            shared(&server);
            world.goes_on(SOME)?;
            one.process.signal("STOP");
            world.part(&one.api);
            until("a take-over", || (server.owned_by("one") == 0 && server.free() == 0).then_some(()));
            world.goes_on(SOME)?;
            one.process.signal("CONT");
            world.meet(&one.api, e2e::crash::counts::ANY_MOMENT);
        }
        shared(&server);
        world.goes_on(SOME)?;
        Ok(vec![one, two])
    });
}

/// A stop hands over; nobody waits for a lease to run out.
#[test]
fn a_node_that_is_stopped_hands_over_at_once() {
    let server = Server::start();
    withstands(&server.setup(), 0x570, |setup, world| {
        let (mut one, two) = two_nodes(setup, world)?;
        shared(&server);
        world.goes_on(SOME)?;
        let begun = Instant::now();
        one.process.signal("TERM");
        world.part(&one.api);
        until("a hand-over", || (server.owned_by("one") == 0 && server.free() == 0).then_some(()));
        println!("hand-over at a stop: {} ms", begun.elapsed().as_millis());
        let status = one.process.ends();
        assert!(status.success(), "{status}");
        world.goes_on(SOME)?;
        Ok(vec![two])
    });
}

fn shared(server: &Server) {
    until("a share each", || (server.owned_by("one") > 0 && server.owned_by("two") > 0).then_some(()));
}
