//! Bugs that a test plants to see whether they are caught, one at a time and in one thread. Without the feature `planted`
//! nothing of it is compiled: `is` is a constant then, and the places that ask it are gone.
//! It knows no place. Next: `sim/src/planted.rs`, which runs each until a checker speaks up.

/// Each is one line (or a few) somewhere in the product. The names stand in `docs/reliability.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The record of a request is written by a transaction of its own, after that of the effect.
    RecordOutside,
    /// A repeat in the same turn does not see the record that the turn is about to write.
    NoOverlay,
    /// Whoever names a job may complete it.
    LeaseUnfenced,
    /// The fence is looked at, and the write does not depend on it: an owner deposed in between writes all the same.
    FenceAsSelect,
    /// An answer out of a turn that is not yet durable leaves with the next one, before it.
    AnswerEarly,
    /// Answers leave before the commit.
    AnswerBeforeCommit,
    /// A commit whose outcome is not known counts as failed.
    UnknownAsFailed,
    /// Opening a partition does not lift keys and positions.
    IdsAgain,
    /// A head that is empty before its frontier counts as empty.
    NoFrontier,
    /// Messages are marked as shipped, then shipped.
    MarkBeforeShip,
    /// The paths of a fork are taken in the order of a map.
    MapOrder,
    /// The core reads a clock.
    ClockInCore,
    /// A follow-up's id is not that follow-up's own.
    FollowUpId,
    /// Message ids are forgotten when a node starts.
    WindowOnRestart,
    /// Records expire a thousand times too early.
    ShortTtl,
    /// A key alone is enough for a replay.
    NoFingerprint,
    /// A message does not wait for the earlier ones of its instance.
    Overtaking,
    /// A message that was not acknowledged counts as shipped.
    LostAckIsShipped,
    /// After a failed turn the memory keeps what never was.
    StaleMemory,
    /// Command time follows the clock, also backwards.
    TimeGoesBack,
    /// Two live instances may have the same unique value.
    NotUnique,
    /// The second write of a variable in a turn is dropped.
    LostWrite,
    /// A variable that exists keeps its value.
    NoOverwrite,
    /// A holder's second completion completes again.
    CompletesAgain,
    /// A turn that writes nothing is answered without asking for the fence.
    FenceUnasked,
    /// A lease that ran out ends without a trace in the audit.
    UnauditedExpiry,
}

impl Bug {
    pub const ALL: [Bug; 26] = [
        Bug::RecordOutside,
        Bug::NoOverlay,
        Bug::LeaseUnfenced,
        Bug::FenceAsSelect,
        Bug::AnswerEarly,
        Bug::AnswerBeforeCommit,
        Bug::UnknownAsFailed,
        Bug::IdsAgain,
        Bug::NoFrontier,
        Bug::MarkBeforeShip,
        Bug::MapOrder,
        Bug::ClockInCore,
        Bug::FollowUpId,
        Bug::WindowOnRestart,
        Bug::ShortTtl,
        Bug::NoFingerprint,
        Bug::Overtaking,
        Bug::LostAckIsShipped,
        Bug::StaleMemory,
        Bug::TimeGoesBack,
        Bug::NotUnique,
        Bug::LostWrite,
        Bug::NoOverwrite,
        Bug::CompletesAgain,
        Bug::FenceUnasked,
        Bug::UnauditedExpiry,
    ];
}

/// Another order each time, as a map with a hash of its own would give it.
pub fn in_map_order<T: Copy + Eq + std::hash::Hash>(all: &[T]) -> Vec<T> {
    all.iter().copied().collect::<std::collections::HashSet<T>>().into_iter().collect()
}

/// A little that only a clock knows.
pub fn clock() -> i64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |elapsed| i64::from(elapsed.subsec_micros() % 100))
}

#[cfg(not(feature = "planted"))]
mod chosen {
    use super::Bug;

    /// Never.
    #[inline(always)]
    pub const fn is(_: Bug) -> bool {
        false
    }

    /// Nothing to be noted.
    #[inline(always)]
    pub const fn note(_: u64) {}

    #[inline(always)]
    pub const fn noted() -> u64 {
        0
    }
}

#[cfg(feature = "planted")]
mod chosen {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static CHOSEN: Cell<Option<Bug>> = const { Cell::new(None) };
        static NOTED: Cell<u64> = const { Cell::new(0) };
    }

    /// This one is planted in this thread.
    pub fn is(bug: Bug) -> bool {
        CHOSEN.get() == Some(bug)
    }

    /// Plants one, in this thread; `None`: the product as it is.
    pub fn plant(bug: Option<Bug>) {
        CHOSEN.set(bug);
        NOTED.set(0);
    }

    /// What a planted bug remembers beside the state, as a bug would.
    pub fn note(number: u64) {
        NOTED.set(number);
    }

    pub fn noted() -> u64 {
        NOTED.get()
    }

    /// Stands in every program that was compiled with the feature, and in no other.
    #[used]
    static MARK: &str = "wf-core: planted bugs are compiled in";
}

pub use chosen::*;
