//! Idempotency as pure functions: read a key, fingerprint a request, look at the record, say what to do.
//! Knows no engine, no HTTP framework, no store and no clock: `now_ms` is always an argument.
//! With the feature `postgres`, and only there, it also works inside a transaction that the caller brings.
//! Next: `key`, then along the path of a request down to `decide`, which is where the verdict falls; `store`, where records
//! live when they cannot be in the transaction of what was asked for.

pub mod key;
pub mod fingerprint;
pub mod record;
pub mod decide;
pub mod ids;
pub mod store;

#[cfg(feature = "driver")]
pub mod driver;
#[cfg(feature = "tower")]
pub mod layer;
#[cfg(feature = "postgres")]
pub mod postgres;

mod mac;

pub use decide::{Policy, Verdict, decide};
pub use fingerprint::{Fingerprint, MacKey, fingerprint};
pub use key::Key;
pub use record::{Answer, Record, State};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "tower", feature = "sqlite"))]
#[doc = include_str!("../../../docs/library-http.md")]
struct LayerGuide;

#[cfg(all(doctest, feature = "postgres"))]
#[doc = include_str!("../../../docs/library-postgres.md")]
struct Guide;
