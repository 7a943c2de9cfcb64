//! What the configuration says about keys, resolved per route once, and the header read accordingly.
//! It looks at no record: the engine does. Next: `call.rs`, where key and request become a passport.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::HeaderMap;
use wf_api::{Code, Problem};
use wf_idempotency::key::{Key, Syntax, parse_header};

use crate::route::{ROUTES, Route};

pub const KEY_HEADER: &str = "idempotency-key";
const DAY_MS: i64 = 86_400_000;

/// Routes are written as `POST /api/v1/instances`, with the template's braces.
#[derive(Clone, Debug)]
pub struct IdempotencyConfig {
    /// How long a key is remembered.
    pub ttl_ms: i64,
    /// Routes that take no request without a key.
    pub require: Vec<String>,
    pub routes: BTreeMap<String, RouteRule>,
}

/// What differs on one route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteRule {
    pub ttl_ms: Option<i64>,
    pub required: Option<bool>,
    /// Instead of 409 where a key was used with another request.
    pub mismatch_status: Option<u16>,
}

impl Default for IdempotencyConfig {
    fn default() -> IdempotencyConfig {
        IdempotencyConfig { ttl_ms: DAY_MS, require: Vec::new(), routes: BTreeMap::new() }
    }
}

impl IdempotencyConfig {
    /// Names in `require` and `routes` that are no route on which a key counts.
    pub fn unknown_routes(&self) -> Vec<String> {
        let known: BTreeSet<String> = keyed().map(name_of).collect();
        let named = self.require.iter().chain(self.routes.keys());
        named.filter(|name| !known.contains(*name)).cloned().collect()
    }
}

/// Those on which a key counts.
fn keyed() -> impl Iterator<Item = &'static Route> {
    ROUTES.into_iter().filter(|route| route.is_keyed)
}

/// As the configuration names it.
fn name_of(route: &Route) -> String {
    format!("{} {}", route.method, route.path)
}

/// One route's rules, resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPolicy {
    pub ttl_ms: i64,
    pub is_required: bool,
    pub mismatch_status: u16,
}

#[derive(Debug)]
pub(crate) struct KeyPolicies {
    usual: KeyPolicy,
    special: Vec<(&'static Route, KeyPolicy)>,
}

impl KeyPolicies {
    pub fn new(config: &IdempotencyConfig) -> KeyPolicies {
        let usual = KeyPolicy {
            ttl_ms: config.ttl_ms,
            is_required: false,
            mismatch_status: Code::IdempotencyConflict.explained().status,
        };
        let special = keyed().filter_map(|route| Some((route, special(config, route, usual)?)));
        KeyPolicies { usual, special: special.collect() }
    }

    pub fn of(&self, route: &Route) -> KeyPolicy {
        let is_it = |(other, _): &&(&Route, KeyPolicy)| other.path == route.path && other.method == route.method;
        self.special.iter().find(is_it).map_or(self.usual, |(_, policy)| *policy)
    }

    /// All times for which keys are remembered, each once.
    pub fn ttls_ms(&self) -> BTreeSet<i64> {
        self.special.iter().map(|(_, policy)| policy.ttl_ms).chain([self.usual.ttl_ms]).collect()
    }

    /// The key, where this route honours one.
    pub fn read(&self, route: &Route, headers: &HeaderMap) -> Result<Option<Key>, Problem> {
        if !route.is_keyed {
            return Ok(None);
        }
        let lines = headers.get_all(KEY_HEADER).iter().map(|line| line.as_bytes());
        match parse_header(lines, Syntax::Lenient) {
            Ok(None) if self.of(route).is_required => {
                Err(Problem::new(Code::IdempotencyKeyMissing, "this route requires an Idempotency-Key header"))
            }
            Ok(key) => Ok(key),
            Err(error) => {
                tracing::debug!(route = route.path, %error, "idempotency key refused");
                Err(Problem::new(Code::IdempotencyKeyMalformed, error.to_string()))
            }
        }
    }
}

fn special(config: &IdempotencyConfig, route: &'static Route, usual: KeyPolicy) -> Option<KeyPolicy> {
    let name = name_of(route);
    let rule = config.routes.get(&name);
    let is_required = config.require.contains(&name);
    if rule.is_none() && !is_required {
        return None;
    }
    let rule = rule.cloned().unwrap_or_default();
    Some(KeyPolicy {
        ttl_ms: rule.ttl_ms.unwrap_or(usual.ttl_ms),
        is_required: rule.required.unwrap_or(is_required),
        mismatch_status: rule.mismatch_status.unwrap_or(usual.mismatch_status),
    })
}
