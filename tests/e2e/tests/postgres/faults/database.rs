//! The server goes away and comes back: killed, hanging, without a connection to give.

use std::collections::BTreeSet;

use e2e::crash::started;
use e2e::node::Node;
use e2e::until;
use servers::Options;

use crate::session::Session;

use super::{SOME, Server, two_nodes, withstands};

const DEATHS: usize = 3;
const HANGS: usize = 3;

/// L1.6: all processes of the server at once, while commits are on their way.
#[test]
fn l1_6_the_database_is_killed_under_load_and_comes_back() {
    let server = Server::start();
    withstands(&server.setup(), 0xDB, |setup, world| {
        let (one, two) = two_nodes(setup, world)?;
        for _ in 0..DEATHS {
            world.goes_on(SOME)?;
            server.cluster.kill9();
            world.is_refused(SOME)?;
            server.cluster.restart();
        }
        world.goes_on(SOME)?;
        Ok(vec![one, two])
    });
}

/// Also a server that is restarted in peace, as an update does it.
#[test]
fn the_database_is_restarted_under_load() {
    let server = Server::start();
    withstands(&server.setup(), 0x5E57, |setup, world| {
        let (one, two) = two_nodes(setup, world)?;
        for _ in 0..DEATHS {
            world.goes_on(SOME)?;
            server.cluster.restart();
        }
        world.goes_on(SOME)?;
        Ok(vec![one, two])
    });
}

/// Connections stay open and nothing moves; leases run out meanwhile.
#[test]
fn the_database_hangs_and_goes_on() {
    let server = Server::start();
    withstands(&server.setup(), 0x4A46, |setup, world| {
        let (one, two) = two_nodes(setup, world)?;
        world.goes_on(SOME)?;
        server.cluster.pause();
        world.is_refused(1)?;
        server.cluster.resume();
        world.goes_on(SOME)?;
        Ok(vec![one, two])
    });
}

/// Longer than the leases: nobody serves anything meanwhile, and afterwards nothing is left that nobody serves.
#[test]
fn every_partition_is_served_again_after_a_hang_longer_than_the_leases() {
    let server = Server::start();
    let setup = server.setup().config("[cluster]\nlease_ms = 1500\nlook_ms = 50");
    let nodes = [setup.start(), setup.clone().named("two").start()];
    for _ in 0..HANGS {
        until("every partition is served", || (open_partitions(&nodes).len() == 8).then_some(()));
        server.cluster.pause();
        until("nobody serves anything", || open_partitions(&nodes).is_empty().then_some(()));
        server.cluster.resume();
    }
    until("every partition is served", || (open_partitions(&nodes).len() == 8).then_some(()));
    nodes.into_iter().for_each(|node| assert!(node.stop().success()));
}

fn open_partitions(nodes: &[Node]) -> BTreeSet<u64> {
    let bodies = nodes.iter().map(|node| node.api.get("/readyz").json());
    let partitions = bodies.flat_map(|body| body["partitions"].as_array().cloned().unwrap_or_default());
    let open = partitions.filter(|one| one["state"] == "open").map(|one| one["partition"].as_u64());
    open.flatten().collect()
}

/// Strangers take every connection there is, and those of the node are ended: it gets no other one until they go.
#[test]
fn all_connections_are_taken_and_given_back() {
    let server =
        Server::with(Options::default().set("max_connections", "30").set("superuser_reserved_connections", "2"));
    let role = "CREATE ROLE app LOGIN; GRANT ALL ON SCHEMA public TO app; CREATE ROLE stranger LOGIN";
    server.rows(role);
    let as_role = |role: &str| server.url.replace("postgres@", &format!("{role}@"));
    server.cluster.execute(&format!("ALTER DATABASE {} OWNER TO app", database_of(&server.url)));
    withstands(&server.setup().by(&as_role("app")), 0xC044, |setup, world| {
        let node = started(setup, world)?;
        world.goes_on(SOME)?;
        // Strangers are quicker than the node.
        server.rows("ALTER ROLE app CONNECTION LIMIT 0");
        server.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
        let taken = take_all(&as_role("stranger"));
        server.rows("ALTER ROLE app CONNECTION LIMIT -1");
        world.is_refused(SOME)?;
        drop(taken);
        world.goes_on(SOME)?;
        Ok(vec![node])
    });
}

fn take_all(url: &str) -> Vec<Session> {
    std::iter::from_fn(|| Session::try_open(url).ok()).collect()
}

fn database_of(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or_default()
}
