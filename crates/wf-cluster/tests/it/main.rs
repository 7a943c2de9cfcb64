//! Several nodes in one process over a store in memory. Time is injected, and every look around is asked for.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing has failed")]

mod support;

mod batches;
mod moving;
mod routes;
mod searches;
mod shares;
