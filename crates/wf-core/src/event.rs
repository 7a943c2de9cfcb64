//! What happened, for the audit and for sinks. Events describe changes that rows hold already; nothing is rebuilt from them.

use crate::ids::{Key, Millis};
use crate::rows::{IncidentKind, Text, Variables};

/// One thing that happened. `resource` is the key of what it is about, `root` the instance (0 for none).
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub resource: Key,
    pub root: Key,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    DefinitionDeployed {
        process_id: Text,
        version: u32,
        resource: Text,
    },
    InstanceStarted {
        process_id: Text,
        version: u32,
        variables: Variables,
    },
    InstanceCompleted {
        process_id: Text,
        version: u32,
    },
    InstanceCanceled {
        process_id: Text,
        version: u32,
    },
    ElementActivated {
        element_id: Text,
    },
    ElementCompleted {
        element_id: Text,
    },
    ElementTerminated {
        element_id: Text,
    },
    VariablesSet {
        variables: Variables,
    },
    JobCreated {
        job_type: Text,
        element_id: Text,
    },
    JobActivated {
        worker: Text,
        lease: u64,
        deadline: Millis,
    },
    JobCompleted {
        job_type: Text,
        worker: Text,
    },
    JobFailed {
        retries: i32,
        message: Text,
    },
    JobErrorThrown {
        code: Text,
        caught_by: Option<Text>,
    },
    JobCanceled,
    JobLeaseExpired {
        worker: Text,
    },
    JobLeaseExtended {
        deadline: Millis,
    },
    JobReady,
    JobStepRecorded {
        name: Text,
    },
    TimerScheduled {
        element_id: Text,
        due: Millis,
    },
    TimerFired {
        element_id: Text,
    },
    TimerCanceled,
    SubscriptionOpened {
        message: Text,
        correlation_key: Text,
    },
    SubscriptionClosed,
    MessagePublished {
        name: Text,
        correlation_key: Text,
        message_id: Option<Text>,
    },
    MessageCorrelated {
        name: Text,
        element_id: Text,
    },
    MessageExpired,
    /// To an instance of another partition.
    MessageHandedOver {
        name: Text,
    },
    /// The instance that it was handed to has ended meanwhile.
    MessageRejected {
        name: Text,
    },
    MessageSettled {
        accepted: bool,
    },
    /// Of another partition.
    SubscriptionAnnounced {
        message: Text,
        correlation_key: Text,
    },
    SubscriptionWithdrawn,
    /// What another partition deployed.
    DefinitionAdopted {
        process_id: Text,
        version: u32,
    },
    IncidentCreated {
        kind: IncidentKind,
        element_id: Text,
        message: Text,
        job: Key,
    },
    IncidentResolved,
    FollowUpScheduled,
    /// Its work was taken up, or was about something that had ended meanwhile.
    FollowUpDone,
    Quarantined {
        reason: Text,
    },
    Purged {
        rows: u32,
    },
    EpochOpened {
        epoch: u64,
        previous_position: u64,
    },
    ClockSet {
        now: Millis,
    },
}

impl What {
    /// The stable name, as audit, sinks and documentation spell it.
    pub fn name(&self) -> &'static str {
        match self {
            What::DefinitionDeployed { .. } => "definition.deployed",
            What::InstanceStarted { .. } => "instance.started",
            What::InstanceCompleted { .. } => "instance.completed",
            What::InstanceCanceled { .. } => "instance.canceled",
            What::ElementActivated { .. } => "element.activated",
            What::ElementCompleted { .. } => "element.completed",
            What::ElementTerminated { .. } => "element.terminated",
            What::VariablesSet { .. } => "variables.set",
            What::JobCreated { .. } => "job.created",
            What::JobActivated { .. } => "job.activated",
            What::JobCompleted { .. } => "job.completed",
            What::JobFailed { .. } => "job.failed",
            What::JobErrorThrown { .. } => "job.error-thrown",
            What::JobCanceled => "job.canceled",
            What::JobLeaseExpired { .. } => "job.lease-expired",
            What::JobLeaseExtended { .. } => "job.lease-extended",
            What::JobReady => "job.ready",
            What::JobStepRecorded { .. } => "job.step-recorded",
            What::TimerScheduled { .. } => "timer.scheduled",
            What::TimerFired { .. } => "timer.fired",
            What::TimerCanceled => "timer.canceled",
            What::SubscriptionOpened { .. } => "subscription.opened",
            What::SubscriptionClosed => "subscription.closed",
            What::MessagePublished { .. } => "message.published",
            What::MessageCorrelated { .. } => "message.correlated",
            What::MessageExpired => "message.expired",
            What::MessageHandedOver { .. } => "message.handed-over",
            What::MessageRejected { .. } => "message.rejected",
            What::MessageSettled { .. } => "message.settled",
            What::SubscriptionAnnounced { .. } => "subscription.announced",
            What::SubscriptionWithdrawn => "subscription.withdrawn",
            What::DefinitionAdopted { .. } => "definition.adopted",
            What::IncidentCreated { .. } => "incident.created",
            What::IncidentResolved => "incident.resolved",
            What::FollowUpScheduled => "follow-up.scheduled",
            What::FollowUpDone => "follow-up.done",
            What::Quarantined { .. } => "command.quarantined",
            What::Purged { .. } => "retention.purged",
            What::EpochOpened { .. } => "epoch.opened",
            What::ClockSet { .. } => "clock.set",
        }
    }

    /// Published to sinks as well, not only written to the audit.
    pub fn is_published(&self) -> bool {
        matches!(
            self,
            What::InstanceStarted { .. }
                | What::InstanceCompleted { .. }
                | What::InstanceCanceled { .. }
                | What::JobCompleted { .. }
                | What::IncidentCreated { .. }
        )
    }
}

impl IncidentKind {
    pub const ALL: [IncidentKind; 9] = [
        IncidentKind::JobNoRetries,
        IncidentKind::UnhandledError,
        IncidentKind::Expression,
        IncidentKind::Condition,
        IncidentKind::Mapping,
        IncidentKind::MessageKey,
        IncidentKind::Timer,
        IncidentKind::Budget,
        IncidentKind::Internal,
    ];

    /// The stable name, as the API spells it.
    pub fn name(self) -> &'static str {
        match self {
            IncidentKind::JobNoRetries => "JOB_NO_RETRIES",
            IncidentKind::UnhandledError => "UNHANDLED_ERROR_EVENT",
            IncidentKind::Expression => "EXTRACT_VALUE_ERROR",
            IncidentKind::Condition => "CONDITION_ERROR",
            IncidentKind::Mapping => "IO_MAPPING_ERROR",
            IncidentKind::MessageKey => "MESSAGE_KEY_ERROR",
            IncidentKind::Timer => "TIMER_ERROR",
            IncidentKind::Budget => "STEP_BUDGET_EXCEEDED",
            IncidentKind::Internal => "INTERNAL_ERROR",
        }
    }
}
