//! What a node is told: `wf.toml`, then the environment (`WF__SECTION__KEY`), then flags; the later wins.
//! Read once, checked once, all problems listed together. It opens nothing. Next: `node.rs`.

mod raw;

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use raw::{Raw, Section};

use crate::cli::{LogFormat, NodeArgs};

const SECTIONS: [&str; 7] = ["server", "idempotency", "messages", "retention", "sqlite", "api_key", "sink"];
const DAY_MS: i64 = 24 * 3_600_000;

#[derive(Clone, Debug)]
pub struct Config {
    /// `127.0.0.1:8080`. Port 0: any free one.
    pub listen: SocketAddr,
    /// `./wf-data`, made where missing.
    pub data: PathBuf,
    pub store: StoreChoice,
    pub log_format: LogFormat,
    /// Time stands still until `PUT /api/v1/clock` moves it.
    pub test_clock: bool,
    pub idempotency: Idempotency,
    /// How long a message id is remembered: 24 h.
    pub dedup_ms: i64,
    /// How long finished jobs and ended instances stay: 7 d.
    pub finished_ms: i64,
    pub durability: Durability,
    /// The database's greatest number of pages; for tests of a full disk.
    pub pages_max: Option<u32>,
    pub api_keys: Vec<ApiKey>,
    pub sinks: Vec<Sink>,
    /// Allowed, but worth a word at the start.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreChoice {
    Sqlite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Each commit waits for the disk.
    Full,
    /// A crash of the machine (not of the program) may lose the last commits.
    Normal,
}

#[derive(Clone, Debug)]
pub struct Idempotency {
    /// How long a key is remembered: 24 h; from 1 s to 30 d.
    pub ttl_ms: i64,
    /// How long a repeat waits for the first request with its key: 5 s.
    pub wait_ms: u64,
    /// Between two sweeps of expired records: 60 s.
    pub sweep_ms: u64,
    /// Routes that need a key, as `POST /api/v1/instances`.
    pub require: Vec<String>,
    pub routes: BTreeMap<String, RouteRule>,
}

#[derive(Clone, Debug, Default)]
pub struct RouteRule {
    pub ttl_ms: Option<i64>,
    pub required: Option<bool>,
    pub mismatch_status: Option<u16>,
}

#[derive(Clone, Debug)]
pub struct ApiKey {
    pub name: String,
    pub tenant: String,
    /// Lower-case hex of the token's SHA-256.
    pub sha256: String,
    pub roles: Vec<String>,
}

#[derive(Clone)]
pub struct Sink {
    pub name: String,
    pub kind: String,
    pub url: String,
    pub stream: Option<String>,
    pub subject_prefix: String,
    pub secret: Option<String>,
    /// Event names, or `*`.
    pub events: Vec<String>,
    pub attempts_max: u32,
    /// Dead letters let later messages of their instance pass.
    pub dead_pass: bool,
}

impl std::fmt::Debug for Sink {
    /// Without the secret and without a password in the address.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Sink({} {})", self.kind, self.name)
    }
}

/// Everything that is wrong, one line each.
#[derive(Debug, thiserror::Error)]
#[error("the configuration is wrong:\n  {}", .0.join("\n  "))]
pub struct ConfigError(Vec<String>);

/// Reads the file that the flags name, or `./wf.toml` where there is one.
pub fn load(args: &NodeArgs) -> Result<Config, ConfigError> {
    let mut raw = match (&args.config, std::path::Path::new("wf.toml")) {
        (Some(path), _) => file(path)?,
        (None, default) if default.is_file() => file(default)?,
        _ => Raw::default(),
    };
    raw.overlay_environment(std::env::vars());
    flags(&mut raw, args);
    read(raw)
}

fn file(path: &std::path::Path) -> Result<Raw, ConfigError> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError(vec![format!("{shown}: {error}")]))?;
    Ok(Raw::from_file(&shown.to_string(), &text))
}

fn flags(raw: &mut Raw, args: &NodeArgs) {
    let data = args.data.as_ref().map(|path| path.to_string_lossy().into_owned());
    for (key, value) in [("listen", args.listen.clone()), ("data", data), ("store", args.store.clone())] {
        if let Some(value) = value {
            raw.set(&["server", key], value);
        }
    }
    if let Some(format) = args.log_format {
        raw.set(&["server", "log_format"], format.name());
    }
    if args.test_clock {
        raw.set(&["server", "test_clock"], true);
    }
}

fn read(mut raw: Raw) -> Result<Config, ConfigError> {
    let mut server = raw.section("server");
    let listen = address(&mut server);
    let data = server.text("data").unwrap_or_else(|| "./wf-data".to_owned()).into();
    let store = store(&mut server);
    let log_format = log_format(&mut server);
    let test_clock = server.flag("test_clock").unwrap_or(false);
    drop(server);
    let idempotency = idempotency(&mut raw);
    let dedup_ms = raw.section("messages").number("dedup_ms", 1000..=365 * DAY_MS).unwrap_or(DAY_MS);
    let finished_ms = raw.section("retention").number("finished_ms", 0..=3650 * DAY_MS).unwrap_or(7 * DAY_MS);
    let (durability, pages_max) = sqlite(&mut raw);
    let api_keys = api_keys(&mut raw);
    let sinks = sinks(&mut raw);
    if !listen.ip().is_loopback() && api_keys.is_empty() {
        raw.problems.push(format!(
            "server.listen: {listen} is reachable from outside, so at least one [[api_key]] is required \
             (or listen on 127.0.0.1)"
        ));
    }
    let warnings = warnings(&idempotency, durability);
    let problems = raw.finish(&SECTIONS);
    if !problems.is_empty() {
        return Err(ConfigError(problems));
    }
    Ok(Config {
        listen,
        data,
        store,
        log_format,
        test_clock,
        idempotency,
        dedup_ms,
        finished_ms,
        durability,
        pages_max,
        api_keys,
        sinks,
        warnings,
    })
}

fn address(server: &mut Section) -> SocketAddr {
    let default = SocketAddr::from(([127, 0, 0, 1], 8080));
    let Some(text) = server.text("listen") else { return default };
    let resolved = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    if resolved.is_none() {
        server.problem("listen", format!("must be HOST:PORT, not {text}"));
    }
    resolved.unwrap_or(default)
}

fn store(server: &mut Section) -> StoreChoice {
    match server.text("store").as_deref() {
        None | Some("sqlite") => (),
        Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            server.problem("store", "this build has no PostgreSQL store yet: use \"sqlite\"".to_owned());
        }
        Some(other) => server.problem("store", format!("must be \"sqlite\" or a postgres:// address, not {other}")),
    }
    StoreChoice::Sqlite
}

fn log_format(server: &mut Section) -> LogFormat {
    match server.text("log_format").as_deref() {
        None | Some("text") => LogFormat::Text,
        Some("json") => LogFormat::Json,
        Some(other) => {
            server.problem("log_format", format!("must be \"text\" or \"json\", not {other}"));
            LogFormat::Text
        }
    }
}

fn idempotency(raw: &mut Raw) -> Idempotency {
    let mut section = raw.section("idempotency");
    let ttl_ms = section.number("ttl_ms", 1000..=30 * DAY_MS).unwrap_or(DAY_MS);
    let wait_ms = section.number("wait_ms", 0..=60_000).unwrap_or(5000);
    let sweep_ms = section.number("sweep_ms", 100..=DAY_MS).unwrap_or(60_000);
    let require = section.texts("require").unwrap_or_default();
    for route in require.iter().filter(|route| !is_route(route)) {
        section.problem("require", format!("must list routes such as \"POST /api/v1/instances\", not {route:?}"));
    }
    let tables = section.tables("routes");
    drop(section);
    let routes = tables.into_iter().map(|(route, table)| {
        let mut section = raw.open(format!("idempotency.routes.{route:?}"), table);
        let rule = RouteRule {
            ttl_ms: section.number("ttl_ms", 1000..=30 * DAY_MS),
            required: section.flag("required"),
            mismatch_status: section.number("mismatch_status", 400..=499).and_then(|status| status.try_into().ok()),
        };
        if !is_route(&route) {
            raw_problem(section, "must be a route such as \"POST /api/v1/messages\"");
        }
        (route, rule)
    });
    let routes = routes.collect();
    Idempotency { ttl_ms, wait_ms: wait_ms.unsigned_abs(), sweep_ms: sweep_ms.unsigned_abs(), require, routes }
}

fn raw_problem(mut section: Section, what: &str) {
    section.problem("(name)", what.to_owned());
}

fn is_route(text: &str) -> bool {
    text.split_once(' ').is_some_and(|(method, path)| matches!(method, "POST" | "PUT") && path.starts_with("/api/v1/"))
}

fn sqlite(raw: &mut Raw) -> (Durability, Option<u32>) {
    let mut section = raw.section("sqlite");
    let durability = match section.text("durability").as_deref() {
        None | Some("full") => Durability::Full,
        Some("normal") => Durability::Normal,
        Some(other) => {
            section.problem("durability", format!("must be \"full\" or \"normal\", not {other}"));
            Durability::Full
        }
    };
    let pages_max = section.number("pages_max", 64..=i64::from(u32::MAX));
    (durability, pages_max.and_then(|pages| u32::try_from(pages).ok()))
}

fn api_keys(raw: &mut Raw) -> Vec<ApiKey> {
    let entries = raw.entries("api_key");
    entries.into_iter().filter_map(|(path, table)| api_key(raw.open(path, table))).collect()
}

fn api_key(mut section: Section) -> Option<ApiKey> {
    let name = section.required("name");
    let tenant = section.text("tenant").unwrap_or_else(|| "default".to_owned());
    let sha256 = section.required("sha256");
    let roles = section.texts("roles");
    let is_hex = |text: &String| text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if sha256.as_ref().is_some_and(|text| !is_hex(text)) {
        section.problem("sha256", "must be the token's SHA-256 in 64 lower-case hex digits".to_owned());
    }
    if !is_tenant(&tenant) {
        section.problem("tenant", "must be 1 to 63 of A-Z a-z 0-9 . _ -".to_owned());
    }
    let known = |role: &String| matches!(role.as_str(), "admin" | "client" | "worker" | "reader");
    if !roles.as_ref().is_some_and(|roles| !roles.is_empty() && roles.iter().all(known)) {
        section.problem("roles", "must list some of admin, client, worker, reader".to_owned());
    }
    Some(ApiKey { name: name?, tenant, sha256: sha256?, roles: roles? })
}

fn is_tenant(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=63).contains(&text.len()) && text.bytes().all(allowed)
}

fn sinks(raw: &mut Raw) -> Vec<Sink> {
    let entries = raw.entries("sink");
    let sinks: Vec<Sink> = entries.into_iter().filter_map(|(path, table)| sink(raw.open(path, table))).collect();
    for (index, sink) in sinks.iter().enumerate() {
        if sinks.iter().take(index).any(|earlier| earlier.name == sink.name) {
            raw.problems.push(format!("sink[{index}].name: there are two sinks named {}", sink.name));
        }
    }
    sinks
}

fn sink(mut section: Section) -> Option<Sink> {
    let (name, kind, url) = (section.required("name"), section.required("kind"), section.required("url"));
    if let Some(kind) = kind.as_deref().filter(|kind| !matches!(*kind, "nats" | "webhook" | "stdout")) {
        section.problem("kind", format!("must be \"nats\", \"webhook\" or \"stdout\", not {kind}"));
    }
    let stream = section.text("stream");
    let subject_prefix = section.text("subject_prefix").unwrap_or_else(|| "wf".to_owned());
    let secret = section.text("secret");
    let events = section.texts("events").unwrap_or_else(|| vec!["*".to_owned()]);
    let attempts_max = section.number("attempts_max", 1..=1000).unwrap_or(20);
    let on_dead = section.text("on_dead");
    if let Some(other) = on_dead.as_deref().filter(|text| !matches!(*text, "block" | "pass")) {
        section.problem("on_dead", format!("must be \"block\" or \"pass\", not {other}"));
    }
    Some(Sink {
        name: name?,
        kind: kind?,
        url: url?,
        stream,
        subject_prefix,
        secret,
        events,
        attempts_max: u32::try_from(attempts_max).ok()?,
        dead_pass: on_dead.as_deref() == Some("pass"),
    })
}

fn warnings(idempotency: &Idempotency, durability: Durability) -> Vec<String> {
    let mut warnings = Vec::new();
    let short = |ms: i64| ms < DAY_MS;
    if short(idempotency.ttl_ms) {
        warnings.push(format!(
            "idempotency.ttl_ms = {}: clients that repeat after more than that run twice; \
                               24 h or more is advised",
            idempotency.ttl_ms
        ));
    }
    for (route, rule) in &idempotency.routes {
        if let Some(ttl_ms) = rule.ttl_ms.filter(|ms| short(*ms)) {
            warnings.push(format!("idempotency.routes.{route:?}.ttl_ms = {ttl_ms}: below 24 h"));
        }
    }
    if durability == Durability::Normal {
        warnings.push("sqlite.durability = \"normal\": a crash of the machine may lose the last commits".to_owned());
    }
    warnings
}

#[cfg(test)]
mod tests;
