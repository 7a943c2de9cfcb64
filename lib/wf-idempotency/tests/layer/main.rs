//! The layer as a service sees it: L1.2-L1.5, L1.8 and the rows of the situations that a library answers for.

#![allow(clippy::unwrap_used, reason = "a test that is surprised fails")]

mod fidelity;
mod outcomes;
mod situations;
mod support;
