//! What keys were used for: a report for the operator who looks for a client's bug or an attack.
//! It never shows a key itself. Next: `wf_store::query::KeyUses`.

use serde::Serialize;
use utoipa::ToSchema;
use wf_core::rows::Text;
use wf_idempotency::key;
use wf_store::{KeyUse, KeyUses};

use crate::time::Instant;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyUsesOut {
    pub items: Vec<KeyUseOut>,
    pub totals: Totals,
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// One key over the asked time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyUseOut {
    pub key_hash: String,
    #[schema(value_type = String)]
    pub route: Text,
    /// `COMPLETED`, `EXPIRED` or `NONE`.
    #[schema(value_type = String)]
    pub state: &'static str,
    #[schema(value_type = String, format = DateTime)]
    pub first_seen_at: Instant,
    #[schema(value_type = String, format = DateTime)]
    pub last_seen_at: Instant,
    /// Repeats only.
    pub hits: u64,
    pub conflicts: u64,
}

/// Over all that was found, not only this page.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    pub keys: u64,
    pub hits: u64,
    pub conflicts: u64,
    pub in_progress: u64,
}

/// `next_cursor`: the store's, wrapped by the door.
pub fn uses_of(uses: KeyUses, next_cursor: Option<String>) -> KeyUsesOut {
    let totals = Totals { keys: uses.keys, hits: uses.hits, conflicts: uses.conflicts, in_progress: uses.in_progress };
    KeyUsesOut { items: uses.items.into_iter().map(use_of).collect(), totals, next_cursor }
}

fn use_of(used: KeyUse) -> KeyUseOut {
    KeyUseOut {
        key_hash: key::hex(&used.key_hash),
        route: used.route,
        state: used.state,
        first_seen_at: Instant(used.first_seen),
        last_seen_at: Instant(used.last_seen),
        hits: used.hits,
        conflicts: used.conflicts,
    }
}
