//! Who is asking: a bearer token's tenant, name and roles, or, without authentication, the tenant that a header names.
//! It does not know what a route does. Next: `door.rs`.

use std::sync::LazyLock;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use wf_api::{Code, Problem};
use wf_core::rows::Text;

use crate::route::Permission;

pub const TENANT_HEADER: &str = "wf-tenant";
const DEFAULT_TENANT: &str = "default";
const TENANT_BYTES_MAX: usize = 63;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything.
    Admin,
    /// An application: starts and cancels instances, sets variables, publishes messages, and reads these.
    /// Deploying is not part of it: who may start a process must not be able to replace it.
    Client,
    /// Takes and finishes jobs, and lists them.
    Worker,
    /// Reads everything, audit and keys too, changes nothing.
    Reader,
}

/// A credential as the configuration lists it.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// Stands in the audit as the actor.
    pub name: String,
    pub tenant: String,
    /// Lower-case hex of the token's SHA-256.
    pub sha256: String,
    pub roles: Vec<String>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AuthError {
    #[error("api key {name}: sha256 must be 64 lower-case hex digits")]
    Hash { name: String },
    #[error("api key {name}: unknown role {role}")]
    Role { name: String, role: String },
    #[error("api key {name}: malformed tenant")]
    Tenant { name: String },
}

/// Without keys everybody is let in.
#[derive(Clone, Debug, Default)]
pub struct Auth {
    credentials: Vec<Credential>,
}

#[derive(Clone, Debug)]
struct Credential {
    name: Text,
    tenant: Text,
    sha256: [u8; 32],
    roles: Vec<Role>,
}

/// An authenticated caller.
#[derive(Clone, Debug)]
pub struct Visitor {
    pub tenant: Text,
    /// The credential's name; none without authentication.
    pub name: Option<Text>,
}

impl Auth {
    pub fn new(keys: &[ApiKey]) -> Result<Auth, AuthError> {
        Ok(Auth { credentials: keys.iter().map(credential).collect::<Result<Vec<_>, _>>()? })
    }

    pub fn is_off(&self) -> bool {
        self.credentials.is_empty()
    }

    pub fn admit(&self, headers: &HeaderMap, permission: Permission) -> Result<Visitor, Problem> {
        if self.is_off() {
            let tenant = tenant_of(headers)?;
            return Ok(Visitor { tenant, name: None });
        }
        let token = bearer(headers)?;
        let hash: [u8; 32] = Sha256::digest(token).into();
        let known = self.find(&hash).ok_or_else(|| unauthenticated("the token is unknown"))?;
        if !known.roles.iter().any(|role| role.grants(permission)) {
            return Err(Problem::new(Code::Forbidden, "no role of this credential covers this route"));
        }
        Ok(Visitor { tenant: known.tenant.clone(), name: Some(known.name.clone()) })
    }

    /// Looks at all of them, so that the time tells nothing about which one was near.
    fn find(&self, hash: &[u8; 32]) -> Option<&Credential> {
        let mut found = None;
        for credential in &self.credentials {
            if bool::from(credential.sha256.ct_eq(hash)) {
                found = Some(credential);
            }
        }
        found
    }
}

impl Role {
    fn grants(self, permission: Permission) -> bool {
        use Permission::*;
        match self {
            Role::Admin => true,
            Role::Client => matches!(permission, Use | Read | ReadJobs),
            Role::Worker => matches!(permission, Work | ReadJobs),
            Role::Reader => matches!(permission, Read | ReadJobs | Observe),
        }
    }

    fn parse(text: &str) -> Option<Role> {
        match text {
            "admin" => Some(Role::Admin),
            "client" => Some(Role::Client),
            "worker" => Some(Role::Worker),
            "reader" => Some(Role::Reader),
            _ => None,
        }
    }
}

fn tenant_of(headers: &HeaderMap) -> Result<Text, Problem> {
    static DEFAULT: LazyLock<Text> = LazyLock::new(|| Text::from(DEFAULT_TENANT));
    let mut lines = headers.get_all(TENANT_HEADER).iter();
    let Some(line) = lines.next() else { return Ok(DEFAULT.clone()) };
    let text = line.to_str().ok().filter(|text| is_tenant(text));
    match (text, lines.next()) {
        (_, Some(_)) => Err(Problem::validation("Wf-Tenant", "stands on more than one line")),
        (Some(text), None) => Ok(Text::from(text)),
        (None, None) => Err(Problem::validation("Wf-Tenant", "must be 1 to 63 of A-Z a-z 0-9 . _ -")),
    }
}

/// An empty header counts as absent.
fn bearer(headers: &HeaderMap) -> Result<&[u8], Problem> {
    let mut lines = headers.get_all(AUTHORIZATION).iter().map(|line| line.as_bytes().trim_ascii());
    let line = lines.next().filter(|line| !line.is_empty()).ok_or_else(|| unauthenticated("a token is required"))?;
    if lines.next().is_some() {
        return Err(unauthenticated("the Authorization header stands on more than one line"));
    }
    let (scheme, token) = line.split_at_checked("bearer ".len()).unwrap_or_default();
    match scheme.eq_ignore_ascii_case(b"bearer ") && !token.trim_ascii().is_empty() {
        true => Ok(token.trim_ascii()),
        false => Err(unauthenticated("the Authorization header must be of the form Bearer TOKEN")),
    }
}

fn unauthenticated(detail: &str) -> Problem {
    Problem::new(Code::Unauthenticated, detail)
}

pub fn is_tenant(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=TENANT_BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

fn credential(key: &ApiKey) -> Result<Credential, AuthError> {
    let name = || key.name.clone();
    if !is_tenant(&key.tenant) {
        return Err(AuthError::Tenant { name: name() });
    }
    let sha256 = hash_from_hex(&key.sha256).ok_or_else(|| AuthError::Hash { name: name() })?;
    let role = |role: &String| Role::parse(role).ok_or_else(|| AuthError::Role { name: name(), role: role.clone() });
    let roles = key.roles.iter().map(role).collect::<Result<Vec<_>, _>>()?;
    Ok(Credential { name: Text::from(&*key.name), tenant: Text::from(&*key.tenant), sha256, roles })
}

fn hash_from_hex(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let digits: Vec<u8> = text.as_bytes().iter().map(digit).collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    (text.len() == 64).then(|| bytes.try_into().ok())?
}
