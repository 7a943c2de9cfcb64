//! The compiler from outside: real files, small faulty models, hostile bytes. In reading order.
//! `UPDATE_EXPECT=1 cargo test` rewrites the expectations.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod corpus;
mod support;

mod elements;
mod structure;
mod values;

mod never_panics;
