//! What a key was used for, in 32 bytes: method, concrete path, query, media type and the body's meaning under a MAC.
//! Does not know routes, tenants or headers, and keeps nothing of the body.
//! Next: `fingerprint/json.rs`, where spelling is taken out of JSON; then `record`.

mod json;
mod multipart;
mod pairs;

use crate::mac::Mac;
use std::fmt;

/// Equal for two requests that mean the same, different for any others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 32]);

/// The secret under which fingerprints are made: without it a stored fingerprint would confirm guesses of the body.
#[derive(Clone)]
pub struct MacKey {
    id: u32,
    /// Already keyed: saves two compressions per request.
    start: Mac,
}

impl MacKey {
    pub fn new(id: u32, secret: [u8; 32]) -> MacKey {
        MacKey { id, start: Mac::new(&secret, "fingerprint/1") }
    }

    /// What a record remembers, so that a secret can be changed while records live.
    pub fn id(&self) -> u32 {
        self.id
    }
}

/// How a body is read. Whatever cannot be read as its kind counts as raw bytes, under a tag of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// Members sorted, white space and spelling gone, numbers exact.
    Json,
    Raw,
    /// `a=1&b=2`, names sorted, repeated names in their order.
    Form,
    /// The parts without the boundary, which differs at every retry.
    Multipart {
        boundary: String,
    },
}

impl BodyKind {
    pub fn from_content_type(content_type: &str) -> BodyKind {
        let essence = essence(content_type);
        match essence.as_str() {
            "application/json" | "text/json" => BodyKind::Json,
            "application/x-www-form-urlencoded" => BodyKind::Form,
            "multipart/form-data" => match multipart::boundary(content_type) {
                Some(boundary) => BodyKind::Multipart { boundary },
                None => BodyKind::Raw,
            },
            _ if essence.ends_with("+json") => BodyKind::Json,
            _ => BodyKind::Raw,
        }
    }
}

/// The fingerprint of a request whose body is read as its content type says.
///
/// `method` and the path are taken as they stand: `/a` and `/%61` are two paths, for a conflict is harmless and a wrong
/// replay is not. Parameters of the content type do not count.
pub fn fingerprint(mac: &MacKey, method: &str, path_and_query: &str, content_type: &str, body: &[u8]) -> Fingerprint {
    fingerprint_as(mac, method, path_and_query, content_type, &BodyKind::from_content_type(content_type), body)
}

/// As `fingerprint`, with the body's kind given: a gateway that must not look into bodies takes `Raw`.
pub fn fingerprint_as(
    mac: &MacKey,
    method: &str,
    path_and_query: &str,
    content_type: &str,
    kind: &BodyKind,
    body: &[u8],
) -> Fingerprint {
    let (path, query) =
        path_and_query.split_once('?').map_or((path_and_query, None), |(path, query)| (path, Some(query)));
    let mut mac = mac.start.clone();
    mac.part(method.as_bytes());
    mac.part(path.as_bytes());
    match query {
        None => mac.count(0),
        Some(query) => pairs::add(&mut mac, query.as_bytes()),
    }
    mac.part(essence(content_type).as_bytes());
    add_body(&mut mac, kind, body);
    Fingerprint(mac.finish())
}

/// JSON without its spelling, as bytes that are equal exactly when the values are: for hashing and comparing, not for
/// reading. `None` for what different readers understand differently (see the README).
pub fn canonical_json(text: &[u8]) -> Option<Vec<u8>> {
    json::canonical(text)
}

/// The media type without its parameters, in lower case.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

const TAG_RAW: usize = 0;
const TAG_JSON: usize = 1;
const TAG_FORM: usize = 2;
const TAG_MULTIPART: usize = 3;

fn add_body(mac: &mut Mac, kind: &BodyKind, body: &[u8]) {
    match kind {
        BodyKind::Form if !body.is_empty() => {
            mac.count(TAG_FORM);
            pairs::add(mac, body);
        }
        BodyKind::Json => match json::canonical(body) {
            Some(canonical) => add_tagged(mac, TAG_JSON, &canonical),
            None => add_tagged(mac, TAG_RAW, body),
        },
        BodyKind::Multipart { boundary } => match multipart::parts(body, boundary) {
            Some(parts) => {
                mac.count(TAG_MULTIPART);
                multipart::add(mac, &parts);
            }
            None => add_tagged(mac, TAG_RAW, body),
        },
        BodyKind::Form | BodyKind::Raw => add_tagged(mac, TAG_RAW, body),
    }
}

fn add_tagged(mac: &mut Mac, tag: usize, bytes: &[u8]) {
    mac.count(tag);
    mac.part(bytes);
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({})", crate::key::hex(&self.0))
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MacKey {{ id: {}, .. }}", self.id)
    }
}
