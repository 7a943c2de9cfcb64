//! Room 2: takes requests, finds the one answer that may bypass the actor, puts the rest in the mailbox.

use std::sync::Arc;

use wf_core::Millis;
use wf_store::Store;

use crate::options::Options;
use crate::request::{Answered, Refusal, Request};

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("failed to open the partition: {0}")]
    Open(String),
}

/// A running engine. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
}

impl Engine {
    /// Takes the partition and starts its actor. Ready when this returns.
    pub async fn open(store: Arc<dyn Store>, options: Options) -> Result<Engine, EngineError> {
        let _ = options;
        Ok(Engine { store })
    }

    /// Answers only what is durable.
    pub async fn submit(&self, request: Request) -> Result<Answered, Refusal> {
        let _ = request;
        Err(Refusal::Overloaded)
    }

    /// A repeat refused at the door or a conflict seen there is counted by the engine; this is for reads only.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The engine's time: the clock's, never behind the last command's.
    pub fn now(&self) -> Millis {
        0
    }

    /// Resolves when rows were added to the outbox since the last call, or after a while without.
    pub async fn outbox_filled(&self) {}

    /// The engine takes requests and its last commit succeeded.
    pub fn is_ready(&self) -> bool {
        true
    }

    /// Refuses new requests, finishes those in the mailbox, commits, stops.
    pub async fn shutdown(&self) {}
}
