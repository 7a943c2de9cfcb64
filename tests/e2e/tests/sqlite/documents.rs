//! What the documentation says, held against the binary: queries, configuration, metrics, links. The README's tour and
//! the commands that `wf dev` prints: `tour.rs`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use e2e::models::{file, one_task, order};
use e2e::node::{Node, Setup};
use serde_json::json;

use e2e::database;
use e2e::receiver::Receiver;

/// A store in which something of everything happened.
fn busy(setup: &Setup) -> Node {
    let node = setup.start();
    let api = &node.api;
    api.deploy(&order()).answer().expect(201);
    api.deploy(&one_task("one", "work")).answer().expect(201);
    let start = || api.start("order", json!({"orderId": "O-4711", "total": 1})).key("k").answer().expect(201);
    start();
    start();
    let charged = api.job("charge-card", "w");
    api.complete(&charged, "w", json!({})).answer().expect(200);
    api.started("one", json!({}));
    let job = api.job("work", "w");
    api.about(&job, "fail", json!({"worker": "w", "message": "m", "retries": 0})).answer().expect(200);
    api.started("one", json!({}));
    node
}

/// docs/store.md: every query can be pasted; the one about gaps finds none, though the store was opened twice.
#[test]
fn documents_the_store_s_queries_work_as_they_stand() {
    let setup = Setup::new();
    busy(&setup).kill();
    assert!(setup.start().stop().success());
    let connection = database::open(&setup.file());
    let document = file("docs/store.md");
    let queries: Vec<&str> = blocks(&document, "sql").flat_map(|block| block.split_inclusive(";\n")).collect();
    let selects: Vec<&&str> = queries.iter().filter(|query| query.contains("SELECT")).collect();
    assert!(selects.len() > 8, "{queries:?}");
    for query in selects {
        let mut statement = connection.prepare(query).unwrap_or_else(|error| panic!("{error} in {query}"));
        let rows = statement.query_map([], |_| Ok(())).unwrap().count();
        let is_empty = query.contains("Gaps") || query.contains("WHERE root = ") || query.contains("timer");
        assert!(rows == 0 || !query.contains("Gaps"), "{rows} gaps");
        assert!(rows > 0 || is_empty || query.contains("outbox") || query.contains("ACTIVATED"), "nothing: {query}");
    }
    assert_eq!(database::chain_breaks(&setup.database()), Vec::<String>::new());
    let foreign = rusqlite::Connection::open(setup.file()).unwrap();
    for table in ["audit_log", "command_log"] {
        let update = foreign.execute(&format!("UPDATE {table} SET time = 0"), []).unwrap_err();
        let delete = foreign.execute(&format!("DELETE FROM {table}"), []).unwrap_err();
        assert!(update.to_string().contains("append-only") && delete.to_string().contains("append-only"), "L6.1");
    }
}

/// docs/operations.md: the configuration is one.
#[test]
fn documents_the_configuration_is_right() {
    let document = file("docs/operations.md");
    let mut count = 0;
    for block in blocks(&document, "toml") {
        count += 1;
        // The address in the file would win against a free port of our own only without the flag.
        let ended = Setup::new().config(block).flag("--check").try_start().map(drop).unwrap_err();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    }
    assert!(count > 0);
}

/// docs/operations.md: what `/metrics` shows is explained there.
#[test]
fn documents_every_metric_is_explained() {
    let receiver = Receiver::start(|_| 200);
    let sink = format!("[[sink]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{}\"", receiver.url());
    let node = busy(&Setup::new().config(&sink));
    e2e::until("gauges", || (node.api.metric("wf_outbox_shipped_total") > 0.0).then_some(()));
    let shown = node.api.get("/metrics").expect(200).text();
    let names: BTreeSet<&str> =
        shown.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let document = file("docs/operations.md");
    let unknown: Vec<&&str> = names.iter().filter(|name| !document.contains(&format!("`{name}`"))).collect();
    assert!(names.len() > 12 && unknown.is_empty(), "not explained: {unknown:?} of {names:?}");
}

/// Every link between documents leads to a file, and to a heading where it names one.
#[test]
fn documents_links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> = markdown(&root);
    pages.extend(["docs", "docs/operations"].into_iter().flat_map(|folder| markdown(&root.join(folder))));
    assert!(pages.len() > 5, "{pages:?}");
    let broken: Vec<String> = pages.iter().flat_map(|page| broken_links(page)).collect();
    assert_eq!(broken, Vec::<String>::new());
}

fn markdown(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn broken_links(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let links = text.split("](").skip(1).filter_map(|behind| Some(behind.split_once(')')?.0));
    let own = links.filter(|link| !link.contains("://"));
    let is_broken = |link: &&str| {
        let (path, heading) = link.split_once('#').unwrap_or((link, ""));
        let target = if path.is_empty() { page.to_owned() } else { page.parent().unwrap().join(path) };
        match std::fs::read_to_string(target) {
            Ok(text) => !heading.is_empty() && !text.lines().any(|line| anchor(line).as_deref() == Some(heading)),
            Err(_) => true,
        }
    };
    own.filter(is_broken).map(|link| format!("{}: {link}", page.display())).collect()
}

/// As the usual renderers make it of a heading.
fn anchor(line: &str) -> Option<String> {
    let title = line.strip_prefix('#')?.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    Some(kept.map(|c| if c == ' ' { '-' } else { c }).collect())
}

fn blocks<'d>(document: &'d str, language: &str) -> impl Iterator<Item = &'d str> {
    let fence = format!("```{language}\n");
    let behind: Vec<&str> = document.split(&*fence).skip(1).collect();
    behind.into_iter().map(|text| text.split_once("```").map_or(text, |(block, _)| block))
}
