//! Several databases: two private clusters, two nodes on both, and tenants that each live whole in one of them.

use std::collections::{BTreeMap, BTreeSet};

use e2e::api::{Api, text};
use e2e::models::one_task;
use e2e::nats::Nats;
use e2e::node::{Ended, Node, Setup, run, wf};
use e2e::stream::{all_shipped, sink, stream};
use e2e::until;
use serde_json::json;
use servers::Cluster;

const TENANTS: [&str; 4] = ["ada", "bob", "cid", "dot"];

struct Two {
    clusters: [Cluster; 2],
    urls: [String; 2],
}

impl Two {
    fn start() -> Two {
        let clusters = [Cluster::start(), Cluster::start()];
        let urls = [clusters[0].create_database(None), clusters[1].create_database(None)];
        Two { clusters, urls }
    }

    fn setup(&self) -> Setup {
        Setup::at(&self.urls.join(","))
    }

    /// Of what the database holds of a tenant, in every table that has tenants.
    fn rows_of(&self, database: usize, tenant: &str) -> usize {
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM onceflow.{table} WHERE tenant = '{tenant}'");
            servers::execute(&self.urls[database], &sql)[0][0].parse::<usize>().unwrap()
        };
        ["command_log", "audit_log", "api_idempotency", "scope", "definition", "outbox"].into_iter().map(count).sum()
    }

    /// Which one it lives in, as the command line says it: `HOST:PORT/DATABASE`.
    fn homes(&self) -> BTreeMap<String, String> {
        let list = ["tenants", "list", "--output", "json", "--store", &self.urls.join(",")];
        let listed = run(wf().args(list)).expect(0).json();
        let tenants = |row: &serde_json::Value| row["tenants"].as_array().unwrap().clone();
        let homes = |row| tenants(row).into_iter().map(|tenant| (text(&tenant), text(&row["database"])));
        listed.as_array().unwrap().iter().flat_map(homes).collect()
    }

    fn address(&self, database: usize) -> String {
        self.urls[database].rsplit('@').next().unwrap().split('?').next().unwrap().to_owned()
    }
}

fn deployed(node: &Node) {
    for tenant in TENANTS {
        node.api.tenant(tenant).deploy(&one_task("one", "work")).answer().expect(201);
    }
}

fn started(api: &Api, key: &str) -> String {
    text(&api.start("one", json!({"n": 1})).key(key).answer().expect(201).json()["key"])
}

fn finished(api: &Api) {
    let job = api.job("work", "w");
    api.complete(&job, "w", json!({})).key("done").answer().expect(200);
}

/// L1.2, L5.3: whichever node is asked, a tenant's requests meet in one database, under the keys that others use too; and the
/// broker gets each event once under an id of its own.
#[test]
fn l1_2_l5_3_each_tenant_is_whole_in_one_database() {
    let (two, nats) = (Two::start(), Nats::start());
    let setup = two.setup().config(&sink(&nats.url(), "\"*\""));
    let (one, other) = (setup.start(), setup.clone().named("two").start());
    deployed(&one);
    let keys = TENANTS.map(|tenant| started(&one.api.tenant(tenant), "same"));
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), TENANTS.len(), "keys are unique over databases");
    for (tenant, key) in TENANTS.into_iter().zip(&keys) {
        let api = other.api.tenant(tenant);
        let again = api.start("one", json!({"n": 1})).key("same").answer().expect(201);
        assert_eq!((text(&again.json()["key"]), again.is_replay()), (key.clone(), true), "{tenant}");
        api.start("one", json!({"n": 2})).key("same").answer().expect_problem(409, "idempotency-conflict");
        finished(&api);
        assert_eq!(one.api.tenant(tenant).state(key), "COMPLETED");
        all_shipped(&api);
    }
    let homes = two.homes();
    assert_eq!(homes.len(), TENANTS.len());
    for tenant in TENANTS {
        let rows = [two.rows_of(0, tenant), two.rows_of(1, tenant)];
        assert_eq!(
            rows.map(|count| count > 0),
            [0, 1].map(|at| homes[tenant] == two.address(at)),
            "{tenant}: {rows:?}"
        );
    }
    assert_eq!(homes.values().collect::<BTreeSet<_>>().len(), 2, "they are spread: {homes:?}");
    let messages = stream(&nats.url());
    let started = messages.iter().filter(|message| message.event["type"] == "wf.instance.started").count();
    assert_eq!(started, TENANTS.len());
    assert_eq!(messages.iter().map(|message| &message.id).collect::<BTreeSet<_>>().len(), messages.len());
    drop((one, other));
    for url in &two.urls {
        run(wf().args(["debug", "replay", "--store", url])).expect(0);
        run(wf().args(["audit", "verify", "--store", url])).expect(0);
    }
}

/// A database that is down takes its own tenants with it, and no others.
#[test]
fn the_others_go_on_while_one_database_is_down() {
    let two = Two::start();
    let node = two.setup().start();
    deployed(&node);
    let homes = two.homes();
    let [here, there] = [0, 1].map(|at| TENANTS.into_iter().find(|tenant| homes[*tenant] == two.address(at)).unwrap());
    let (here, there) = (node.api.tenant(here), node.api.tenant(there));
    two.clusters[1].kill9();
    let lost = until("an answer of the lost one", || {
        let answer = there.start("one", json!({"n": 1})).key("k").send().ok()?;
        (answer.status == 503).then_some(answer)
    });
    assert!(["unavailable", "outcome-unknown"].contains(&&*text(&lost.json()["code"])), "{}", lost.text());
    started(&here, "k");
    finished(&here);
    assert_eq!((node.api.get("/readyz").status, node.api.get("/api/v1/nodes").status), (200, 200), "it serves tenants");
    two.clusters[1].restart();
    until("the lost one is back", || {
        let answer = there.start("one", json!({"n": 1})).key("k").send().ok()?;
        (answer.status == 201).then_some(())
    });
    finished(&there);
    // The directory's own is down: whoever has been seen goes on, strangers are told to come again.
    two.clusters[0].kill9();
    started(&there, "k2");
    let stranger = node.api.tenant("stranger").deploy(&one_task("one", "work")).answer();
    stranger.expect_problem(503, "unavailable");
}

/// Half of the databases is half of the tenants: a node does not start on it.
#[test]
fn a_node_names_all_databases_or_does_not_start() {
    let two = Two::start();
    let node = two.setup().start();
    deployed(&node);
    assert!(node.stop().success());
    let refused = |urls: &[&String], said: &str| {
        let urls: Vec<&str> = urls.iter().map(|url| url.as_str()).collect();
        let Err(Ended { status, stderr, .. }) = Setup::at(&urls.join(",")).try_start() else { panic!("it started") };
        assert_eq!(status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(said), "{said}: {stderr}");
    };
    let [a, b] = [&two.urls[0], &two.urls[1]];
    refused(&[a], "tenants also live in");
    refused(&[b], "name that one first");
    refused(&[b, a], "name that one first");
    refused(&[a, a], "named twice");
}

/// The operator says where a tenant lives, before it works; afterwards it stays.
#[test]
fn a_tenant_is_settled_by_hand_before_it_works() {
    let two = Two::start();
    let node = two.setup().start();
    let settle = |tenant: &str, at: usize| {
        run(wf().args(["tenants", "settle", tenant, "--on", &two.address(at), "--store", &two.urls.join(",")]))
    };
    for tenant in TENANTS {
        settle(tenant, 1).expect(0);
    }
    deployed(&node);
    for tenant in TENANTS {
        assert_eq!((two.rows_of(0, tenant), two.homes()[tenant].clone()), (0, two.address(1)));
    }
    assert!(settle("ada", 0).expect(1).stderr.contains("stays there"));
    assert!(
        run(wf().args(["tenants", "list", "--store", &two.urls[1]])).expect(1).stderr.contains("name that one first")
    );
}

/// docs/operations/nodes.md, *Moving tenants*: a database moves to another server with all its tenants; its place changes in
/// the list, and nothing else.
#[test]
fn a_database_moves_to_another_server_with_its_tenants() {
    let two = Two::start();
    let node = two.setup().start();
    deployed(&node);
    let keys = TENANTS.map(|tenant| started(&node.api.tenant(tenant), "k"));
    assert!(node.stop().success());
    let folder = two.clusters[1].writable_folder("moved");
    two.clusters[1].basebackup(&folder);
    two.clusters[1].stop_fast();
    let moved = Cluster::start_from(&folder);
    let url = two.urls[1].replace(&two.clusters[1].address(), &moved.address());
    let node = Setup::at(&[two.urls[0].clone(), url].join(",")).start();
    for (tenant, key) in TENANTS.into_iter().zip(keys) {
        let api = node.api.tenant(tenant);
        assert_eq!(started(&api, "k"), key, "{tenant}: a replay");
        finished(&api);
        assert_eq!(api.state(&key), "COMPLETED");
    }
}
