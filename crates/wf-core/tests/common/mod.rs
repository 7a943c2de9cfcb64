//! A partition without an engine: rows and ranges in maps, one command after the other, time as the test wants it.
//! Each command is decided twice, with everything loaded and with nothing loaded at first, and must come out the same.
//! It stores nothing and knows no idempotency key. Next: `model.rs`, `trace.rs`, `invariants.rs`.

pub mod across;
mod invariants;
pub mod model;
mod trace;
mod verbs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wf_core::draft::{Base, Changes, Draft, RangeView, Stop};
use wf_core::event::What;
use wf_core::ranges::{self, SortKey};
use wf_core::rows::{Text, Variables};
use wf_core::{
    Command, Context, Key, Millis, Need, Outcome, Partitions, RangeId, Rejection, Row, RowId, canonical, decide,
};
use wf_model::Process;

pub use trace::object;
pub use verbs::{DEDUP_MS, LEASE_MS, holder};

pub const PARTITION: u16 = 1;
pub const START: Millis = 1_800_000_000_000;
/// Entries that a cold load of a range brings.
const PAGE: usize = 2;

static NOTHING: BTreeSet<SortKey> = BTreeSet::new();

#[derive(Clone)]
pub struct World {
    pub partition: u16,
    /// Of how many.
    pub partitions: Partitions,
    /// What its commands sent to other partitions, until somebody takes it.
    pub sent: Vec<(u16, Command)>,
    pub rows: BTreeMap<RowId, Row>,
    ranges: BTreeMap<RangeId, BTreeSet<SortKey>>,
    processes: BTreeMap<Key, Arc<Process>>,
    pub now: Millis,
    /// Of the last command that changed something.
    pub position: u64,
    pub next_counter: u64,
    pub digest: u128,
    pub tenant: Text,
    /// The next requests' idempotency key; it ties lineages to them.
    pub origin: Text,
    /// Big worlds go without: a cold run begins again at every miss.
    pub is_cold_too: bool,
    /// Big worlds go without: all rows are looked at after every command.
    pub is_checked: bool,
    /// Worlds that are copied many times go without: what was done is kept, to be done again.
    pub is_logged: bool,
    names: trace::Names,
    lines: Vec<String>,
    /// Ends of the leases given out, by job.
    leases: BTreeMap<Key, Millis>,
    completed: BTreeSet<Key>,
    /// What changed something, to be done again by another world.
    log: Vec<(Command, Context)>,
}

impl World {
    pub fn new() -> World {
        World::from_counter(1)
    }

    /// As a store that has given out other keys before.
    pub fn from_counter(next_counter: u64) -> World {
        World {
            partition: PARTITION,
            partitions: Partitions::ONE,
            sent: Vec::new(),
            rows: BTreeMap::new(),
            ranges: BTreeMap::new(),
            processes: BTreeMap::new(),
            now: START,
            position: next_counter,
            next_counter,
            digest: canonical::digest_of_counters(PARTITION, next_counter),
            tenant: "default".into(),
            origin: "".into(),
            is_cold_too: true,
            is_checked: true,
            is_logged: true,
            names: trace::Names::default(),
            lines: Vec::new(),
            leases: BTreeMap::new(),
            completed: BTreeSet::new(),
            log: Vec::new(),
        }
    }

    /// One partition of several; everything is sent, nothing arrives by itself.
    pub fn of(partition: u16, partitions: Partitions) -> World {
        let mut world = World { partition, partitions, ..World::new() };
        world.digest = canonical::digest_of_counters(partition, world.next_counter);
        world
    }

    /// With the models deployed, and nothing to trace yet.
    pub fn with(models: &[(&str, &str)]) -> World {
        let mut world = World::new();
        for (process_id, lines) in models {
            world.deploy(&model::xml(process_id, lines)).unwrap();
        }
        world.trace();
        world
    }

    /// Decides and applies. A rejection changes nothing.
    pub fn run(&mut self, command: Command) -> Result<Outcome, Rejection> {
        let context = Context {
            tenant: self.tenant.clone(),
            now: self.now,
            partition: self.partition,
            partitions: self.partitions,
            position: self.position + 1,
            origin: self.origin.clone(),
        };
        let warm = attempt(self, self.next_counter, &command, &context);
        if self.is_cold_too {
            let cold = self.run_cold(&command, &context);
            assert_same(&warm, &cold, &command);
        }
        match warm {
            Ok((outcome, changes)) => {
                self.apply(&command, &outcome, changes);
                if self.is_logged && self.position == context.position {
                    self.log.push((command, context));
                }
                Ok(outcome)
            }
            Err(Stop::Rejected(rejection)) => Err(rejection),
            Err(Stop::Missing(needs)) => panic!("everything is loaded, and still missing: {needs:?}"),
        }
    }

    /// L2.3: the digest of a world that executes the log again.
    pub fn replayed(&self) -> u128 {
        let mut world = World::of(self.partition, self.partitions);
        (world.is_cold_too, world.is_checked) = (false, false);
        for (command, context) in &self.log {
            (world.now, world.tenant, world.origin) = (context.now, context.tenant.clone(), context.origin.clone());
            world.run(command.clone()).unwrap();
            assert_eq!(world.position, context.position);
        }
        world.digest
    }

    fn run_cold(&self, command: &Command, context: &Context) -> Result<(Outcome, Changes), Stop> {
        let mut cold = Cold::of(self);
        loop {
            match attempt(&cold, self.next_counter, command, context) {
                Err(Stop::Missing(needs)) => needs.into_iter().for_each(|need| cold.load(need)),
                done => return done,
            }
        }
    }

    fn apply(&mut self, command: &Command, outcome: &Outcome, changes: Changes) {
        if let Command::AdoptDefinitions { definitions, .. } = command {
            let compiled = definitions.iter().filter_map(|new| Some((new.key, new.process.clone()?)));
            self.processes.extend(compiled);
        }
        if let (Command::Deploy { resources }, Outcome::Deployed(deployed)) = (command, outcome) {
            let processes = resources.iter().flat_map(|resource| &resource.processes);
            self.processes
                .extend(deployed.iter().zip(processes).map(|(deployed, process)| (deployed.key, process.clone())));
        }
        if matches!(outcome, Outcome::Done { applied: false }) {
            assert!(changes.rows.is_empty() && changes.events.is_empty(), "{command:?} changed something unasked");
        }
        if changes.rows.is_empty() && changes.events.is_empty() {
            assert!(changes.sent.is_empty(), "{command:?} sends something without an event");
            assert_eq!(changes.next_counter, self.next_counter, "a key without an event");
            return;
        }
        assert!(!changes.events.is_empty(), "{command:?} changed something that the audit will not know (L6.1)");
        self.sent.extend(changes.sent);
        for (id, new) in changes.rows {
            self.replace(id, new);
        }
        self.watch_leases(&changes.events);
        self.position += 1;
        self.digest = self.digest.wrapping_sub(canonical::digest_of_counters(self.partition, self.next_counter));
        self.next_counter = changes.next_counter;
        self.digest = self.digest.wrapping_add(canonical::digest_of_counters(self.partition, self.next_counter));
        let lines = changes.events.iter().map(|event| self.names.line(event, START)).collect::<Vec<_>>();
        self.lines.extend(lines);
        if self.is_checked {
            self.check();
        }
    }

    /// A row as a command would leave it, with its ranges and its digest.
    pub fn replace(&mut self, id: RowId, new: Option<Row>) {
        let old = self.rows.remove(&id);
        self.digest = canonical::shift(self.digest, old.as_ref(), new.as_ref());
        if let Some(old) = &old {
            ranges::entries(old, |range, sort| {
                self.ranges.entry(range).or_default().remove(&sort);
            });
        }
        if let Some(new) = new {
            assert_eq!(new.id(), id);
            ranges::entries(&new, |range, sort| {
                assert_eq!(ranges::row_at(&range, &sort), Some(id.clone()));
                self.ranges.entry(range).or_default().insert(sort);
            });
            self.rows.insert(id, new);
        }
    }

    /// L3.1, L3.3: never two live leases for one job, and no lease does anything when it is over.
    fn watch_leases(&mut self, events: &[wf_core::Event]) {
        for event in events {
            match &event.what {
                What::JobActivated { deadline, .. } => {
                    let before = self.leases.insert(event.resource, *deadline);
                    assert!(before.is_none_or(|end| end <= self.now), "two live leases of {}", event.resource);
                }
                What::JobLeaseExtended { deadline } => {
                    let before = self.leases.insert(event.resource, *deadline);
                    assert!(before.is_some_and(|end| end > self.now), "{} was over", event.resource);
                }
                What::JobCompleted { .. } | What::JobFailed { .. } | What::JobErrorThrown { .. } => {
                    let lease = self.leases.remove(&event.resource);
                    assert!(lease.is_some_and(|end| end > self.now), "{} was over", event.resource);
                }
                _ => (),
            }
            if matches!(event.what, What::JobCompleted { .. }) {
                assert!(self.completed.insert(event.resource), "{} is completed twice", event.resource);
            }
        }
    }

    pub fn range_of(&self, id: &RangeId) -> Option<&BTreeSet<SortKey>> {
        self.ranges.get(id)
    }

    /// What happened since the last call, a line per event.
    pub fn trace(&mut self) -> String {
        let mut text = std::mem::take(&mut self.lines).join("\n");
        text.push('\n');
        text
    }
}

fn attempt(base: &dyn Base, counter: u64, command: &Command, context: &Context) -> Result<(Outcome, Changes), Stop> {
    let mut draft = Draft::new(base, context.partition, counter);
    decide(&mut draft, command, context).map(|outcome| (outcome, draft.finish()))
}

fn assert_same(warm: &Result<(Outcome, Changes), Stop>, cold: &Result<(Outcome, Changes), Stop>, command: &Command) {
    match (warm, cold) {
        (Ok((warm, changes)), Ok((cold, cold_changes))) => {
            assert_eq!(warm, cold, "{command:?}");
            assert_eq!(changes.rows, cold_changes.rows, "{command:?}");
            assert_eq!(changes.moved, cold_changes.moved, "{command:?}");
            assert_eq!(changes.events, cold_changes.events, "{command:?}");
            assert_eq!(changes.next_counter, cold_changes.next_counter, "{command:?}");
            assert_eq!(format!("{:?}", changes.sent), format!("{:?}", cold_changes.sent), "{command:?}");
        }
        (Err(warm), Err(cold)) => assert_eq!(warm, cold, "{command:?}"),
        _ => panic!("loaded: {warm:?}; cold: {cold:?}; {command:?}"),
    }
}

impl Base for World {
    fn row(&self, id: &RowId) -> Option<Option<Row>> {
        Some(self.rows.get(id).cloned())
    }

    fn range(&self, id: &RangeId) -> Option<RangeView<'_>> {
        let entries = self.ranges.get(id).unwrap_or(&NOTHING);
        Some(RangeView { entries, frontier: None })
    }

    fn process(&self, definition: Key) -> Option<Arc<Process>> {
        self.processes.get(&definition).cloned()
    }
}

/// Nothing is loaded until it is asked for; ranges come a page at a time, with their rows.
struct Cold<'w> {
    world: &'w World,
    rows: BTreeSet<RowId>,
    ranges: BTreeMap<RangeId, (BTreeSet<SortKey>, Option<SortKey>)>,
    processes: BTreeSet<Key>,
}

impl<'w> Cold<'w> {
    fn of(world: &'w World) -> Cold<'w> {
        Cold { world, rows: BTreeSet::new(), ranges: BTreeMap::new(), processes: BTreeSet::new() }
    }

    fn load(&mut self, need: Need) {
        match need {
            Need::Row(id) => assert!(self.rows.insert(id.clone()), "asked for twice: {id:?}"),
            Need::Process(key) => assert!(self.processes.insert(key), "asked for twice: {key}"),
            Need::Range(id, after) => self.load_page(id, after),
        }
    }

    fn load_page(&mut self, id: RangeId, after: Option<SortKey>) {
        let all = self.world.ranges.get(&id).unwrap_or(&NOTHING);
        let rest = all.iter().filter(|sort| after.as_ref().is_none_or(|after| *sort > after));
        let page: Vec<SortKey> = rest.take(PAGE).cloned().collect();
        let head = self.ranges.entry(id.clone()).or_default();
        assert_eq!(head.1, after, "the head of {id:?} is asked for again");
        head.1 = page.last().filter(|last| all.last() != Some(*last)).cloned();
        self.rows.extend(page.iter().filter_map(|sort| ranges::row_at(&id, sort)));
        head.0.extend(page);
    }
}

impl Base for Cold<'_> {
    fn row(&self, id: &RowId) -> Option<Option<Row>> {
        self.rows.contains(id).then(|| self.world.rows.get(id).cloned())
    }

    fn range(&self, id: &RangeId) -> Option<RangeView<'_>> {
        let (entries, frontier) = self.ranges.get(id)?;
        Some(RangeView { entries, frontier: frontier.as_ref() })
    }

    fn process(&self, definition: Key) -> Option<Arc<Process>> {
        self.processes.contains(&definition).then(|| self.world.processes.get(&definition).cloned())?
    }
}

/// `x=1; y="a"` as variables, sorted.
pub fn vars(text: &str) -> Variables {
    let members = text.split(';').map(str::trim).filter(|member| !member.is_empty());
    let mut variables: Variables = members
        .map(|member| {
            let (name, value) = member.split_once('=').unwrap();
            (Text::from(name.trim()), Text::from(value.trim()))
        })
        .collect();
    variables.sort();
    variables
}
