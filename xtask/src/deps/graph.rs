//! What `cargo metadata` says, cut down to names, licences, sources and arrows. Dev-dependencies are no arrows: a
//! crate's tests may use what stands above it.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub struct Graph {
    /// By cargo's package id.
    pub packages: BTreeMap<String, Package>,
}

pub struct Package {
    pub name: String,
    pub licence: Option<String>,
    /// Empty for what lies in this repository.
    pub source: String,
    pub is_ours: bool,
    /// Lies in `lib/` or `crates/`: part of what users get.
    pub is_product: bool,
    /// Names of dependencies that the manifest has behind a feature.
    optional: BTreeSet<String>,
    /// What the manifest turns on: (dependency, feature). Not for its tests.
    pub features: Vec<(String, String)>,
    uses: Vec<String>,
}

impl Graph {
    pub fn read(metadata: &Value) -> Result<Graph> {
        let mut uses = arrows(&metadata["resolve"]["nodes"])?;
        let members: BTreeSet<&str> = list(&metadata["workspace_members"])?.iter().filter_map(Value::as_str).collect();
        let root = metadata["workspace_root"].as_str().context("no workspace root")?;
        let mut packages = BTreeMap::new();
        for package in list(&metadata["packages"])? {
            let id = package["id"].as_str().context("a package without id")?;
            let manifest = package["manifest_path"].as_str().unwrap_or_default();
            let folder = manifest.strip_prefix(root).unwrap_or_default();
            let is_ours = members.contains(id);
            let declared = list(&package["dependencies"])?;
            let package = Package {
                optional: declared.iter().filter(|one| one["optional"] == true).filter_map(named).collect(),
                features: declared.iter().filter(|one| one["kind"] != "dev").flat_map(features).collect(),
                name: package["name"].as_str().context("a package without name")?.to_owned(),
                licence: package["license"].as_str().map(str::to_owned),
                source: package["source"].as_str().unwrap_or_default().to_owned(),
                is_ours,
                is_product: is_ours && ["/lib/", "/crates/"].iter().any(|part| folder.starts_with(part)),
                uses: uses.remove(id).unwrap_or_default(),
            };
            packages.insert(id.to_owned(), package);
        }
        Ok(Graph { packages })
    }

    pub fn ours(&self) -> impl Iterator<Item = &Package> {
        self.packages.values().filter(|package| package.is_ours)
    }

    /// Names of direct dependencies.
    pub fn used_by(&self, package: &Package) -> impl Iterator<Item = &str> {
        self.direct(package).map(|used| used.name.as_str())
    }

    pub fn ours_used_by(&self, package: &Package) -> impl Iterator<Item = &str> {
        self.direct(package).filter(|used| used.is_ours).map(|used| used.name.as_str())
    }

    /// Names of everything that ends in the crate, however far away, while no feature of a crate of ours is turned on:
    /// cargo resolves all crates together, and one that turns a feature on does not make the others impure.
    pub fn reached_from<'a>(&'a self, package: &'a Package) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::new();
        let mut open = vec![package];
        while let Some(package) = open.pop() {
            let left_out = |used: &&Package| package.is_ours && package.optional.contains(&used.name);
            let used = self.direct(package).filter(|used| !left_out(used));
            open.extend(used.filter(|used| names.insert(used.name.as_str())));
        }
        names
    }

    fn direct(&self, package: &Package) -> impl Iterator<Item = &Package> {
        package.uses.iter().filter_map(|id| self.packages.get(id))
    }
}

fn named(dependency: &Value) -> Option<String> {
    dependency["name"].as_str().map(str::to_owned)
}

fn features(dependency: &Value) -> Vec<(String, String)> {
    let features = dependency["features"].as_array().into_iter().flatten().filter_map(Value::as_str);
    features.filter_map(|feature| Some((named(dependency)?, feature.to_owned()))).collect()
}

fn arrows(nodes: &Value) -> Result<BTreeMap<String, Vec<String>>> {
    let mut arrows = BTreeMap::new();
    for node in list(nodes)? {
        let id = node["id"].as_str().context("a node without id")?;
        let used = list(&node["deps"])?.iter().filter(|dependency| is_arrow(dependency));
        arrows.insert(id.to_owned(), used.filter_map(|used| Some(used["pkg"].as_str()?.to_owned())).collect());
    }
    Ok(arrows)
}

fn is_arrow(dependency: &Value) -> bool {
    let kinds = dependency["dep_kinds"].as_array();
    kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind["kind"].as_str() != Some("dev")))
}

fn list(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().context("cargo metadata has another shape than expected")
}
