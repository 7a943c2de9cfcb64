//! Heads of ranges with a frontier: the sort key up to which memory is complete. Entries beyond it are not kept;
//! an empty head with a finite frontier means *refill*, never *nothing there*.

use std::collections::{BTreeMap, BTreeSet};

use wf_core::draft::RangeView;
use wf_core::ranges::{Due, entries};
use wf_core::{RangeId, Row, RowId, SortKey};
use wf_store::LoadedRange;

use crate::generations::Generations;

/// Entries of one head; the last ones go when it grows beyond.
const HEAD_MAX: usize = 4_096;
/// Heads in memory. Most are small: the variables of a live instance.
const HEADS_MAX: usize = 40_000;

pub struct Heads {
    /// Queues of the whole partition: always looked at, never evicted.
    due: BTreeMap<RangeId, Head>,
    others: Generations<RangeId, Head>,
}

#[derive(Debug, Default)]
struct Head {
    entries: BTreeSet<SortKey>,
    /// Complete up to and including this; `None`: to the end.
    frontier: Option<SortKey>,
}

impl Heads {
    pub fn new() -> Heads {
        Heads { due: BTreeMap::new(), others: Generations::new(HEADS_MAX) }
    }

    pub fn clear(&mut self) {
        self.due.clear();
        self.others.clear();
    }

    fn get(&self, id: &RangeId) -> Option<&Head> {
        if is_due(id) { self.due.get(id) } else { self.others.get(id) }
    }

    fn get_mut(&mut self, id: &RangeId) -> Option<&mut Head> {
        if is_due(id) { self.due.get_mut(id) } else { self.others.get_mut(id) }
    }

    fn insert(&mut self, id: RangeId, head: Head) {
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

    pub fn apply(&mut self, moved: &BTreeMap<RangeId, BTreeMap<SortKey, bool>>) {
        for (id, sorts) in moved {
            let Some(head) = self.get_mut(id) else { continue };
            for (sort, added) in sorts {
                if *added {
                    head.insert(sort.clone());
                } else {
                    head.entries.remove(sort);
                }
            }
        }
    }

    /// What was loaded, with the changes of turns that the load cannot have seen.
    pub fn add(&mut self, loaded: LoadedRange, uncommitted: &[(&RowId, Option<&Row>)]) {
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
        head.frontier = if loaded.complete { None } else { last };
        head.entries.extend(loaded.entries);
        for (id, row) in uncommitted {
            correct(&mut head, &loaded.id, id, *row, loaded.after.as_ref());
        }
        self.insert(loaded.id, head);
    }
}

/// Puts one uncommitted row in its place in a head that was loaded without it.
fn correct(head: &mut Head, range: &RangeId, id: &RowId, row: Option<&Row>, after: Option<&SortKey>) {
    head.entries.retain(|sort| {
        let is_this = may_be(range, sort, id);
        !is_this || after.is_some_and(|after| sort <= after)
    });
    let Some(row) = row else { return };
    entries(row, |its_range, sort| {
        if its_range == *range && after.is_none_or(|after| sort > *after) {
            head.insert(sort);
        }
    });
}

fn may_be(range: &RangeId, sort: &SortKey, id: &RowId) -> bool {
    wf_core::ranges::row_at(range, sort).as_ref() == Some(id)
}

impl Head {
    fn insert(&mut self, sort: SortKey) {
        if self.frontier.as_ref().is_some_and(|frontier| sort > *frontier) {
            return;
        }
        self.entries.insert(sort);
        while self.entries.len() > HEAD_MAX {
            self.entries.pop_last();
            self.frontier = self.entries.last().cloned();
        }
    }
}

fn is_due(id: &RangeId) -> bool {
    matches!(id, RangeId::Due(_) | RangeId::FollowUps)
}

/// The queues that are looked at after every turn.
pub const WATCHED: [RangeId; 4] =
    [RangeId::Due(Due::Timers), RangeId::Due(Due::Leases), RangeId::Due(Due::Backoffs), RangeId::Due(Due::Messages)];
/// The queues that retention looks at.
pub const RETAINED: [RangeId; 3] =
    [RangeId::Due(Due::FinishedJobs), RangeId::Due(Due::Ended), RangeId::Due(Due::MessageIds)];
