//! The rules about dependencies, checked over what cargo resolved: which way arrows point, what stays out of the pure
//! crates, under which licences others' code comes, and from where. `deny.toml` says part of it again for cargo-deny.
//! Next: `graph.rs` reads cargo's answer, `licence.rs` reads licence expressions.

mod graph;
mod licence;

use crate::run;
use anyhow::{Result, ensure};
use graph::Graph;

/// A crate may depend only on crates that stand before it. One that is not in the list has no place yet: give it one.
const ORDER: [&str; 17] = [
    "wf-feel",
    "wf-idempotency",
    "wf-model",
    "wf-core",
    "wf-store",
    "wf-store-sqlite",
    "wf-store-postgres",
    "wf-engine",
    "wf-cluster",
    "wf-ship",
    "wf-api",
    "wf-server",
    "wf-gateway",
    "wf-client",
    "wf",
    // For tests alone: behind everything, so that nothing of the product may use it.
    "powerloss",
    "servers",
];

/// Where less than the order is allowed: (crate, the only ones of ours it may use, why).
const NARROW: [(&str, &[&str], &str); 4] = [
    ("wf-feel", &[], "it is published alone"),
    ("wf-idempotency", &[], "it is published alone and knows no engine"),
    ("wf-gateway", &["wf-idempotency"], "it shows what the library can do without the engine"),
    (
        "wf-store-postgres",
        &["wf-core", "wf-store", "wf-idempotency", "wf-model", "wf-feel"],
        "stores do not know one another",
    ),
];

/// Concrete stores are named where the binary is put together, and by nobody else.
const STORES: [&str; 2] = ["wf-store-sqlite", "wf-store-postgres"];

/// Pure crates: no I/O, no runtime, no randomness, wherever in their dependencies it would hide. What they offer behind a
/// feature may be impure, so none of them may turn on a feature of another.
const PURE: [&str; 4] = ["wf-feel", "wf-idempotency", "wf-model", "wf-core"];
const IMPURE: [&str; 16] = [
    "tokio",
    "async-std",
    "smol",
    "mio",
    "axum",
    "hyper",
    "tower",
    "reqwest",
    "rusqlite",
    "libsqlite3-sys",
    "tokio-postgres",
    "async-nats",
    "redis",
    "rand",
    "fastrand",
    "getrandom",
];

/// Stored and sent forms are explicit: the types of these crates must not be serialisable by a derive.
const WITHOUT_SERDE: [&str; 2] = ["wf-core", "wf-idempotency"];

pub fn check() -> Result<()> {
    let graph = Graph::read(&run::metadata()?)?;
    let wrong = findings(&graph);
    wrong.iter().for_each(|finding| eprintln!("deps: {finding}"));
    ensure!(wrong.is_empty(), "{} rule(s) broken", wrong.len());
    eprintln!("deps: {} packages, all rules hold", graph.packages.len());
    if run::succeeds("deny") {
        run::cargo(&["deny", "--log-level", "error", "check", "bans", "licenses", "sources"])?;
    }
    Ok(())
}

fn findings(graph: &Graph) -> Vec<String> {
    [arrows(graph), stores(graph), purity(graph), licences(graph), sources(graph)].concat()
}

fn arrows(graph: &Graph) -> Vec<String> {
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let mut wrong = Vec::new();
    for package in graph.ours() {
        let own = place(&package.name);
        if own.is_none() && package.is_product {
            wrong.push(format!("{} has no place in xtask/src/deps.rs", package.name));
        }
        for used in graph.ours_used_by(package) {
            // Tests, benches and the like may use everything; nothing may use them.
            let down = place(used).is_some_and(|used| own.is_none_or(|own| used < own));
            if !down {
                wrong.push(format!("{} depends on {used}, which stands above it", package.name));
            }
            let narrow = NARROW.iter().find(|(name, ..)| *name == package.name);
            if let Some((_, _, why)) = narrow.filter(|(_, allowed, _)| !allowed.contains(&used)) {
                wrong.push(format!("{} depends on {used}, but {why}", package.name));
            }
        }
    }
    wrong
}

fn stores(graph: &Graph) -> Vec<String> {
    let products = graph.ours().filter(|package| package.is_product && package.name != "wf");
    let pairs = products.flat_map(|package| graph.ours_used_by(package).map(|used| (&package.name, used)));
    let named = pairs.filter(|(_, used)| STORES.contains(used));
    named.map(|(name, used)| format!("{name} names {used}; only wf chooses a store")).collect()
}

fn purity(graph: &Graph) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in graph.ours().filter(|package| PURE.contains(&package.name.as_str())) {
        let reached = graph.reached_from(package);
        let impure = reached.iter().filter(|name| IMPURE.contains(name));
        wrong.extend(impure.map(|name| format!("{} contains {name}, but is pure", package.name)));
        let features = package.features.iter().filter(|(used, _)| PURE.contains(&used.as_str()));
        wrong.extend(features.map(|(used, on)| format!("{} turns on {used}/{on}, but is pure", package.name)));
    }
    for package in graph.ours().filter(|package| WITHOUT_SERDE.contains(&package.name.as_str())) {
        let serde = graph.used_by(package).filter(|name| name.starts_with("serde"));
        wrong.extend(serde.map(|name| format!("{} depends on {name}, but its types are not serialised", package.name)));
    }
    wrong
}

fn licences(graph: &Graph) -> Vec<String> {
    let refused = |expression: &str| !licence::is_permissive(expression);
    let wrong = graph.packages.values().filter(|package| package.licence.as_deref().is_none_or(refused));
    let shown = |package: &graph::Package| package.licence.clone().unwrap_or_else(|| "no licence".to_owned());
    wrong.map(|package| format!("{} comes under {}", package.name, shown(package))).collect()
}

fn sources(graph: &Graph) -> Vec<String> {
    let foreign = graph.packages.values().filter(|package| !package.is_ours);
    let wrong = foreign.filter(|package| !package.source.starts_with("registry+"));
    wrong.map(|package| format!("{} comes from {:?}, not from the registry", package.name, package.source)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The repository itself keeps its rules (DESIGN: arrows point down only).
    #[test]
    fn this_workspace_keeps_the_rules() {
        let graph = Graph::read(&run::metadata().unwrap()).unwrap();
        assert!(graph.packages.len() > ORDER.len());
        assert_eq!(findings(&graph), Vec::<String>::new());
    }

    /// Each rule bites: (crate, its dependency, what is found).
    #[test]
    fn each_rule_finds_its_breach() {
        let table: &[(&str, &str, &[&str])] = &[
            ("wf-engine", "wf-store", &[]),
            ("wf-store", "wf-engine", &["wf-store depends on wf-engine, which stands above it"]),
            ("wf-server", "e2e", &["wf-server depends on e2e, which stands above it"]),
            ("wf", "wf-store-sqlite", &[]),
            ("e2e", "wf-store-sqlite", &[]),
            ("wf-engine", "wf-store-sqlite", &["wf-engine names wf-store-sqlite; only wf chooses a store"]),
            (
                "wf-gateway",
                "wf-engine",
                &["wf-gateway depends on wf-engine, but it shows what the library can do without the engine"],
            ),
            (
                "wf-idempotency",
                "wf-feel",
                &["wf-idempotency depends on wf-feel, but it is published alone and knows no engine"],
            ),
            ("wf-core", "wrapper", &["wf-core contains tokio, but is pure"]),
            ("wf-core", "serde_json", &["wf-core depends on serde_json, but its types are not serialised"]),
            ("wf-api", "serde_json", &[]),
            ("wf", "copyleft", &["copyleft comes under GPL-3.0-only"]),
            ("wf", "from-git", &["from-git comes from \"git+somewhere\", not from the registry"]),
            ("wf-new", "wf-core", &["wf-new has no place in xtask/src/deps.rs"]),
        ];
        for (from, to, expected) in table {
            assert_eq!(findings(&small_graph(from, to)), *expected, "{from} -> {to}");
        }
    }

    /// `wf-idempotency/postgres` is for others: the pure crates see the library without it.
    #[test]
    fn a_feature_of_a_pure_crate_is_not_for_pure_crates() {
        let mut metadata = small_metadata("wf-core", "wf-idempotency");
        metadata["packages"][1]["dependencies"] = json!([{"name": "tokio", "optional": true, "features": []}]);
        metadata["resolve"]["nodes"][1] = json!({"id": "wf-idempotency", "deps": [{"pkg": "tokio"}]});
        assert_eq!(findings(&Graph::read(&metadata).unwrap()), Vec::<String>::new());
        metadata["packages"][0]["dependencies"] = json!([{"name": "wf-idempotency", "features": ["postgres"]}]);
        let found = findings(&Graph::read(&metadata).unwrap());
        assert_eq!(found, ["wf-core turns on wf-idempotency/postgres, but is pure"]);
    }

    fn small_graph(from: &str, to: &str) -> Graph {
        Graph::read(&small_metadata(from, to)).unwrap()
    }

    fn small_metadata(from: &str, to: &str) -> serde_json::Value {
        let ours: Vec<&str> = if ORDER.contains(&to) || to == "e2e" { vec![from, to] } else { vec![from] };
        let foreign = ["wrapper", "tokio", "serde_json", "copyleft", "from-git"]
            .into_iter()
            .filter(|name| [to, "tokio"].contains(name));
        let package = |name: &str| {
            let folder = if name == "e2e" { "tests" } else { "crates" };
            json!({
                "id": name,
                "name": name,
                "license": if name == "copyleft" { "GPL-3.0-only" } else { "MIT OR Apache-2.0" },
                "source": if ours.contains(&name) { None } else { Some(if name == "from-git" { "git+somewhere" } else { "registry+r" }) },
                "dependencies": [],
                "manifest_path": format!("/r/{folder}/{name}/Cargo.toml"),
            })
        };
        let packages: Vec<_> = ours.iter().copied().chain(foreign).map(package).collect();
        let arrow = |from: &str, to: &str| json!({"id": from, "deps": [{"pkg": to, "dep_kinds": [{"kind": null}]}]});
        let nodes = [arrow(from, to), arrow("wrapper", "tokio")];
        json!({
            "packages": packages, "workspace_members": ours, "workspace_root": "/r", "resolve": {"nodes": nodes},
        })
    }
}
