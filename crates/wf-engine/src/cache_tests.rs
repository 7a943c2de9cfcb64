//! The cache with tiny limits answers rows and ranges exactly as the store does, under random changes, uncommitted
//! turns, commits in flight, failures, and pages of one to three entries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wf_core::draft::{Base, Draft, Stop};
use wf_core::ranges::{self, Due};
use wf_core::rows::*;
use wf_core::{Need, RangeId, SortKey};
use wf_store::{Change, Loaded, LoadedRange};

use crate::cache::{Cache, Limits};

/// What a store holds, and what it will hold when the turns under way are committed.
struct World {
    cache: Cache,
    committed: BTreeMap<RowId, Row>,
    /// Changes of the turn that is being committed, and whether the store has them already.
    in_flight: Option<(Vec<Change>, bool)>,
    /// Everything, with uncommitted changes: what the cache must answer.
    truth: BTreeMap<RowId, Row>,
    page_max: usize,
    loads: usize,
    random: u64,
}

const KEYS: u64 = 14;

impl World {
    fn new(seed: u64) -> World {
        let limits = match seed % 3 {
            0 => Limits { rows_max: 8, heads_max: 2, head_entries_max: 4 },
            1 => Limits { rows_max: 2, heads_max: 8, head_entries_max: 1 },
            _ => Limits { rows_max: 1_000, heads_max: 100, head_entries_max: 3 },
        };
        World {
            cache: Cache::new(limits),
            committed: BTreeMap::new(),
            in_flight: None,
            truth: BTreeMap::new(),
            page_max: 1 + (seed % 4) as usize,
            loads: 0,
            random: seed,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }

    /// As a store does: pages in order, known-absent rows, all of one moment.
    fn load(&mut self, needs: BTreeSet<Need>) {
        self.loads += 1;
        let mut loaded = Loaded::default();
        for need in needs {
            match need {
                Need::Row(id) => loaded.rows.push((id.clone(), self.committed.get(&id).cloned())),
                Need::Range(id, after) => {
                    let entries = range_of(&self.committed, &id);
                    let mut behind = entries.into_iter().filter(|sort| after.as_ref().is_none_or(|after| sort > after));
                    let page: Vec<SortKey> = behind.by_ref().take(self.page_max).collect();
                    let ids = page.iter().filter_map(|sort| ranges::row_at(&id, sort));
                    loaded.rows.extend(ids.map(|id| (id.clone(), self.committed.get(&id).cloned())));
                    let complete = behind.next().is_none();
                    loaded.ranges.push(LoadedRange { id, after, entries: page, complete });
                }
                Need::Process(_) => panic!("nobody asks for one"),
            }
        }
        self.cache.add(loaded);
    }

    /// Runs a command until nothing is missing; it must come to an end however little fits in memory.
    fn run<T>(&mut self, mut command: impl FnMut(&mut Draft<'_>) -> Result<T, Stop>) -> (T, wf_core::draft::Changes) {
        for _ in 0..1_000 {
            let base: &dyn Base = &self.cache;
            let mut draft = Draft::new(base, 1, 1);
            match command(&mut draft) {
                Ok(done) => {
                    let changes = draft.finish();
                    return (done, changes);
                }
                Err(Stop::Missing(needs)) => self.load(needs),
                Err(refused) => panic!("{refused:?}"),
            }
        }
        panic!("a command asks for ever");
    }

    fn change(&mut self) {
        let row = self.random_row();
        let id = row.id();
        let is_delete = self.below(4) == 0;
        let ((), changes) = self.run(|draft| match (is_delete, &row) {
            (true, _) => draft.delete(id.clone()),
            (_, Row::Job(job)) => draft.put((**job).clone()).map(drop),
            (_, Row::Variable(variable)) => draft.put((**variable).clone()).map(drop),
            (_, Row::Element(element)) => draft.put((**element).clone()).map(drop),
            _ => Ok(()),
        });
        let mut seen = Vec::new();
        self.cache.apply(changes, |old, new| seen.push((old.cloned(), new.cloned())));
        let before = self.truth.get(&id).cloned();
        let after = (!is_delete).then_some(row);
        assert_eq!(seen, [(before, after.clone())], "what the digest shifts by");
        match after {
            Some(row) => drop(self.truth.insert(id, row)),
            None => drop(self.truth.remove(&id)),
        }
        self.cache.end_command();
    }

    fn random_row(&mut self) -> Row {
        let key = 1 + self.below(KEYS);
        match self.below(4) {
            0 => Row::Variable(Arc::new(Variable {
                scope: 1 + self.below(2),
                name: format!("v{key}").into(),
                value: self.below(3).to_string().into(),
            })),
            1 => Row::Element(Arc::new(element(key, 1 + self.below(2)))),
            _ => {
                let states = [JobState::Ready, JobState::Activated, JobState::Backoff, JobState::Failed];
                let state = states[self.below(4) as usize];
                Row::Job(Arc::new(job(key, state, self.below(3) as i32, self.below(5) as i64)))
            }
        }
    }

    /// An instance begins: its ranges are known to hold what the command puts there.
    fn give_birth(&mut self) {
        let scope = 3 + self.below(2);
        let lives = self.truth.keys().any(|id| matches!(id, RowId::Variable { scope: its, .. } if *its == scope));
        if lives {
            return;
        }
        let names: Vec<Text> = (0..self.below(7)).map(|n| format!("n{n}").into()).collect();
        let ((), changes) = self.run(|draft| {
            draft.born(scope);
            for name in &names {
                draft.insert_new(Variable { scope, name: name.clone(), value: "1".into() });
            }
            Ok(())
        });
        self.cache.apply(changes, |old, _| assert_eq!(old, None));
        for name in names {
            let row = Variable { scope, name, value: "1".into() };
            self.truth.insert(row.id(), Row::Variable(Arc::new(row)));
        }
        self.cache.end_command();
    }

    /// An instance ends.
    fn bury(&mut self) {
        let scope = 3 + self.below(2);
        let ((), changes) = self.run(|draft| {
            while let Some(sort) = draft.next_in(&RangeId::Variables(scope), None)? {
                draft.delete(RowId::Variable { scope, name: sort.name })?;
            }
            Ok(())
        });
        self.cache.apply(changes, |_, new| assert_eq!(new, None));
        self.truth.retain(|id, _| !matches!(id, RowId::Variable { scope: its, .. } if *its == scope));
        self.cache.end_command();
    }

    fn close_turn(&mut self) {
        if self.in_flight.is_none() {
            self.in_flight = Some((self.cache.changes(), false));
            self.cache.next_layer();
        }
    }

    /// The store has it; the engine does not know yet.
    fn reach_the_store(&mut self) {
        if let Some((changes, reached)) = &mut self.in_flight
            && !*reached
        {
            *reached = true;
            for change in changes {
                assert_eq!(self.committed.contains_key(&change.id), change.existed, "{change:?}");
                match &change.new {
                    Some(row) => drop(self.committed.insert(change.id.clone(), row.clone())),
                    None => drop(self.committed.remove(&change.id)),
                }
            }
        }
    }

    fn settle(&mut self) {
        self.reach_the_store();
        if self.in_flight.take().is_some() {
            self.cache.settle();
        }
    }

    /// The turn fails; whether the store has it decides what is true.
    fn fail(&mut self) {
        self.in_flight = None;
        self.cache.clear();
        self.truth = self.committed.clone();
    }

    fn look(&mut self) {
        let range = match self.below(7) {
            0 => RangeId::Ready { tenant: "t".into(), job_type: "j".into() },
            1 => RangeId::Due(Due::Leases),
            2 => RangeId::Due(Due::Backoffs),
            3 => RangeId::Elements(1 + self.below(2)),
            _ => RangeId::Variables(1 + self.below(4)),
        };
        let limit = [1, 3, 100][self.below(3) as usize];
        let (found, _) = self.run(|draft| draft.first_in(&range, limit));
        let wanted: Vec<SortKey> = range_of(&self.truth, &range).into_iter().take(limit).collect();
        assert_eq!(found, wanted, "{range:?}");
        let id = self.random_row().id();
        let (found, _) = self.run(|draft| match &id {
            RowId::Job(_) => Ok(draft.get::<Job>(&id)?.map(Row::Job)),
            RowId::Element { .. } => Ok(draft.get::<Element>(&id)?.map(Row::Element)),
            _ => Ok(draft.get::<Variable>(&id)?.map(Row::Variable)),
        });
        assert_eq!(found.as_ref(), self.truth.get(&id), "{id:?}");
        if self.below(2) == 0 {
            self.cache.end_command();
        }
    }

    fn step(&mut self) {
        match self.below(20) {
            0..=7 => self.change(),
            8 => self.give_birth(),
            9 => self.bury(),
            10 | 11 => self.close_turn(),
            12 => self.reach_the_store(),
            13 | 14 => self.settle(),
            15 if self.below(4) == 0 => self.fail(),
            _ => self.look(),
        }
    }
}

fn range_of(rows: &BTreeMap<RowId, Row>, wanted: &RangeId) -> BTreeSet<SortKey> {
    let mut found = BTreeSet::new();
    for row in rows.values() {
        ranges::entries(row, |range, sort| {
            if range == *wanted {
                found.insert(sort);
            }
        });
    }
    found
}

fn job(key: u64, state: JobState, priority: i32, due: i64) -> Job {
    Job {
        key,
        element_key: 1,
        scope: 1,
        root: 1,
        tenant: "t".into(),
        definition: 1,
        element: 1,
        job_type: "j".into(),
        state,
        retries: 3,
        priority,
        worker: "".into(),
        lease: 0,
        due,
        headers: "".into(),
        lineage: [0; 16],
        steps: 0,
        completion: None,
    }
}

fn element(key: u64, scope: u64) -> Element {
    Element {
        key,
        scope,
        root: 1,
        element: 1,
        phase: Phase::Active,
        job: 0,
        incident: 0,
        has_locals: false,
        attached: Vec::new(),
    }
}

#[test]
fn the_cache_answers_as_the_store_does() {
    let mut loads = 0;
    for seed in 0..600 {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.step();
        }
        loads += world.loads;
    }
    assert!(loads > 10_000, "nothing was forgotten: {loads} loads");
}

/// A range that is bigger than memory may keep is walked in as many loads as it has pages, with changes on top.
#[test]
fn a_range_bigger_than_its_head_is_walked_once() {
    let mut world = World::new(0);
    for key in 0..200 {
        let row = job(1_000 + key, JobState::Ready, 0, 0);
        world.committed.insert(row.id(), Row::Job(Arc::new(row)));
    }
    world.page_max = 10;
    let ready = RangeId::Ready { tenant: "t".into(), job_type: "j".into() };
    let lease = |draft: &mut Draft<'_>| {
        let all = draft.first_in(&ready, usize::MAX)?;
        for sort in &all {
            draft.put(job(sort.key, JobState::Activated, 0, 9))?;
        }
        Ok(all.len())
    };
    let (leased, changes) = world.run(lease);
    assert_eq!(leased, 200);
    assert!(world.loads <= 21, "{} loads", world.loads);
    world.cache.apply(changes, |_, _| ());
    world.cache.end_command();
    // The turn is not committed: the store still says that they are ready.
    let (leased, _) = world.run(lease);
    assert_eq!(leased, 0);
}
