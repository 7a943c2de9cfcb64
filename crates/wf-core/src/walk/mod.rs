//! Tokens on their way: a queue of things that follow from one command, worked off in order and within a budget.
//! What is over the budget becomes a follow-up row. It knows the graph and the rows, no verbs.
//! Read `enter.rs` (a token arrives), `leave.rs` (it goes on), `trigger.rs` (an event), `terminate.rs` (an end by force), `park.rs` (an incident).

mod enter;
mod attach;
mod park;
mod leave;
mod gateways;
mod trigger;
mod terminate;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use wf_model::{Element as Node, ElementIdx, FlowIdx, Kind, Process};

use crate::command::{Command, Context};
use crate::draft::{Draft, Run};
use crate::event::What;
use crate::expressions::{Effort, Place};
use crate::ids::Key;
use crate::messages::StartNext;
use crate::ranges::SortKey;
use crate::rows::{FollowUp, Instance, RowId, Scope, ScopeState, Subscription, Text, Variables, Work};

/// Element steps of one command; the rest becomes follow-ups.
pub const STEPS_MAX: u32 = 1_000;
/// Work on expressions in one command (steps of FEEL, or bytes in proportion: about a quarter of a second); the rest becomes
/// follow-ups. Without it a loop of a thousand steps through a hard expression would keep everybody waiting for minutes.
pub const WORK_MAX: u64 = 1_000_000;
/// Work on the expressions of one element, which cannot be divided; then an incident.
pub const ELEMENT_WORK_MAX: u64 = 4_000_000;
/// Elements that one command terminates.
pub const TERMINATIONS_MAX: usize = 500;
/// Steps of one instance; then an incident waits, so that a loop cannot run for ever unseen.
pub const INSTANCE_STEPS_MAX: u64 = 1_000_000;
/// A command that took fewer steps of an instance does not count them: a loop without waiting shows in long commands,
/// and a short command need not write the root's row for it.
const STEPS_COUNTED_FROM: u64 = 64;

const _: () = assert!(STEPS_COUNTED_FROM < STEPS_MAX as u64);

pub(crate) struct Walk<'d, 'a> {
    pub draft: &'d mut Draft<'a>,
    pub context: &'d Context,
    queue: VecDeque<Task>,
    steps: u32,
    /// Element steps by instance.
    steps_of: BTreeMap<Key, u64>,
    pub evaluations: u64,
    pub effort: Effort,
    /// Messages of this command with the instances that they reached.
    reached: Vec<(Key, Key)>,
}

/// What follows.
pub(crate) enum Task {
    Arrive {
        scope: Key,
        element: ElementIdx,
        flow: Option<FlowIdx>,
    },
    /// A subscription was opened, or has taken the buffered message `after`: another may wait for it.
    MatchBuffered {
        subscription: Key,
        after: Option<SortKey>,
    },
    /// A TERMINATING scope is emptied.
    Terminate {
        scope: Key,
    },
    /// An instance that a message started has ended: a buffered message may start the next.
    StartNext(StartNext),
}

/// A scope's row with the element of the graph that it runs.
pub(crate) struct Here {
    pub scope: Arc<Scope>,
    pub process: Arc<Process>,
}

impl<'d, 'a> Walk<'d, 'a> {
    pub fn new(draft: &'d mut Draft<'a>, context: &'d Context) -> Walk<'d, 'a> {
        Walk {
            draft,
            context,
            queue: VecDeque::new(),
            steps: 0,
            steps_of: BTreeMap::new(),
            evaluations: 0,
            effort: Effort::default(),
            reached: Vec::new(),
        }
    }

    /// A row in another partition's inbox is work as a step is.
    pub(crate) fn send(&mut self, target: u16, command: Command) {
        self.steps = self.steps.saturating_add(1);
        self.draft.send(target, command);
    }

    pub fn push(&mut self, task: Task) {
        self.queue.push_back(task);
    }

    /// Works off the queue.
    pub fn run(&mut self) -> Run<()> {
        while let Some(task) = self.queue.pop_front() {
            if self.steps >= STEPS_MAX || self.effort.is_spent() {
                self.queue.push_front(task);
                return self.put_off();
            }
            self.steps += 1;
            self.effort.begin_element();
            match task {
                Task::Arrive { scope, element, flow } => self.arrive(scope, element, flow)?,
                Task::MatchBuffered { subscription, after } => self.match_buffered(subscription, after)?,
                Task::Terminate { scope } => self.terminate(scope)?,
                Task::StartNext(next) => crate::messages::start_next(self, &next)?,
            }
        }
        Ok(())
    }

    /// What is left becomes follow-up rows, in order.
    fn put_off(&mut self) -> Run<()> {
        while let Some(task) = self.queue.pop_front() {
            let (scope, work) = match task {
                Task::Arrive { scope, element, flow } => (scope, Work::Arrive { element, flow }),
                Task::Terminate { scope } => (scope, Work::Terminate),
                Task::StartNext(next) => (0, next.into_work()),
                Task::MatchBuffered { subscription, .. } => {
                    let open = self.draft.get::<Subscription>(&RowId::Subscription(subscription))?;
                    (open.map_or(0, |open| open.scope), Work::MatchBuffered { subscription })
                }
            };
            self.schedule(scope, work)?;
        }
        Ok(())
    }

    pub(crate) fn schedule(&mut self, scope: Key, work: Work) -> Run<()> {
        let root = match scope {
            0 => 0,
            scope => self.draft.get::<Scope>(&RowId::Scope(scope))?.map_or(0, |scope| scope.root),
        };
        let key = self.draft.next_key();
        self.draft.insert_new(FollowUp { key, root, scope, work });
        self.draft.emit(root, key, What::FollowUpScheduled);
        Ok(())
    }

    /// At the end of the command: each instance's own steps, once.
    pub fn count_steps(&mut self) -> Run<()> {
        for (root, steps) in std::mem::take(&mut self.steps_of) {
            if steps >= STEPS_COUNTED_FROM {
                self.change_instance(root, |instance| instance.steps = instance.steps.saturating_add(steps))?;
            }
        }
        Ok(())
    }

    pub(crate) fn note_reached(&mut self, message: Key, instance: Key) {
        self.reached.push((message, instance));
    }

    /// The instances that a message reached in this command: others may have been matched on the way.
    pub(crate) fn reached_by(&self, message: Key) -> Vec<Key> {
        let own = self.reached.iter().filter(|(reached, _)| *reached == message);
        own.map(|(_, instance)| *instance).collect()
    }

    pub(crate) fn here(&self, scope: Key) -> Run<Option<Here>> {
        let Some(scope) = self.draft.get::<Scope>(&RowId::Scope(scope))? else { return Ok(None) };
        let process = self.draft.process(scope.definition)?;
        Ok(Some(Here { scope, process }))
    }

    pub(crate) fn change_scope(&mut self, key: Key, change: impl FnOnce(&mut Scope)) -> Run<()> {
        if let Some(scope) = self.draft.get::<Scope>(&RowId::Scope(key))? {
            let mut changed = (*scope).clone();
            change(&mut changed);
            self.draft.put(changed)?;
        }
        Ok(())
    }

    pub(crate) fn change_instance(&mut self, root: Key, change: impl FnOnce(&mut Instance)) -> Run<()> {
        self.change_scope(root, |scope| {
            if let Some(instance) = &mut scope.instance {
                change(Arc::make_mut(instance));
            }
        })
    }

    pub(crate) fn instance(&self, root: Key) -> Run<Option<Arc<Instance>>> {
        Ok(self.draft.get::<Scope>(&RowId::Scope(root))?.and_then(|root| root.instance.clone()))
    }

    /// The scope and all scopes around it are alive.
    pub(crate) fn is_live(&self, scope: Key) -> Run<bool> {
        let mut at = scope;
        while at != 0 {
            match self.draft.get::<Scope>(&RowId::Scope(at))? {
                Some(scope) if scope.state == ScopeState::Active => at = scope.parent,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

impl Here {
    /// Where the scope's expressions are evaluated.
    pub(crate) fn place(&self) -> Place<'static> {
        static NOTHING: Variables = Variables::new();
        self.place_with(&NOTHING)
    }

    /// The same behind variables that are not yet rows.
    pub(crate) fn place_with<'p>(&self, locals: &'p Variables) -> Place<'p> {
        Place { locals, scope: self.scope.key }
    }

    pub(crate) fn node(&self, index: ElementIdx) -> Option<&Node> {
        self.process.element(index)
    }

    pub(crate) fn id_of(&self, index: ElementIdx) -> Text {
        self.node(index).map_or_else(|| Text::from(""), |node| node.id.clone())
    }

    /// A sub-process: its element has a scope of its own under the same key.
    pub(crate) fn is_scope(&self, index: ElementIdx) -> bool {
        self.node(index).is_some_and(|node| matches!(node.kind, Kind::Scope(_)))
    }
}
