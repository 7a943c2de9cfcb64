//! The dialect from outside, in one binary. Knows the public API only. Read in this order.

mod support;

mod language;
mod functions;
mod limits;
mod random;
