//! The rows of the state: what a partition knows, one struct per table. Rows never refer to the log.
//! They are absolute values: a change replaces the whole row. Next: `ranges.rs`, the orders in which rows are found.

use std::sync::Arc;

use wf_model::{ElementIdx, FlowIdx};

use crate::ids::{Key, Millis};

/// Text that is cheap to copy.
pub type Text = Arc<str>;
/// A variable's value as compact JSON text: numbers stay exactly as they came.
pub type Json = Arc<str>;
/// Names and values, sorted by name, no name twice.
pub type Variables = Vec<(Text, Json)>;

/// A deployed process. Each executable process of a resource is a definition of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub key: Key,
    pub tenant: Text,
    pub process_id: Text,
    pub version: u32,
    pub resource: Text,
    pub checksum: [u8; 16],
    pub xml: Arc<[u8]>,
    pub deployed_at: Millis,
}

/// A message start event of the latest version of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartSubscription {
    pub tenant: Text,
    pub message: Text,
    pub process_id: Text,
    pub definition: Key,
    pub element: ElementIdx,
}

/// A process instance (the root scope) or an active embedded sub-process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Root: the instance key. Sub-process: the key of its element.
    pub key: Key,
    /// The instance key.
    pub root: Key,
    /// The scope around it; 0 for the root.
    pub parent: Key,
    pub definition: Key,
    pub element: ElementIdx,
    pub state: ScopeState,
    /// Live elements in this scope plus tokens that wait before a join.
    pub active: u32,
    /// Tokens that wait before a parallel join, per incoming flow; sorted, never 0.
    pub joins: Vec<(FlowIdx, u32)>,
    /// How often each worker's element of this scope was entered: the occurrence in lineage keys; sorted by element.
    pub visits: Vec<(ElementIdx, u32)>,
    /// Where lineage keys of its jobs begin.
    pub lineage: [u8; 16],
    /// What follows when a TERMINATING scope is empty.
    pub after: After,
    /// Only on the root.
    pub instance: Option<Arc<Instance>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeState {
    Active,
    Terminating,
    Completed,
    Canceled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    Nothing,
    /// The instance is canceled.
    Cancel,
    /// A terminate end event: the scope completes as if its last token had ended.
    Complete,
    /// A boundary event or an error caught outside: the token goes on from this element in the parent scope.
    Continue(ElementIdx),
}

/// What only the root scope knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    pub tenant: Text,
    pub process_id: Text,
    pub version: u32,
    pub started_at: Millis,
    /// 0 while it lives.
    pub ended_at: Millis,
    /// The positions of its first and last command bound the part of the audit that tells its story; 0 while it lives.
    pub started_position: u64,
    pub ended_position: u64,
    /// The uniqueness row that it holds, if any: variable name and value hash.
    pub unique: Option<(Text, [u8; 16])>,
    /// The correlation key of the message that started it, if any.
    pub start_correlation: Option<Text>,
    /// Element steps taken so far; bounded, so that a loop ends in an incident.
    pub steps: u64,
}

/// A live element: it waits for a worker, a message, a timer, its content, or an incident's resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    pub key: Key,
    pub scope: Key,
    pub root: Key,
    pub element: ElementIdx,
    pub phase: Phase,
    /// Its live job; 0 for none.
    pub job: Key,
    /// Its open incident; 0 for none.
    pub incident: Key,
    /// It may have variables of its own.
    pub has_locals: bool,
    /// Timers and subscriptions of its own, of its boundary events, or of an event gateway's branches.
    pub attached: Vec<Attached>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Stopped by an incident before it was entered fully; resolve tries again.
    Entering,
    Active,
    /// Stopped by an incident on the way out (an output mapping, a gateway's condition).
    Leaving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    pub kind: AttachedKind,
    pub key: Key,
    /// The catch or boundary event that it triggers.
    pub target: ElementIdx,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachedKind {
    Timer,
    Subscription,
}

impl Attached {
    pub fn row_id(&self) -> RowId {
        match self.kind {
            AttachedKind::Timer => RowId::Timer(self.key),
            AttachedKind::Subscription => RowId::Subscription(self.key),
        }
    }
}

/// One variable of one scope; `scope` is also an element's key, for local variables of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub scope: Key,
    pub name: Text,
    pub value: Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub key: Key,
    pub element_key: Key,
    pub scope: Key,
    pub root: Key,
    pub tenant: Text,
    pub definition: Key,
    pub element: ElementIdx,
    pub job_type: Text,
    pub state: JobState,
    pub retries: i32,
    pub priority: i32,
    /// The activation's holder; empty before the first activation.
    pub worker: Text,
    /// The activation's position: fences one activation from the next. 0 before the first.
    pub lease: u64,
    /// Activated: the lease's end. Backoff: when it is ready again. Finished: when it ended.
    pub due: Millis,
    /// Headers whose value was computed at creation, as a JSON object; empty text for none.
    pub headers: Json,
    pub lineage: [u8; 16],
    /// Steps recorded so far.
    pub steps: u32,
    /// Hash of the variables that the rightful holder completed it with: tells a repeat from another request.
    pub completion: Option<[u8; 16]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    Ready,
    Activated,
    /// Failed with a back-off: ready again at `due`.
    Backoff,
    /// No retries left: an incident waits for an operator.
    Failed,
    /// A worker threw an error that nothing catches: an incident waits.
    ErrorThrown,
    Completed,
    Canceled,
}

impl JobState {
    pub const ALL: [JobState; 7] = [
        JobState::Ready,
        JobState::Activated,
        JobState::Backoff,
        JobState::Failed,
        JobState::ErrorThrown,
        JobState::Completed,
        JobState::Canceled,
    ];
}

/// A recorded step of a job: the first write wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub job: Key,
    pub name: Text,
    pub result: Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    pub key: Key,
    /// The element whose timer it is.
    pub host: Key,
    pub scope: Key,
    pub root: Key,
    /// The catch or boundary event that it triggers.
    pub target: ElementIdx,
    pub due: Millis,
    /// Firings left after this one; -1 without end.
    pub repeats: i32,
    /// The interval of a cycle as ISO 8601 duration; empty otherwise. The next due date counts from this one: no drift.
    pub interval: Text,
}

/// An open message subscription. Where its messages are at home in another partition a copy of it stands there: the same
/// key, `scope` 0, and `host` 0 where it takes one message only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    pub key: Key,
    pub host: Key,
    pub scope: Key,
    pub root: Key,
    pub tenant: Text,
    pub process_id: Text,
    pub message: Text,
    pub correlation_key: Text,
    pub target: ElementIdx,
}

impl Subscription {
    /// As it stands where its messages arrive.
    pub fn copy(&self, takes_one: bool) -> Subscription {
        Subscription { scope: 0, host: if takes_one { 0 } else { self.host }, target: 0, ..self.clone() }
    }

    /// Of a copy.
    pub fn takes_one(&self) -> bool {
        self.host == 0
    }
}

/// A message that was handed to an instance of another partition and is not settled yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    pub subscription: Key,
    pub message: Key,
    pub root: Key,
    pub tenant: Text,
    pub process_id: Text,
    pub name: Text,
    pub correlation_key: Text,
    pub variables: Variables,
    pub expires_at: Millis,
}

/// A buffered message: waits for a subscription until it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub key: Key,
    pub tenant: Text,
    pub name: Text,
    pub correlation_key: Text,
    pub variables: Variables,
    pub expires_at: Millis,
    /// Processes that have had it: once per process, sorted.
    pub correlated: Vec<Text>,
}

/// A message id that was received: repeats of it correlate nothing until it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageId {
    pub tenant: Text,
    pub name: Text,
    pub message_id: Text,
    /// The first message's key.
    pub key: Key,
    /// Hash of correlation key and variables: another content under the same id is misuse.
    pub content: [u8; 16],
    pub expires_at: Millis,
}

/// While an instance that a message started lives, the same correlation key starts no second one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartLock {
    pub tenant: Text,
    pub process_id: Text,
    pub correlation_key: Text,
    pub root: Key,
}

/// `uniquenessKey`: one live instance per value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unique {
    pub tenant: Text,
    pub process_id: Text,
    pub variable: Text,
    pub value: [u8; 16],
    pub root: Key,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    pub key: Key,
    pub tenant: Text,
    pub root: Key,
    pub scope: Key,
    pub element_key: Key,
    pub element_id: Text,
    /// 0 where no job is concerned.
    pub job: Key,
    pub kind: IncidentKind,
    pub message: Text,
    pub created_at: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncidentKind {
    JobNoRetries,
    UnhandledError,
    Expression,
    Condition,
    Mapping,
    MessageKey,
    Timer,
    /// The instance took more steps than its budget allows.
    Budget,
    /// A command of the engine's own panicked or could not be stored.
    Internal,
}

/// Work over one command's budget, to be done by a command of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowUp {
    pub key: Key,
    pub root: Key,
    pub scope: Key,
    pub work: Work,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A token arrives at an element over a flow (`None`: from inside, as at a start event).
    Arrive { element: ElementIdx, flow: Option<FlowIdx> },
    /// The next slice of a TERMINATING scope.
    Terminate,
    /// Look for a buffered message that may start the next instance.
    StartNext { process_id: Text, message: Text, correlation_key: Text, tenant: Text },
    /// Look for buffered messages that an open subscription takes.
    MatchBuffered { subscription: Key },
}

macro_rules! rows {
    ($($row:ident),* $(,)?) => {
        /// Any row. Cheap to copy.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Row { $($row(Arc<$row>)),* }

        impl Row {
            pub fn id(&self) -> RowId {
                match self { $(Row::$row(row) => row.id()),* }
            }
        }

        $(impl Stored for $row {
            fn wrap(row: Arc<Self>) -> Row { Row::$row(row) }
            fn unwrap(row: &Row) -> Option<&Arc<Self>> {
                match row { Row::$row(row) => Some(row), _ => None }
            }
            fn row_id(&self) -> RowId { self.id() }
        })*
    };
}

rows!(
    Definition,
    StartSubscription,
    Scope,
    Element,
    Variable,
    Job,
    Step,
    Timer,
    Subscription,
    Message,
    MessageId,
    StartLock,
    Unique,
    Incident,
    FollowUp,
    Handover,
);

/// A typed row inside [`Row`].
pub trait Stored: Sized {
    fn wrap(row: Arc<Self>) -> Row;
    fn unwrap(row: &Row) -> Option<&Arc<Self>>;
    fn row_id(&self) -> RowId;
}

/// The primary key of a row, with its table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowId {
    Definition(Key),
    StartSubscription { tenant: Text, message: Text, process_id: Text },
    Scope(Key),
    Element { scope: Key, key: Key },
    Variable { scope: Key, name: Text },
    Job(Key),
    Step { job: Key, name: Text },
    Timer(Key),
    Subscription(Key),
    Message(Key),
    MessageId { tenant: Text, name: Text, message_id: Text },
    StartLock { tenant: Text, process_id: Text, correlation_key: Text },
    Unique { tenant: Text, process_id: Text, variable: Text, value: [u8; 16] },
    Incident(Key),
    FollowUp(Key),
    Handover { subscription: Key, message: Key },
}

macro_rules! ids {
    ($($row:ident: $self_:ident => $id:expr),* $(,)?) => {
        $(impl $row { pub fn id(&self) -> RowId { let $self_ = self; $id } })*
    };
}

ids!(
    Definition: row => RowId::Definition(row.key),
    StartSubscription: row => RowId::StartSubscription {
        tenant: row.tenant.clone(), message: row.message.clone(), process_id: row.process_id.clone(),
    },
    Scope: row => RowId::Scope(row.key),
    Element: row => RowId::Element { scope: row.scope, key: row.key },
    Variable: row => RowId::Variable { scope: row.scope, name: row.name.clone() },
    Job: row => RowId::Job(row.key),
    Step: row => RowId::Step { job: row.job, name: row.name.clone() },
    Timer: row => RowId::Timer(row.key),
    Subscription: row => RowId::Subscription(row.key),
    Message: row => RowId::Message(row.key),
    MessageId: row => RowId::MessageId {
        tenant: row.tenant.clone(), name: row.name.clone(), message_id: row.message_id.clone(),
    },
    StartLock: row => RowId::StartLock {
        tenant: row.tenant.clone(), process_id: row.process_id.clone(), correlation_key: row.correlation_key.clone(),
    },
    Unique: row => RowId::Unique {
        tenant: row.tenant.clone(), process_id: row.process_id.clone(), variable: row.variable.clone(), value: row.value,
    },
    Incident: row => RowId::Incident(row.key),
    FollowUp: row => RowId::FollowUp(row.key),
    Handover: row => RowId::Handover { subscription: row.subscription, message: row.message },
);
