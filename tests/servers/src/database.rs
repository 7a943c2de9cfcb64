//! A database for one test: on the cluster that the whole test run shares (`WF_POSTGRES_URL`), or, where nobody started
//! one, on a cluster that this process starts once.

use crate::client::{execute, unique};
use crate::cluster::Cluster;
use std::sync::OnceLock;

/// Names the shared cluster: the URL of a superuser, to which the name of a database is appended.
pub const SHARED: &str = "WF_POSTGRES_URL";

/// Dropped with this value, whoever is still connected.
pub struct Database {
    url: String,
    admin: String,
    name: String,
}

/// A fresh, empty database. Starting a cluster blocks for a second, once per process: tests can afford that.
pub async fn database() -> Database {
    Database::create()
}

impl Database {
    pub fn create() -> Database {
        Database::on(&shared_url())
    }

    /// As `template` is now. Nobody may be connected to the template meanwhile.
    pub fn copy_of(template: &Database) -> Database {
        let base = template.admin.trim_end_matches("/postgres");
        Database::with_template(base, &template.name)
    }

    pub(crate) fn on(base_url: &str) -> Database {
        Database::with_template(base_url, "template0")
    }

    fn with_template(base_url: &str, template: &str) -> Database {
        let name = unique("t");
        let admin = url_of(base_url, "postgres");
        execute(&admin, &format!("CREATE DATABASE {name} TEMPLATE {template}"));
        Database { url: url_of(base_url, &name), admin, name }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Statements separated by semicolons; the rows of all of them as text. A NULL is an empty text.
    pub fn execute(&self, sql: &str) -> Vec<Vec<String>> {
        execute(&self.url, sql)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A server that the test has ended has nothing to drop, and a panic here would hide the test's own.
        let _ = crate::client::try_execute(&self.admin, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

/// The name belongs before the query part.
pub(crate) fn url_of(base_url: &str, database: &str) -> String {
    let (base, query) = base_url.split_once('?').map_or((base_url, None), |(base, query)| (base, Some(query)));
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}/{database}{query}", base.trim_end_matches('/'))
}

/// A cluster of this process is never dropped, as nothing static is; its guard ends it when the process is gone.
fn shared_url() -> String {
    static OWN: OnceLock<Cluster> = OnceLock::new();
    std::env::var(SHARED).unwrap_or_else(|_| OWN.get_or_init(Cluster::start).base_url())
}
