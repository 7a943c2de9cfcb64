//! What a route may choose. Safety is not among it: see `decide`. Next: `keyed.rs`.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderName, Method, StatusCode};

use crate::Policy;
use crate::driver::Timing;
use crate::key::Syntax;

/// How the body counts in a fingerprint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bodies {
    /// Byte by byte.
    #[default]
    Raw,
    /// By its meaning, as its media type says: JSON, forms, multipart.
    Canonical,
}

#[derive(Clone, Debug)]
pub struct Route {
    /// A request without a key is refused.
    pub required: bool,
    pub syntax: Syntax,
    pub policy: Policy,
    pub timing: Timing,
    pub bodies: Bodies,
    /// A bigger request is refused when it has a key: it must be read before it is known.
    pub request_bytes_max: usize,
    /// Of a bigger answer only status and headers are kept; its first client gets it whole.
    pub answer_bytes_max: usize,
    /// Kept with an answer beside those of `record::allowed_header`.
    pub headers_kept: Vec<HeaderName>,
    /// Of the answer to a key that belongs to another request.
    pub mismatch: StatusCode,
    /// Where clients read about it; `Link: <…>; rel="describedby"` when a key is missing.
    pub documentation: Option<String>,
}

impl Default for Route {
    fn default() -> Route {
        Route {
            required: false,
            syntax: Syntax::Lenient,
            policy: Policy::default(),
            timing: Timing::default(),
            bodies: Bodies::Raw,
            request_bytes_max: 4 * 1024 * 1024,
            answer_bytes_max: 1024 * 1024,
            headers_kept: Vec::new(),
            mismatch: StatusCode::UNPROCESSABLE_ENTITY,
            documentation: None,
        }
    }
}

impl Route {
    /// This for every POST and PATCH. PUT and DELETE are idempotent by themselves and are opted in by a function of one's own.
    pub fn for_writes(self) -> impl Fn(&Parts) -> Option<Arc<Route>> + Send + Sync {
        let route = Arc::new(self);
        move |parts| [Method::POST, Method::PATCH].contains(&parts.method).then(|| route.clone())
    }
}
