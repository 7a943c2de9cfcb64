//! What may be asked of a partition. Values only: policies and times that a command needs stand in it,
//! so that a replay needs nothing else. Next: `decide.rs`.

use std::sync::Arc;

use wf_model::Process;

use crate::ids::{Key, Millis};
use crate::partitions::Partitions;
use crate::rows::{Json, Subscription, Text, Variables};

/// What surrounds a command: given by the turn, never looked up.
#[derive(Clone, Debug)]
pub struct Context {
    pub tenant: Text,
    /// The command's own time; never goes back within a partition.
    pub now: Millis,
    pub partition: u16,
    /// Those of the store: where a name is at home depends on them.
    pub partitions: Partitions,
    /// The position that the command takes if it changes something.
    pub position: u64,
    /// Where lineage begins: the request's idempotency key; empty where there is none.
    pub origin: Text,
}

#[derive(Clone, Debug)]
pub enum Command {
    Deploy {
        resources: Vec<Resource>,
    },
    StartInstance {
        process_id: Text,
        /// The latest where absent.
        version: Option<u32>,
        variables: Variables,
        unique: Option<UniqueOn>,
    },
    CancelInstance {
        instance: Key,
    },
    SetVariables {
        instance: Key,
        /// An element or scope of the instance whose local variables are set; the root where absent.
        scope: Option<Key>,
        variables: Variables,
    },
    ActivateJobs {
        job_type: Text,
        worker: Text,
        jobs_max: u32,
        lease_ms: i64,
        /// All visible variables where absent.
        fetch: Option<Vec<Text>>,
    },
    CompleteJob {
        holder: Holder,
        variables: Variables,
    },
    /// Each item stands alone, in the order given.
    CompleteJobs {
        worker: Text,
        items: Vec<CompleteItem>,
    },
    FailJob {
        holder: Holder,
        message: Text,
        /// One less than now where absent.
        retries: Option<i32>,
        backoff_ms: i64,
        variables: Variables,
    },
    ThrowError {
        holder: Holder,
        code: Text,
        message: Text,
        variables: Variables,
    },
    ExtendLease {
        holder: Holder,
        lease_ms: i64,
    },
    RecordStep {
        holder: Holder,
        name: Text,
        result: Json,
    },
    PublishMessage {
        name: Text,
        correlation_key: Text,
        message_id: Option<Text>,
        ttl_ms: i64,
        /// How long a message id is remembered, whatever the TTL.
        dedup_ms: i64,
        variables: Variables,
    },
    ResolveIncident {
        incident: Key,
        retries: Option<i32>,
    },

    // Made by the engine. Each checks again that what it is about is still there.
    FireTimer {
        timer: Key,
        due: Millis,
    },
    ExpireLease {
        job: Key,
        lease: u64,
    },
    EndBackoff {
        job: Key,
        due: Millis,
    },
    ExpireMessage {
        message: Key,
    },
    /// Work over an earlier command's budget.
    Continue {
        follow_up: Key,
    },
    /// An engine's own command that could not be executed: put aside, so that it is not tried for ever.
    Quarantine {
        what: Quarantined,
        reason: Text,
    },
    /// Drops what ended before a time, a slice at a time.
    Purge {
        before: Millis,
        rows_max: u32,
    },
    /// The first command after a partition was taken: names what precedes it.
    OpenEpoch {
        epoch: u64,
        previous_position: u64,
        previous_digest: [u8; 16],
        semantics: u32,
    },
    SetClock {
        now: Millis,
        frozen: bool,
    },

    // Sent by another partition, see `crossing.rs`.
    AdoptDefinitions {
        tenant: Text,
        definitions: Vec<Adopted>,
    },
    OpenSubscription {
        copy: Subscription,
    },
    CloseSubscription {
        subscription: Key,
        root: Key,
    },
    /// A message for a subscription of this partition.
    Correlate {
        subscription: Key,
        message: Key,
        tenant: Text,
        name: Text,
        variables: Variables,
    },
    /// What became of a message that was handed over.
    SettleCorrelation {
        subscription: Key,
        message: Key,
        accepted: bool,
    },
}

/// A definition as the partition that deployed it made it.
#[derive(Clone, Debug)]
pub struct Adopted {
    pub key: Key,
    pub process_id: Text,
    pub version: u32,
    pub resource: Text,
    pub xml: Arc<[u8]>,
    pub deployed_at: Millis,
    /// Compiled before the turn, as a deployment's are.
    pub process: Option<Arc<Process>>,
}

/// What the engine gives up on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quarantined {
    Timer(Key),
    FollowUp(Key),
    /// A message between two partitions: at the instance's, which could not take it, or at the message's, which could not
    /// go on after it was settled.
    Handover {
        subscription: Key,
        message: Key,
    },
    /// A subscription of an instance here that could not be opened where its message arrives.
    Subscription(Key),
    /// One of an instance elsewhere that could not be opened here.
    Copy(Key),
    /// Any other command of another partition: (source, position, number).
    Sent(u16, u64, u32),
}

#[derive(Clone, Debug)]
pub struct Resource {
    pub name: Text,
    pub xml: Arc<[u8]>,
    /// Compiled at the door, so that no XML is parsed in a turn.
    pub processes: Vec<Arc<Process>>,
}

/// A variable whose value must be unique among live instances, with the hash of its canonical JSON.
#[derive(Clone, Debug)]
pub struct UniqueOn {
    pub variable: Text,
    pub value: [u8; 16],
}

/// Who says that it holds a job.
#[derive(Clone, Debug)]
pub struct Holder {
    pub job: Key,
    pub worker: Text,
    pub lease: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct CompleteItem {
    pub job: Key,
    pub lease: Option<u64>,
    pub variables: Variables,
}

impl Command {
    /// The engine makes it itself: nobody asked for it, and no tenant.
    pub fn is_own(&self) -> bool {
        matches!(
            self,
            Command::FireTimer { .. }
                | Command::ExpireLease { .. }
                | Command::EndBackoff { .. }
                | Command::ExpireMessage { .. }
                | Command::Continue { .. }
                | Command::Quarantine { .. }
                | Command::Purge { .. }
                | Command::OpenEpoch { .. }
                | Command::SetClock { .. }
        ) || self.is_crossing()
    }

    /// Another partition sent it.
    pub fn is_crossing(&self) -> bool {
        matches!(
            self,
            Command::AdoptDefinitions { .. }
                | Command::OpenSubscription { .. }
                | Command::CloseSubscription { .. }
                | Command::Correlate { .. }
                | Command::SettleCorrelation { .. }
        )
    }

    /// The verb, as the log and the metrics name it.
    pub fn verb(&self) -> &'static str {
        match self {
            Command::Deploy { .. } => "deploy",
            Command::StartInstance { .. } => "start-instance",
            Command::CancelInstance { .. } => "cancel-instance",
            Command::SetVariables { .. } => "set-variables",
            Command::ActivateJobs { .. } => "activate-jobs",
            Command::CompleteJob { .. } => "complete-job",
            Command::CompleteJobs { .. } => "complete-jobs",
            Command::FailJob { .. } => "fail-job",
            Command::ThrowError { .. } => "throw-error",
            Command::ExtendLease { .. } => "extend-lease",
            Command::RecordStep { .. } => "record-step",
            Command::PublishMessage { .. } => "publish-message",
            Command::ResolveIncident { .. } => "resolve-incident",
            Command::FireTimer { .. } => "fire-timer",
            Command::ExpireLease { .. } => "expire-lease",
            Command::EndBackoff { .. } => "end-backoff",
            Command::ExpireMessage { .. } => "expire-message",
            Command::Continue { .. } => "continue",
            Command::Quarantine { .. } => "quarantine",
            Command::Purge { .. } => "purge",
            Command::OpenEpoch { .. } => "open-epoch",
            Command::SetClock { .. } => "set-clock",
            Command::AdoptDefinitions { .. } => "adopt-definitions",
            Command::OpenSubscription { .. } => "open-subscription",
            Command::CloseSubscription { .. } => "close-subscription",
            Command::Correlate { .. } => "correlate",
            Command::SettleCorrelation { .. } => "settle-correlation",
        }
    }
}
