//! Client and worker for Onceflow's REST API: typed calls, each repeated safely under one idempotency key.
//! It knows the contract only, nothing of the engine behind it; a program may depend on this crate alone.
//! Read `client.rs` (how a call is repeated), `routes.rs` (the calls), then `worker.rs`.
//!
//! ```no_run
//! # async fn example() -> Result<(), wf_client::ClientError> {
//! use wf_client::{Client, StartInstance};
//!
//! let client = Client::new("http://127.0.0.1:8080")?;
//! let start = StartInstance::of("order").variable("orderId", "o-1");
//! let started = client.start(&start).key("order-o-1").await?;
//! println!("instance {}", started.key);
//! # Ok(()) }
//! ```

mod client;
mod routes;
mod proofs;
mod types;
mod explanation;
mod worker;
mod error;

pub use client::{Call, Client, Credentials, Reply, Retry};
pub use error::{ClientError, Problem};
pub use explanation::*;
pub use routes::InstanceFilter;
pub use types::*;
pub use worker::{Handler, Outcome, StepError, Summary, Task, Worker, WorkerOptions};

/// A fresh idempotency key: 122 random bits.
pub fn fresh_key() -> String {
    uuid::Uuid::new_v4().to_string()
}
