//! Issue 4, item 5: what happens to servers, lines and nodes, each on a private cluster and under the load of the crash
//! matrix. Customers and workers repeat themselves through all of it; at the end the checkers of `e2e::crash::check` ask
//! them, the provider, the receiver and the store. Read `nodes.rs`, `database.rs`, `line.rs`, `hands.rs`, `room.rs`.

mod nodes;
mod database;
mod line;
mod hands;
mod room;

use e2e::crash::counts::Counts;
use e2e::crash::world::World;
use e2e::crash::{started, withstand};
use e2e::node::{Node, Setup};
use servers::{Cluster, Options};

/// Enough that every customer and every worker has been heard a few times.
const SOME: u64 = 150;

/// What each fault returns: nodes that live, or what did not come.
type Nodes = Result<Vec<Node>, String>;

/// A cluster as PostgreSQL is by default, and a database on it.
struct Server {
    cluster: Cluster,
    url: String,
}

impl Server {
    fn start() -> Server {
        Server::with(Options::default())
    }

    fn with(options: Options) -> Server {
        let cluster = options.start();
        let url = cluster.create_database(None);
        Server { cluster, url }
    }

    fn setup(&self) -> Setup {
        Setup::at(&self.url)
    }

    /// How many partitions a living node of this name owns.
    fn owned_by(&self, name: &str) -> usize {
        self.count(&format!("n.name = '{name}'"))
    }

    fn free(&self) -> usize {
        self.count("n.id IS NULL")
    }

    fn count(&self, what: &str) -> usize {
        let owners = "onceflow.partition p LEFT JOIN onceflow.node n \
            ON n.id = p.owner AND n.lease_until > extract(epoch FROM clock_timestamp()) * 1000";
        self.rows(&format!("SELECT count(*) FROM {owners} WHERE {what}"))[0][0].parse().expect("a number")
    }

    /// In the engine's database.
    fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        servers::execute(&self.url, sql)
    }
}

#[track_caller]
fn withstands(store: &Setup, seed: u64, trouble: impl FnOnce(&Setup, &World) -> Nodes) {
    let counts = Counts::default();
    if let Err(broken) = withstand(store, seed, &counts, trouble) {
        panic!("{broken}");
    }
}

fn two_nodes(setup: &Setup, world: &World) -> Result<(Node, Node), String> {
    Ok((started(setup, world)?, started(&setup.clone().named("two"), world)?))
}
