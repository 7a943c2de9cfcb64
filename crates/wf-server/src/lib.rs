//! Room 1: HTTP. Authenticate, read the key, fingerprint, make a command; render what comes back. Decides nothing.
//! It knows no store by name and no shape of JSON: `wf-api` has those.
//! Follow a request: `seam.rs` → `routes/*.rs` → `door.rs::enter` → `call.rs::submit` → `wf_engine::Engine::submit`.

pub mod server;
pub mod app;

mod seam;
mod routes;
mod door;
mod call;
mod body;

pub mod auth;
pub mod keys;
pub mod route;

mod params;
mod page;
mod graphs;
mod openapi;
mod metrics;

pub use app::App;
pub use auth::{ApiKey, Auth, AuthError, Role};
pub use keys::{IdempotencyConfig, RouteRule};
pub use metrics::recorder;
pub use server::{ServeError, Server};
