//! What a node is told: `wf.toml`, then the environment (`WF__SECTION__KEY`), then flags; the later wins.
//! Read once, checked once, all problems listed together. It opens nothing. Next: `node.rs`.

mod raw;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use wf_core::Partitions;
use wf_server::{ApiKey, IdempotencyConfig, RouteRule};
use wf_ship::config::Secret;
use wf_ship::{Kind, OnDead, SinkConfig};
use wf_store_sqlite::Durability;

use crate::cli::{LogFormat, NodeArgs};

use raw::{Raw, Section};

const SECTIONS: [&str; 10] =
    ["server", "node", "cluster", "idempotency", "messages", "retention", "sqlite", "postgres", "api_key", "sink"];
const DAY_MS: i64 = 24 * 3_600_000;

#[derive(Clone, Debug)]
pub struct Config {
    /// `127.0.0.1:8080`. Port 0: any free one.
    pub listen: SocketAddr,
    /// `./wf-data`, made where missing.
    pub data: PathBuf,
    pub store: StoreChoice,
    pub node: NodeConfig,
    /// Of a PostgreSQL store that is made now: 8. One that is there keeps its own.
    pub partitions: u16,
    /// Transactions of turns that a node has under way at once in a PostgreSQL database.
    pub writers: usize,
    pub log_format: LogFormat,
    /// Time stands still until `PUT /api/v1/clock` moves it.
    pub test_clock: bool,
    pub idempotency: IdempotencyConfig,
    /// How long a repeat waits for the first request with its key: 5 s.
    pub wait_ms: u64,
    /// Between two sweeps of expired records: 60 s.
    pub sweep_ms: u64,
    /// How long a message id is remembered: 24 h.
    pub dedup_ms: i64,
    /// How long finished jobs and ended instances stay: 7 d.
    pub finished_ms: i64,
    /// `full`: each commit waits for the disk.
    pub durability: Durability,
    /// The database's greatest number of pages; for tests of a full disk.
    pub pages_max: Option<u32>,
    pub api_keys: Vec<ApiKey>,
    pub sinks: Vec<SinkConfig>,
    /// Allowed, but worth a word at the start.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreChoice {
    Sqlite,
    /// Addresses of databases: tenants are spread over them.
    Postgres(Vec<Secret>),
}

/// Among several nodes that share a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// Another run of the same name takes its partitions back at once. By default every run has a name of its own.
    pub name: String,
    /// Where other nodes reach this one; the address that it listens on where absent.
    pub advertise: Option<String>,
    /// How long a node counts as alive that says nothing: 6 s.
    pub lease_ms: u64,
    /// Between two looks at who owns what: 250 ms.
    pub look_ms: u64,
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
    let of_node = |key, value: &Option<String>| (["node", key], value.clone());
    let of_server = |key, value: Option<String>| (["server", key], value);
    let given = [
        of_server("listen", args.listen.clone()),
        of_server("data", data),
        of_server("store", args.store.clone()),
        of_node("name", &args.node_name),
        of_node("advertise", &args.advertise),
    ];
    for (path, value) in given {
        if let Some(value) = value {
            raw.set(&path, value);
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
    let node = node(&mut raw, listen, &store);
    let (partitions, writers) = postgres(&mut raw);
    let (idempotency, wait_ms, sweep_ms) = idempotency(&mut raw);
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
        node,
        partitions,
        writers,
        log_format,
        test_clock,
        idempotency,
        wait_ms,
        sweep_ms,
        dedup_ms,
        finished_ms,
        durability,
        pages_max,
        api_keys,
        sinks,
        warnings,
    })
}

fn postgres(raw: &mut Raw) -> (u16, usize) {
    let mut section = raw.section("postgres");
    let partitions = section.number("partitions", 1..=i64::from(Partitions::LAST)).and_then(|n| u16::try_from(n).ok());
    let writers = section.number("writers", 1..=64).and_then(|n| usize::try_from(n).ok());
    (partitions.unwrap_or(8), writers.unwrap_or_else(default_writers))
}

/// Where processors are few, a second transaction makes both of them smaller and dearer.
fn default_writers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).clamp(1, 4))
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
    let given = server.lines("store").unwrap_or_default();
    let urls: Vec<String> = given.iter().flat_map(|text| databases(text)).collect();
    match urls.iter().find(|text| !is_postgres(text)).map(String::as_str) {
        None if urls.is_empty() => StoreChoice::Sqlite,
        None => StoreChoice::Postgres(urls.into_iter().map(Secret).collect()),
        Some("sqlite") if urls.len() == 1 => StoreChoice::Sqlite,
        Some("sqlite") => {
            server.problem("store", "is either \"sqlite\" or PostgreSQL".to_owned());
            StoreChoice::Sqlite
        }
        Some(other) => {
            server.problem("store", format!("must be \"sqlite\" or a postgres:// address, not {other}"));
            StoreChoice::Sqlite
        }
    }
}

fn is_postgres(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

/// A list stands in one text on the command line. An address may have commas of its own, between its hosts.
pub fn databases(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in text.split(',') {
        match all.last_mut() {
            Some(url) if !is_postgres(part.trim()) => {
                url.push(',');
                url.push_str(part);
            }
            _ => all.push(part.trim().to_owned()),
        }
    }
    all
}

fn node(raw: &mut Raw, listen: SocketAddr, store: &StoreChoice) -> NodeConfig {
    let mut section = raw.section("node");
    let name = section.text("name").unwrap_or_else(default_name);
    if !is_name(&name) {
        section.problem("name", "must be 1 to 63 of A-Z a-z 0-9 . _ -".to_owned());
    }
    let advertise = section.text("advertise");
    let is_url = |url: &String| url.strip_prefix("http://").is_some_and(|rest| rest.contains(':'));
    if advertise.as_ref().is_some_and(|url| !is_url(url)) {
        section.problem("advertise", "must be http://HOST:PORT".to_owned());
    }
    if advertise.is_none() && listen.ip().is_unspecified() && *store != StoreChoice::Sqlite {
        let what = format!("is required: other nodes cannot reach this one at {listen}");
        section.problem("advertise", what);
    }
    drop(section);
    let mut section = raw.section("cluster");
    let lease_ms = section.number("lease_ms", 500..=600_000).unwrap_or(6_000).unsigned_abs();
    let look_ms = section.number("look_ms", 10..=60_000).unwrap_or(250).unsigned_abs();
    if look_ms.saturating_mul(3) > lease_ms {
        section.problem("look_ms", format!("must be at most a third of lease_ms, {lease_ms}"));
    }
    NodeConfig { name, advertise, lease_ms, look_ms }
}

/// Every run its own: two that share a name by accident would strike each other off.
fn default_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let host: String = host.trim().chars().filter(allowed).take(50).collect();
    let host = if host.is_empty() { "node".to_owned() } else { host };
    format!("{host}-{}", std::process::id())
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

/// With the two that are the engine's: how long repeats wait, and how often expired records are swept.
fn idempotency(raw: &mut Raw) -> (IdempotencyConfig, u64, u64) {
    let mut section = raw.section("idempotency");
    let ttl_ms = section.number("ttl_ms", 1000..=30 * DAY_MS).unwrap_or(DAY_MS);
    let wait_ms = section.number("wait_ms", 0..=60_000).unwrap_or(5000);
    let sweep_ms = section.number("sweep_ms", 100..=DAY_MS).unwrap_or(60_000);
    let require = section.texts("require").unwrap_or_default();
    let tables = section.tables("routes");
    drop(section);
    let rules = tables.into_iter().map(|(route, table)| {
        let mut section = raw.open(format!("idempotency.routes.{route:?}"), table);
        let rule = RouteRule {
            ttl_ms: section.number("ttl_ms", 1000..=30 * DAY_MS),
            required: section.flag("required"),
            mismatch_status: section.number("mismatch_status", 400..=499).and_then(|status| status.try_into().ok()),
        };
        (route, rule)
    });
    let routes = rules.collect();
    let idempotency = IdempotencyConfig { ttl_ms, require, routes };
    for route in idempotency.unknown_routes() {
        raw.problems.push(format!("idempotency: there is no route {route:?} that takes a key"));
    }
    (idempotency, wait_ms.unsigned_abs(), sweep_ms.unsigned_abs())
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
    if !is_name(&tenant) {
        section.problem("tenant", "must be 1 to 63 of A-Z a-z 0-9 . _ -".to_owned());
    }
    let known = |role: &String| matches!(role.as_str(), "admin" | "client" | "worker" | "reader");
    if !roles.as_ref().is_some_and(|roles| !roles.is_empty() && roles.iter().all(known)) {
        section.problem("roles", "must list some of admin, client, worker, reader".to_owned());
    }
    Some(ApiKey { name: name?, tenant, sha256: sha256?, roles: roles? })
}

/// Of tenants, and of nodes.
fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=63).contains(&text.len()) && text.bytes().all(allowed)
}

fn sinks(raw: &mut Raw) -> Vec<SinkConfig> {
    let entries = raw.entries("sink");
    let sinks: Vec<SinkConfig> = entries.into_iter().filter_map(|(path, table)| sink(raw.open(path, table))).collect();
    raw.problems.extend(wf_ship::problems(&sinks));
    sinks
}

/// The shape; what the values must be is `wf_ship`'s to say.
fn sink(mut section: Section) -> Option<SinkConfig> {
    let (name, kind) = (section.required("name"), section.required("kind"));
    let kind = kind.as_deref().and_then(|kind| one_of(&mut section, "kind", kind, &KINDS));
    let url = section.text("url").unwrap_or_default();
    // Everything is asked for, also where something is missing already: what nobody asks for counts as misspelt.
    let (stream, secret) = (section.text("stream"), section.text("secret").map(Secret));
    let (prefix, events) = (section.text("subject_prefix"), section.texts("events"));
    let attempts_max = section.number("attempts_max", 1..=1000).and_then(|number| u32::try_from(number).ok());
    let on_dead = section.text("on_dead");
    let on_dead = on_dead.as_deref().and_then(|text| one_of(&mut section, "on_dead", text, &ON_DEAD));
    let default = SinkConfig::new(&name?, kind?, &url);
    Some(SinkConfig {
        stream,
        secret,
        subject_prefix: prefix.unwrap_or(default.subject_prefix),
        events: events.unwrap_or(default.events),
        attempts_max: attempts_max.unwrap_or(default.attempts_max),
        on_dead: on_dead.unwrap_or(default.on_dead),
        ..default
    })
}

const KINDS: [(&str, Kind); 3] = [("nats", Kind::Nats), ("webhook", Kind::Webhook), ("stdout", Kind::Stdout)];
const ON_DEAD: [(&str, OnDead); 2] = [("block", OnDead::Block), ("pass", OnDead::Pass)];

fn one_of<T: Copy>(section: &mut Section, key: &'static str, text: &str, known: &[(&str, T)]) -> Option<T> {
    let found = known.iter().find(|(name, _)| *name == text).map(|(_, meant)| *meant);
    if found.is_none() {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        section.problem(key, format!("must be one of {}, not {text}", names.join(", ")));
    }
    found
}

fn warnings(idempotency: &IdempotencyConfig, durability: Durability) -> Vec<String> {
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
