//! Idempotency as pure functions: read a key, fingerprint a request, look at the record, say what to do.
//! Knows no engine, no HTTP framework, no store and no clock: `now_ms` is always an argument.
//! With the feature `postgres`, and only there, it also works inside a transaction that the caller brings.
//! Next: `key`, then along the path of a request down to `decide`, which is where the verdict falls.

pub mod key;
pub mod fingerprint;
pub mod record;
pub mod decide;
pub mod ids;

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

#[cfg(all(doctest, feature = "postgres"))]
#[doc = include_str!("../../../docs/library-postgres.md")]
struct Guide;
