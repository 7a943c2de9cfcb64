//! One node among several that share a store: which partitions it owns, where a request belongs, and what concerns more
//! than one partition. It knows no HTTP: what belongs elsewhere is named with its owner's address, and a door carries it.
//! Follow a request: `node.rs::submit` → `route.rs` → `seats.rs` → `wf_engine::Engine::submit`. Follow ownership:
//! `supervisor.rs` → `ownership.rs`.

mod node;
pub mod route;
mod seats;

pub mod ownership;
mod supervisor;

mod activate;
mod queues;
mod scouts;

pub mod many;
mod status;

pub use activate::{Search, Step};
pub use node::{Node, NodeError, Options, Owner, Patience, Reply};
pub use queues::QueueId;
pub use scouts::{Later, Peers};
pub use seats::{Peer, Seat};
pub use status::{Readiness, Standing};
pub use supervisor::Supervisor;
