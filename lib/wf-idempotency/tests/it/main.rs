//! The crate's promises as tables. Knows the public API only.

mod decide;
mod fingerprint;
mod ids;
mod json;
mod key;
mod model;
