//! The configuration as a table: what is given, and what is said about it.

use super::raw::Raw;
use super::{Config, read};

fn config(file: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
    let mut raw = Raw::from_file("wf.toml", file);
    raw.overlay_environment(environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    read(raw).map_err(|error| error.to_string())
}

/// API.md CLI: an unknown key is an error that names it; all problems are listed together.
#[test]
fn every_problem_is_named_at_once() {
    let file = r#"
        [server]
        lisen = "127.0.0.1:1"
        log_format = "xml"
        [idempotency]
        ttl_ms = 5
        [idempotency.routes]
        NONSENSE = true
        [idempotency.routes."POST /api/v1/messages"]
        tll_ms = 1
        [sinks]
        [[api_key]]
        name = "ci"
        sha256 = "ABC"
        roles = ["root"]
    "#;
    let said = config(file, &[("WF__MESSAGES__DEDUP", "1")]).unwrap_err();
    for expected in [
        "unknown key server.lisen (there are: listen, data, store, log_format, test_clock)",
        "server.log_format: must be \"text\" or \"json\", not xml",
        "idempotency.ttl_ms: must be from 1000 to 2592000000, not 5",
        "unknown key idempotency.routes.\"POST /api/v1/messages\".tll_ms",
        "idempotency.routes.NONSENSE: must be a section",
        "unknown section sinks",
        "api_key[0].sha256: must be",
        "api_key[0].roles: must list",
        "unknown key messages.dedup (from WF__MESSAGES__DEDUP)",
    ] {
        assert!(said.contains(expected), "{expected}\n-- not in --\n{said}");
    }
}

/// `wf.toml` < environment; values are read as TOML, else as text; entries are addressed by number.
#[test]
fn the_environment_wins() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\n[[sink]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"http://x\"\non_dead = \"pass\"";
    let environment = [
        ("WF__SERVER__LISTEN", "127.0.0.1:9"),
        ("WF__IDEMPOTENCY__TTL_MS", "90000000"),
        ("WF__IDEMPOTENCY__REQUIRE", "POST /api/v1/instances"),
        ("WF__SINK__0__SECRET", "s3cret"),
        ("OTHER", "x"),
    ];
    let config = config(file, &environment).unwrap();
    assert_eq!(config.listen.port(), 9);
    assert_eq!(config.idempotency.ttl_ms, 90_000_000);
    assert_eq!(config.idempotency.require, ["POST /api/v1/instances"]);
    assert_eq!(config.sinks[0].secret.as_ref().map(|secret| secret.0.as_str()), Some("s3cret"));
    assert!(!format!("{config:?}").contains("s3cret"), "a secret must not reach a log");
}

/// API.md: a non-loopback address without authentication refuses to start.
#[test]
fn outside_needs_keys() {
    let said = config("[server]\nlisten = \"0.0.0.0:8080\"", &[]).unwrap_err();
    assert!(said.contains("0.0.0.0:8080 is reachable from outside"), "{said}");
    let key = format!("[[api_key]]\nname = \"ci\"\nsha256 = \"{}\"\nroles = [\"admin\"]", "a".repeat(64));
    assert!(config(&format!("[server]\nlisten = \"0.0.0.0:8080\"\n{key}"), &[]).is_ok());
}

#[test]
fn short_retention_is_a_warning() {
    let config = config("[idempotency]\nttl_ms = 60000\n[sqlite]\ndurability = \"normal\"", &[]).unwrap();
    assert_eq!(config.warnings.len(), 2, "{:?}", config.warnings);
}
