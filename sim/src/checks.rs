//! What must hold whatever happened, each promise under a short name: traces, the table of planted bugs and the
//! documentation call it by that. Run when the world has come to rest. Next: the files below, by what they look at.

pub mod history;
mod requests;
mod jobs;
mod books;
mod bus;
mod lineage;

use std::sync::Arc;

use wf_store::memory::MemoryStore;

use crate::checks::history::History;
use crate::facts::Facts;
use crate::restore::Lost;
use crate::world::World;

/// Everything that checkers look at.
pub struct Scene<'s> {
    pub world: &'s World,
    pub store: &'s MemoryStore,
    pub facts: &'s Facts,
    /// Of the store that is left.
    pub now: &'s History,
    pub lost: Option<&'s Lost>,
}

/// What is wrong, one line each.
pub type Findings = Vec<String>;
type Checker = fn(&Scene<'_>) -> Findings;

/// Those that look at what is left in the end, besides `replay`. `panic` and `quiet` speak up where they see it.
pub const CHECKERS: [(&str, Checker); 13] = [
    ("one-effect", requests::one_effect),
    ("same-answer", requests::same_answer),
    ("conflict", requests::conflict),
    ("truth", requests::truth),
    ("kept", requests::kept),
    ("lost-job", jobs::lost_job),
    ("one-lease", jobs::one_lease),
    ("unique", jobs::unique),
    ("lost-update", jobs::lost_update),
    ("audit", books::audit),
    ("published-iff-committed", bus::published),
    ("order", bus::order),
    ("restore", lineage::restore),
];

/// The most that one checker says.
const FINDINGS_MAX: usize = 5;

pub async fn run(world: &Arc<World>, store: &MemoryStore) {
    let now = History::of(store).await;
    let mut violations = Vec::new();
    {
        let (facts, lost) = (world.facts(), world.lost());
        let scene = Scene { world, store, facts: &facts, now: &now, lost: lost.as_ref() };
        for (name, check) in CHECKERS {
            violations.extend(check(&scene).into_iter().take(FINDINGS_MAX).map(|what| (name, what)));
        }
    }
    violations.extend(books::replay(store).await.into_iter().map(|what| ("replay", what)));
    violations.into_iter().for_each(|(checker, what)| world.violated(checker, what));
}
