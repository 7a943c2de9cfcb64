//! Room 1: HTTP. Authenticate, read the key, fingerprint, make a command; render what comes back. Decides nothing.
//! It knows no store by name and no shape of JSON: `wf-api` has those.
//! Follow a request: `seam.rs` → `routes/*.rs` → `call.rs::enter`, `call.rs::submit` → `wf_engine::Engine::submit`; where
//! several nodes share the store, by way of `spread.rs`.

pub mod app;
pub mod server;

mod seam;
mod routes;
mod call;
mod spread;
mod peers;
mod body;
mod door;

pub mod auth;
pub mod keys;
pub mod route;

mod explain;
mod graphs;
mod metrics;
mod openapi;
mod page;
mod params;

pub use app::{App, Database, Databases, Folder, Scratch, ScratchStore};
pub use auth::{ApiKey, Auth, AuthError, Role};
pub use keys::{IdempotencyConfig, RouteRule};
pub use metrics::recorder;
pub use server::Server;
