//! Heads of ranges with a frontier: the sort key up to which memory is complete. Entries beyond it are not kept;
//! an empty head with a finite frontier means *refill*, never *nothing there*.

use std::collections::{BTreeMap, BTreeSet};

use wf_core::draft::RangeView;
use wf_core::ranges::Due;
use wf_core::{RangeId, RowId, SortKey};
use wf_store::LoadedRange;

use crate::generations::Generations;

/// Entries that a range gained (`true`) and lost.
pub type Moves = BTreeMap<SortKey, bool>;

pub struct Heads {
    /// Queues of the whole partition: always looked at, never forgotten.
    due: BTreeMap<RangeId, Head>,
    others: Generations<RangeId, Head>,
    /// Heads that have more entries than they may keep when the command at hand has ended.
    grown: BTreeSet<RangeId>,
    entries_max: usize,
}

#[derive(Debug, Default)]
struct Head {
    entries: BTreeSet<SortKey>,
    /// Complete up to and including this; `None`: to the end.
    frontier: Option<SortKey>,
}

impl Heads {
    /// So many heads, and so many entries of one; most are small: the variables of a live instance.
    pub fn new(heads_max: usize, entries_max: usize) -> Heads {
        let entries_max = entries_max.max(1);
        Heads { due: BTreeMap::new(), others: Generations::new(heads_max), grown: BTreeSet::new(), entries_max }
    }

    pub fn clear(&mut self) {
        self.due.clear();
        self.others.clear();
        self.grown.clear();
    }

    fn get(&self, id: &RangeId) -> Option<&Head> {
        if is_due(id) { self.due.get(id) } else { self.others.get(id) }
    }

    fn get_mut(&mut self, id: &RangeId) -> Option<&mut Head> {
        if is_due(id) { self.due.get_mut(id) } else { self.others.get_mut(id) }
    }

    fn insert(&mut self, id: RangeId, head: Head) {
        if head.entries.len() > self.entries_max {
            self.grown.insert(id.clone());
        }
        if is_due(&id) {
            self.due.insert(id, head);
        } else {
            self.others.insert(id, head);
        }
    }

    pub fn view(&self, id: &RangeId) -> Option<RangeView<'_>> {
        self.get(id).map(|head| RangeView { entries: &head.entries, frontier: head.frontier.as_ref() })
    }

    /// A range that begins empty with its owner.
    pub fn born(&mut self, id: RangeId) {
        self.insert(id, Head::default());
    }

    /// A variable that a completely loaded scope does not list does not exist.
    pub fn is_absent(&self, id: &RowId) -> bool {
        let RowId::Variable { scope, name } = id else { return false };
        self.get(&RangeId::Variables(*scope))
            .is_some_and(|head| head.frontier.is_none() && !head.entries.contains(&SortKey::by_name(name)))
    }

    pub fn apply(&mut self, id: &RangeId, moves: &Moves) {
        let entries_max = self.entries_max;
        let Some(head) = self.get_mut(id) else { return };
        moves.iter().for_each(|(sort, added)| head.put(sort, *added));
        if head.entries.len() > entries_max {
            self.grown.insert(id.clone());
        }
    }

    /// What was loaded, with the moves of turns that the load may not have seen, the oldest turn first.
    /// Moves are absolute: one that the load has seen already changes nothing.
    pub fn add<'m>(&mut self, loaded: LoadedRange, moves: impl Iterator<Item = &'m Moves>) {
        let continues =
            self.get(&loaded.id).is_some_and(|head| head.frontier == loaded.after && loaded.after.is_some());
        if loaded.after.is_some() && !continues {
            // The head moved on since it was asked for; the command will ask again.
            return;
        }
        let mut head = match self.get_mut(&loaded.id) {
            Some(head) if continues => std::mem::take(head),
            _ => Head::default(),
        };
        let last = loaded.entries.last().cloned();
        head.frontier = if loaded.complete { None } else { last.or_else(|| loaded.after.clone()) };
        head.entries.extend(loaded.entries);
        let lower = loaded.after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        for moves in moves {
            let behind = moves.range((lower.as_ref(), std::ops::Bound::Unbounded));
            behind.for_each(|(sort, added)| head.put(sort, *added));
        }
        self.insert(loaded.id, head);
    }

    /// Between commands: a head is never cut while a command reads it, which would ask for the rest for ever.
    pub fn age(&mut self) {
        let entries_max = self.entries_max;
        while let Some(id) = self.grown.pop_first() {
            if let Some(head) = self.get_mut(&id) {
                head.cut(entries_max);
            }
        }
        self.others.age();
    }
}

impl Head {
    fn put(&mut self, sort: &SortKey, added: bool) {
        if !added {
            self.entries.remove(sort);
        } else if self.frontier.as_ref().is_none_or(|frontier| sort <= frontier) {
            self.entries.insert(sort.clone());
        }
    }

    fn cut(&mut self, entries_max: usize) {
        while self.entries.len() > entries_max {
            self.entries.pop_last();
            self.frontier = self.entries.last().cloned();
        }
    }
}

fn is_due(id: &RangeId) -> bool {
    matches!(id, RangeId::Due(_) | RangeId::FollowUps)
}

/// The queues that are looked at after every turn.
pub const WATCHED: [RangeId; 5] = [
    RangeId::Due(Due::Timers),
    RangeId::Due(Due::Leases),
    RangeId::Due(Due::Backoffs),
    RangeId::Due(Due::Messages),
    RangeId::FollowUps,
];
/// The queues that retention looks at.
pub const RETAINED: [RangeId; 3] =
    [RangeId::Due(Due::FinishedJobs), RangeId::Due(Due::Ended), RangeId::Due(Due::MessageIds)];
